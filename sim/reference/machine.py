# SPDX-License-Identifier: Apache-2.0
"""What commands work on: the device memory, the loaded images, the current model, and how a command is refused."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gharial.isa.configs import Config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import TABLE_BYTES, ProgramSpace

from .model import ReferenceModel
from .slots import SlotStore
from .trace import Trace

MEMORY_CAP = 64 << 20
"""Most bytes of device memory: this model is for small programs, and a board's gigabytes are not wanted here."""

WORD = 4


class Refusal(Exception):
    """A command's fault on its way to the completion. It never leaves the device."""

    def __init__(self, fault: Fault, unit: Unit, detail: int, entry: int = 0) -> None:
        super().__init__(fault, unit, detail, entry)
        self.fault = fault
        self.unit = unit
        self.detail = detail & 0xFFFFFFFF
        self.entry = entry


class Memory:
    """The device memory, byte-addressed, zero at first."""

    def __init__(self, size: int) -> None:
        self.data = bytearray(size)

    def __len__(self) -> int:
        return len(self.data)

    def holds(self, address: int, count: int) -> bool:
        """Whether the range lies inside."""
        return address >= 0 and count >= 0 and address + count <= len(self.data)

    def check(self, address: int, count: int, entry: int = 0) -> None:
        """Refuse a command whose range is not inside or does not start at a word."""
        if address % WORD or not self.holds(address, count):
            raise Refusal(Fault.ADDRESS, Unit.HOST, address, entry)

    def read(self, address: int, count: int) -> bytes:
        """Count bytes; the range was checked."""
        return bytes(self.data[address : address + count])

    def write(self, address: int, data: bytes) -> None:
        """Put the bytes; the range was checked."""
        self.data[address : address + len(data)] = data

    def checked_crc(self, address: int, count: int, crc: int, entry: int = 0) -> bytes:
        """The bytes, if their CRC-32 is the one given."""
        data = self.read(address, count)
        found = zlib.crc32(data)
        if found != crc:
            raise Refusal(Fault.CHECKSUM, Unit.HOST, found, entry)
        return data


@dataclass
class Loaded:
    """What LOAD has brought of one space.

    Attributes:
        image: capacity bytes on the device, or none where the space lies in the device memory.
        capacity: most bytes.
        count: bytes brought so far, from offset 0.
        base: address of offset 0, for a space in the device memory.
    """

    image: bytearray
    capacity: int
    count: int = 0
    base: int | None = None


def spaces(config: Config) -> dict[ProgramSpace, Loaded]:
    """The empty program spaces of a configuration."""
    capacity = {
        ProgramSpace.CODE: config.code_bytes,
        ProgramSpace.WEIGHTS: config.weight_bytes,
        ProgramSpace.SCALES: config.scale_bytes,
        ProgramSpace.BIASES: config.bias_bytes,
        ProgramSpace.TABLES: TABLE_BYTES,
        ProgramSpace.EMBEDDING: config.embed_bytes,
    }
    return {space: Loaded(bytearray(0 if in_place(config, space) else size), size) for space, size in capacity.items()}


def in_place(config: Config, space: ProgramSpace) -> bool:
    """Whether the host writes this space to its final place in the device memory, and LOAD only checks it."""
    return config.in_memory and space in (ProgramSpace.WEIGHTS, ProgramSpace.EMBEDDING)


@dataclass
class Machine:
    """All that outlives a command.

    Attributes:
        config: the hardware configuration.
        manifest: manifest of the one program that can be started.
        memory: device memory.
        spaces: loaded images.
        model: the network of the current program, or None.
        slots: its encoder and prediction slots.
        trace: recorder, where one is wanted.
    """

    config: Config
    manifest: Mapping[str, Any]
    memory: Memory
    spaces: dict[ProgramSpace, Loaded]
    model: ReferenceModel | None = None
    slots: SlotStore | None = None
    trace: Trace | None = field(default=None)
