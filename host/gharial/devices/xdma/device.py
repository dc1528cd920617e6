# SPDX-License-Identifier: Apache-2.0
"""A PCIe card through the character devices of Xilinx's XDMA driver.

Source: `cdev_ctrl.c`, `cdev_sgdma.c` and `cdev_events.c` of dma_ip_drivers. Registers go one word a call. A DMA
transfer needs the host's buffer to have the alignment of the card's address, can end short, and is given up by the
driver itself after 10 s unless it was loaded with another limit.
"""

from __future__ import annotations

import errno
import mmap
import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from gharial.devices.remote import MASK, RemoteDevice
from gharial.errors import LinkError
from gharial.isa import _registers as reg
from gharial.isa.configs import Config

CHUNK = 1 << 20
"""Bytes of one DMA transfer, at most."""
TRIES = 3
NODES = ("user", "h2c_0", "c2h_0")
EVENTS = "events_0"

_PAGE = 4096
_WORD = 4
_AGAIN_S = 0.01
_ERESTARTSYS = 512  # the kernel's own number, which the driver lets out when its time limit has run out
_SLICE = 0.02  # seconds after which an interrupt may be taken for lost
_TRANSIENT = (errno.EAGAIN, errno.EIO, errno.EBUSY, _ERESTARTSYS)
_Move = Callable[[int, list[memoryview], int], int]
_GONE = (errno.ENODEV, errno.ENXIO, errno.ESHUTDOWN)


def open_xdma(number: int, config: Config, root: Path = Path("/dev")) -> XdmaDevice:
    """Open card `number`.

    Raises:
        LinkError: there is no such card, or it may not be used.
    """
    return XdmaDevice(f"xdma:{number}", config, number, root)


class XdmaDevice(RemoteDevice):
    """A card; see `open_xdma`. Registers lie at 0 of the user BAR, the device memory at 0 of the card's memory bus.

    Args:
        name: of the device.
        config: its hardware configuration.
        number: of the card, as the driver counts them.
        root: folder of the character devices.
    """

    kind = "xdma"

    def __init__(self, name: str, config: Config, number: int, root: Path) -> None:
        super().__init__(name, config)
        self._card = str(root / f"xdma{number}")
        self._files: dict[str, int] = {}
        # Page-aligned, so that a place in it can have the alignment of any address of the card.
        self._buffer = mmap.mmap(-1, CHUNK + _PAGE)
        self._view = memoryview(self._buffer)
        try:
            for node, flags in zip(NODES, (os.O_RDWR, os.O_WRONLY, os.O_RDONLY), strict=True):
                self._files[node] = self._open(node, flags)
            # Without interrupts the device is looked at now and then.
            with suppress(LinkError):
                self._files[EVENTS] = self._open(EVENTS, os.O_RDONLY | os.O_NONBLOCK)
        except BaseException:
            self.close()
            raise
        self.interrupts = EVENTS in self._files

    def _open(self, node: str, flags: int) -> int:
        path = f"{self._card}_{node}"
        try:
            return os.open(path, flags | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ENOENT:
                why = "no such card; load Xilinx's xdma driver, check lspci, and see which there are: gharial devices"
            elif error.errno in (errno.EACCES, errno.EPERM):
                why = "no permission; install the udev rule (gharial flash --udev)"
            elif error.errno == errno.EBUSY:
                why = "in use by another program; end it first"
            else:
                why = f"cannot be opened: {error.strerror or error}"
            raise LinkError(f"{path}: {why}", unit="link") from error

    def _load(self, offset: int) -> int:
        value = self._register(offset)
        # A card that has left the bus reads as all ones; few registers ever do.
        if value == MASK and self._register(reg.ID.offset) == MASK:
            what = (
                f"{self._card}: the card reads as all ones: it has left the bus; reset it or the machine, then recover"
            )
            raise LinkError(what, unit="link")
        return value

    def _register(self, offset: int) -> int:
        try:
            data = os.pread(self._files["user"], _WORD, offset)
        except OSError as error:
            self._failed("user", error)
        if len(data) != _WORD:
            raise LinkError(f"{self._card}_user: {len(data)} bytes of a register", unit="link", detail=offset)
        return int.from_bytes(data, "little")

    def _store(self, offset: int, value: int) -> None:
        try:
            done = os.pwrite(self._files["user"], value.to_bytes(_WORD, "little"), offset)
        except OSError as error:
            self._failed("user", error)
        if done != _WORD:
            raise LinkError(f"{self._card}_user: {done} bytes of a register taken", unit="link", detail=offset)

    def _fetch(self, address: int, count: int) -> bytes:
        out = bytearray()
        while len(out) < count:
            part = self._place(address + len(out), min(CHUNK, count - len(out)))
            out += part[: self._transfer("c2h_0", os.preadv, part, address + len(out))]
        return bytes(out)

    def _put(self, address: int, data: bytes) -> None:
        done = 0
        while done < len(data):
            part = self._place(address + done, min(CHUNK, len(data) - done))
            part[:] = data[done : done + len(part)]
            done += self._transfer("h2c_0", os.pwritev, part, address + done)

    def _place(self, address: int, count: int) -> memoryview:
        """Part of the buffer with the alignment of an address."""
        start = address % _PAGE
        return self._view[start : start + count]

    def _transfer(self, node: str, move: _Move, part: memoryview, address: int) -> int:
        """Bytes that one transfer moved, at least one. Memory may be written twice, so errors that pass are retried."""
        for attempt in range(TRIES):
            try:
                done = move(self._files[node], [part], address)
            except OSError as error:
                if error.errno not in _TRANSIENT or attempt == TRIES - 1:
                    self._failed(node, error)
                time.sleep(_AGAIN_S)
                continue
            if done > 0:
                return done
        raise LinkError(f"{self._card}_{node}: transfers end without a byte moved", unit="dma", detail=address)

    def _failed(self, node: str, error: OSError) -> NoReturn:
        path = f"{self._card}_{node}"
        if error.errno in _GONE:
            why, unit = "the card has gone; reset it or the machine, then recover", "link"
        elif error.errno == _ERESTARTSYS:
            why, unit = "a transfer did not end within the driver's limit; recover, and check the card's clock", "dma"
        elif error.errno == errno.EINVAL:
            why, unit = "the driver refuses the transfer (alignment or range)", "dma"
        elif error.errno == errno.EBUSY:
            why, unit = "the engine is busy with an aborted transfer; load the driver again", "dma"
        else:
            why, unit = f"{error.strerror or error}; see dmesg, then recover", "dma"
        raise LinkError(f"{path}: {why}", unit="link" if node == "user" else unit) from error

    def _pause(self, seconds: float, most: float) -> None:
        """Until an interrupt, or for a moment: one that is lost costs no more than that."""
        events = self._files.get(EVENTS)
        if events is None:
            super()._pause(seconds, most)
            return
        # A pause is left at once by an interrupt that came before it: the driver counts them until they are read.
        if select.select([events], [], [], min(most, _SLICE))[0]:
            with self._lock:
                self._check_open()
                with suppress(BlockingIOError):
                    os.read(events, _WORD)
                self._store(reg.IRQ_STATUS.offset, 1)

    def _let_go(self) -> None:
        for number in self._files.values():
            with suppress(OSError):
                os.close(number)
        self._files.clear()
        with suppress(BufferError):  # part of it may still be named by an error's traceback
            self._view.release()
            self._buffer.close()
