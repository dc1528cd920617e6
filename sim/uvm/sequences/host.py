# SPDX-License-Identifier: Apache-2.0
"""Lays commands out in the device memory: features, entry lists, room for results."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gharial.isa.commands import (
    DECODE_ENTRY,
    DESCRIPTOR,
    ENCODE_ENTRY,
    GREEDY_ENTRY,
    SLOT_ENTRY,
    Flag,
    Mode,
    Operation,
    decode_result_bytes,
    greedy_result_bytes,
)
from gharial.isa.configs import config
from sim.uvm.memory.model import DeviceMemory
from sim.uvm.program.drawn import DrawnProgram
from sim.uvm.ring.command_item import CommandItem

TINY = config("tiny")
UNIT_T = 1 << 14
CHECKED = int(Flag.CHECKED)
Fields = dict[str, int]


class Host:
    """Makes commands. What they need goes to a heap, which is empty again after `forget`.

    Args:
        memory: the device memory.
        low, high: the heap.

    Attributes:
        program: the current one.
        places: of the command that is being made, for `CommandItem`.
    """

    def __init__(self, memory: DeviceMemory, low: int, high: int) -> None:
        self.memory, self.low, self.high, self.at = memory, low, high, low
        self.program: DrawnProgram | None = None
        self.places: dict[str, tuple[int, int]] = {}
        self.tag = 0x5EED0000

    @property
    def header(self) -> Fields:
        """Of the current program."""
        assert self.program is not None
        return self.program.header

    @property
    def crowded(self) -> bool:
        """Whether the heap may be too full for one more command."""
        return self.at - self.low > (self.high - self.low) // 2

    def forget(self) -> None:
        """Nothing on the heap is needed any more."""
        self.at = self.low

    def room(self, size: int, what: str) -> int:
        """Room for so many bytes, with a word behind that nobody should write to; its address."""
        address, self.at = self.at, self.at + -(-size // 4) * 4 + 4
        assert self.at <= self.high, "the heap is full"
        self.places[what] = (address, address + size)
        return address

    def place(self, data: bytes, what: str) -> int:
        """Put bytes onto the heap; their address."""
        address = self.room(len(data), what)
        self.memory.host_write(address, data)
        return address

    # Commands

    def command(self, operation: int, listed: bytes = b"", ring: bool = False, **fields: int) -> CommandItem:
        """Any command; its entry list is put into the memory."""
        self.tag = (self.tag * 5 + 0x10001) & 0xFFFFFFFF
        values = {"operation": operation, "tag": self.tag, "entries": len(listed) // 16, "flags": CHECKED}
        if listed:
            values |= {"entry_lo": self.place(listed, "entries"), "body_crc": zlib.crc32(listed)}
        words = DESCRIPTOR.pack(**(values | fields))
        if "crc" not in fields:
            words[-1] = zlib.crc32(words[:-1].tobytes())
        places, self.places = self.places, {}
        return CommandItem(words.astype("<u4").tobytes(), ring, places)

    def steps(
        self, operation: Operation, entries: Sequence[Mapping[str, Any]], ring: bool = False, **fields: int
    ) -> CommandItem:
        """ENCODE or GREEDY; an entry has the fields of its record, and `features`, int8 (vectors, features)."""
        record = ENCODE_ENTRY if operation == Operation.ENCODE else GREEDY_ENTRY
        listed = b""
        for entry in entries:
            values = dict(entry)
            rows = [np.asarray(row).astype(np.int8).tobytes() for row in values.pop("features")]
            data = b"".join(row.ljust(self.header["feature_bytes"], b"\0") for row in rows)
            found = {"offset": self.place(data, "features"), "crc": zlib.crc32(data), "vectors": len(rows)}
            listed += record.pack(**(found | values)).tobytes()
        if operation == Operation.GREEDY:
            fields = {"k": 4, "temperature": UNIT_T} | fields
            stride = greedy_result_bytes(fields["k"])
            fields = {"stride": stride, "result_lo": self.room(stride * len(entries), "results")} | fields
        return self.command(operation, listed, ring, **fields)

    def decode(self, entries: Sequence[Fields], ring: bool = False, **fields: int) -> CommandItem:
        """DECODE."""
        listed = b"".join(DECODE_ENTRY.pack(**entry).tobytes() for entry in entries)
        fields = {"k": 1, "mode": Mode.TOP_K, "temperature": UNIT_T} | fields
        mode = Mode(fields["mode"]) if fields["mode"] < 3 else Mode.TOP_K
        stride = decode_result_bytes(mode, fields["k"], self.header["classes"])
        fields = {"stride": stride} | fields
        if "result_lo" not in fields:
            fields["result_lo"] = self.room(fields["stride"] * len(entries), "results")
        return self.command(Operation.DECODE, listed, ring, **fields)

    def slots(
        self, operation: Operation, slots: Sequence[int | tuple[int, int]], prediction: bool = False,
        image: bytes = b"", ring: bool = False, flags: int = CHECKED, **fields: int
    ) -> CommandItem:  # fmt: skip
        """A slot command on numbers, or pairs for COPY. SAVE writes slots behind one another; RESTORE reads them so."""
        size, listed = self.slot_bytes(prediction), b""
        for at, entry in enumerate(slots):
            first, second = entry if isinstance(entry, tuple) else (entry, 0)
            moved = at * size if operation in (Operation.SAVE, Operation.RESTORE) else 0
            listed += SLOT_ENTRY.pack(slot=first, second=second, offset=moved).tobytes()
        if operation == Operation.SAVE and "result_lo" not in fields:
            fields["result_lo"] = self.room(size * len(slots), "image")
        if operation == Operation.RESTORE and "result_lo" not in fields:
            fields["result_lo"] = self.place(image, "image")
        flags |= int(Flag.PREDICTION) if prediction else 0
        return self.command(operation, listed, ring, flags=flags, **fields)

    def chunk(self, space: int, offset: int, data: bytes, ring: bool = False, **fields: int) -> CommandItem:
        """LOAD."""
        at = self.place(data, "chunk")
        values = {"entry_lo": at, "offset": offset, "bytes": len(data), "space": space, "body_crc": zlib.crc32(data)}
        return self.command(Operation.LOAD, b"", ring, **({"flags": 0} | values | fields))

    def slot_bytes(self, prediction: bool) -> int:
        """Bytes of a slot's image."""
        side = "pred" if prediction else "enc"
        return self.header[f"{side}_a_units"] * TINY.cols + self.header[f"{side}_c_units"] * TINY.cell_unit * 2
