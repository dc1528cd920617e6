# SPDX-License-Identifier: Apache-2.0
"""Several commands in flight: order, full rings, indices that wrap, threads, and the memory they are staged in."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from fake_device import FakeDevice
from hypothesis import given, settings
from hypothesis import strategies as st
from small_program import TINY, assemble

from gharial.driver import DecodeEntry, Driver, Region
from gharial.driver.staging import Staging
from gharial.isa.commands import Kind


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice(TINY)


@pytest.fixture
def driver(device: FakeDevice) -> Iterator[Driver]:
    with Driver(device, assemble(), timeout=60, checked=True) as driver:
        device.ran.clear()
        device.log.clear()
        yield driver


def test_commands_overlap(driver: Driver, device: FakeDevice) -> None:
    device.steps = 1
    tickets = [driver.decode([DecodeEntry(n, 0, Kind.TOKEN, n, n, n)]) for n in range(8)]
    assert driver.in_flight == 8 and not any(ticket.done for ticket in tickets)
    device.wait(0, 0)
    assert driver.poll() == tickets[:1] and tickets[0].done and driver.in_flight == 7
    assert tickets[5].result().lse.tolist() == [5005]
    assert all(ticket.done for ticket in tickets[:6]) and not tickets[6].done
    driver.wait_all()
    assert tickets[7].done and driver.in_flight == 0


def test_a_full_ring_holds_the_caller_back(device: FakeDevice) -> None:
    with Driver(device, assemble(), ring_log2=1, timeout=60) as driver:
        device.steps = 1
        tickets = [driver.decode([DecodeEntry(n % 16, 0, Kind.TOKEN, n, n, 1)]) for n in range(40)]
        assert driver.in_flight <= 2
        assert [t.result().lse.tolist() for t in tickets] == [[n % 16 * 1000 + 1] for n in range(40)]


def test_indices_wrap(driver: Driver, device: FakeDevice) -> None:
    """After 2^32 commands everything goes on as before."""
    rings = driver._rings
    assert rings is not None
    start = (1 << 32) - 3
    rings._sent = rings._taken = device.head = device.next = device.tail = start
    device.regs[0x54] = start  # CPL_HEAD
    for n in range(8):
        assert driver.decode([DecodeEntry(n, 0, Kind.TOKEN, n, n, n)]).result().lse.tolist() == [n * 1001]
    assert rings.sent == 5


def test_tags_are_never_zero(driver: Driver) -> None:
    rings = driver._rings
    assert rings is not None
    rings._tag = (1 << 32) - 2
    for _ in range(4):
        driver.reset("encoder", [0]).result()  # the device checks the tag
    assert rings._tag == 3


def test_many_threads(device: FakeDevice) -> None:
    device.steps = 1
    errors: list[BaseException] = []
    with Driver(device, assemble(), ring_log2=2, timeout=60) as driver:

        def work(n: int) -> None:
            try:
                for token in range(12):
                    entry = DecodeEntry(n, 0, Kind.TOKEN, n, n, token)
                    assert driver.decode([entry]).result().lse.tolist() == [n * 1000 + token]
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert errors == [] and not any(thread.is_alive() for thread in threads)


@settings(max_examples=200)
@given(st.lists(st.integers(1, 700), max_size=60), st.data())
def test_staging_never_overlaps(sizes: list[int], data: st.DataObject) -> None:
    staging = Staging(Region("staging", 4096, 1024))
    live: list[tuple[int, int]] = []
    for size in sizes:
        while live and data.draw(st.booleans()):
            live.pop(0)
            staging.free_oldest()
        at = staging.claim(size)
        if at is None:
            assert live, "an empty region must take anything that fits"
            continue
        assert at % 64 == 0 and at >= 4096 and at + size <= 4096 + 1024
        assert all(at + size <= start or end <= at for start, end in live)
        live.append((at, at + size))
