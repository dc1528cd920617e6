# SPDX-License-Identifier: Apache-2.0
"""Slots: their commands, their numbers, and state that is saved and restored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from fake_device import FakeDevice
from small_program import TINY, assemble

from gharial.driver import Driver, SlotImage
from gharial.errors import BadInput, BadRequest, GharialError
from gharial.isa.commands import Flag


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice(TINY)


@pytest.fixture
def driver(device: FakeDevice) -> Iterator[Driver]:
    with Driver(device, assemble(), timeout=60, checked=True) as driver:
        device.ran.clear()
        device.log.clear()
        yield driver


def test_slot_commands(driver: Driver, device: FakeDevice) -> None:
    driver.reset("prediction", [3, 4]).result()
    assert set(device.slots) == {(True, 3), (True, 4)}
    device.slots[True, 3] = bytes(range(44))
    driver.copy("prediction", [(3, 5)]).result()
    assert device.slots[True, 5] == bytes(range(44))
    driver.free("prediction", [3]).result()
    driver.reset("encoder", [3]).result()
    assert set(device.slots) == {(True, 4), (True, 5), (False, 3)}
    flags = [command.fields["flags"] for command in device.ran]
    assert [bool(f & Flag.PREDICTION) for f in flags] == [True, True, True, False]


def test_saved_state_comes_back(driver: Driver, device: FakeDevice) -> None:
    device.slots = {(False, n): bytes([n]) * 88 for n in range(16)}
    images = driver.save("encoder", range(16)).result()
    assert [image.data for image in images] == [bytes([n]) * 88 for n in range(16)]
    device.slots = {}
    again = [SlotImage.from_bytes(image.to_bytes()) for image in images]
    driver.restore(range(16), again).result()
    assert device.slots == {(False, n): bytes([n]) * 88 for n in range(16)}


def test_saved_state_is_for_its_program_alone(driver: Driver) -> None:
    driver.reset("prediction", [0]).result()
    (image,) = driver.save("prediction", [0]).result()
    with Driver(FakeDevice(TINY), assemble(seed=2)) as other, pytest.raises(BadRequest, match="belongs to program"):
        other.restore([0], [image])
    moved = SlotImage(image.kind, image.program_id, image.layout_id ^ 1, image.data)
    with pytest.raises(BadRequest, match="belongs to program"):
        driver.restore([0], [moved])
    driver.reset("encoder", [0]).result()
    (encoder,) = driver.save("encoder", [0]).result()
    with pytest.raises(BadRequest, match="encoder and of prediction"):
        driver.restore([0, 1], [encoder, image])
    short = SlotImage(image.kind, image.program_id, image.layout_id, image.data[:-1])
    with pytest.raises(BadRequest, match="43 bytes, expected 44"):
        driver.restore([0], [short])


def test_a_damaged_image(driver: Driver, seed: int) -> None:
    driver.reset("prediction", [0]).result()
    data = driver.save("prediction", [0]).result()[0].to_bytes()
    random = np.random.default_rng(seed)
    for place in range(len(data)):
        broken = bytearray(data)
        broken[place] ^= 1 << int(random.integers(8))
        with pytest.raises(BadInput):
            SlotImage.from_bytes(bytes(broken))
    for length in (0, 10, len(data) - 1):
        with pytest.raises(BadInput):
            SlotImage.from_bytes(data[:length])


def test_slot_numbers(driver: Driver, device: FakeDevice) -> None:
    first = driver.allocate("encoder", 15)
    assert len(set(first)) == 15 and driver.encoder_slots.free == 1
    with pytest.raises(GharialError, match="no encoder slot is left: needed 2, found 1 of 16"):
        driver.allocate("encoder", 2)
    assert driver.encoder_slots.free == 1
    driver.reset("encoder", first).result()
    driver.release("encoder", first[:5]).result()
    assert driver.encoder_slots.free == 6
    assert {slot for _, slot in device.slots} == set(first[5:]), "a slot given back is wiped"
    for wrong in ([first[0]], [first[7], first[7]], [99]):
        with pytest.raises(BadRequest, match="not allocated, or is named twice"):
            driver.release("encoder", wrong)
    assert driver.encoder_slots.free == 6
    driver.allocate("encoder", 6)
