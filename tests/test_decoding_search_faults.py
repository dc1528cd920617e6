# SPDX-License-Identifier: Apache-2.0
"""The fast search when things go wrong, or on and on: damaged results, endless models, streams closed in between."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.decoding_device import Answers, FakeDevice
from tests.test_decoding_search import Case, nothing_left, run_step, same_hypotheses

from gharial.decoding import BeamSearch, DecoderOptions, Fault
from gharial.errors import BadInput, BadRequest, DeviceError, GharialError
from gharial.isa.commands import Mode


def opened(case: Case, streams: int, **others: object) -> tuple[BeamSearch, FakeDevice]:
    search, device = case.fast(streams, **others)
    for stream in range(streams):
        search.open(stream, case.keywords, case.prefix)
    return search, device


def begin(search: BeamSearch, device: FakeDevice, who: list[int], step: int = 0, lane: int = 0) -> np.ndarray:
    for stream in who:
        device.encoded[100 + stream, 0] = stream, step
    return search.begin(lane, who, [100 + stream for stream in who], [0] * len(who))


def drain(search: BeamSearch, device: FakeDevice, entries: np.ndarray, lane: int = 0) -> dict[int, Fault]:
    outcomes = search.outcomes(lane)
    while len(entries):
        entries = search.feed(lane, device.decode(entries))
        outcomes += search.outcomes(lane)
    return {outcome.stream: outcome.fault for outcome in outcomes}


def changed(offset: int, form: str, value: int) -> Callable[[bytearray, BeamSearch], None]:
    def change(result: bytearray, search: BeamSearch) -> None:
        struct.pack_into(form, result, offset, value)

    return change


def swapped(result: bytearray, search: BeamSearch) -> None:
    result[16:20], result[20:24] = result[20:24], result[16:20]


def doubled(result: bytearray, search: BeamSearch) -> None:
    result[20:24] = result[16:20]


DAMAGES = {
    "count": (changed(12, "<H", 3), Fault.COUNT),
    "class": (changed(18, "<H", 60000), Fault.CLASS),
    "twice": (doubled, Fault.CLASS),
    "order": (swapped, Fault.ORDER),
    "named": (changed(4, "<h", 32767), Fault.NAMED),
    "lse too small": (changed(0, "<i", -(2**31)), Fault.LSE),
    "lse too large": (changed(0, "<i", 2**31 - 1), Fault.LSE),
    "all ones": (lambda result, _: result.__setitem__(slice(None), b"\xff" * len(result)), Fault.COUNT),
    "all zeros": (lambda result, _: result.__setitem__(slice(None), bytes(len(result))), Fault.COUNT),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_result_is_one_streams_failure(name: str) -> None:
    case = Case(DecoderOptions(), 7, unit=10, blank_rise=-10, ngram=True)
    search, device = opened(case, 3)
    entries = begin(search, device, [0, 1, 2])
    results, change = device.decode(entries), DAMAGES[name][0]
    one = results[search.stride : 2 * search.stride]
    change(one, search)
    results[search.stride : 2 * search.stride] = one
    entries = search.feed(0, results)
    found = [outcome for outcome in search.outcomes(0) if outcome.fault]
    assert [(outcome.stream, outcome.fault) for outcome in found] == [(1, DAMAGES[name][1])]
    assert isinstance(found[0].error, DeviceError)
    assert {stream for stream, fault in drain(search, device, entries).items() if fault} <= {1}
    for stream in (0, 2):
        reference = case.plain(stream)
        reference.step()
        same_hypotheses(search.kept(stream), reference.kept, reference.finals)
    with pytest.raises(RuntimeError):
        search.best(1)
    with pytest.raises(ValueError):
        begin(search, device, [1])
    search.open(1)
    assert drain(search, device, begin(search, device, [1])) == {1: Fault.NONE}
    for stream in range(3):
        search.close(stream)
    nothing_left(search)


def test_random_results_end_in_order(seed: int) -> None:
    """Whatever a device writes, a step ends within the limit of its expansions, and nothing is lost."""
    rng = np.random.default_rng(seed)
    case = Case(DecoderOptions(width=3, max_symbols=5, topk_threshold=-1), seed, ngram=True, boosts={"ab": 2.0})
    for _ in range(40):
        search, _ = opened(case, 4)
        entries, rounds = search.begin(0, range(4), range(4), [0] * 4), 0
        while len(entries):
            results = bytearray()
            for _ in entries:
                k, classes = search.k, rng.permutation(case.classes)[: search.k]
                logits = np.sort(rng.integers(-32768, 32768, k) if rng.random() < 0.5 else np.full(k, 32767))[::-1]
                if rng.random() < 0.3:
                    logits, classes = np.full(k, 32767), np.sort(classes)
                top = int(logits[0]) * search.temperature * 2.0 ** -(case.logit_bits + 14)
                lse = int(min((top + rng.random()) * 65536, 2**31 - 1))
                named = [int(logits[list(classes).index(n)]) if n in classes else -32768 for n in search.named]
                named += [0] * (4 - len(named))
                damage = rng.random() < 0.05
                results += struct.pack("<i4hHH", lse, *named, k + damage, 0)
                results += b"".join(struct.pack("<hH", int(v), int(c)) for v, c in zip(logits, classes, strict=True))
            entries, rounds = search.feed(0, results), rounds + 1
        assert rounds <= case.options.expansions
        for stream in range(4):
            search.close(stream)
        nothing_left(search)


def endless(seed: int, step: int, history: tuple[int, ...]) -> np.ndarray:
    return np.where(np.arange(14) == 13, -30000, 20000)


def silent(seed: int, step: int, history: tuple[int, ...]) -> np.ndarray:
    return np.where(np.arange(14) == 13, 20000, -30000)


@pytest.mark.parametrize("table", [endless, silent])
@pytest.mark.parametrize("width", [1, 4, 32])
def test_endless_and_silent_models(table: Callable[..., np.ndarray], width: int) -> None:
    options = DecoderOptions(width=width, max_symbols=4, final_limit_s=0.2)
    case = Case(options, 1)
    search, _ = opened(case, 2)
    case.answers = Answers(table, search.k, search.named, search.temperature, case.logit_bits)
    device = FakeDevice(case.answers, range(3, 3 + 4 * (options.expansions + width)))
    steps, seeds = {0: 0, 1: 0}, {0: 0, 1: 1}
    reference = case.plain(0)
    for _ in range(12):
        before = device.evaluations
        run_step(search, device, [0, 1], steps, seeds)
        assert device.evaluations - before <= 2 * 2 * options.expansions
        reference.step()
        same_hypotheses(search.kept(0), reference.kept, reference.finals)
    spoken = sum(len(one.tokens) for one in search.best(0)) + reference.finals
    assert spoken == 0 if table is silent else spoken <= 12 * options.max_symbols


def test_no_steps() -> None:
    search, _ = opened(Case(DecoderOptions(), 1), 1)
    (one,) = search.best(0)
    assert (one.score, one.tokens, one.slot) == (0.0, (), -1)
    search.close(0)
    nothing_left(search)


def test_streams_reset_and_closed_with_results_on_their_way(seed: int) -> None:
    """Slots on their way are nobody else's until the results are there; a stream begun anew is as a new one."""
    case = Case(DecoderOptions(topk_threshold=3.0), seed, blank_rise=0, prefix=(1,))
    search, device = opened(case, 4, lanes=2)
    entries = begin(search, device, [0, 1, 2])
    taken = set(entries.copy().view("<u2").reshape(-1, 8)[:, 3].tolist())
    results = device.decode(entries)
    search.close(0)
    search.open(1, None, case.prefix)
    others = begin(search, device, [1, 3], lane=1)
    assert not taken & set(others.copy().view("<u2").reshape(-1, 8)[:, 3].tolist())
    other_results = device.decode(others)
    assert drain_from(search, device, results, 0) == {2: Fault.NONE}
    assert drain_from(search, device, other_results, 1) == {1: Fault.NONE, 3: Fault.NONE}
    for stream in (1, 2, 3):
        reference = case.plain(stream)
        reference.step()
        same_hypotheses(search.kept(stream), reference.kept, reference.finals)
        search.close(stream)
    nothing_left(search)


def drain_from(search: BeamSearch, device: FakeDevice, results: bytearray, lane: int) -> dict[int, Fault]:
    entries = search.feed(lane, results)
    return {outcome.stream: outcome.fault for outcome in search.outcomes(lane)} | drain(search, device, entries, lane)


def test_a_command_that_failed() -> None:
    search, device = opened(Case(DecoderOptions(), 3), 3, lanes=2)
    begin(search, device, [0, 1])
    search.close(1)
    search.cancel(0)
    assert drain(search, device, begin(search, device, [2])) == {2: Fault.NONE}
    with pytest.raises(RuntimeError):
        search.best(0)
    for stream in range(3):
        search.close(stream)
    nothing_left(search)


def test_too_few_slots() -> None:
    """A stream that can never go on fails, and the others do not."""
    case = Case(DecoderOptions(width=2, topk_threshold=-1), 5, blank_rise=-1000)
    search, device = opened(case, 3, slots=[9, 4, 7])
    found = drain(search, device, begin(search, device, [0, 1, 2]))
    assert sorted(found) == [0, 1, 2] and Fault.SLOTS in found.values()
    for stream in range(3):
        search.close(stream)
    nothing_left(search)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_an_ngram_that_gives_no_number(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(DecoderOptions(topk_threshold=-1), 5, ngram=True, blank_rise=-1000)
    assert case.toy is not None
    monkeypatch.setattr(case.toy, "base_score", lambda *_: wrong)
    search, device = opened(case, 1)
    assert drain(search, device, begin(search, device, [0])) == {0: Fault.NGRAM}
    nothing_left(search)


def test_an_ngram_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(DecoderOptions(topk_threshold=-1), 5, ngram=True, blank_rise=-1000)
    monkeypatch.setattr(case.toy, "base_score", lambda *_: 1 / 0)
    search, device = opened(case, 1)
    with pytest.raises(ZeroDivisionError):
        drain(search, device, begin(search, device, [0]))
    assert not len(search.outcomes(0)) or search.outcomes(0)[0].fault
    search.open(0)
    search.close(0)
    nothing_left(search)


def test_wrong_calls() -> None:
    case = Case(DecoderOptions(), 5)
    search, device = opened(case, 2)
    for who in ([0, 0], [2], [-1]):
        with pytest.raises(ValueError):
            search.begin(0, who, [0] * len(who), [0] * len(who))
    for encoders, banks in (([0], [2]), ([70000], [0]), ([0, 1], [0])):
        with pytest.raises(ValueError):
            search.begin(0, [0], encoders, banks)
    with pytest.raises(RuntimeError):
        search.feed(0, b"")
    entries = begin(search, device, [0])
    with pytest.raises(RuntimeError):
        begin(search, device, [1])
    with pytest.raises(RuntimeError):
        search.best(0)
    with pytest.raises(ValueError):
        search.feed(0, bytes(search.stride * len(entries) - 1))
    with pytest.raises(ValueError):
        search.open(1, None, [case.blank])
    with pytest.raises(IndexError):
        search.open(2)
    with pytest.raises(BadRequest):
        case.fast(1, slots=[1, 1])
    with pytest.raises(BadInput):
        BeamSearch(replace(case.model, eos=None), DecoderOptions(eos="blank"), streams=1, slots=[1])  # type: ignore[arg-type]


def test_a_lane_begun_by_what_makes_its_arrays() -> None:
    """Streams that are no array are made one by code that may use the search itself."""
    search, device = opened(Case(DecoderOptions(), 3), 2)

    class Streams:
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            begin(search, device, [0])
            return np.array([1])

    with pytest.raises(OverflowError):
        search.begin(0, [1 << 40], [101], [0])
    with pytest.raises(RuntimeError, match="in use"):
        search.begin(0, Streams(), [101], [0])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        search.turn(0)  # type: ignore[call-arg]


def test_memory_stays(seed: int) -> None:
    """No pool grows beyond what a step can need, and a limit on finals holds tokens back for that long only.

    Hours of it, and the memory of the process: tests/test_decoding_endurance.py.
    """
    case = Case(DecoderOptions(topk_threshold=3.0, final_limit_s=0.5), seed, blank_rise=600, ngram=True)
    search, device = opened(case, 1)
    steps, seeds = {0: 0}, {0: 0}
    first, width, expansions = search.pools, case.options.width, case.options.expansions
    children, held = expansions * width + width, case.options.max_symbols * 10
    need = {"hypotheses": children, "evaluations": 2 * expansions, "tokens": children + width * held}
    need["ngrams"] = children + (width + 1) * need["evaluations"]
    for _ in range(300):
        run_step(search, device, [0], steps, seeds)
        assert len(search.kept(0)[0].tokens) <= held
        pools = search.pools
        assert pools["slots"][1] == first["slots"][1]
        # They double when they are used up.
        assert all(pools[name][1] <= max(2 * most, first[name][1]) for name, most in need.items())
    assert isinstance(DeviceError("x"), GharialError) and case.mode == Mode.TOP_K
