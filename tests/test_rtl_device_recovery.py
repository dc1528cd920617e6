# SPDX-License-Identifier: Apache-2.0
"""Faults that halt the RTL, and soft resets in the middle of its work: who is hit, and that the others go on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from driver_devices import CAP, greedy_run, program, stream, two_streams
from rtl_device import LONG, open_rtl

from gharial.devices.emulator import open_emulator
from gharial.devices.verilator import VerilatorDevice
from gharial.driver import Driver, EncodeEntry, GreedyEntry
from gharial.errors import CommandFailed, DeviceError
from gharial.isa import _registers as reg


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver(open_rtl(program().config), program(), timeout=LONG) as driver:
        yield driver


def simulation(driver: Driver) -> VerilatorDevice:
    assert isinstance(driver.device, VerilatorDevice)
    return driver.device


@pytest.fixture(scope="module")
def expected() -> list[object]:
    """What the stream on slot 1 gives, by the emulator."""
    p = program()
    with Driver(open_emulator(p.config), p, timeout=LONG) as driver:
        return list(greedy_run(driver, [stream(6, 8), stream(7, 8)], [0, 1])[1])


@pytest.mark.parametrize("clocks", [1, 100, 700])
def test_watchdog(driver: Driver, expected: list[object], clocks: int) -> None:
    """It bites before the command is read, while it is prepared, and while it computes."""
    a, b = two_streams(driver)
    simulation(driver).write_register(reg.WATCHDOG.offset, clocks)
    ticket = driver.greedy([GreedyEntry(0, a[3], 1, prediction=20)], max_symbols=CAP)
    with pytest.raises(DeviceError if clocks == 1 else CommandFailed, match="WATCHDOG"):
        ticket.result()
    with pytest.raises(DeviceError, match="halted"):
        driver.greedy([GreedyEntry(1, b[3], 1, prediction=21)])
    recovery = driver.recover()
    assert not recovery.reloaded
    nothing = clocks == 1 and recovery.lost_encoder == ()
    assert (recovery.lost_encoder, recovery.lost_prediction) == (((), ()) if nothing else ((0,), (20,)))
    assert greedy_run(driver, [b[3:]], [1], start=3) == [expected[3:]]
    assert greedy_run(driver, [b], [0]) == [expected], "the stream that was hit can start anew"


def test_ring_overrun(driver: Driver, expected: list[object]) -> None:
    _, b = two_streams(driver)
    simulation(driver).ring_doorbell(1 << 20)
    driver.device.wait(1 << 20, LONG)
    assert simulation(driver).read_register(reg.STATUS.offset) & 4
    recovery = driver.recover()
    assert (recovery.lost_encoder, recovery.lost_prediction, recovery.reloaded) == ((), (), False)
    assert greedy_run(driver, [b[3:]], [1], start=3) == [expected[3:]]


def test_reset_in_the_middle(driver: Driver, expected: list[object], seed: int) -> None:
    """At any clock of some commands: their slots are lost, as far as they were begun, and nothing else is."""
    random = np.random.default_rng(seed)
    lost = set()
    for turn in range(25):
        a, b = two_streams(driver)
        for step in range(3):
            driver.greedy([GreedyEntry(0, a[3 + step], step + 1 & 1, prediction=20)], max_symbols=CAP)
            driver.encode([EncodeEntry(2, a[step], step & 1, reset=step == 0)])
        simulation(driver).advance(int(random.integers(0, 6000)))
        recovery = driver.recover()
        assert set(recovery.lost_encoder) <= {0, 2} and set(recovery.lost_prediction) <= {20}, turn
        assert not recovery.reloaded
        lost.add((recovery.lost_encoder, recovery.lost_prediction))
        assert greedy_run(driver, [b[3:]], [1], start=3) == [expected[3:]], turn
    assert len(lost) > 1


def test_reset_while_loading(expected: list[object], seed: int) -> None:
    """A driver that goes away in the middle of loading leaves nothing that the next one stumbles over."""
    random = np.random.default_rng(seed)
    device = open_rtl(program().config)

    class Gone(Exception):
        pass

    class Leaving(VerilatorDevice):
        """Stops after some doorbells; what was rung is at work."""

        def __init__(self) -> None:
            self.__dict__ |= device.__dict__

        def ring_doorbell(self, tail: int) -> None:
            nonlocal left
            super().ring_doorbell(tail)
            left -= 1
            if not left:
                device.advance(int(random.integers(0, 2000)))
                raise Gone

        def close(self) -> None:
            pass

    for doorbells in (1, 3, 5):
        left = doorbells
        with pytest.raises(Gone):
            Driver(Leaving(), program(), timeout=LONG)
    with Driver(device, program(), timeout=LONG) as driver:
        assert greedy_run(driver, [stream(7, 8)], [1]) == [expected]
