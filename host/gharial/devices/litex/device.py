# SPDX-License-Identifier: Apache-2.0
"""A board behind one of LiteX's bridges, as a device."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from gharial.devices.litex.bridge import WORD, Bridge
from gharial.devices.litex.etherbone import EtherboneBridge
from gharial.devices.litex.uart import UartBridge
from gharial.devices.remote import RemoteDevice
from gharial.errors import BadInput, LinkError
from gharial.isa import _registers as reg
from gharial.isa.configs import Config

BAUD = 1_000_000
PATIENCE = "GHARIAL_LINK_SECONDS"

# Registers, and a value of one, that do not read back as written.
_PASSING = frozenset((reg.COUNTER_SNAPSHOT.offset, reg.IRQ_STATUS.offset))
_RESET = (reg.CONTROL.offset, 2)
_MOST_PATIENT = 3600
_SAME = 4  # reads of a register, before the link is blamed for two that differ
_EXPECTED = "litex:uart:PORT, litex:uart:PORT@BAUD, litex:eth:HOST or litex:eth:HOST:PORT"


@dataclass(frozen=True)
class BusMap:
    """Where an image has what (docs/bitstream.md): byte addresses on the bridges' bus."""

    registers: int = 0x30000000
    memory: int = 0x40000000


def open_litex(name: str, config: Config) -> LitexDevice:
    """Open a board by its device name.

    Raises:
        BadInput: the name is not of that form, or a package is missing.
        LinkError: the link cannot be opened, or nothing answers.
    """
    return LitexDevice(name, config, open_bridge(name))


def open_bridge(name: str) -> Bridge:
    """The link that a device name means; GHARIAL_LINK_SECONDS gives it another time to answer."""
    patient = _patience()
    kind, _, rest = name.removeprefix("litex:").partition(":")
    if kind == "uart" and rest:
        path, at, baud = rest.rpartition("@")
        if not at:
            return UartBridge(rest, BAUD, **patient)
        if not path or not baud.isascii() or not baud.isdecimal() or not 0 < int(baud) < 1 << 31:
            raise BadInput("a device name with a baud rate that is none", f"device {name}", baud, _EXPECTED)
        return UartBridge(path, int(baud), **patient)
    if kind == "eth" and rest:
        host, colon, port = rest.partition(":")
        if not colon:
            return EtherboneBridge(host, **patient)
        if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise BadInput("a device name with a UDP port that is none", f"device {name}", port, _EXPECTED)
        return EtherboneBridge(host, int(port), **patient)
    raise BadInput("the name does not say where the board is", f"device {name}", expected=_EXPECTED)


def _patience() -> dict[str, Any]:
    text = os.environ.get(PATIENCE, "")
    if not text:
        return {}
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < _MOST_PATIENT:
        raise BadInput("time for a board to answer", PATIENCE, text, f"seconds, more than 0 and below {_MOST_PATIENT}")
    return {"answer_s": seconds}


class LitexDevice(RemoteDevice):
    """A board; see `open_litex`.

    Registers are read until two reads agree; what is read of memory is the driver's to check.

    Args:
        name: of the device.
        config: its hardware configuration.
        bridge: the link, which belongs to the device from then on.
        places: where the image has what.
    """

    kind = "litex"
    frugal = True

    def __init__(self, name: str, config: Config, bridge: Bridge, places: BusMap | None = None) -> None:
        super().__init__(name, config)
        self.bridge = bridge
        self._taken: int | None = None  # completions that the host has taken
        self.places = places or BusMap()

    def wait(self, completions: int, timeout: float) -> bool:
        """As any board's; who waits sees first that what was sent has arrived."""
        with self._lock:
            self._check_open()
            self.bridge.confirm()
            if self._taken is not None:
                self._store(reg.CPL_HEAD.offset, self._taken)
        return super().wait(completions, timeout)

    def reset(self) -> None:
        """Soft reset."""
        with self._lock:
            self._taken = None
            super().reset()
            self.bridge.forget()

    def _load(self, offset: int) -> int:
        address = self.places.registers + offset
        before = self._word(address)
        for _ in range(_SAME):
            now = self._word(address)
            if now == before:
                return now
            before = now
        raise LinkError(f"{self.bridge.where}: a register reads differently each time", unit="link", detail=offset)

    def _word(self, address: int) -> int:
        return int.from_bytes(self.bridge.read(address, WORD), "little")

    def _store(self, offset: int, value: int) -> None:
        address = self.places.registers + offset
        if offset == reg.CMD_TAIL.offset:
            self.bridge.ring(address, value)
        else:
            if offset == reg.CPL_HEAD.offset:
                self._taken = value
            kept = offset not in _PASSING and (offset, value) != _RESET
            self.bridge.write(address, value.to_bytes(WORD, "little"), kept)

    def _fetch(self, address: int, count: int) -> bytes:
        skip = address % WORD
        whole = -(-(skip + count) // WORD) * WORD
        return self.bridge.read(self.places.memory + address - skip, whole)[skip : skip + count]

    def _put(self, address: int, data: bytes) -> None:
        # The bus moves whole words: those at the edges are read first where the bytes do not fill them.
        before, after = address % WORD, -(address + len(data)) % WORD
        start, end = address - before, address + len(data)
        if before:
            data = self._fetch(start, before) + data
        if after:
            data += self._fetch(end, after)
        self.bridge.write(self.places.memory + start, data)

    def _let_go(self) -> None:
        self.bridge.close()
