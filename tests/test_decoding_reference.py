# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/decoding.md, one by one, on networks that are written down."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sim.decoding import BeamOptions, BeamSearch, Eos, EosStrategy, Keywords, Scores, Threads
from sim.decoding.search import penalised

PIECES = ["▁", "a", "b", "▁a", "ab", "<EOS>"]
BLANK = len(PIECES)
EOS = 5
FREE = BeamOptions(width=8, topk_threshold=-1, score_threshold=-1, final_limit_s=-1)


class Table:
    """Probabilities by (step, tokens so far); what is not written down is blank for certain."""

    def __init__(self, probabilities: Mapping[tuple[int, tuple[int, ...]], Mapping[int, float]]) -> None:
        self._table = probabilities
        self.asked: list[tuple[int, tuple[int, ...]]] = []

    def start(self) -> tuple[int, ...]:
        return ()

    def advance(self, state: tuple[int, ...], token: int) -> tuple[int, ...]:
        return (*state, token)

    def scores(self, step: int, state: tuple[int, ...]) -> Scores:
        self.asked.append((step, state))
        row = {BLANK: 0.0, EOS: 0.0} | dict(self._table.get((step, state), {BLANK: 1.0}))
        ordered = sorted(row.items(), key=lambda item: (-item[1], item[0]))
        return Scores({k: math.log(p) if p else -math.inf for k, p in ordered})


def search(
    table: Mapping[tuple[int, tuple[int, ...]], Mapping[int, float]], options: BeamOptions = FREE, **others: Any
) -> tuple[BeamSearch, Table]:
    scoring = Table(table)
    return BeamSearch(scoring, BLANK, PIECES, options, **others), scoring


def found(one: BeamSearch) -> dict[tuple[int, ...], float]:
    """Probability of each hypothesis, by tokens, in the order of the list."""
    return {tuple(token.id for token in h.tokens): math.exp(h.score) for h in one.kept}


def test_a_step_sums_over_the_ways() -> None:
    one, _ = search({(0, ()): {BLANK: 0.6, 1: 0.4}, (0, (1,)): {BLANK: 0.5, 2: 0.5}})
    one.step()
    assert found(one) == pytest.approx({(): 0.6, (1,): 0.2, (1, 2): 0.2})
    assert [token.confidence for token in one.kept[-1].tokens] == pytest.approx([0.4, 0.5])


def test_the_best_is_expanded_first_and_the_rest_not_at_all() -> None:
    """Once `width` finished ones beat all active ones."""
    row = {BLANK: 0.6, 1: 0.3, 2: 0.1}
    one, scoring = search({(0, ()): row, (0, (1,)): {BLANK: 1.0}}, replace(FREE, width=1))
    one.step()
    assert scoring.asked == [(0, ())] and found(one) == pytest.approx({(): 0.6})
    one, scoring = search({(0, ()): row}, replace(FREE, width=2))
    one.step()
    assert scoring.asked == [(0, ()), (0, (1,))]
    assert found(one) == pytest.approx({(): 0.6, (1,): 0.3})


def test_most_symbols() -> None:
    table = {(0, (1,) * n): {BLANK: 0.1, 1: 0.9} for n in range(9)}
    one, scoring = search(table, replace(FREE, max_symbols=3, width=32))
    one.step()
    assert max(len(state) for _, state in scoring.asked) == 3
    # At the limit a blank is still as likely as the network has it.
    assert found(one)[(1, 1, 1)] == pytest.approx(0.9**3 * 0.1)


def test_thresholds() -> None:
    row = {BLANK: 0.2, 1: 0.5, 2: 0.2, 4: 0.1}
    one, _ = search({(0, ()): row}, replace(FREE, topk_threshold=1.0))
    one.step()
    assert set(found(one)) == {(), (1,), (2,)}  # ln 5 is above 1, ln 2.5 below
    one, _ = search({(0, ()): {BLANK: 0.05, 1: 0.95}}, replace(FREE, topk_threshold=1.0))
    one.step()
    assert set(found(one)) == {(), (1,)}  # blank always
    # Means: ln 0.5 / 1 and ln 0.25 / 2 are equal.
    one, _ = search({(0, ()): {BLANK: 0.5, 1: 0.25, 2: 0.1}}, replace(FREE, score_threshold=0.3))
    one.step()
    assert set(found(one)) == {(), (1,)}


def test_merging() -> None:
    """Of "ab" by two ways the likelier one's tokens stay among active hypotheses, the first one's among finished."""
    one, _ = search({(0, ()): {BLANK: 0.1, 1: 0.6, 4: 0.3}, (0, (1,)): {BLANK: 0.1, 2: 0.9}})
    one.step()
    assert found(one)[(1, 2)] == pytest.approx(0.54 + 0.3) and (4,) not in found(one)
    # (4) is finished before (1, 2) is: its tokens stay, though it is less likely.
    table = {
        (0, ()): {BLANK: 0.01, 4: 0.5, 1: 0.49},
        (0, (1,)): {BLANK: 0.01, 2: 0.99},
        (0, (4,)): {BLANK: 0.2, 1: 0.8},
    }
    one, _ = search(table)
    one.step()
    assert found(one)[(4,)] == pytest.approx(0.5 * 0.2 + 0.49 * 0.99)


@pytest.mark.parametrize("flawed", [False, True])
def test_a_lone_word_mark(flawed: bool) -> None:
    table = {(0, ()): {BLANK: 0.5, 0: 0.5}, (1, ()): {BLANK: 1.0}, (1, (0,)): {BLANK: 0.1, 1: 0.9}}
    one, _ = search(table, replace(FREE, merge_lone_marks=flawed))
    one.step()
    assert set(found(one)) == ({()} if flawed else {(), (0,)})
    one.step()
    assert ((0, 1) in found(one)) is not flawed
    # A mark right behind a mark is never text.
    one, _ = search({(0, ()): {BLANK: 0.5, 0: 0.5}, (0, (0,)): {BLANK: 0.5, 3: 0.5}, (0, (0, 3)): {BLANK: 1.0}})
    one.step()
    assert [h.text for h in one.kept] == ["", "▁", "▁a"]


def test_end_of_sequence() -> None:
    row = {BLANK: 0.5, 1: 0.3, EOS: 0.2}

    def after(eos: Eos | None) -> dict[tuple[int, ...], float]:
        one, _ = search({(0, ()): row}, replace(FREE, eos=eos))
        one.step()
        return found(one)

    plain = {(): 0.5, (1,): 0.3, (EOS,): 0.2}
    assert after(None) == after(Eos(EOS)) == pytest.approx(plain)
    assert after(Eos(EOS, EosStrategy.PREDICT)) == pytest.approx(plain)
    assert after(Eos(EOS, EosStrategy.IGNORE)) == pytest.approx({(): 0.5, (1,): 0.3})
    assert after(Eos(EOS, EosStrategy.BLANK)) == pytest.approx({(): 0.7, (1,): 0.3})
    assert after(Eos(EOS, EosStrategy.PREDICT, alpha=2.0)) == pytest.approx(plain | {(EOS,): 0.04})
    assert after(Eos(EOS, EosStrategy.PREDICT, beta=0.19)) == pytest.approx(plain)
    assert after(Eos(EOS, EosStrategy.PREDICT, beta=0.21)) == pytest.approx({(): 0.5, (1,): 0.3})


def test_blank_penalty() -> None:
    logits = {0: 1.0, 1: -0.5, BLANK: 2.0}
    total = math.log(sum(math.exp(v) for v in logits.values()))
    less = logits | {BLANK: 2.0 - 0.7}
    wanted = math.log(sum(math.exp(v) for v in less.values()))
    got = penalised({k: v - total for k, v in logits.items()}, BLANK, 0.7)
    assert got == pytest.approx({k: v - wanted for k, v in less.items()})


@pytest.mark.parametrize(
    ("boosts", "text", "deltas"),
    [
        ({"ab": 1}, "cabc", [0, 1, 1, 0]),
        ({"abc": 1}, "cabx", [0, 1, 1, -2]),
        ({"ab": 1, "abc": 1}, "abx", [2, 2, -2]),
        ({"ab": 1, "bcd": -1}, "abcx", [1, 0, -1, 2]),
        ({"ab": 1, "abcd": 0.5}, "abcx", [1.5, 1.5, 0.5, -1.5]),  # "ab" is kept, three characters of the other not
        ({"a b": 1}, "a▁b", [1, 1, 1]),
        ({"aa": 1}, "aaa", [1, 2, 1 + 1 - 0]),  # each character begins a thread
    ],
)
def test_keywords(boosts: dict[str, float], text: str, deltas: list[float]) -> None:
    keywords = Keywords(boosts)
    threads, got = Threads(), []
    for character in text:
        delta, threads = keywords.advance(threads, character)
        got.append(delta)
    assert got == pytest.approx(deltas)
    whole, _ = keywords.advance(Threads(), text)
    assert whole == pytest.approx(sum(deltas))


class Bigram:
    """Prefers b behind a."""

    def begin(self) -> str:
        return "<s>"

    def score(self, state: str, token: int) -> tuple[float, str]:
        piece = PIECES[token]
        return (-1.0 if (state, piece) == ("a", "b") else -3.0), piece


def test_ngram_scores_tokens_alone() -> None:
    table: Mapping[tuple[int, tuple[int, ...]], Mapping[int, float]] = {
        (0, ()): {BLANK: 0.5, 1: 0.5}, (0, (1,)): {BLANK: 0.5, 2: 0.25, 5: 0.25}
    }  # fmt: skip
    one, _ = search(table, replace(FREE, ngram_scale=0.5, user_tokens=frozenset({5})), ngram=Bigram())
    one.step()
    assert found(one) == pytest.approx(
        {(): 0.5, (1,): 0.25 * math.exp(-1.5), (1, 2): 0.125 * math.exp(-2.0), (1, 5): 0.125 * math.exp(-1.5)}
    )
    assert {h.ngram for h in one.kept if len(h.tokens) == 2} == {"b", "a"}  # a user token is no context


def run(table: Mapping[tuple[int, tuple[int, ...]], Mapping[int, float]], steps: int, limit: float) -> Sequence[Any]:
    """Finals of each step, and of the end."""
    one, _ = search(table, replace(FREE, score_threshold=0.4, final_limit_s=limit))
    finals = [[token.id for token in one.step()] for _ in range(steps)]
    return [*finals, [token.id for token in one.finish()]]


def test_finals() -> None:
    """What all agree on; at the end the best one's rest: two tokens at one half have the better mean."""
    table = {(0, ()): {BLANK: 1e-9, 1: 1.0}, (0, (1,)): {BLANK: 1.0}, (1, (1,)): {BLANK: 0.5, 2: 0.5}}
    assert run(table, 3, -1.0) == [[1], [], [], [2]]


def test_the_limit_of_finals() -> None:
    """The clock stands at the begin of step 0, the last with one hypothesis: more than 0.2 s lie before step 4."""
    table = {(1, ()): {BLANK: 0.6, 1: 0.4}}
    assert run(table, 7, -1.0) == [[], [], [], [], [], [], [], [1]]
    assert run(table, 7, 0.2) == [[], [], [], [], [1], [], [], []]
    # The clock stands at step 2, the last with one hypothesis, and not at step 1.
    table |= {(1, ()): {BLANK: 1e-9, 1: 1.0}, (3, (1,)): {BLANK: 0.5, 2: 0.5}}
    assert run(table, 9, 0.2) == [[], [1], [], [], [], [], [2], [], [], []]


@pytest.mark.parametrize("limit", [0.3, 0.6, 1.2])
def test_a_limit_of_whole_steps(limit: float) -> None:
    """0.06 n - 0.06 m is now a hair above 0.3, now a hair below: five steps are not more, wherever the clock stands."""
    for first in range(40):
        # The clock stands at the last step with one hypothesis, and at the start where there was none.
        finals = run({(first, ()): {BLANK: 0.6, 1: 0.4}}, first + 30, limit)
        assert [step for step, tokens in enumerate(finals) if tokens] == [max(first - 1, 0) + round(limit / 0.06) + 1]
