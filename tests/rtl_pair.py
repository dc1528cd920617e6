# SPDX-License-Identifier: Apache-2.0
"""The RTL beside another device: both are told the same, and everything they say is compared.

The twin runs a command as soon as it is posted, so that a test knows what it did; the RTL runs it when its doorbell is
rung, with others behind it if the test likes.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from compiled import program
from rtl_side import Fields, Side

from gharial.devices.base import Device
from gharial.devices.verilator import VerilatorDevice, open_verilator
from gharial.devices.verilator.build import problem
from gharial.isa import _registers as reg
from gharial.isa.commands import (
    DECODE_ENTRY,
    DESCRIPTOR,
    ENCODE_ENTRY,
    GREEDY_ENTRY,
    SLOT_ENTRY,
    Flag,
    Kind,
    Mode,
    Operation,
    decode_result_bytes,
    greedy_result_bytes,
)
from gharial.isa.configs import Config, config
from gharial.isa.faults import Fault
from gharial.isa.header import HEADER, ProgramSpace
from gharial.isa.words import Record
from gharial.program import Program

PATTERN = b"\xa5\x5a\xc3\x3c"
"""What lies in the device memory before anything is written to it."""

UNIT_T = 1 << 14
READY, BUSY, HALTED, HAS_PROGRAM = 1, 2, 4, 8
"""Bits of STATUS."""

TINY = config("tiny")
BOTH = ("tiny", "tiny-batch")
"""The machine on chip, and the one with weights in memory."""
HEAP = 1 << 20  # bytes, of a configuration with weights in memory; weights, embedding and state come behind
RECORDS = {Operation.ENCODE: ENCODE_ENTRY, Operation.DECODE: DECODE_ENTRY, Operation.GREEDY: GREEDY_ENTRY}
SLOT_OPERATIONS = (Operation.RESET, Operation.FREE, Operation.COPY, Operation.SAVE, Operation.RESTORE)


def open_rtl(seed: int = 1, chosen: Config = TINY) -> VerilatorDevice:
    """The RTL of a configuration, or skip where it cannot be compiled."""
    found = problem()
    if found is not None:
        pytest.skip(found)
    return open_verilator(chosen, seed & 0x7FFFFFFF)


@cache
def lively(name: str = "tiny") -> Program:
    """A program of random weights that emits tokens at some steps, blanks at others, and now and then too many."""
    return program(21, name, blank_bias=2.0)


def said(completion: Fields) -> Fields:
    """What a completion says of the command: all but its clocks; what was counted on the way to a fault is not said."""
    unsaid = {"cycles_lo", "cycles_hi", "crc"} | ({"predictions", "joints"} if completion["status"] else set())
    return {key: value for key, value in completion.items() if key not in unsaid}


def fault(completion: Fields) -> tuple[Fault, int, int, int]:
    """Status, unit, entry and detail."""
    return Fault(completion["status"]), completion["unit"], completion["entry"], completion["detail"]


@dataclass
class Pending:
    """A command that the twin has done and the RTL has not been seen to have done."""

    completion: Fields
    rooms: list[tuple[int, int]] = field(default_factory=list)  # where it writes: address, bytes


class Pair:
    """The RTL and its twin, which have one memory layout: rings, then a heap that commands are laid out in.

    Args:
        twin: the device to compare with.
        rtl: the RTL; opened here if it is not given.
        log2: of the entries of each ring.
        seed: of what the RTL's registers and memories hold at power-on.
    """

    def __init__(self, twin: Device, rtl: VerilatorDevice | None = None, log2: int = 3, seed: int = 1) -> None:
        self.config = twin.config
        self.end = HEAP if self.config.in_memory else self.config.window_bytes
        self.rtl = Side(rtl or open_rtl(seed, self.config), log2)
        self.twin = Side(twin, log2)
        self.sides = (self.rtl, self.twin)
        self.tail = self.rung = 0
        self.heap = self.at = (64 + 32) << log2
        self.pending: list[Pending] = []
        self.header: Fields = {}
        for side in self.sides:
            size = self.end - self.heap
            side.device.write_memory(self.heap, PATTERN * (size // 4))

    def setup(self) -> None:
        """Rings anew, after a soft reset of both; what was on its way is forgotten, and what it wrote."""
        self.tail = self.rung = 0
        self.pending.clear()
        for side in self.sides:
            side.device.write_memory(self.heap, PATTERN * ((self.at - self.heap) // 4))
            side.setup()
        self.at = self.heap

    def anew(self) -> None:
        """Soft reset of both: disabled, everything at zero, the program still there. Then rings anew."""
        for side in self.sides:
            side.device.reset()
            assert side.read(reg.STATUS) == HAS_PROGRAM, side.device.name
            for register in (reg.CMD_TAIL, reg.CMD_HEAD, reg.CPL_TAIL, reg.CPL_HEAD, reg.CONTROL, reg.FAULT_DETAIL):
                assert side.read(register) == 0, (side.device.name, register.name)
        self.setup()

    def close(self) -> None:
        for side in self.sides:
            side.device.close()

    # Memory

    def place(self, data: bytes) -> int:
        """Put bytes onto the heap of both; their address."""
        address = self.room(len(data))
        for side in self.sides:
            side.device.write_memory(address, data)
        return address

    def room(self, size: int) -> int:
        """Room on the heap; its address. There is some space behind it that nothing should be written to."""
        size = -(-size // 4) * 4 + 8
        if self.at + size > self.end:
            assert not self.pending, "a batch does not fit into the memory"
            self.at = self.heap
        self.at += size
        return self.at - size

    def features(self, vectors: Sequence[Any]) -> Fields:
        """Put feature vectors, each int8 (features,), padded; an entry's fields for them, with address 0 as base."""
        width = self.header["feature_bytes"]
        data = b"".join(np.asarray(v).astype(np.int8).tobytes().ljust(width, b"\0") for v in vectors)
        return {"offset": self.place(data), "crc": zlib.crc32(data), "vectors": len(vectors)}

    # Commands

    def descriptor(self, operation: int, listed: bytes = b"", **fields: int) -> bytes:
        """A descriptor, its entry list put in place."""
        values = {"operation": operation, "tag": self.tail * 0x10001 ^ 0x5EED0000, "entries": len(listed) // 16}
        if listed:
            values |= {"entry_lo": self.place(listed), "body_crc": zlib.crc32(listed)}
        words = DESCRIPTOR.pack(**(values | fields))
        if "crc" not in fields:
            words[-1] = zlib.crc32(words[:-1].tobytes())
        return words.astype("<u4").tobytes()

    def put(self, descriptor: bytes) -> None:
        """A descriptor into both rings; no bell is rung."""
        for side in self.sides:
            side.device.write_memory(64 * (self.tail % (1 << side.log2)), descriptor)
        self.tail += 1

    def post(self, operation: int, listed: bytes = b"", rooms: Sequence[tuple[int, int]] = (), **fields: int) -> Fields:
        """One command to both, which the twin runs at once; its completion."""
        if len(self.pending) == 1 << self.rtl.log2:
            self.flush()
        self.put(self.descriptor(operation, listed, **fields))
        self.twin.device.ring_doorbell(self.tail)
        self.pending.append(Pending(self.twin.take(), list(rooms)))
        return self.pending[-1].completion

    def ring(self) -> None:
        """Let the RTL begin with what was posted."""
        self.rtl.device.ring_doorbell(self.tail)
        self.rung = self.tail

    def flush(self) -> list[Fields]:
        """Wait until the RTL has done everything too; compare; the completions."""
        if self.rung != self.tail:
            self.ring()
        done, self.pending, self.at = self.pending, [], self.heap
        found = [self.rtl.take() for _ in done]
        differences = [
            f"the RTL says {said(completion)}, the twin {said(pending.completion)}"
            for completion, pending in zip(found, done, strict=True)
            if said(completion) != said(pending.completion)
        ]
        assert not differences, "\n".join(differences)
        for pending in done:
            self._compare(pending)
        return found

    def _compare(self, pending: Pending) -> None:
        for address, size in pending.rooms:
            data = [side.device.read_memory(address, size + 8) for side in self.sides]
            if pending.completion["status"]:  # what was written on the way to a fault is not said either
                for side in self.sides:
                    side.device.write_memory(address, PATTERN * (size // 4))
                data = [d[size:] for d in data]
            words = [np.frombuffer(d, "<u4") for d in data]
            wrong = [(4 * int(i), hex(words[0][i]), hex(words[1][i])) for i in np.flatnonzero(words[0] != words[1])]
            assert not wrong, f"{pending.completion} at {address:#x}: offset, RTL, twin: {wrong}"

    def run(self, operation: int, listed: bytes = b"", rooms: Sequence[tuple[int, int]] = (), **fields: int) -> Fields:
        """One command, on both; the RTL's completion."""
        self.post(operation, listed, rooms, **fields)
        return self.flush()[-1]

    def done(self, operation: int, listed: bytes = b"", **fields: int) -> Fields:
        """One command that has to succeed."""
        completion = self.run(operation, listed, **fields)
        assert completion["status"] == 0, completion
        return completion

    # The commands' ways to be told what to do

    def steps(self, operation: Operation, entries: Sequence[dict[str, Any]], **fields: int) -> Fields:
        """Post ENCODE or GREEDY; an entry has the fields of its record, and `features` unless those say where."""
        listed, rooms, values = self._steps(operation, entries, **fields)
        return self.post(operation, listed, rooms, **values)

    def put_steps(self, operation: Operation, entries: Sequence[dict[str, Any]], **fields: int) -> None:
        """The same, into both rings only: no bell is rung."""
        listed, _, values = self._steps(operation, entries, **fields)
        self.put(self.descriptor(operation, listed, **values))

    def _steps(self, operation: Operation, entries: Sequence[dict[str, Any]], **fields: int) -> Any:
        listed = b"".join(
            RECORDS[operation].pack(
                **((self.features(e["features"]) if "features" in e else {})
                   | {key: value for key, value in e.items() if key != "features"})
            ).tobytes()
            for e in entries
        )  # fmt: skip
        values = {"flags": int(Flag.CHECKED)} | fields
        rooms = []
        if operation == Operation.GREEDY:
            values = {"k": 4, "temperature": UNIT_T} | values
            stride = greedy_result_bytes(values["k"])
            values = {"stride": stride, "result_lo": self.room(stride * len(entries))} | values
            rooms = [(values["result_lo"], stride * len(entries))]
        return listed, rooms, values

    def decode(self, entries: Sequence[Fields], **fields: int) -> Fields:
        """Post DECODE."""
        listed = b"".join(DECODE_ENTRY.pack(**e).tobytes() for e in entries)
        values = {"k": 1, "mode": Mode.TOP_K, "temperature": UNIT_T, "flags": int(Flag.CHECKED)} | fields
        stride = decode_result_bytes(Mode(values["mode"]) if values["mode"] < 3 else Mode.TOP_K, values["k"],
                                     self.header["classes"])  # fmt: skip
        values = {"stride": stride} | values
        rooms = []
        if "result_lo" not in values:
            size = values["stride"] * len(entries) + stride
            values["result_lo"] = self.room(size)
            rooms = [(values["result_lo"], size)]
        return self.post(Operation.DECODE, listed, rooms, **values)

    def slots(self, operation: Operation, entries: Sequence[int | tuple[int, int]], prediction: bool = False,
              flags: int = Flag.CHECKED, image: bytes = b"", **fields: int) -> Fields:  # fmt: skip
        """Post a slot command: numbers, or pairs for COPY. SAVE writes its slots behind one another; RESTORE reads
        them so from `image`."""
        size = self.slot_bytes(prediction)
        listed, values, rooms = b"", dict(fields), []
        for at, entry in enumerate(entries):
            first, second = entry if isinstance(entry, tuple) else (entry, 0)
            moved = at * size if operation in (Operation.SAVE, Operation.RESTORE) else 0
            listed += SLOT_ENTRY.pack(slot=first, second=second, offset=moved).tobytes()
        if operation == Operation.SAVE and "result_lo" not in values:
            values["result_lo"] = self.room(size * len(entries))
            rooms = [(values["result_lo"], size * len(entries))]
        if operation == Operation.RESTORE and "result_lo" not in values:
            values["result_lo"] = self.place(image)
        return self.post(operation, listed, rooms, flags=flags | (Flag.PREDICTION if prediction else 0), **values)

    def slot_bytes(self, prediction: bool) -> int:
        """Bytes of a slot's image."""
        side = "pred" if prediction else "enc"
        act, cell = self.header[f"{side}_a_units"], self.header[f"{side}_c_units"]
        return act * self.config.cols + cell * self.config.cell_unit * 2

    def compare_slots(self, encoders: Sequence[int], predictions: Sequence[int]) -> None:
        """SAVE each of these slots, with both devices: the same are live, with the same state."""
        for prediction, numbers in ((False, encoders), (True, predictions)):
            for number in numbers:
                self.slots(Operation.SAVE, [number], prediction)
        self.flush()

    def live(self, slot: int, prediction: bool = False) -> bool:
        """Whether a slot can be saved."""
        self.slots(Operation.SAVE, [slot], prediction)
        return self.flush()[-1]["status"] == Fault.NONE

    # Programs

    def load(self, sections: dict[str, bytes], chunk: int = 4096) -> None:
        """LOAD all spaces in such chunks, and START."""
        self.header = HEADER.unpack(np.frombuffer(sections["code"], "<u4", HEADER.words))
        self.places: dict[int, int] = {}
        at = self.end
        for space in ProgramSpace:
            image = sections[space.name.lower()]
            if self.in_place(space):
                self.places[space] = at
                at += -(-len(image) // 4096) * 4096
            for offset in range(0, len(image), chunk):
                assert self.load_chunk(space, offset, image[offset : offset + chunk])["status"] == 0
        self.state = at
        assert self.start()["status"] == 0

    def start(self) -> Fields:
        """START; its completion."""
        return self.run(Operation.START, **self.addresses())

    @property
    def most(self) -> tuple[int, int]:
        """Encoder slots and prediction slots that there are under the program."""
        return self.twin.read(reg.ENC_SLOTS), self.twin.read(reg.PRED_SLOTS)

    def in_place(self, space: int) -> bool:
        """Whether a space stays where the host writes it."""
        return self.config.in_memory and space in (ProgramSpace.WEIGHTS, ProgramSpace.EMBEDDING)

    def addresses(self) -> Fields:
        """What START is told of weights, embedding and state."""
        if not self.config.in_memory:
            return {}
        weights, embedding = self.places[ProgramSpace.WEIGHTS], self.places[ProgramSpace.EMBEDDING]
        return {"entry_lo": embedding, "result_lo": self.state, "feature_lo": weights}

    def load_chunk(self, space: int, offset: int, data: bytes, **fields: int) -> Fields:
        """One LOAD; its completion."""
        values = {"offset": offset, "bytes": len(data), "space": space, "body_crc": zlib.crc32(data)}
        if self.in_place(space):
            values |= {"entry_lo": self.places[space] + offset, "flags": int(Flag.IN_PLACE)}
            for side in self.sides:
                side.device.write_memory(self.places[space] + offset, data)
        else:
            if self.at + len(data) + 64 > self.end:
                self.flush()
            values["entry_lo"] = self.place(data)
        return self.run(Operation.LOAD, **(values | fields))


def pair_for(program: Program, twin: Device, seed: int = 1, log2: int = 3) -> Pair:
    """A pair with the program loaded."""
    pair = Pair(twin, log2=log2, seed=seed)
    pair.load(program.sections)
    return pair


def packed(record: Record, **fields: int) -> bytes:
    """One entry."""
    return record.pack(**fields).tobytes()


NONE, TOKEN, START = Kind.NONE, Kind.TOKEN, Kind.START
