# SPDX-License-Identifier: Apache-2.0
"""Rings of one device, at fixed places, for tests that write descriptors and read completions themselves."""

from __future__ import annotations

import zlib

import numpy as np

from gharial.devices.base import Device
from gharial.devices.verilator import VerilatorDevice
from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION

PATIENCE = 3_000_000
"""Clocks after which a command counts as lost: many times what the longest here takes."""

Fields = dict[str, int]


class Side:
    """Rings of one device."""

    def __init__(self, device: Device, log2: int) -> None:
        self.device, self.log2 = device, log2
        self.setup()

    def setup(self) -> None:
        """Rings at address 0 and behind, indices at zero, enabled."""
        self.taken = 0
        for register, value in (
            (reg.CMD_BASE_LO, 0),
            (reg.CMD_BASE_HI, 0),
            (reg.CMD_LOG2, self.log2),
            (reg.CPL_BASE_LO, 64 << self.log2),
            (reg.CPL_BASE_HI, 0),
            (reg.CPL_LOG2, self.log2),
            (reg.CONTROL, 1),
        ):
            self.write(register, value)

    def read(self, register: reg.Reg) -> int:
        return self.device.read_register(register.offset)

    def write(self, register: reg.Reg, value: int) -> None:
        self.device.write_register(register.offset, value)

    def wait(self, completions: int) -> bool:
        """Whether the completion index reaches that, or the device halts."""
        if isinstance(self.device, VerilatorDevice):
            return self.device.wait_clocks(completions & 0xFFFFFFFF, 600, PATIENCE)
        return self.device.wait(completions & 0xFFFFFFFF, 0)

    def peek(self) -> Fields:
        """The next completion, its CRC checked, left in the ring."""
        raw = self.device.read_memory((64 << self.log2) + 32 * (self.taken % (1 << self.log2)), 32)
        found = COMPLETION.unpack(np.frombuffer(raw, "<u4"))
        assert found["crc"] == zlib.crc32(raw[:-4]), f"{self.device.name}: completion {raw.hex()}"
        return found

    def take(self) -> Fields:
        """The next completion, which must be there; its place is given back."""
        assert self.wait(self.taken + 1), f"{self.device.name}: no completion {self.taken}, {self.state()}"
        assert self.read(reg.CPL_TAIL) != self.taken & 0xFFFFFFFF, f"{self.device.name}: halted, {self.state()}"
        found = self.peek()
        self.taken += 1
        self.write(reg.CPL_HEAD, self.taken & 0xFFFFFFFF)
        return found

    def state(self) -> str:
        """Where the device stands."""
        registers = (reg.STATUS, reg.CMD_HEAD, reg.CPL_TAIL, reg.FAULT_DETAIL, reg.FAULT_TAG)
        return ", ".join(f"{register.name} {self.read(register):#x}" for register in registers)
