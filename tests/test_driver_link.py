# SPDX-License-Identifier: Apache-2.0
"""A link that is bad: what is read again, what is given up, and how it goes on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from driver_cases import SOON, lines, seal, sent, small_driver, submit
from fake_device import FakeDevice
from small_program import TINY

from gharial.driver import DecodeEntry, Driver
from gharial.errors import DeviceError, DeviceTimeout, LinkError
from gharial.isa import _registers as reg
from gharial.isa.faults import Fault

HALTING = [fault for fault in Fault if fault.halts]


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice(TINY)


@pytest.fixture
def driver(device: FakeDevice) -> Iterator[Driver]:
    with small_driver(device) as driver:
        yield driver


def test_a_completion_that_was_misread(driver: Driver, device: FakeDevice) -> None:
    """Once: it is read again."""
    assert driver._rings is not None
    ring, left = driver.plan.completions, [2]

    def flip(address: int, data: bytes) -> bytes:
        if ring.address <= address < ring.end and left[0]:
            left[0] -= 1
            return bytes([data[0] ^ 1]) + data[1:]
        return data

    device.on_read = flip
    assert driver.reset("encoder", [0]).result() is None
    assert driver.link_retries == 2


@pytest.mark.parametrize(
    ("word", "sealed", "words"),
    [
        (7, False, "CRC does not match"),
        (3, True, "it is of command"),
        (0, True, "its tag is"),
    ],
)
def test_a_completion_that_makes_no_sense(
    driver: Driver, device: FakeDevice, word: int, sealed: bool, words: str
) -> None:
    def break_it(index: int, completion: np.ndarray) -> None:
        completion[word] ^= 0x40
        if sealed:
            seal(completion)

    device.mangle = break_it
    ticket = driver.reset("encoder", [0])
    with pytest.raises(LinkError, match=words) as caught:
        ticket.result()
    lines(caught.value)
    device.mangle = lambda index, completion: None
    assert driver.recover().lost_encoder == (0,)
    assert driver.reset("encoder", [0]).result() is None


@pytest.mark.parametrize(("value", "words"), [(0xFFFFFFFF, "completed"), (100, "completed")])
def test_an_index_that_makes_no_sense(driver: Driver, device: FakeDevice, value: int, words: str) -> None:
    device.held = sent(driver)
    ticket = driver.reset("encoder", [0])
    device.registers[reg.CPL_TAIL] = value
    with pytest.raises(LinkError, match=words):
        ticket.result()
    del device.registers[reg.CPL_TAIL]
    device.held = None
    driver.recover()
    assert driver.reset("encoder", [0]).result() is None


def test_a_link_that_dies(driver: Driver, device: FakeDevice) -> None:
    device.held = sent(driver)
    ticket = driver.reset("encoder", [0])
    device.registers = dict.fromkeys(reg.REGISTERS, 0xFFFFFFFF)
    with pytest.raises(LinkError, match="does not answer"):
        ticket.result()
    with pytest.raises(LinkError, match="does not answer"):
        driver.recover()
    with pytest.raises(DeviceError, match="recover again"):
        driver.reset("encoder", [1])
    device.registers, device.held = {}, None
    assert driver.recover().failed == 1
    assert driver.reset("encoder", [0]).result() is None


def test_a_link_that_dies_while_it_waits(driver: Driver, device: FakeDevice) -> None:
    """All ones in the index are caught at once, all zeros only by the limit."""
    device.held = sent(driver)
    ticket = driver.reset("encoder", [0])
    device.registers = dict.fromkeys(reg.REGISTERS, 0)
    device.registers[reg.CPL_TAIL] = device.tail
    with pytest.raises(DeviceTimeout, match="does not answer") as caught:
        ticket.result(SOON)
    assert caught.value.unit == "link"


def test_a_reset_that_hangs(driver: Driver, device: FakeDevice) -> None:
    device.reset_error = DeviceError("soft reset does not end", unit="host interface")
    with pytest.raises(DeviceError, match="does not end"):
        driver.recover()
    device.reset_error = None
    driver.recover()
    assert driver.reset("encoder", [0]).result() is None


def test_a_write_that_fails(driver: Driver, device: FakeDevice) -> None:
    """The command was not sent, and its room is free again."""
    device.write_error = DeviceError("link lost", unit="link")
    with pytest.raises(DeviceError, match="link lost"):
        submit(driver, "encode")
    assert driver.in_flight == 0
    for _ in range(40):
        submit(driver, "encode").result()


def test_a_result_that_was_misread(driver: Driver, device: FakeDevice) -> None:
    staging, broken = driver.plan.staging, [1]

    def garble(address: int, data: bytes) -> bytes:
        if staging.address <= address and broken[0]:
            broken[0] -= 1
            return b"\xff" * len(data)
        return data

    device.on_read = garble
    assert len(submit(driver, "greedy").result()) == 2 and driver.link_retries == 1
    broken[0] = 99
    for ticket in (submit(driver, "greedy"), driver.decode([DecodeEntry(source=1)])):
        with pytest.raises(LinkError, match="a result cannot be used"):
            ticket.result()
    broken[0] = 0
    assert len(submit(driver, "greedy").result()) == 2, "the device is none the worse"


def test_state_is_read_back_where_the_link_is_bad() -> None:
    device = FakeDevice(TINY)
    with small_driver(device, checked=True) as driver:
        driver.reset("prediction", [0]).result()
        flips = [1]

        def flip(address: int, data: bytes) -> bytes:
            if driver.plan.staging.address <= address and flips[0]:
                flips[0] -= 1
                return bytes([data[0] ^ 1]) + data[1:]
            return data

        device.on_read = flip
        (image,) = driver.save("prediction", [0]).result()
        assert image.data == bytes(44) and driver.link_retries == 1
        flips[0] = 1
        driver.restore([0], [image]).result()
        assert driver.link_retries == 2
        flips[0] = 99
        with pytest.raises(LinkError, match="does not keep what is written"):
            driver.restore([0], [image])


def test_registers_that_do_not_keep(device: FakeDevice) -> None:
    device.registers[reg.CMD_BASE_LO] = 0xFFFF0000
    with pytest.raises(LinkError, match="does not keep what is written"):
        small_driver(device)
