# SPDX-License-Identifier: Apache-2.0
"""What the tests of links share: the small program on an emulator behind a link, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from sim.links.bridges import Bus, EtherServer, Server, UartServer
from small_program import TINY, assemble
from small_run import features, transcript

from gharial.devices.base import Device
from gharial.devices.litex import LitexDevice
from gharial.devices.litex.etherbone import EtherboneBridge
from gharial.devices.litex.uart import UartBridge
from gharial.driver import Driver, GreedyEntry
from gharial.isa import _registers as reg

emulator = pytest.importorskip("gharial.devices.emulator", reason="the emulator's engine is not built")

BAUD = 1_000_000
SOON = 0.4
"""Seconds in which a bridge of the tests answers, however busy the machine."""

LONG = 60.0
"""Seconds that nothing takes, however busy the machine."""

Frame = tuple[list[int], list[int], list[int], bool, int]


@cache
def expected() -> list[Any]:
    """The whole conversation of small_run, on the emulator itself."""
    return transcript(emulator.open_emulator, assemble())


def frames(driver: Driver, count: int = 4, seed: int = 5, slot: int = 0) -> list[Frame]:
    """Greedy steps of a stream that begins, one at a time, as they come from a microphone."""
    found = []
    for step, x in enumerate(features(seed, count)):
        (r,) = driver.greedy([GreedyEntry(slot, x, step & 1, step == 0, prediction=slot)]).result()
        found.append((r.tokens.tolist(), r.logits.tolist(), r.lse.tolist(), r.capped, r.joints))
    return found


@cache
def expected_frames(count: int = 4, seed: int = 5) -> list[Frame]:
    """The same on the emulator itself."""
    with Driver(emulator.open_emulator(TINY), assemble()) as driver:
        return frames(driver, count, seed)


@dataclass
class Board:
    """A board of the tests.

    Attributes:
        device: the accelerator behind the bridge.
        bus: what the bridge is a master of.
        server: the bridge.
        link: the host's side.
    """

    device: Device
    bus: Bus
    server: Any
    link: Any

    def unhurried(self) -> None:
        """Nothing is sent again because this machine is busy: for tests that count."""
        self.link.bridge.answer_s = self.server.forget_s = LONG

    def bells(self) -> list[int]:
        """Values that CMD_TAIL was given, in order."""
        place = self.bus.places.registers + reg.CMD_TAIL.offset
        return [value for address, value in self.bus.log if address == place]


@contextmanager
def board(make: Callable[[Bus], Server]) -> Iterator[Board]:
    """A board with a small window, its bridge at work."""
    device = emulator.open_emulator(TINY)
    bus = Bus(device)
    server = make(bus)
    server.start()
    try:
        yield Board(device, bus, server, connect(server))
    finally:
        server.stop()
        device.close()


def connect(server: Server) -> LitexDevice:
    """The host's side of a bridge."""
    if isinstance(server, UartServer):
        return LitexDevice(f"litex:uart:{server.path}", TINY, UartBridge(server.path, BAUD, SOON))
    assert isinstance(server, EtherServer)
    return LitexDevice("litex:eth", TINY, EtherboneBridge(server.HOST, server.port, SOON / 2))
