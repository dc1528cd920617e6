# SPDX-License-Identifier: Apache-2.0
"""Prediction slots, just as many as the rule asks for: no stream fails for want of them, and they change no outcome."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.decoding_device import FakeDevice
from tests.test_decoding_search import Case, nothing_left, same_tokens

from gharial.decoding import BeamSearch, DecoderOptions

GREEDY_FOR_SLOTS = DecoderOptions(width=4, topk_threshold=-1.0, score_threshold=-1.0, max_symbols=4)
"""A model that says a lot has every step run into its limit of expansions."""


class Lanes:
    """Streams on several lanes, in an order of the test's; commands are done when they are sent."""

    def __init__(self, case: Case, streams: int, lanes: int, slots: int, random: np.random.Generator) -> None:
        self.search: BeamSearch
        self.device: FakeDevice
        self.search, self.device = case.fast(streams, lanes=lanes, slots=range(slots))
        self.case, self.random = case, random
        self.steps = dict.fromkeys(range(streams), 0)
        self.busy: dict[int, bytearray] = {}
        self.within: dict[int, list[int]] = {lane: [] for lane in range(lanes)}
        self.finals: dict[int, list[object]] = {stream: [] for stream in self.steps}
        for stream in self.steps:
            self.search.open(stream, case.keywords, case.prefix)

    def turn(self, steps: int) -> bool:
        """Begin a lane or go on with one; False if all streams have made their steps."""
        waiting = [
            s for s, done in self.steps.items() if done < steps and not any(s in m for m in self.within.values())
        ]
        idle = [lane for lane in self.within if lane not in self.busy]
        if waiting and idle and (not self.busy or self.random.random() < 0.5):
            lane, count = int(self.random.choice(idle)), int(self.random.integers(1, len(waiting) + 1))
            who = [int(stream) for stream in self.random.permutation(waiting)[:count]]
            for stream in who:
                self.device.encoded[100 + stream, 0] = stream, self.steps[stream]
            self.within[lane] = who
            self._sent(lane, self.search.begin(lane, who, [100 + s for s in who], [0] * len(who)))
        elif self.busy:
            lane = int(self.random.choice(list(self.busy)))
            self._sent(lane, self.search.feed(lane, self.busy.pop(lane)))
        assert all(lane in self.busy for lane, who in self.within.items() if who)
        return bool(self.busy) or any(done < steps for done in self.steps.values())

    def _sent(self, lane: int, entries: np.ndarray) -> None:
        for outcome in self.search.outcomes(lane):
            assert outcome.error is None, outcome
            self.finals[outcome.stream] += outcome.finals
            self.steps[outcome.stream] += 1
            self.within[lane].remove(outcome.stream)
        if len(entries):
            self.busy[lane] = self.device.decode(entries)


CASES = st.builds(
    Case,
    options=st.builds(
        DecoderOptions,
        width=st.integers(1, 6),
        max_symbols=st.integers(1, 4),
        max_expansions=st.one_of(st.none(), st.integers(1, 12)),
        topk_threshold=st.sampled_from([-1.0, 2.0]),
        score_threshold=st.sampled_from([-1.0, 1.0]),
    ),
    seed=st.integers(0, 2**32),
    blank_rise=st.integers(-800, 400),
    prefix=st.lists(st.integers(0, 3), max_size=2).map(tuple),
)


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(CASES, st.integers(1, 5), st.integers(1, 3), st.integers(0, 3))
def test_just_enough_slots(case: Case, streams: int, lanes: int, more: int) -> None:
    slots = case.options.width * streams + lanes * case.options.expansions + more
    run = Lanes(case, streams, lanes, slots, np.random.default_rng(case.seed))
    while run.turn(4):
        pass
    for stream in range(streams):
        reference = case.plain(stream)
        same_tokens(run.finals[stream], [token for _ in range(4) for token in reference.step()])
        run.search.close(stream)
    nothing_left(run.search)


@pytest.mark.parametrize("lanes", [1, 3])
def test_streams_that_are_closed_on_the_way(lanes: int, seed: int) -> None:
    """What was on its way for them holds slots until it is here; their numbers come back after that."""
    random = np.random.default_rng(seed)
    case = Case(GREEDY_FOR_SLOTS, seed, blank_rise=-800)
    run = Lanes(case, 5, lanes, GREEDY_FOR_SLOTS.width * 5 + lanes * GREEDY_FOR_SLOTS.expansions, random)
    for _ in range(60):
        run.turn(1_000_000)
        lane = int(random.integers(lanes))
        if run.within[lane] and random.random() < 0.3:
            stream = run.within[lane][0]
            run.search.close(stream)
            run.within[lane].remove(stream)
            held = run.steps.pop(stream)
            if lane in run.busy:
                run._sent(lane, run.search.feed(lane, run.busy.pop(lane)))
            run.search.open(stream)
            run.steps[stream] = held
    for stream in range(5):
        run.search.close(stream)
    run.within = {lane: [] for lane in run.within}
    while run.busy:
        lane, results = run.busy.popitem()
        run._sent(lane, run.search.feed(lane, results))
    nothing_left(run.search)
