# SPDX-License-Identifier: Apache-2.0
"""The character devices of Xilinx's XDMA driver: files and a pipe in a folder, with the driver behind them.

The files are real, so is everything that opening and waiting for them can meet; reads and writes of theirs are carried
out as the kernel's driver does it, on an emulator. Source: cdev_ctrl.c, cdev_sgdma.c and cdev_events.c.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gharial.devices.base import Device
from gharial.isa import _registers as reg

ALIGN = 64
ERESTARTSYS = 512


class Kernel:
    """What stands for the module `os` in the device's module.

    Attributes:
        folder: of the character devices.
        most: bytes that one transfer moves at most.
        failing: error numbers of transfers to come; 0 for one that moves nothing.
        after: transfers before those.
        gone: the card has left the bus: registers read as all ones, transfers fail.
        interrupts: events raised.
        transfers: (node, address, bytes) of those that were done.
    """

    def __init__(self, folder: Path, device: Device, number: int = 0, events: bool = True) -> None:
        self.folder, self.device = folder, device
        self.most = 1 << 30
        self.failing: list[int] = []
        self.after = 0
        self.gone = False
        self.interrupts = self.lost = 0
        self.transfers: list[tuple[str, int, int]] = []
        self._nodes: dict[int, str] = {}
        for node in ("user", "h2c_0", "c2h_0"):
            (folder / f"xdma{number}_{node}").touch()
        self._pipe = -1
        if events:
            path = folder / f"xdma{number}_events_0"
            os.mkfifo(path)
            self._pipe = os.open(path, os.O_RDWR)  # keeps it open, and writes to it

    def close(self) -> None:
        """Let go of the pipe."""
        if self._pipe >= 0:
            os.close(self._pipe)

    @property
    def module(self) -> Any:
        """The stand-in: everything of `os` but what is the driver's."""
        ours = {name: getattr(self, f"_{name}") for name in ("open", "close", "pread", "pwrite", "preadv", "pwritev")}
        rest = {name: getattr(os, name) for name in dir(os) if not name.startswith("__")}
        return SimpleNamespace(**{**rest, **ours})

    def _open(self, path: str, flags: int) -> int:
        number = os.open(path, flags)
        self._nodes[number] = Path(path).name.split("_", 1)[1]
        return number

    def _close(self, number: int) -> None:
        del self._nodes[number]
        os.close(number)

    def open_nodes(self) -> list[str]:
        """Character devices that are open."""
        return sorted(self._nodes.values())

    def _pread(self, number: int, count: int, offset: int) -> bytes:
        """Whatever the count, four bytes: the device looks at nothing but the place."""
        assert self._nodes[number] == "user" and count == 4
        if offset % 4:
            raise OSError(errno.EPROTO, "Protocol error")
        if self.gone:
            return b"\xff" * 4
        return self.device.read_register(offset).to_bytes(4, "little")

    def _pwrite(self, number: int, data: bytes, offset: int) -> int:
        assert self._nodes[number] == "user" and len(data) == 4
        if offset % 4:
            raise OSError(errno.EPROTO, "Protocol error")
        if not self.gone:
            before = self.device.read_register(reg.IRQ_STATUS.offset)
            self.device.write_register(offset, int.from_bytes(data, "little"))
            raised = self.device.read_register(reg.IRQ_STATUS.offset) & ~before
            if raised & self.device.read_register(reg.IRQ_ENABLE.offset) and self._pipe >= 0:
                self.interrupts += 1
                if self.lost:
                    self.lost -= 1
                elif not select.select([self._pipe], [], [], 0)[0]:  # counted until they are read
                    os.write(self._pipe, (1).to_bytes(4, "little"))
        return 4

    def _preadv(self, number: int, buffers: list[memoryview], offset: int) -> int:
        assert self._nodes[number] == "c2h_0"
        (buffer,) = buffers
        count = self._transfer("c2h_0", buffer, offset)
        buffer[:count] = self.device.read_memory(offset, count)
        return count

    def _pwritev(self, number: int, buffers: list[memoryview], offset: int) -> int:
        assert self._nodes[number] == "h2c_0"
        (buffer,) = buffers
        count = self._transfer("h2c_0", buffer, offset)
        self.device.write_memory(offset, buffer[:count])
        return count

    def _transfer(self, node: str, buffer: memoryview, offset: int) -> int:
        """Bytes that this transfer moves."""
        place = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        if place % ALIGN != offset % ALIGN:
            raise OSError(errno.EINVAL, "Invalid argument")
        if self.gone:
            raise OSError(errno.EIO, "Input/output error")
        if self.failing and self.after:
            self.after -= 1
        elif self.failing:
            number = self.failing.pop(0)
            if not number:
                return 0
            raise OSError(number, os.strerror(number))
        count = min(len(buffer), self.most)
        self.transfers.append((node, offset, count))
        return count
