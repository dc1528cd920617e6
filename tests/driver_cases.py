# SPDX-License-Identifier: Apache-2.0
"""What the tests of faults and of links share: a driver on the fake device, and something to send."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from fake_device import FakeDevice
from small_program import TINY, assemble

from gharial.driver import DecodeEntry, Driver, EncodeEntry, GreedyEntry, Ticket
from gharial.isa.commands import Kind

STEP = np.ones((2, 4), np.int8)

SOON = 0.05
"""A limit for what never ends. What does end has a long one, since the machine that runs the tests may be busy."""

LONG = 60.0


def small_driver(device: FakeDevice | None = None, **options: Any) -> Driver:
    """A driver with the small program."""
    return Driver(device or FakeDevice(TINY), assemble(), **({"timeout": LONG} | options))


def sent(driver: Driver) -> int:
    """Index of the next command."""
    assert driver._rings is not None
    return driver._rings.sent


def lines(error: BaseException) -> list[str]:
    """The lines of an error's text, of which there may be three."""
    found = str(error).splitlines()
    assert 1 <= len(found) <= 3
    return found


def seal(words: np.ndarray) -> None:
    """Give a completion the CRC that belongs to it."""
    words[-1] = zlib.crc32(words[:-1].tobytes())


def submit(driver: Driver, what: str) -> Ticket[Any]:
    """Send a command whose destinations are encoder slots 3 and 4, prediction slots 13 and 14, as far as it has any."""
    if what == "greedy":
        return driver.greedy([GreedyEntry(3, STEP, prediction=13), GreedyEntry(4, STEP, prediction=14)])
    if what == "encode":
        return driver.encode([EncodeEntry(3, STEP), EncodeEntry(4, STEP)])
    if what == "decode":
        return driver.decode([DecodeEntry(3, 0, Kind.TOKEN, 12, 13), DecodeEntry(3, 0, Kind.NONE, 14, 14)])
    return driver.copy("prediction", [(13, 14)])
