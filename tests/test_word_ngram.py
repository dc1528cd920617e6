# SPDX-License-Identifier: Apache-2.0
"""The n-gram that ships beside the demo model, and n-grams made of lists of words."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import sentencepiece
from scripts import word_ngram
from scripts.word_ngram import SHIPPED, Grammar, make, word_list
from test_ngram_build import kenlm_tools  # noqa: F401 - a fixture

from gharial.errors import BadInput
from gharial.model import demo_model
from gharial.ngram import NgramModel, check_file
from gharial.ngram.pieces import sentencepiece_of

MODEL = sentencepiece_of(demo_model())


def probability(ngram: NgramModel, words: str) -> float:
    """ln p of a text's pieces from the start of a sentence."""
    state, total = ngram.begin(), 0.0
    for token in sentencepiece.SentencePieceProcessor(model_proto=MODEL).encode(words):
        score, state = ngram.score(state, token)
        total += score
    return total


def test_the_shipped_one_is_the_demo_models() -> None:
    mark = check_file(SHIPPED, MODEL).mark
    assert mark is not None and mark.fits(MODEL)
    assert SHIPPED.stat().st_size < 200_000


def test_the_shipped_one_knows_the_ten_words_and_no_others() -> None:
    pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")
    ngram = NgramModel(SHIPPED, MODEL)
    words = word_list("commands")
    assert len(words) == 10
    for before in ("", "go ", "left right "):
        for word in words:
            # One of ten words, whatever its pieces; from strings drawn at random, so no exact tenth.
            added = probability(ngram, before + word) - probability(ngram, before)
            assert 1 / 25 < math.exp(added) < 1 / 5, before + word
        for other in ("seven", "house", "rightow", "lef go"):
            assert probability(ngram, before + other) - probability(ngram, before) < -10.0


def test_strings_of_words() -> None:
    words = word_list("digits")
    lines = Grammar(2000, 3, seed=5).lines(words)
    assert lines == Grammar(2000, 3, seed=5).lines(words) != Grammar(2000, 3, seed=6).lines(words)
    assert len(lines) == 2000 and {len(line.split()) for line in lines} == {1, 2, 3}
    assert {word for line in lines for word in line.split()} == set(words)
    assert Grammar(0).lines(words) == words


def test_lists_from_files(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("go\n\n  new   york\ngo\n")
    assert word_list(str(file)) == ["go", "new york"]
    for text in ("", "\n \n"):
        file.write_text(text)
        with pytest.raises(BadInput, match="no list of words"):
            word_list(str(file))
    file.write_bytes(b"\xff\xfe")
    for name in (file, tmp_path / "none"):
        with pytest.raises(BadInput, match="no such list of words"):
            word_list(str(name))


@pytest.mark.usefixtures("kenlm_tools")
def test_the_shipped_one_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another build of KenLM rounding may differ; the n-grams and what they say are the same."""
    pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")
    monkeypatch.setattr(word_ngram, "SHIPPED", tmp_path / "again.ngram")
    assert word_ngram.main(["--shipped"]) == 0
    again, shipped = NgramModel(tmp_path / "again.ngram", MODEL), NgramModel(SHIPPED, MODEL)
    assert again.file.header.counts == shipped.file.header.counts
    for text in ("stop", "yes no", "up down left right", "seven"):
        assert probability(again, text) == pytest.approx(probability(shipped, text), abs=1e-4)


@pytest.mark.usefixtures("kenlm_tools")
def test_an_n_gram_of_a_file(tmp_path: Path) -> None:
    make(["red", "green"], demo_model(), tmp_path / "colours.ngram", grammar=Grammar(200, 2))
    assert check_file(tmp_path / "colours.ngram", MODEL).header.order == 3
