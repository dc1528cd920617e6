# SPDX-License-Identifier: Apache-2.0
"""The fast search is the plain one, hypothesis by hypothesis, whatever the vocabulary, options and other streams."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import sim.decoding as plain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.decoding_device import Answers, FakeDevice, Scoring, random_table

from gharial.decoding import BeamSearch, DecoderOptions, EosStrategy, Keywords, SearchModel
from gharial.isa.commands import Mode

PIECES = ["▁", "a", "b", "▁a", "ab", "▁▁b", "ba", "<EOS>", "", "▁ab", "a▁", "b▁▁", "<user>"]
EOS, USER = 7, 12
LN_10 = math.log(10.0)


class ToyNgram:
    """log10 p from the words before; states of the fast search are lists that it writes to."""

    def __init__(self, pieces: list[str], unscored: frozenset[int]) -> None:
        self.words = [None if at in unscored or at == len(pieces) - 1 else f"{at}" for at in range(len(pieces))]

    def begin(self) -> tuple[str, ...]:
        return ("<s>",)

    def _log10(self, state: tuple[str, ...], word: str) -> float:
        return -(hash((tuple(map(len, state)), int(word), len(state))) % 97) / 40

    def score(self, state: tuple[str, ...], token: int) -> tuple[float, tuple[str, ...]]:
        word = self.words[token]
        assert word is not None
        return LN_10 * self._log10(state, word), (*state[-1:], word)

    def new_state(self, begin: bool = False) -> list[Any]:
        return [self.begin() if begin else None]

    def base_score(self, state: list[Any], word: str, following: list[Any]) -> float:
        following[0] = (*state[0][-1:], word)
        return self._log10(state[0], word)


@dataclass
class Case:
    """A model, settings, and a table."""

    options: DecoderOptions
    seed: int
    classes: int = len(PIECES) + 1
    mode: Mode = Mode.TOP_K
    ngram: bool = False
    boosts: dict[str, float] = field(default_factory=dict)
    blank_rise: int = 300
    unit: int = 100
    spread: int = 3
    prefix: tuple[int, ...] = ()
    logit_bits: int = 8

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        more = ["".join(rng.choice(["a", "b", "c", "▁"], rng.integers(1, 4))) for _ in range(self.classes)]
        self.pieces = [*(PIECES + more)[: self.classes - 1], ""]
        self.blank = self.classes - 1
        self.toy = ToyNgram(self.pieces, frozenset({USER})) if self.ngram else None
        self.model = SearchModel(self.pieces, self.blank, self.logit_bits, EOS, frozenset({USER}))
        self.keywords = Keywords(self.boosts) if self.boosts else None

    def fast(self, streams: int, **others: Any) -> tuple[BeamSearch, FakeDevice]:
        slots = others.pop("slots", range(3, 3 + streams * 2 * (self.options.expansions + self.options.width)))
        search = BeamSearch(
            self.model, self.options, streams=streams, slots=list(slots), mode=self.mode, ngram=self.toy, **others
        )
        table = random_table(self.classes, self.blank, self.blank_rise, self.unit, self.spread)
        self.answers = Answers(table, search.k, search.named, search.temperature, self.logit_bits, self.mode)
        return search, FakeDevice(self.answers, slots)

    def plain(self, seed: int) -> plain.BeamSearch:
        o = self.options
        eos = plain.Eos(EOS, plain.EosStrategy(o.eos), o.eos_alpha, o.eos_beta)
        options = plain.BeamOptions(
            o.width, o.max_symbols, o.max_expansions, o.topk_threshold, o.score_threshold, o.final_limit_s,
            o.blank_penalty, o.ngram_scale or 0.0, None if o.eos == EosStrategy.NONE else eos, frozenset({USER}),
            o.merge_lone_marks,
        )  # fmt: skip
        keywords = plain.Keywords(self.boosts) if self.boosts else None
        scoring = Scoring(self.answers, seed, self.prefix)
        return plain.BeamSearch(scoring, self.blank, self.pieces, options, self.toy, keywords)


def run_step(
    search: BeamSearch, device: FakeDevice, who: list[int], steps: dict[int, int], seeds: dict[int, int]
) -> Any:
    """One step of some streams; finals by stream."""
    for stream in who:
        device.encoded[100 + stream, steps[stream] & 1] = seeds[stream], steps[stream]
    entries = search.begin(0, who, [100 + stream for stream in who], [steps[stream] & 1 for stream in who])
    outcomes = search.outcomes(0)
    while len(entries):
        entries = search.feed(0, device.decode(entries))
        outcomes += search.outcomes(0)
    assert sorted(outcome.stream for outcome in outcomes) == sorted(who)
    for outcome in outcomes:
        assert outcome.error is None, outcome
        steps[outcome.stream] += 1
    return {outcome.stream: list(outcome.finals) for outcome in outcomes}


def same_tokens(got: Any, wanted: Any) -> None:
    assert [(token.id, token.step) for token in got] == [(token.id, token.step) for token in wanted]
    assert [token.confidence for token in got] == pytest.approx([token.confidence for token in wanted], abs=1e-9)


def same_hypotheses(got: Any, wanted: Any, finals: int) -> None:
    assert [[t.id for t in one.tokens] for one in got] == [[t.id for t in one.tokens[finals:]] for one in wanted]
    for one, other in zip(got, wanted, strict=True):
        same_tokens(one.tokens, other.tokens[finals:])
        assert one.score == pytest.approx(other.score, abs=1e-9) and one.mean == pytest.approx(other.mean, abs=1e-9)


def check(case: Case, streams: int, steps: int, **others: Any) -> None:
    """Streams in changing company, against plain searches of each alone."""
    search, device = case.fast(streams, **others)
    rng = np.random.default_rng(case.seed)
    done = dict.fromkeys(range(streams), 0)
    seeds = {stream: case.seed * 1000 + stream for stream in done}
    wanted = {stream: case.plain(seeds[stream]) for stream in done}
    for stream in done:
        search.open(stream, case.keywords, case.prefix)
    while min(done.values()) < steps:
        who = [int(s) for s in rng.permutation(streams) if done[s] < steps and rng.random() < 0.7]
        finals = run_step(search, device, who, done, seeds)
        for stream in who:
            reference = wanted[stream]
            before = reference.finals
            new = reference.step()
            assert reference.finals == before + len(new)
            same_tokens(finals[stream], new)
            same_hypotheses(search.kept(stream), reference.kept, reference.finals)
            same_hypotheses(search.best(stream, 33), reference.best(), reference.finals)
            for one, other in zip(search.kept(stream), reference.kept, strict=True):
                assert device.states[one.slot] == other.state
    for stream in done:
        search.close(stream)
    nothing_left(search)


def nothing_left(search: BeamSearch) -> None:
    for name, (free, every) in search.pools.items():
        assert free == every - (name == "ngrams"), name  # one is the sentence's begin


def thresholds(most: float) -> Any:
    return st.one_of(st.just(-1.0), st.floats(0.01, most))


OPTIONS = st.builds(
    DecoderOptions,
    width=st.one_of(st.integers(1, 6), st.integers(1, 32)),
    temperature=st.floats(0.5, 3.0),
    max_symbols=st.one_of(st.integers(1, 4), st.integers(5, 255)),
    max_expansions=st.one_of(st.none(), st.integers(1, 40)),
    topk_threshold=thresholds(4.0),
    score_threshold=thresholds(2.0),
    final_limit_s=thresholds(0.3),
    blank_penalty=st.one_of(st.just(0.0), st.floats(-20.0, 20.0)),
    ngram_scale=st.floats(0.0, 0.5),
    eos=st.sampled_from(list(EosStrategy)),
    eos_alpha=st.floats(0.1, 2.0),
    eos_beta=st.one_of(st.just(0.0), st.floats(0.0, 0.5)),
    merge_lone_marks=st.booleans(),
)

EXAMPLES = 4000 if os.environ.get("GHARIAL_LONG") else 250
"""Random cases against the plain search, of up to four streams each; make bench takes the larger number."""


def fits(case: Case) -> bool:
    """Whether a result has room for the candidates (test_decoding_options has what is refused)."""
    spare = (case.options.blank_penalty != 0) + (case.options.eos != EosStrategy.NONE)
    return min(case.options.width + spare, case.classes) <= 33


CASES = st.builds(
    Case,
    options=OPTIONS,
    seed=st.integers(0, 2**32),
    classes=st.integers(len(PIECES) + 1, 40),
    mode=st.sampled_from([Mode.TOP_K, Mode.ALL]),
    ngram=st.booleans(),
    boosts=st.dictionaries(st.text("ab ", min_size=1, max_size=5), st.sampled_from([-0.5, 0.25, 1.0]), max_size=4),
    blank_rise=st.integers(-800, 1500),
    unit=st.sampled_from([1, 37, 100, 256]),
    spread=st.integers(1, 5),
    prefix=st.lists(st.integers(0, USER), max_size=2).map(tuple),
    logit_bits=st.integers(6, 10),
).filter(fits)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(CASES, st.integers(1, 4), st.integers(1, 5))
def test_equals_the_plain_search(case: Case, streams: int, steps: int) -> None:
    check(case, streams, steps)


@pytest.mark.parametrize("mode", list(Mode))
def test_many_random_streams(seed: int, mode: Mode) -> None:
    """Usual settings and a vocabulary that fuzzy top-k takes."""
    for number, (width, ngram) in enumerate(itertools.product((1, 4, 7), (False, True))):
        options = DecoderOptions(width=width, ngram_scale=0.1, final_limit_s=0.2)
        boosts = {"ab": 0.3, "b a": 0.5} if ngram else {}
        check(Case(options, seed + number, 256, mode, ngram, boosts, 900), streams=30, steps=5)


def test_few_entries_a_command_and_few_slots(seed: int) -> None:
    """Streams wait for one another; nothing else changes."""
    options = DecoderOptions(width=4, topk_threshold=3.0)
    case = Case(options, seed, blank_rise=0, ngram=True)
    check(case, streams=12, steps=5, max_entries=3)
    case = Case(options, seed, blank_rise=500)
    check(case, streams=6, steps=5, slots=range(6 * 4 + 2 * options.expansions))


def test_the_clock_of_finals() -> None:
    """It begins anew at the earliest token that is not final, be it not the best hypothesis'."""
    rows: dict[tuple[int, tuple[int, ...]], dict[int, float]] = {
        (0, ()): {13: 0.5, 1: 0.5},
        (1, (1,)): {13: 0.6, 2: 0.4},
        (2, (1,)): {13: 0.1, 4: 0.9},
        (2, ()): dict.fromkeys(range(14), 1 / 14),  # becomes improbable, so that the 1 is final
    }

    def table(seed: int, step: int, history: tuple[int, ...]) -> np.ndarray:
        row = rows.get((step, history), {13: 1.0})
        return np.array([round(256 * math.log(row.get(at, 1e-9))) for at in range(14)])

    case = Case(DecoderOptions(temperature=1.0, topk_threshold=-1, final_limit_s=0.2), 0)
    search, _ = case.fast(1)
    case.answers = Answers(table, search.k, search.named, search.temperature, case.logit_bits)
    device = FakeDevice(case.answers, range(3, 500))
    search.open(0)
    reference, done, found = case.plain(0), {0: 0}, []
    for _ in range(7):
        found.append([token.id for token in run_step(search, device, [0], done, {0: 0})[0]])
        assert found[-1] == [token.id for token in reference.step()]
    assert found == [[], [], [1], [], [], [4], []]  # the clock stands at step 1: more than 0.2 s lie before step 5
