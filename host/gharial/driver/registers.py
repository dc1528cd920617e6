# SPDX-License-Identifier: Apache-2.0
"""Registers as the driver uses them: fields by name, 64-bit pairs, identity, status, counters."""

from __future__ import annotations

from dataclasses import dataclass, fields

from gharial.devices.base import Device
from gharial.errors import BadInput, DeviceError, LinkError
from gharial.isa import _registers as reg
from gharial.isa.configs import Config
from gharial.isa.header import INTERFACE_VERSION
from gharial.program.container import AGAIN

MASK = 0xFFFFFFFF
_DEAD = (0, MASK)  # what a register reads where nothing answers


def field(register: reg.Reg, name: str, word: int) -> int:
    """A field of a register's value."""
    found = next(f for f in register.fields if f.name == name)
    return word >> found.lsb & (1 << found.width) - 1


def bits(register: reg.Reg, **values: int) -> int:
    """A register's value with these fields, the others zero."""
    return sum(values[f.name] << f.lsb for f in register.fields if f.name in values)


@dataclass(frozen=True)
class Status:
    """The STATUS register."""

    ready: bool
    busy: bool
    halted: bool
    program: bool
    fault: int
    unit: int


@dataclass(frozen=True)
class Counters:
    """Clocks since the device was enabled, and what they went into; each is in one part (docs/isa.md, section 7)."""

    cycles: int
    active: int
    weights: int
    dependency: int
    backpressure: int
    loading: int
    idle: int

    def since(self, earlier: Counters) -> Counters:
        """What was added since; right over a wrap of the 64 bits too."""
        return Counters(*((getattr(self, f.name) - getattr(earlier, f.name)) & (1 << 64) - 1 for f in fields(Counters)))


class Registers:
    """Typed access to a device's registers."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def read(self, register: reg.Reg) -> int:
        """The 32-bit value."""
        return self.device.read_register(register.offset) & MASK

    def write(self, register: reg.Reg, value: int) -> None:
        """Set the register."""
        self.device.write_register(register.offset, value & MASK)

    def read64(self, low: reg.Reg, high: reg.Reg) -> int:
        """The value of a pair of registers."""
        return self.read(low) | self.read(high) << 32

    def write64(self, low: reg.Reg, high: reg.Reg, value: int) -> None:
        """Set a pair of registers."""
        self.write(low, value)
        self.write(high, value >> 32)

    def status(self) -> Status:
        """The STATUS register.

        Raises:
            LinkError: it reads as nothing that a device would show.
        """
        word = self.read(reg.STATUS)
        if word == MASK:
            self.check_alive()
        values = {f.name: field(reg.STATUS, f.name, word) for f in reg.STATUS.fields}
        flags = {name: bool(values.pop(name)) for name in ("ready", "busy", "halted", "program")}
        return Status(**flags, fault=values["fault"], unit=values["unit"])

    def counters(self) -> Counters:
        """All counters at one moment."""
        self.write(reg.COUNTER_SNAPSHOT, bits(reg.COUNTER_SNAPSHOT, latch=1))
        pairs = [(getattr(reg, f"{f.name.upper()}_LO"), getattr(reg, f"{f.name.upper()}_HI")) for f in fields(Counters)]
        return Counters(*(self.read64(low, high) for low, high in pairs))

    def check_alive(self) -> None:
        """Raise LinkError unless the identity register reads as it must."""
        found = self.read(reg.ID)
        if found in _DEAD:
            raise LinkError(
                f"the device does not answer: its identity reads {found:#010x}, expected {reg.ID.reset:#010x}; "
                "check power, cable and bitstream",
                unit="link",
            )
        if found != reg.ID.reset:
            raise LinkError(
                f"what answers is no Gharial: its identity reads {found:#010x}, expected {reg.ID.reset:#010x}; "
                "load the board's bitstream, check the base address",
                unit="link",
            )

    def quiesce(self) -> None:
        """Stop the device whatever it was doing for someone before, and clear its rings' indices.

        Raises:
            DeviceError: it does not get done.
        """
        self.write(reg.CONTROL, 0)
        self.device.reset()
        for register in (reg.CMD_HEAD, reg.CPL_TAIL):
            found = self.read(register)
            if found:
                raise DeviceError(f"soft reset left {register.name} at {found}", unit="host interface")

    def check_identity(self, config: Config) -> None:
        """Whether this device and this package mean the same.

        Raises:
            BadInput: another interface version or configuration.
        """
        version = self.read(reg.VERSION)
        if version >> 16 != INTERFACE_VERSION >> 16 or version & 0xFFFF > INTERFACE_VERSION & 0xFFFF:
            raise BadInput(
                "the device has another interface version",
                self.device.name,
                _version(version),
                _version(INTERFACE_VERSION),
                "load a bitstream of this version, or install the version that it was made with",
            )
        found = self.read(reg.CONFIG_ID)
        if found != config.config_id:
            raise BadInput(
                "the program is for another configuration than the device's",
                self.device.name,
                f"configuration id {found:#010x} ({self.device.config.name})",
                f"{config.config_id:#010x} ({config.name})",
                AGAIN if config.name == self.device.config.name else f"compile with --config {self.device.config.name}",
            )

    @property
    def memory_bytes(self) -> int:
        """Bytes of device memory."""
        return self.read64(reg.MEM_SIZE_LO, reg.MEM_SIZE_HI)


def _version(word: int) -> str:
    return f"{word >> 16}.{word & 0xFFFF}"
