# SPDX-License-Identifier: Apache-2.0
"""Commands as they were seen from fetch to completion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyuvm import uvm_analysis_port, uvm_component

from gharial.isa.commands import DECODE_ENTRY, ENCODE_ENTRY, GREEDY_ENTRY, SLOT_ENTRY, Operation
from gharial.isa.words import Record
from sim.uvm.imp import Imp
from sim.uvm.memory.items import ReadBurst, WriteWord
from sim.uvm.ring.items import Completed, Fetched, Fields

ENTRIES: dict[int, Record] = {
    Operation.ENCODE: ENCODE_ENTRY,
    Operation.DECODE: DECODE_ENTRY,
    Operation.GREEDY: GREEDY_ENTRY,
    **dict.fromkeys(range(Operation.RESET, Operation.RESTORE + 1), SLOT_ENTRY),
}
ENTRY_BYTES = 16


@dataclass(frozen=True)
class Finished:
    """A command.

    Attributes:
        descriptor: its fields; whether its CRC is right: `whole`.
        body: what was read of its entry list or chunk; nothing if it was refused before.
        completion: fields.
        ahead: commands on their way when it was fetched, and `older`, the operation of the latest of them.
        words: what has been written to the memory since power-on, by address.
    """

    descriptor: Fields
    whole: bool
    body: bytes
    completion: Fields
    ahead: int
    older: int
    words: dict[int, int]

    @property
    def operation(self) -> int:
        """What it does."""
        return self.descriptor["operation"]

    @property
    def done(self) -> bool:
        """Whether it succeeded."""
        return self.completion["status"] == 0

    @property
    def entries(self) -> list[Fields]:
        """Fields of its entries, as they were read."""
        if self.operation not in ENTRIES:
            return []
        words = np.frombuffer(self.body[: len(self.body) // ENTRY_BYTES * ENTRY_BYTES], "<u4").reshape(-1, 4)
        return [ENTRIES[self.operation].unpack(row) for row in words]


class CommandCollector(uvm_component):
    """Puts together what the monitors see of each command: port `finished`."""

    def build_phase(self) -> None:
        self.fetched = Imp("fetched", self, self._fetched)
        self.completed = Imp("completed", self, self._completed)
        self.reads = Imp("reads", self, self._read)
        self.writes = Imp("writes", self, self._write)
        self.finished = uvm_analysis_port("finished", self)
        self._on_way: dict[int, tuple[Fetched, bytearray, int, int]] = {}
        self._wanted: tuple[bytearray, int, int] | None = None  # body, its address, bytes
        self._words: dict[int, int] = {}

    def _fetched(self, fetched: Fetched) -> None:
        if fetched.index == 0:
            self._on_way.clear()
        d, body = fetched.fields, bytearray()
        ahead, older = len(self._on_way), 0
        if ahead:
            older = self._on_way[max(self._on_way)][0].fields["operation"]
        self._on_way[fetched.index] = (fetched, body, ahead, older)
        size = d["bytes"] if d["operation"] == Operation.LOAD else ENTRY_BYTES * d["entries"]
        self._wanted = (body, d["entry_lo"], size) if d["operation"] == Operation.LOAD or size else None

    def _read(self, burst: ReadBurst) -> None:
        if self._wanted is None or burst.failed:
            return
        body, address, size = self._wanted
        if burst.address == address + len(body) and len(body) < size:
            body += np.array(burst.words, "<u4").tobytes()

    def _write(self, written: WriteWord) -> None:
        if not written.failed:
            self._words[written.address] = written.word

    def _completed(self, done: Completed) -> None:
        fetched, body, ahead, older = self._on_way.pop(done.index)
        self.finished.write(
            Finished(fetched.fields, fetched.whole, bytes(body), done.fields, ahead, older, self._words)
        )
