# SPDX-License-Identifier: Apache-2.0
"""Failures of devices that compute, and of the way to them: who is hit, and that the others are none the worse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from driver_cases import LONG, SOON
from driver_devices import CAP, OPENERS, emulated, greedy_run, program, stream, two_streams

from gharial.devices.base import Device
from gharial.driver import Driver, GreedyEntry
from gharial.errors import CommandFailed, DeviceError, DeviceTimeout
from gharial.isa.faults import Fault
from gharial.program import Program


@pytest.fixture(params=OPENERS)
def opener(request: pytest.FixtureRequest) -> Callable[[Program], Device]:
    return OPENERS[request.param]


@pytest.mark.parametrize("fault", [Fault.BUS_READ, Fault.BUS_WRITE, Fault.WATCHDOG])
def test_other_streams_survive_a_halt(fault: Fault) -> None:
    """An error in one stream's step: after the recovery the other goes on as if nothing had been."""
    p = program()
    with Driver(emulated(p), p, timeout=LONG) as driver:
        (_, expected) = greedy_run(driver, [stream(6, 8), stream(7, 8)], [0, 1])
        a, b = two_streams(driver)
        device: Any = driver.device
        if fault == Fault.WATCHDOG:
            device.inject_watchdog()
        else:
            staging = driver.plan.staging
            device.inject_bus_error(fault, staging.address, staging.size)
        ticket = driver.greedy([GreedyEntry(0, a[3], prediction=20)], max_symbols=CAP)
        with pytest.raises(CommandFailed, match=fault.name):
            ticket.result()
        with pytest.raises(DeviceError, match="halted"):
            driver.greedy([GreedyEntry(1, b[3], prediction=21)])
        recovery = driver.recover()
        assert not recovery.reloaded
        assert (recovery.lost_encoder, recovery.lost_prediction) == ((0,), (20,))
        assert greedy_run(driver, [b[3:]], [1], start=3) == [expected[3:]]
        assert greedy_run(driver, [a], [0])[0], "the stream that was hit can start anew"


def test_other_streams_survive_a_hang() -> None:
    p = program()
    with Driver(emulated(p), p, timeout=LONG) as driver:
        (_, expected) = greedy_run(driver, [stream(6, 8), stream(7, 8)], [0, 1])
        a, b = two_streams(driver)
        device: Any = driver.device
        device.stall()
        ticket = driver.greedy([GreedyEntry(0, a[3], prediction=20)], max_symbols=CAP)
        with pytest.raises(DeviceTimeout):
            ticket.result(SOON)
        recovery = driver.recover()
        assert recovery.failed == 1 and recovery.lost_encoder == ()
        with pytest.raises(DeviceError, match="given up"):
            ticket.result()
        assert greedy_run(driver, [b[3:]], [1], start=3) == [expected[3:]]


class Flipping(Device):
    """A device behind a link that once flips a bit of what is written; reads are good."""

    kind = "flipping"

    def __init__(self, inner: Device) -> None:
        self.inner, self.name, self.config = inner, inner.name, inner.config
        self.flip: Callable[[int, bytes], bytes] | None = None

    def read_register(self, offset: int) -> int:
        return self.inner.read_register(offset)

    def write_register(self, offset: int, value: int) -> None:
        self.inner.write_register(offset, value)

    def read_memory(self, address: int, count: int) -> bytes:
        return self.inner.read_memory(address, count)

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        data = bytes(data)
        self.inner.write_memory(address, self.flip(address, data) if self.flip else data)

    def ring_doorbell(self, tail: int) -> None:
        self.inner.ring_doorbell(tail)

    def wait(self, completions: int, timeout: float) -> bool:
        return self.inner.wait(completions, timeout)

    def reset(self) -> None:
        self.inner.reset()

    def close(self) -> None:
        self.inner.close()


@pytest.mark.parametrize(
    ("where", "loses"), [("descriptor", False), ("entries", True), ("features", True)], ids=lambda value: str(value)
)
def test_a_bit_that_flips_on_the_way(opener: Callable[[Program], Device], where: str, loses: bool) -> None:
    """It is noticed, the right slots are doubted, and the others are none the worse."""
    p = program()
    with Driver(Flipping(opener(p)), p, timeout=LONG, checked=True) as driver:
        (_, expected) = greedy_run(driver, [stream(6, 8), stream(7, 8)], [0, 1])
        a, b = two_streams(driver)
        device = driver.device
        assert isinstance(device, Flipping)
        staging = driver.plan.staging

        def flip(address: int, data: bytes) -> bytes:
            in_staging = staging.address <= address
            place = {"descriptor": 20, "entries": 4, "features": 70}[where]
            if in_staging == (where == "descriptor"):
                return data
            return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]

        device.flip = flip
        ticket = driver.greedy([GreedyEntry(0, a[3], prediction=20)], max_symbols=CAP)
        device.flip = None
        with pytest.raises(CommandFailed, match="CHECKSUM") as caught:
            ticket.result()
        assert (caught.value.lost_encoder, caught.value.lost_prediction) == (((0,), (20,)) if loses else ((), ()))
        assert greedy_run(driver, [b[3:]], [1], start=3) == [expected[3:]]
        if not loses:
            greedy_run(driver, [a[3:]], [0], start=3)


def test_a_program_damaged_on_the_way_is_sent_again(opener: Callable[[Program], Device]) -> None:
    p = program()
    device = Flipping(opener(p))
    left = [3]

    def flip(address: int, data: bytes) -> bytes:
        if len(data) > 1000 and left[0]:
            left[0] -= 1
            return data[:500] + bytes([data[500] ^ 1]) + data[501:]
        return data

    device.flip = flip
    with Driver(device, p, timeout=LONG) as driver:
        assert left[0] == 0
        assert greedy_run(driver, [stream(2, 2)], [3])
