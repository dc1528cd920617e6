# SPDX-License-Identifier: Apache-2.0
"""A device between driver and device that reads the counters as the first command is handed over."""

from __future__ import annotations

from collections.abc import Callable

from gharial.devices.base import Device
from gharial.driver.registers import Counters, Registers


class CountedDevice(Device):
    """Passes everything on.

    Args:
        inner: the device; it is closed with this one.

    Attributes:
        before: counters at the first doorbell since `arm`.
        waited: called after each wait, or None.
    """

    def __init__(self, inner: Device) -> None:
        self.inner = inner
        self.name, self.kind, self.config = inner.name, inner.kind, inner.config
        self.before = Counters(0, 0, 0, 0, 0, 0, 0)
        self.waited: Callable[[], object] | None = None
        self._armed = False

    def arm(self) -> None:
        """Read the counters at the next doorbell, right before it."""
        self._armed = True

    def read_register(self, offset: int) -> int:
        """As of the device."""
        return self.inner.read_register(offset)

    def write_register(self, offset: int, value: int) -> None:
        """As of the device."""
        self.inner.write_register(offset, value)

    def read_memory(self, address: int, count: int) -> bytes:
        """As of the device."""
        return self.inner.read_memory(address, count)

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """As of the device."""
        self.inner.write_memory(address, data)

    def ring_doorbell(self, tail: int) -> None:
        """As of the device, and counted."""
        if self._armed:
            self._armed = False
            self.before = Registers(self.inner).counters()
        self.inner.ring_doorbell(tail)

    def wait(self, completions: int, timeout: float) -> bool:
        """As of the device."""
        done = self.inner.wait(completions, timeout)
        if self.waited is not None:
            self.waited()
        return done

    def reset(self) -> None:
        """As of the device."""
        self.inner.reset()

    def close(self) -> None:
        """As of the device."""
        self.inner.close()
