# SPDX-License-Identifier: Apache-2.0
"""Device memory: one byte array that host and device reach, committed as it is touched."""

from __future__ import annotations

import mmap

from gharial.devices.emulator.failure import CommandFault
from gharial.errors import DeviceError
from gharial.isa.faults import Fault, Unit

# Not in Python's mmap module before 3.13; the value is Linux's. Room for slots that are never used costs nothing then,
# however strictly the system accounts for memory.
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if hasattr(mmap, "MAP_POPULATE") else 0)

Range = tuple[int, int]  # [low, high) in bytes; empty if equal
NOWHERE: Range = (0, 0)


class DeviceMemory:
    """Byte-addressed memory of a fixed size, zero at first.

    Args:
        size: bytes.

    Attributes:
        view: all of it, writable; also what the engine works on.
        bad_read, bad_write: ranges that answer the device (not the host) with a bus error.

    Raises:
        DeviceError: the system does not have that much.
    """

    def __init__(self, size: int) -> None:
        try:
            self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        except (OSError, ValueError, OverflowError) as error:
            raise DeviceError(f"{size} bytes of emulated device memory are not to be had ({error})") from None
        self.size = size
        self.view = memoryview(self._map)
        self.bad_read = NOWHERE
        self.bad_write = NOWHERE

    def host_read(self, address: int, count: int) -> bytes:
        """Bytes for the host; DeviceError outside the memory."""
        self._check(address, count)
        return bytes(self.view[address : address + count])

    def host_write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Bytes from the host; DeviceError outside the memory."""
        octets = memoryview(data).cast("B")
        self._check(address, len(octets))
        self.view[address : address + len(octets)] = octets

    def holds(self, address: int, count: int) -> bool:
        """Whether the range lies in the memory."""
        return min(address, count) >= 0 and address + count <= self.size

    def take(self, address: int, count: int) -> bytes:
        """Bytes for the device.

        Raises:
            CommandFault: BUS_READ, where the memory answers with an error or there is none.
        """
        low, high = self.bad_read
        if address + count > self.size or (low < high and address < high and low < address + count):
            raise CommandFault(Fault.BUS_READ, Unit.MEMORY, address)
        return bytes(self.view[address : address + count])

    def put(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Bytes from the device.

        Raises:
            CommandFault: BUS_WRITE, where the memory answers with an error or there is none.
        """
        low, high = self.bad_write
        end = address + len(data)
        if end > self.size or (low < high and address < high and low < end):
            raise CommandFault(Fault.BUS_WRITE, Unit.MEMORY, address)
        self.view[address:end] = data

    def close(self) -> None:
        """Give the memory back; whoever holds a view of it must have let go before."""
        self.view.release()
        self._map.close()

    def _check(self, address: int, count: int) -> None:
        if not self.holds(address, count):
            raise DeviceError(
                f"address outside the device memory of {self.size} bytes", unit="link", detail=f"{address:#x}+{count}"
            )
