# SPDX-License-Identifier: Apache-2.0
"""DECODE for who writes entries and reads results himself: the same commands, checks and bytes as by `decode`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_device import Failing, FakeDevice
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_program import CLASSES, TINY, TOKENS, assemble

from gharial.driver import DecodeBatch, DecodeEntry, Driver
from gharial.driver.entries import pack, quickly_checked
from gharial.errors import BadRequest, CommandFailed
from gharial.isa.commands import DECODE_ENTRY, Kind, Mode, Operation, decode_result_bytes
from gharial.isa.faults import Fault


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice(TINY)


@pytest.fixture
def driver(device: FakeDevice) -> Iterator[Driver]:
    with Driver(device, assemble(), timeout=60, checked=True) as driver:
        device.ran.clear()
        device.log.clear()
        yield driver


def packed(batch: DecodeBatch) -> np.ndarray:
    """As the ISA has them, uint8 (n, 16)."""
    words = pack(
        DECODE_ENTRY,
        len(batch),
        slot=batch.encoder,
        bank=batch.bank,
        kind=batch.kind,
        no_joint=~batch.joint,
        source=batch.source,
        destination=batch.destination,
        token=np.where(batch.kind == Kind.TOKEN, batch.token, 0),
    )
    return words.view(np.uint8).reshape(-1, 16)


@st.composite
def batches(draw: st.DrawFn) -> DecodeBatch:
    """Entries of which some are good: slots, tokens and kinds in range and out of it, and in each other's way."""
    count = draw(st.integers(1, 5))
    number = st.integers(0, 5) | st.integers(0, 70)
    columns = [
        draw(st.lists(strategy, min_size=count, max_size=count))
        for strategy in (st.integers(0, 17), st.integers(0, 1), st.integers(0, 3), number, number, st.integers(0, 16))
    ]
    same = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    columns[3] = [to if equal else source for source, to, equal in zip(columns[3], columns[4], same, strict=True)]
    joint = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return DecodeBatch(*[np.array(column, np.int64) for column in columns], np.array(joint, np.bool_))


@settings(suppress_health_check=list(HealthCheck), max_examples=150)
@given(batches())
def test_what_is_sent_and_refused_is_what_decode_sends_and_refuses(driver: Driver, batch: DecodeBatch) -> None:
    device = driver.device
    assert isinstance(device, FakeDevice)
    form = driver.decode_form(k=3, named=[15, 7])
    looked = quickly_checked(packed(batch), 16, 64, TOKENS)
    try:
        plain = driver.decode(batch, k=3, named=[15, 7])
    except BadRequest as error:
        sent = len(device.log)
        with pytest.raises(BadRequest) as caught:
            driver.decode_bytes(form, packed(batch))
        assert str(caught.value) == str(error) and looked is None and len(device.log) == sent
        return
    wanted = plain.result()
    rows = np.frombuffer(driver.decode_bytes(form, packed(batch)).result(), np.uint8).reshape(-1, form.stride)
    assert len(rows) == len(batch)
    np.testing.assert_array_equal(rows[:, :4].copy().view("<i4")[batch.joint, 0], wanted.lse[batch.joint])
    listed = rows[:, 16:].copy().view("<u4")[batch.joint]
    np.testing.assert_array_equal(listed >> 16, wanted.classes[batch.joint])
    assert looked is None or looked == batch.destination[batch.kind != Kind.NONE].tolist()
    first, second = device.ran[-2:]
    assert first.fields["k"] == second.fields["k"] and first.fields["flags"] == second.fields["flags"]
    for one, other in zip(first.entries, second.entries, strict=True):
        assert one["destination"] == other["destination"] and one["kind"] == other["kind"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda entries: entries.view(np.int8), "must be uint8 (n, 16), found int8"),
        (lambda entries: entries[:, :12], "found uint8 (2, 12)"),
        (lambda entries: entries[0], "found uint8 (16,)"),
        (lambda entries: entries[:0], "without entries"),
        (lambda entries: entries | np.eye(2, 16, 2, np.uint8) * 8, "bits that have no meaning"),
        (lambda entries: entries | np.eye(2, 16, 12, np.uint8), "bits that have no meaning"),
    ],
)
def test_what_is_no_entry(driver: Driver, device: FakeDevice, change: Any, words: str) -> None:
    entries = packed(DecodeBatch.of([DecodeEntry(source=1, destination=2), DecodeEntry(source=5, destination=6)]))
    with pytest.raises(BadRequest) as caught:
        driver.decode_bytes(driver.decode_form(), change(entries))
    assert words in str(caught.value) and device.log == []


@pytest.mark.parametrize(
    "options", [{"k": 0}, {"k": 17}, {"named": [16]}, {"temperature": 0}, {"mode": Mode.FUZZY}, {"named": [0] * 5}]
)
def test_forms_are_checked(driver: Driver, options: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        driver.decode_form(**options)


def test_a_form_says_what_a_command_takes() -> None:
    device = FakeDevice(TINY, 1024)
    with Driver(device, assemble(), ring_log2=1, timeout=60) as driver:
        device.ran.clear()
        form = driver.decode_form(k=2, mode=Mode.ALL)
        assert form.stride == decode_result_bytes(Mode.ALL, 2, CLASSES) and form.most < 16
        entries = packed(DecodeBatch.of([DecodeEntry(n, source=n, destination=n, token=1) for n in range(16)]))
        driver.decode_bytes(form, entries[: form.most]).result()
        assert len(device.ran) == 1
        data = driver.decode_bytes(form, entries).result()
        assert len(device.ran) == 1 + -(-16 // form.most)
        lse = np.frombuffer(data, np.uint8).reshape(16, form.stride)[:, :4].copy().view("<i4")[:, 0]
        assert lse.tolist() == [n * 1000 + 1 for n in range(16)]


def test_what_a_fault_takes(driver: Driver, device: FakeDevice) -> None:
    """Destinations of prediction steps are lost; entries without one change nothing."""
    device.failing_next[Operation.DECODE] = Failing(Fault.WATCHDOG)
    entries = [DecodeEntry(1, source=1, destination=2), DecodeEntry(1, kind=Kind.NONE, source=6, destination=6)]
    ticket = driver.decode_bytes(driver.decode_form(), packed(DecodeBatch.of(entries)))
    with pytest.raises(CommandFailed) as caught:
        ticket.result()
    assert caught.value.lost_prediction == driver.recover().lost_prediction == (2,)


def test_results_that_the_link_has_damaged_are_read_again(driver: Driver, device: FakeDevice) -> None:
    form = driver.decode_form(k=3)
    entries = packed(DecodeBatch.of([DecodeEntry(1, source=1, destination=2)]))
    good = driver.decode_bytes(form, entries).result()
    damaged = 0

    def damage(address: int, data: bytes) -> bytes:
        nonlocal damaged
        if len(data) != form.stride or damaged:
            return data
        damaged += 1
        return data[:12] + b"\xff" + data[13:]

    device.on_read = damage
    assert driver.decode_bytes(form, entries).result() == good
    assert damaged == driver.link_retries == 1
