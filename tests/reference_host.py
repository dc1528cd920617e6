# SPDX-License-Identifier: Apache-2.0
"""A bare host of a device: rings, descriptors and entries put into its memory word by word, without the driver."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from reference_program import TestProgram

from gharial.devices.base import Device
from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION, DESCRIPTOR, Flag, Operation
from gharial.isa.header import ProgramSpace
from gharial.isa.words import Record

CMD_RING, CPL_RING, ENTRIES, FEATURES, RESULTS, CHUNK = 0, 1024, 2048, 4096, 8192, 16384
CHUNK_BYTES = 8192
STATE_BASE, WEIGHT_BASE, EMBED_BASE = 1 << 20, 40 << 20, 48 << 20

Fields = dict[str, int]


@dataclass(frozen=True)
class Outcome:
    """A completion, without its tag, index and CRC."""

    status: int
    detail: int = 0
    entry: int = 0
    predictions: int = 0
    joints: int = 0


class Host:
    """Rings of `1 << log2` entries on a device, enabled."""

    def __init__(self, device: Device, log2: int = 2) -> None:
        self.device, self.size = device, 1 << log2
        self.setup(log2)

    def setup(self, log2: int) -> None:
        write = self.device.write_register
        for base, size, address in (
            (reg.CMD_BASE_LO, reg.CMD_LOG2, CMD_RING),
            (reg.CPL_BASE_LO, reg.CPL_LOG2, CPL_RING),
        ):
            write(base.offset, address)
            write(size.offset, log2)
        self.tail = self.taken = 0
        write(reg.CONTROL.offset, 1)

    def register(self, register: reg.Reg) -> int:
        return self.device.read_register(register.offset)

    def put(self, operation: int, **fields: int) -> None:
        """Write a descriptor behind the others, without the doorbell."""
        words = DESCRIPTOR.pack(operation=operation, **({"tag": 1000 + self.tail} | fields))
        if "crc" not in fields:
            words[-1] = zlib.crc32(words[:-1].tobytes())
        self.device.write_memory(CMD_RING + self.tail % self.size * 64, words.tobytes())
        self.tail += 1

    def take(self) -> Fields:
        """The next completion, which must be there; its CRC is checked and its entry freed."""
        assert self.register(reg.CPL_TAIL) != self.taken
        raw = self.device.read_memory(CPL_RING + self.taken % self.size * 32, 32)
        self.taken += 1
        self.device.write_register(reg.CPL_HEAD.offset, self.taken)
        completion = COMPLETION.unpack(np.frombuffer(raw, "<u4"))
        assert completion["crc"] == zlib.crc32(raw[:-4])
        return completion

    def command(self, operation: int, **fields: int) -> Fields:
        """Run one command; its completion."""
        self.put(operation, **fields)
        self.device.ring_doorbell(self.tail)
        assert self.device.wait(self.tail, 1.0)
        completion = self.take()
        assert completion["index"] == self.tail - 1
        return completion

    def entries(self, record: Record, entries: Sequence[Fields]) -> Fields:
        """Put an entry list; the descriptor's fields for it, CRC included."""
        data = b"".join(record.pack(**entry).tobytes() for entry in entries)
        self.device.write_memory(ENTRIES, data)
        return {"entries": len(entries), "entry_lo": ENTRIES, "body_crc": zlib.crc32(data)}

    def run(self, operation: Operation, record: Record, listed: Sequence[Fields], **fields: int) -> Outcome:
        """Run a command with these entries and their CRC; features and results at their places."""
        common = {"flags": Flag.CHECKED, "result_lo": RESULTS, "feature_lo": FEATURES}
        done = self.command(operation, **(common | self.entries(record, listed) | fields))
        return Outcome(*(done[name] for name in ("status", "detail", "entry", "predictions", "joints")))

    def features(self, x8: np.ndarray, padded: int, at: int = 0) -> Fields:
        """Put feature vectors (n, features) at an offset; the entry's fields for them, CRC included."""
        data = np.pad(x8, ((0, 0), (0, padded - x8.shape[1]))).astype(np.int8).tobytes()
        self.device.write_memory(FEATURES + at, data)
        return {"offset": at, "crc": zlib.crc32(data), "vectors": len(x8)}

    def load(self, program: TestProgram) -> None:
        """LOAD every space in chunks; those that stay in the device memory are put there first."""
        for space in ProgramSpace:
            data = program.sections[space.name.lower()]
            base = {ProgramSpace.WEIGHTS: WEIGHT_BASE, ProgramSpace.EMBEDDING: EMBED_BASE}.get(space)
            base = base if program.config.in_memory else None
            if base is not None:
                self.device.write_memory(base, data)
            for offset in range(0, len(data), CHUNK_BYTES):
                chunk = data[offset : offset + CHUNK_BYTES]
                address = CHUNK if base is None else base + offset
                if base is None:
                    self.device.write_memory(CHUNK, chunk)
                done = self.command(
                    Operation.LOAD,
                    flags=0 if base is None else Flag.IN_PLACE,
                    entry_lo=address,
                    offset=offset,
                    bytes=len(chunk),
                    space=space,
                    body_crc=zlib.crc32(chunk),
                )
                assert done["status"] == 0, done

    def start(self, program: TestProgram) -> Fields:
        bases = {"entry_lo": EMBED_BASE, "result_lo": STATE_BASE, "feature_lo": WEIGHT_BASE}
        return self.command(Operation.START, **(bases if program.config.in_memory else {}))
