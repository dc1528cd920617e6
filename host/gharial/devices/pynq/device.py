# SPDX-License-Identifier: Apache-2.0
"""The accelerator beside the processors of a Zynq: registers and device memory mapped into this process.

Source: Linux' "Userspace I/O Howto": /dev/uioN maps region k at offset k pages; sizes are in /sys/class/uio. Region 0
holds the registers, region 1 the device memory. PYNQ loads overlays and their device tree; nothing of it is needed
afterwards.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import MutableSequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from gharial.devices.remote import RemoteDevice
from gharial.errors import LinkError
from gharial.isa.configs import Config

UIO_NAME = "gharial"
"""What the device tree calls the accelerator: so it is told from other UIO devices."""

_WORD = 4
_WIDE = 16  # bytes; memory that is not cached refuses accesses across such bounds
_REGISTERS = 0x100


def open_pynq(number: int, config: Config, root: Path = Path("/")) -> PynqDevice:
    """Open /dev/uio`number`.

    Raises:
        LinkError: there is no such device, it may not be used, or its regions are too small.
    """
    return PynqDevice(f"pynq:{number}", config, number, root)


class PynqDevice(RemoteDevice):
    """An overlay; see `open_pynq`.

    Args:
        name: of the device.
        config: its hardware configuration.
        number: of the UIO device.
        root: where `dev` and `sys` are.
    """

    kind = "pynq"

    def __init__(self, name: str, config: Config, number: int, root: Path) -> None:
        super().__init__(name, config)
        self._path = str(root / "dev" / f"uio{number}")
        sizes = root / "sys" / "class" / "uio" / f"uio{number}" / "maps"
        self._maps: list[mmap.mmap] = []
        self._registers: MutableSequence[int] | np.ndarray
        self._memory: np.ndarray
        try:
            file = os.open(self._path, os.O_RDWR | os.O_SYNC | os.O_CLOEXEC)
        except OSError as error:
            raise LinkError(f"{self._path}: {_reason(error)}", unit="link") from error
        try:
            self._registers = self._map(file, 0, sizes, _REGISTERS).view("<u4")
            self._memory = self._map(file, 1, sizes, config.window_bytes)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(file)

    def _map(self, file: int, region: int, sizes: Path, least: int) -> np.ndarray:
        """Region `region`, as bytes."""
        try:
            size = int((sizes / f"map{region}" / "size").read_text(encoding="ascii"), 0)
            if size < least:
                what = (
                    f"{self._path}: region {region} has {size} bytes, expected {least} or more; load the right overlay"
                )
                raise LinkError(what, unit="link")
            self._maps.append(mmap.mmap(file, size, offset=region * mmap.PAGESIZE))
        except (OSError, ValueError) as error:
            what = f"{self._path}: region {region} cannot be mapped ({error}); load the overlay and its device tree"
            raise LinkError(what, unit="link") from error
        return np.frombuffer(self._maps[-1], np.uint8)

    def _load(self, offset: int) -> int:
        return int(self._registers[offset // _WORD])

    def _store(self, offset: int, value: int) -> None:
        self._registers[offset // _WORD] = value

    def _fetch(self, address: int, count: int) -> bytes:
        start, end = address // _WIDE * _WIDE, -(-(address + count) // _WIDE) * _WIDE
        return self._memory[start:end].tobytes()[address - start : address - start + count]

    def _put(self, address: int, data: bytes) -> None:
        start, end = address // _WIDE * _WIDE, -(-(address + len(data)) // _WIDE) * _WIDE
        whole = np.empty(end - start, np.uint8)
        if address != start:
            whole[:_WIDE] = self._memory[start : start + _WIDE]
        if address + len(data) != end:
            whole[-_WIDE:] = self._memory[end - _WIDE : end]
        whole[address - start : address - start + len(data)] = np.frombuffer(data, np.uint8)
        self._memory[start:end] = whole

    def _let_go(self) -> None:
        self._registers = []
        self._memory = np.empty(0, np.uint8)
        for region in self._maps:
            with suppress(BufferError):
                region.close()
        self._maps.clear()


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "no such device; load the overlay and its device tree, and see which there are: gharial devices"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "no permission; install the udev rule (gharial flash --udev)"
    return f"cannot be opened: {error.strerror or error}"
