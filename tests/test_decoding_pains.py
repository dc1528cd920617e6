# SPDX-License-Identifier: Apache-2.0
"""What users of such decoders ran into, on the search by itself; docs/decoding.md, section 9, lists the rest."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from ngram_files import ARPA, binary, demo_pieces
from tests.decoding_written import FREE, Row, Written

from gharial.checkpoint.sentencepiece_model import read_pieces
from gharial.decoding import Keywords
from gharial.ngram import NgramModel
from gharial.ngram.model import LN_10

WORDS = ["▁", "a", "b", "l", "▁1", "1", "▁no", "ab", "▁he", "o"]
A, B, L, ONE, ONES, NO, AB, HE, OH = range(1, 10)


def near(value: float) -> Any:
    """As exactly as logits, log-sum-exps and probabilities are rounded."""
    return pytest.approx(value, abs=0.01)


# Symbols in one step


@pytest.mark.parametrize("width", [1, 4, 32])
@pytest.mark.parametrize("most", [1, 2, 8, 30])
def test_the_cap_on_symbols_is_reached_and_never_passed(most: int, width: int) -> None:
    """A model that never ends a step by itself: as many symbols as are allowed, step for step, and no more work."""
    steps = 5
    rows: dict[Any, Row] = {step: {A: 0.999, -1: 0.001} for step in range(steps)}
    options = replace(FREE, width=width, max_symbols=most, final_limit_s=0.06)
    one = Written(WORDS, rows, options)
    for step in range(steps):
        before = [len(one.tokens(kept)) for kept in one.search.kept(0)]
        one.step()
        asked = [len(history) for at, history in one.asked if at == step]
        assert len(asked) <= 2 * options.expansions and len(one.search.kept(0)) <= width
        # Where what was kept is said anew by a shorter one, the better of the two has a say in what is left.
        assert min(before) + most <= max(asked) <= max(before) + most
        for kept in one.search.kept(0):
            steps_of = [token.step for token in one.tokens(kept)]
            assert all(steps_of.count(at) <= most for at in range(steps))
    one = Written(WORDS, rows, options).run(1)
    assert max(len(history) for _, history in one.asked) == most


def test_several_symbols_in_a_step_and_none_in_others() -> None:
    said = {(0, ()): {A: 1.0}, (0, (A,)): {B: 1.0}, (0, (A, B)): {L: 1.0}, (3, (A, B, L)): {OH: 1.0}}
    one = Written(WORDS, said).run(5)
    assert [(token.id, token.step) for token in one.tokens()] == [(A, 0), (B, 0), (L, 0), (OH, 3)]


# Repeated tokens, duplicates, n-best lists


@pytest.mark.parametrize("gap", [0, 1, 3])
@pytest.mark.parametrize("width", [1, 4, 32])
def test_repeated_tokens_are_all_heard(gap: int, width: int) -> None:
    """Nothing is collapsed: the same token in one step, in the next one or later is said once more, and once only."""
    wanted = [ONE, ONES, ONES, NO, NO, HE, L, L, OH, ONE, ONE, ONE]
    rows = {}
    for number, token in enumerate(wanted):
        step = number * gap if gap else number // 4
        rows[step, tuple(wanted[:number])] = {token: 0.9, -1: 0.1}
    one = Written(WORDS, rows, replace(FREE, width=width, final_limit_s=1.25)).run(len(wanted) * max(gap, 1) + 1)
    assert [token.id for token in one.tokens()] == wanted
    assert one.text == "▁111▁no▁no▁hello▁1▁1▁1"


def test_doubled_letters_are_neither_lost_nor_added() -> None:
    """Whether a letter was said once or twice is what the probabilities say."""
    for once, twice in ((0.6, 0.4), (0.4, 0.6)):
        rows: dict[Any, Row] = {
            (0, ()): {HE: 1.0},
            (1, (HE,)): {L: 1.0},
            (2, (HE, L)): {L: twice, -1: once},
            (3, (HE, L)): {OH: 1.0},
            (3, (HE, L, L)): {OH: 1.0},
        }
        one = Written(WORDS, rows).run(6)
        heard = {"".join(WORDS[token] for token in tokens): math.exp(score) for tokens, score in one.heard().items()}
        assert heard == {"▁hello": near(twice), "▁helo": near(once)}
        assert one.text == ("▁hello" if twice > once else "▁helo")


def test_the_same_text_is_one_hypothesis() -> None:
    """Whichever way it is spelled and timed: its probability is the sum, and the list has it once."""
    rows: dict[Any, Row] = {
        (0, ()): {A: 0.3, AB: 0.3, -1: 0.4},
        (0, (A,)): {B: 0.5, -1: 0.5},
        (1, (A,)): {B: 1.0},
        (1, ()): {AB: 1.0},
    }
    one = Written(WORDS, rows).run(2)
    # a b at once, a then b, ab at once, ab later: all of it.
    ((tokens, score),) = one.heard().items()
    assert "".join(WORDS[token] for token in tokens) == "ab"
    assert math.exp(score) == near(1.0)


def test_the_list_is_that_of_the_best_means() -> None:
    """In order, each text once, the scores those of the texts, and the first what is said at the end."""
    p: Row = {A: 0.3, B: 0.2, L: 0.15, -1: 0.35}
    rows: dict[Any, Row] = {(0, ()): p, (0, (A,)): p, (0, (B,)): p, (0, (L,)): p}
    one = Written(WORDS, rows, replace(FREE, width=32)).run(1)
    found = [one for one in one.search.best(0, 32) if one.score > -60]
    assert [one.tokens for one in one.search.best(0, 32)][: len(found)] == [one.tokens for one in found]
    texts = ["".join(WORDS[token.id] for token in hypothesis.tokens) for hypothesis in found]
    assert len(set(texts)) == len(texts) == 1 + 3 + 9
    assert [h.mean for h in found] == sorted((h.mean for h in found), reverse=True)
    assert [h.mean for h in found] == pytest.approx([h.score / (len(h.tokens) + 1) for h in found])
    for text, hypothesis in zip(texts, found, strict=True):
        said = [p[WORDS.index(letter)] for letter in text]
        assert math.exp(hypothesis.score) == near(math.prod(said) * (p[-1] if len(text) < 2 else 1.0))
    assert [token.id for token in one.search.best(0)[0].tokens] == [token.id for token in found[0].tokens]
    assert len(one.search.best(0, 3)) == 3 and one.search.best(0, 3) == found[:3]


# Streaming


def test_a_hypothesis_is_carried_over_silence() -> None:
    """Steps in which nothing is said, however many, lose nothing: neither tokens, nor states, nor rivals."""
    rows: dict[Any, Row] = {(0, ()): {A: 0.55, B: 0.45}, (40, (A,)): {L: 0.2, -1: 0.8}, (40, (B,)): {OH: 1.0}}
    one = Written(WORDS, rows).run(40)
    assert one.heard() == {(A,): near(math.log(0.55)), (B,): near(math.log(0.45))}
    assert not any(one.finals)
    assert all({(step, (A,)), (step, (B,))} <= set(one.asked) for step in range(1, 40))
    one.step()
    assert [(t.id, t.step) for t in one.tokens()] == [(B, 0), (OH, 40)]


def test_steps_are_those_of_the_audio() -> None:
    """A token's step is the one whose output was heard, whoever survives, and with every cut of a stream."""
    rows: dict[Any, Row] = {}
    history: tuple[int, ...] = ()
    for number, token in enumerate((A, B, L, OH)):
        rows[7 * number + 3, history] = {token: 0.9, NO: 0.1}
        history += (token,)
    one = Written(WORDS, rows, replace(FREE, final_limit_s=1.25)).run(30)
    assert [token.step for token in one.tokens()] == [3, 10, 17, 24]
    # A token is final as soon as nobody disagrees, and no later than the limit.
    for step, finals in enumerate(one.finals):
        assert all(step - token.step <= math.ceil(1.25 / 0.06) + 1 for token in finals)


# Keywords


def boosted(rows: dict[Any, Row], boosts: dict[str, float], steps: int) -> tuple[dict, dict]:
    """Scores by tokens, without and with keywords."""
    return Written(WORDS, rows).run(steps).heard(), Written(WORDS, rows, keywords=Keywords(boosts)).run(steps).heard()


@pytest.mark.parametrize("gap", [0, 1, 5])
def test_a_boost_is_counted_once(gap: int) -> None:
    """However the tokens are spread over steps, with silence between them and behind."""
    rows: dict[Any, Row] = {
        (0, ()): {A: 0.4, OH: 0.6},
        (gap, (A,)): {B: 1.0},
        (gap, (OH,)): {B: 1.0},
        (2 * gap, (A, B)): {L: 1.0},
    }
    plain, with_boost = boosted(rows, {"ab": 0.7}, 2 * gap + 6)
    assert set(plain) == set(with_boost) == {(A, B, L), (OH, B)}
    assert with_boost[A, B, L] - plain[A, B, L] == pytest.approx(1.4)
    assert with_boost[OH, B] == plain[OH, B]


def test_a_keyword_half_said_gives_back_what_it_gained_once() -> None:
    rows: dict[Any, Row] = {(0, ()): {A: 1.0}, (1, (A,)): {B: 0.5, OH: 0.5}, (2, (A, OH)): {OH: 1.0}}
    plain, with_boost = boosted(rows, {"abl": 0.5}, 6)
    assert with_boost[A, B] - plain[A, B] == pytest.approx(1.0)  # it may still be said
    assert with_boost[A, OH, OH] - plain[A, OH, OH] == pytest.approx(0.0)


def test_merging_counts_a_boost_once() -> None:
    """Two ways to a keyword are one hypothesis with one boost, and its letters behind the merge go on from there."""
    rows: dict[Any, Row] = {
        (0, ()): {A: 0.5, -1: 0.5},
        (1, ()): {A: 1.0},
        (2, (A,)): {B: 0.5, -1: 0.5},
        (3, (A,)): {B: 1.0},
    }
    plain, with_boost = boosted(rows, {"ab": 0.7}, 6)
    assert plain == {(A, B): near(0.0)}
    assert with_boost[A, B] - plain[A, B] == pytest.approx(1.4)


def test_a_stream_begun_anew_has_no_keyword_half_said() -> None:
    rows: dict[Any, Row] = {(0, ()): {A: 1.0}}
    one = Written(WORDS, rows, keywords=Keywords({"ab": 0.7})).run(2)
    assert one.heard()[A,] == near(0.7)
    one.rows = {(0, ()): {B: 1.0}}
    one.answers._cache.clear()
    one.open()
    assert one.run(2).heard()[B,] == near(0.0)


# n-grams

pieces = demo_pieces()
TEXTS = [piece.text for piece in read_pieces(pieces, "demo")]


@pytest.fixture(scope="module")
def ngram() -> NgramModel:
    pytest.importorskip("kenlm", reason="needs the package kenlm: pip install gharial[ngram]")
    return NgramModel(binary(), pieces, note=lambda _: None)


def spelled(text: str) -> list[int]:
    """Tokens of pieces that a space parts."""
    return [TEXTS.index(piece) for piece in text.split()]


@pytest.mark.parametrize("text", ["▁go ▁le f t", "▁le f t", "z e ▁go"])
def test_what_an_ngram_adds_is_scale_times_natural_logarithms(ngram: NgramModel, text: str) -> None:
    """Of the whole text behind a sentence's begin, as KenLM has it, nothing for its end, and nothing for blanks."""
    import kenlm

    tokens = spelled(text)
    rows = {(2 * at, tuple(tokens[:at])): {token: 0.9, -1: 0.1} for at, token in enumerate(tokens)}
    steps = 2 * len(tokens) + 9
    options = replace(FREE, ngram_scale=0.3)
    plain = Written(TEXTS, rows).run(steps).heard()[tuple(tokens)]
    one = Written(TEXTS, rows, options, ngram=ngram).run(steps)
    wanted = kenlm.Model(str(ARPA)).score(text, bos=True, eos=False) * LN_10
    assert (one.heard()[tuple(tokens)] - plain) / 0.3 == pytest.approx(wanted, abs=1e-4)
    assert math.isfinite(wanted)
    # Silence asks for nothing.
    one.step()
    assert one.search.queries == 0


def test_the_golden_natural_logarithm(ngram: NgramModel) -> None:
    """By hand, from the file: log10 p(▁go | <s>) times ln 10."""
    line = next(line for line in ARPA.read_text().splitlines() if "\t<s> ▁go" in line)
    log10 = float(line.split("\t")[0])
    assert ngram.score(ngram.begin(), TEXTS.index("▁go"))[0] == pytest.approx(log10 * math.log(10), abs=1e-5)


def test_unknown_words_are_unlikely_and_no_more(ngram: NgramModel) -> None:
    """They have the unknown word's probability, a finite one, and what follows is scored."""
    strange = next(token for token in range(2, len(TEXTS)) if not ngram.knows(token) and TEXTS[token])
    go = TEXTS.index("▁go")
    rows = {(0, ()): {strange: 0.6, go: 0.4}, (1, (strange,)): {go: 1.0}, (1, (go,)): {strange: 1.0}}
    found = Written(TEXTS, rows, replace(FREE, ngram_scale=0.05), ngram=ngram).run(3).heard()
    assert set(found) == {(strange, go), (go, strange)}
    assert all(-20 < score < 0 for score in found.values())
