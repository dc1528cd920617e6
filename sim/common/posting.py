# SPDX-License-Identifier: Apache-2.0
"""What a command will access, told before its doorbell is rung: for tests that let one access fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gharial.devices.base import Device
from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION, DESCRIPTOR

ENTRY_BYTES = 16


@dataclass(frozen=True)
class Posted:
    """A command in the ring.

    Attributes:
        fields: of the descriptor.
        descriptor, completion: their addresses.
        entries: words of the entries, (entries, 4); none of LOAD and START.
        index: how many were posted before it.
    """

    fields: dict[str, int]
    descriptor: int
    completion: int
    entries: list[list[int]]
    index: int

    def features(self, entry: int) -> int:
        """Address of an entry's features."""
        return self.fields["feature_lo"] + self.entries[entry][1]

    def result(self, entry: int) -> int:
        """Address of an entry's result."""
        return self.fields["result_lo"] + entry * self.fields["stride"]

    def state(self, entry: int) -> int:
        """Address of what SAVE writes, or RESTORE reads, for an entry."""
        return self.fields["result_lo"] + self.entries[entry][2]


class Telling:
    """Mixed into a device, calls `posted` with each command before it is rung for."""

    posted: Callable[[Posted], None] | None = None
    _rung = 0

    def tell(self, device: Device, tail: int) -> None:
        """The doorbell is about to be rung."""
        first, self._rung = self._rung, tail
        if self.posted is None:
            return
        registers = (reg.CMD_BASE_LO, reg.CMD_LOG2, reg.CPL_BASE_LO, reg.CPL_LOG2)
        commands, commands_log2, completions, completions_log2 = (device.read_register(r.offset) for r in registers)
        for index in range(first, tail):
            at = commands + DESCRIPTOR.bytes * (index % (1 << commands_log2))
            fields = DESCRIPTOR.unpack(np.frombuffer(device.read_memory(at, DESCRIPTOR.bytes), "<u4"))
            count = fields["entries"] if fields["operation"] > 3 else 0
            entries = np.frombuffer(device.read_memory(fields["entry_lo"], ENTRY_BYTES * count), "<u4")
            back = completions + COMPLETION.bytes * (index % (1 << completions_log2))
            self.posted(Posted(fields, at, back, entries.reshape(-1, 4).tolist(), index))

    def begin_anew(self) -> None:
        """Indices are zero again."""
        self._rung = 0
