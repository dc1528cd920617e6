# SPDX-License-Identifier: Apache-2.0
"""What is sent and what comes back: entries, features, splitting, results, and what is refused before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fake_device import FakeDevice
from hypothesis import given
from hypothesis import strategies as st
from small_program import CLASSES, TINY, TOKENS, assemble
from small_run import features

from gharial.driver import (
    DecodeBatch,
    DecodeEntry,
    Driver,
    EncodeBatch,
    EncodeEntry,
    GreedyEntry,
    LogitScale,
)
from gharial.driver.entries import no_hazard
from gharial.errors import BadRequest
from gharial.isa.commands import Kind, Mode, Operation


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice(TINY)


@pytest.fixture
def driver(device: FakeDevice) -> Iterator[Driver]:
    with Driver(device, assemble(), timeout=60, checked=True) as driver:
        device.ran.clear()
        device.log.clear()
        yield driver


def step(value: int, vectors: int = 2) -> np.ndarray:
    """Features that begin with `value`."""
    return np.full((vectors, 4), value, np.int8)


# Encoding and greedy decoding


def test_encode(driver: Driver, device: FakeDevice) -> None:
    x = features(1, 3)
    entries = [EncodeEntry(5, x[0], 1), EncodeEntry(2, x[1][:1], reset=True), EncodeEntry(0, x[2])]
    ticket = driver.encode(entries)
    assert ticket.result() is None and ticket.done and ticket.cycles == 100
    (command,) = device.ran
    assert command.operation == Operation.ENCODE
    shown = [(e["slot"], e["bank"], e["reset"], e["vectors"]) for e in command.entries]
    assert shown == [(5, 1, 0, 2), (2, 0, 1, 1), (0, 0, 0, 2)]
    assert command.features == [x[0].tobytes(), x[1][:1].tobytes(), x[2].tobytes()]
    assert all(e["offset"] % 4 == 0 for e in command.entries)


def test_features_are_padded() -> None:
    """A model of 3 features whose vectors are stored as 4."""
    program = assemble()
    program.manifest["features"] |= {"count": 3}
    device = FakeDevice(TINY)
    with Driver(device, program) as driver:
        x = features(2, 1, count=3)[0]
        driver.encode([EncodeEntry(0, x)]).result()
    assert device.ran[-1].features == [np.pad(x, ((0, 0), (0, 1))).tobytes()]


def test_greedy(driver: Driver, device: FakeDevice) -> None:
    entries = [GreedyEntry(slot, step(slot), prediction=slot + 10, reset=slot == 1) for slot in range(3)]
    results = driver.greedy(entries, max_symbols=4, temperature=8192).result()
    assert [r.tokens.tolist() for r in results] == [[], [1], [2, 2]]
    assert [r.logits.tolist() for r in results] == [[], [100], [100, 101]]
    assert [r.lse.tolist() for r in results] == [[], [1000], [1000, 1001]]
    assert [(r.capped, r.joints) for r in results] == [(False, 1), (False, 2), (False, 3)]
    assert results[0].tokens.dtype == np.int32 and results[0].logits.dtype == np.int16
    expected = [100 * 0.5 / 256 - 1000 / 65536, 101 * 0.5 / 256 - 1001 / 65536]
    assert results[2].log_probabilities.tolist() == pytest.approx(expected, abs=1e-12)
    command = device.ran[-1]
    assert command.fields["k"] == 4 and command.fields["temperature"] == 8192
    assert [e["prediction"] for e in command.entries] == [10, 11, 12]


def test_greedy_takes_the_programs_cap(driver: Driver, device: FakeDevice) -> None:
    driver.greedy([GreedyEntry(0, step(2))]).result()
    assert device.ran[-1].fields["k"] == 5
    (result,) = driver.greedy([GreedyEntry(0, step(2))], max_symbols=1).result()
    assert result.capped and result.tokens.tolist() == [0] and result.joints == 1


# Decoding


def test_decode(driver: Driver, device: FakeDevice) -> None:
    entries = [
        DecodeEntry(3, 1, Kind.TOKEN, 1, 2, 14),
        DecodeEntry(kind=Kind.START, source=77, destination=4, joint=False),
        DecodeEntry(2, 0, Kind.NONE, 6, 6),
    ]
    result = driver.decode(entries, k=3, named=[15, 7]).result()
    assert len(result) == 3
    assert result.lse.tolist() == [3014, 0, 2000] and result.joint.tolist() == [True, False, True]
    assert result.named.tolist() == [[-15, -7], [0, 0], [-15, -7]]
    assert result.classes.tolist() == [[0, 1, 2], [0, 0, 0], [0, 1, 2]]
    assert result.logits.tolist() == [[-2, -4, -6], [0, 0, 0], [-6, -8, -10]]
    assert result.log_probabilities[0, 1] == pytest.approx(-4 / 256 - 3014 / 65536, abs=1e-12)
    assert result.named_log_probabilities[2, 0] == pytest.approx(-15 / 256 - 2000 / 65536, abs=1e-12)
    command = device.ran[-1]
    assert [(e["kind"], e["source"], e["destination"], e["token"]) for e in command.entries] == [
        (1, 1, 2, 14),
        (2, 0, 4, 0),
        (0, 6, 6, 0),
    ]
    assert [e["no_joint"] for e in command.entries] == [0, 1, 0]


def test_decode_all_logits(driver: Driver) -> None:
    result = driver.decode([DecodeEntry(1, destination=3, source=2, token=4)], mode=Mode.ALL).result()
    assert result.classes.tolist() == [list(range(CLASSES))]
    assert result.logits.tolist() == [[c - 5 for c in range(CLASSES)]]


def test_fuzzy_top_k_needs_its_classes(driver: Driver) -> None:
    with pytest.raises(BadRequest, match="multiple of 256 classes, found 16"):
        driver.decode([DecodeEntry(source=1)], mode=Mode.FUZZY)


def test_log_probabilities_are_those_of_the_docs() -> None:
    """L * T * 2^-(e + 14) - lse * 2^-16 (docs/numerics.md, section 8)."""
    scale = LogitScale(8, 11703)  # 1 / 1.4
    assert scale.log_probabilities(300, -5000) == pytest.approx(300 * 11703 / 2**22 + 5000 / 2**16, abs=1e-15)
    assert scale.log_probabilities([[1, 2]], [[3], [4]]).shape == (2, 2)


def test_arrays_and_single_entries_are_the_same(driver: Driver, device: FakeDevice) -> None:
    singles = [DecodeEntry(n, n & 1, Kind.TOKEN, n, n + 20, n) for n in range(9)]
    numbers = np.arange(9)
    arrays = DecodeBatch(numbers, numbers & 1, np.full(9, Kind.TOKEN), numbers, numbers + 20, numbers, np.ones(9, bool))
    a, b = driver.decode(singles).result(), driver.decode(arrays).result()
    assert device.ran[0].entries == device.ran[1].entries and (a.lse == b.lse).all()
    x = np.stack([step(n) for n in range(9)])
    vectors = 1 + (numbers & 1)
    steps = [EncodeEntry(n, x[n, : vectors[n]], n & 1, n == 3) for n in range(9)]
    driver.encode(steps).result()
    driver.encode(EncodeBatch(numbers, x, vectors, numbers & 1, numbers == 3, numbers * 0)).result()
    assert device.ran[2].features == device.ran[3].features


# Splitting


def test_more_than_a_command_carries(driver: Driver, device: FakeDevice) -> None:
    """64 prediction slots, each read and written: more than fit a command's staging, and results come in order."""
    device.ran.clear()
    entries = [DecodeEntry(n % 16, 0, Kind.TOKEN, n, n, n % TOKENS) for n in range(64)]
    result = driver.decode(entries, mode=Mode.ALL, named=[1]).result()
    assert result.lse.tolist() == [n % 16 * 1000 + n % TOKENS for n in range(64)]
    assert [e["destination"] for command in device.ran for e in command.entries] == list(range(64))


def test_more_entries_than_the_machine_takes() -> None:
    """A window so small that two entries are the most; each keeps its features."""
    device = FakeDevice(TINY, 1024)
    with Driver(device, assemble(), ring_log2=1, checked=True, timeout=60) as driver:
        device.ran.clear()
        results = driver.greedy([GreedyEntry(n, step(n), prediction=n) for n in range(16)], max_symbols=5).result()
        assert [len(r.tokens) for r in results] == [n % 3 for n in range(16)]
        assert len(device.ran) > 3
        assert [e["slot"] for command in device.ran for e in command.entries] == list(range(16))
        assert [f[0] for command in device.ran for f in command.features] == list(range(16))


def test_an_entry_that_never_fits() -> None:
    device = FakeDevice(TINY, 1024)
    with Driver(device, assemble(), ring_log2=1) as driver, pytest.raises(BadRequest, match="does not fit the staging"):
        driver.greedy([GreedyEntry(0, step(0))], max_symbols=255)


def test_cycles_of_all_commands_add_up() -> None:
    device = FakeDevice(TINY, 1024)
    with Driver(device, assemble(), ring_log2=1, timeout=60) as driver:
        device.ran.clear()
        ticket = driver.greedy([GreedyEntry(n, step(n), prediction=n) for n in range(16)])
        ticket.result()
        assert ticket.cycles == 100 * len(device.ran) and ticket.joints == 2 * len(device.ran)


# What is refused


def enc(**changes: Any) -> Callable[[Driver], object]:
    entry = EncodeEntry(**{"slot": 0, "features": step(1)} | changes)
    return lambda driver: driver.encode([EncodeEntry(9, step(1)), entry])


def dec(options: dict[str, Any] | None = None, **changes: Any) -> Callable[[Driver], object]:
    entry = DecodeEntry(**{"encoder": 0, "source": 5, "destination": 6, "token": 1} | changes)
    return lambda driver: driver.decode([DecodeEntry(source=1, destination=2), entry], **options or {})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (enc(slot=16), "entry 1: encoder slot out of range: found 16, expected 0..15"),
        (enc(slot=-1), "entry 1: encoder slot out of range: found -1"),
        (enc(slot=9), "HAZARD: entries 0 and 1 both write encoder slot 9"),
        (enc(bank=2), "entry 1: bank out of range"),
        (enc(features=step(1, 3)), "features must be int8 (1..2, 4), found int8 (3, 4)"),
        (enc(features=step(1, 0)), "found int8 (0, 4)"),
        (enc(features=np.zeros((2, 5), np.int8)), "found int8 (2, 5)"),
        (enc(features=np.zeros((2, 4), np.float32)), "found float32 (2, 4)"),
        (enc(features=np.zeros(4, np.int8)), "found int8 (4,)"),
        (lambda d: d.encode([]), "without entries"),
        (lambda d: d.greedy([GreedyEntry(0, step(0))], max_symbols=0), "most symbols a step out of range"),
        (lambda d: d.greedy([GreedyEntry(0, step(0))], max_symbols=256), "most symbols a step out of range"),
        (lambda d: d.greedy([GreedyEntry(0, step(0))], temperature=0), "inverse temperature out of range"),
        (lambda d: d.greedy([GreedyEntry(0, step(0))], temperature=65536), "inverse temperature out of range"),
        (lambda d: d.greedy([GreedyEntry(0, step(0), prediction=64)]), "prediction slot out of range"),
        (
            lambda d: d.greedy([GreedyEntry(0, step(0), prediction=3), GreedyEntry(1, step(0), prediction=3)]),
            "HAZARD: entries 0 and 1 both write prediction slot 3",
        ),
        (dec(encoder=16), "entry 1: encoder slot out of range"),
        (dec(source=64), "entry 1: source slot out of range"),
        (dec(destination=64), "entry 1: destination slot out of range"),
        (dec(token=TOKENS), "entry 1: token out of range: found 15, expected 0..14"),
        (dec(kind=3), "entry 1: kind out of range"),
        (dec(bank=2), "entry 1: bank out of range"),
        (dec(kind=Kind.NONE), "entry 1: without a prediction step source must be destination"),
        (dec(destination=2), "HAZARD: entries 0 and 1 both write prediction slot 2"),
        (dec(destination=1), "HAZARD: entry 0 reads prediction slot 1, which entry 1 writes"),
        (dec(source=2), "HAZARD: entry 1 reads prediction slot 2, which entry 0 writes"),
        (dec(kind=Kind.NONE, source=1, destination=1), "HAZARD: entry 0 reads prediction slot 1"),
        (dec({"k": 0}), "k out of range: found 0, expected 1..16"),
        (dec({"k": 17}), "k out of range: found 17, expected 1..16"),
        (dec({"named": [0, 1, 2, 3, 4]}), "too many named classes"),
        (dec({"named": [16]}), "named class out of range"),
        (dec({"temperature": -1}), "inverse temperature out of range"),
        (lambda d: d.decode([]), "without entries"),
        (lambda d: d.copy("encoder", [(0, 1), (2, 1)]), "HAZARD: entries 0 and 1 both write encoder slot 1"),
        (lambda d: d.copy("encoder", [(0, 1), (1, 2)]), "HAZARD: entry 1 reads encoder slot 1, which entry 0 writes"),
        (lambda d: d.copy("prediction", [(0, 64)]), "prediction slot out of range"),
        (lambda d: d.reset("encoder", [1, 1]), "HAZARD"),
        (lambda d: d.free("encoder", [16]), "encoder slot out of range"),
        (lambda d: d.save("joint", [1]), "kind of slot: found joint"),
        (lambda d: d.restore([1], []), "1 slots for 0 images"),
    ],
)
def test_refused_before_anything_is_sent(
    driver: Driver, device: FakeDevice, call: Callable[[Driver], object], words: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        call(driver)
    assert words in str(caught.value) and isinstance(caught.value, ValueError)
    assert device.log == [] and driver.in_flight == 0


def test_reading_one_source_many_times_is_no_hazard(driver: Driver) -> None:
    driver.decode([DecodeEntry(0, 0, Kind.TOKEN, 5, 10 + n, n) for n in range(8)]).result()
    driver.decode([DecodeEntry(0, 0, Kind.START, 11, 10), DecodeEntry(0, 0, Kind.TOKEN, 12, 12, 1)]).result()
    driver.reset("prediction", [5]).result()
    driver.copy("prediction", [(5, 6), (5, 7)]).result()


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), min_size=1, max_size=6),
)
def test_hazards_as_the_docs_define_them(entries: list[tuple[int, int, bool]]) -> None:
    """A destination must not be the slot of another entry, as source or destination."""
    sources, destinations, reads = (np.array(column) for column in zip(*entries, strict=True))
    expected = any(
        destinations[i] == destinations[j] or (reads[j] and destinations[i] == sources[j])
        for i in range(len(entries))
        for j in range(len(entries))
        if i != j
    )
    try:
        no_hazard("prediction", destinations, sources, reads)
    except BadRequest:
        assert expected
    else:
        assert not expected
