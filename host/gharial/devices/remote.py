# SPDX-License-Identifier: Apache-2.0
"""What all boards have in common, whatever the link: bounds, bounded waits, soft reset, one call at a time."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod

from gharial.devices.base import Device
from gharial.errors import BadInput, DeviceError, LinkError
from gharial.isa import _registers as reg
from gharial.isa.configs import Config, configs

MASK = 0xFFFFFFFF
RESET_S = 1.0
"""Seconds in which a soft reset must be done."""

_AHEAD = 1 << 31  # free-running indices: further than this is behind
_PACE = 0.0005  # seconds between two looks at a device that is at work; they get longer
_OFFSETS = frozenset(register.offset for register in reg.REGISTERS)


def reached(found: int, value: int) -> bool:
    """Whether a free-running index has reached a value."""
    return (found - value) & MASK < _AHEAD


class RemoteDevice(Device):
    """A board. Several threads may use it; a call waits for another's to end.

    Args:
        name: of the device.
        config: its hardware configuration.
    """

    def __init__(self, name: str, config: Config) -> None:
        self.name, self.config = name, config
        self._lock = threading.RLock()
        self._closed = False

    def read_register(self, offset: int) -> int:
        """The 32-bit value of the register at that offset; DeviceError if there is none."""
        _check_register(offset)
        with self._lock:
            self._check_open()
            return self._load(offset)

    def write_register(self, offset: int, value: int) -> None:
        """Set the register at that offset; DeviceError if there is none."""
        _check_register(offset)
        with self._lock:
            self._check_open()
            self._store(offset, value & MASK)

    def read_memory(self, address: int, count: int) -> bytes:
        """Count bytes of the device memory from the address on; DeviceError outside it."""
        with self._lock:
            self._check_range(address, count)
            return self._fetch(address, count) if count else b""

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Put the bytes into the device memory from the address on; DeviceError outside it."""
        octets = bytes(data)
        with self._lock:
            self._check_range(address, len(octets))
            if octets:
                self._put(address, octets)

    def ring_doorbell(self, tail: int) -> None:
        """Tell the device how many commands have been written in all."""
        self.write_register(reg.CMD_TAIL.offset, tail)

    def wait(self, completions: int, timeout: float) -> bool:
        """Wait until CPL_TAIL has reached `completions` or the device has halted; False if the time ran out."""
        deadline = time.monotonic() + timeout
        pace = _PACE
        while True:
            if reached(self.read_register(reg.CPL_TAIL.offset), completions):
                return True
            if self.read_register(reg.STATUS.offset) >> 2 & 1:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._pause(min(pace, left), left)
            pace *= 2

    def reset(self) -> None:
        """Soft reset."""
        with self._lock:
            # A link that sends again what was not confirmed must not do so across a reset: reads are around it.
            self.read_register(reg.STATUS.offset)
            self.write_register(reg.CONTROL.offset, 2)
            deadline = time.monotonic() + RESET_S
            while self._at_work():
                if time.monotonic() > deadline:
                    raise DeviceError(f"soft reset not done after {RESET_S:g} s", unit="host interface")

    def close(self) -> None:
        """Let go of the link; further calls raise DeviceError. Closing twice is harmless."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._let_go()

    # The link

    @abstractmethod
    def _load(self, offset: int) -> int:
        """A register."""

    @abstractmethod
    def _store(self, offset: int, value: int) -> None:
        """Set a register."""

    @abstractmethod
    def _fetch(self, address: int, count: int) -> bytes:
        """Bytes of the device memory, inside it and at least one."""

    @abstractmethod
    def _put(self, address: int, data: bytes) -> None:
        """Write bytes of the device memory, inside it and at least one."""

    @abstractmethod
    def _let_go(self) -> None:
        """Close the link."""

    def _pause(self, seconds: float, most: float) -> None:
        """Let time go by between two looks: about so long, or with an interrupt up to `most`."""
        del most
        time.sleep(seconds)

    def _at_work(self) -> bool:
        busy = self.read_register(reg.STATUS.offset) >> 1 & 1
        return bool(busy or self.read_register(reg.CMD_HEAD.offset) or self.read_register(reg.CPL_TAIL.offset))

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError("the device is closed")

    def _check_range(self, address: int, count: int) -> None:
        self._check_open()
        size = self.config.window_bytes
        if min(address, count) < 0 or address + count > size:
            raise DeviceError(
                f"address outside the device memory of {size} bytes", unit="link", detail=f"{address:#x}+{count}"
            )


def identify(device: Device) -> Config:
    """The configuration that a board says it has.

    Raises:
        LinkError: no Gharial answers.
        BadInput: a configuration that this version does not know.
    """
    found = device.read_register(reg.ID.offset)
    if found != reg.ID.reset:
        what = "the board does not answer" if found in (0, MASK) else "what answers is no Gharial"
        raise LinkError(
            f"{device.name}: {what}: its identity reads {found:#010x}, expected {reg.ID.reset:#010x}; check power, and "
            "that its image is loaded: gharial flash BOARD",
            unit="link",
        )
    number = device.read_register(reg.CONFIG_ID.offset)
    for config in configs().values():
        if config.config_id == number:
            return config
    raise BadInput(
        "the board has a hardware configuration that this version does not know",
        f"device {device.name}",
        f"id {number:#010x}",
        ", ".join(f"{config.config_id:#010x} ({name})" for name, config in configs().items()),
        "load an image of this version: gharial flash BOARD",
    )


def _check_register(offset: int) -> None:
    if offset not in _OFFSETS:
        raise DeviceError("no register at this offset", unit="link", detail=offset)
