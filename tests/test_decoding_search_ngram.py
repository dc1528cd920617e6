# SPDX-License-Identifier: Apache-2.0
"""The fast search with n-grams that its core reads itself, against the plain search with KenLM's package."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ngram_files import HIGH_BITS, KINDS, binary
from tests import ngram_random
from tests.test_decoding_search import PIECES, USER, Case, check, run_step

from gharial.decoding import BeamSearch, DecoderOptions, Fault
from gharial.decoding._search import Ngram
from gharial.ngram import read_file
from gharial.ngram.header import read_header
from gharial.ngram.native import described, native_ngram

kenlm = pytest.importorskip("kenlm", reason="needs the package kenlm: pip install gharial[ngram]")

WORDS = [piece for piece in dict.fromkeys(PIECES) if piece and piece not in ("<EOS>", "<user>")]


class FileNgram:
    """A file by KenLM's package; `native` as the core reads it."""

    def __init__(self, path: Path, pieces: list[str], native: bool = True) -> None:
        self.words = [None if at in (USER, len(pieces) - 1) else piece for at, piece in enumerate(pieces)]
        config = kenlm.Config()
        config.load_method = kenlm.LoadMethod.LAZY
        self._model = kenlm.Model(str(path), config)
        self.base_score = self._model.BaseScore
        self.native: Ngram | None = native_ngram(read_file(path)) if native else None

    def new_state(self, begin: bool = False) -> Any:
        state = kenlm.State()
        if begin:
            self._model.BeginSentenceWrite(state)
        return state

    def begin(self) -> Any:
        return self.new_state(True)

    def score(self, state: Any, token: int) -> tuple[float, Any]:
        word, following = self.words[token], self.new_state()
        assert word is not None
        return math.log(10.0) * self.base_score(state, word, following), following


def case_with(path: Path, seed: int, native: bool = True, **others: Any) -> Case:
    options = DecoderOptions(width=4, ngram_scale=0.3, final_limit_s=0.3, topk_threshold=3.0)
    case = Case(options, seed, ngram=True, blank_rise=400, **others)
    case.toy = FileNgram(path, case.pieces, native)  # type: ignore[assignment]
    return case


@pytest.mark.parametrize("order", range(2, 7))
def test_random_ngrams(tmp_path: Path, seed: int, order: int) -> None:
    path = tmp_path / "random.binary"
    ngram_random.write_binary(path, np.random.default_rng([seed, order]), order, WORDS, most=1000)
    check(case_with(path, seed + order, boosts={"ab": 0.3}), streams=8, steps=8)


@pytest.mark.parametrize("kind", [*KINDS, HIGH_BITS])
def test_every_kind(seed: int, kind: str) -> None:
    check(case_with(binary(kind), seed), streams=4, steps=5)


def test_what_the_core_does_not_read(tmp_path: Path, seed: int) -> None:
    """Scores of KenLM's package, and the same ones."""
    path = tmp_path / "random.binary"
    ngram_random.write_binary(path, np.random.default_rng(seed), 3, WORDS)
    check(case_with(path, seed, native=False), streams=4, steps=5)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_that_is_no_number(value: float) -> None:
    """Fails the streams that ask for it, as KenLM's does."""
    case = case_with(binary(), 5)
    header, data = read_file(binary()).header, bytearray(binary().read_bytes())
    at = header.start + header.layout.unigrams
    data[at : at + 8 * header.words] = np.full(2 * header.words, value, "<f4").tobytes()
    assert case.toy is not None
    case.toy.native = described(read_header(io.BytesIO(data), "f"), bytes(data))  # type: ignore[attr-defined]
    search, device = case.fast(2)
    for stream in range(2):
        search.open(stream)
    faults = set()
    for step in range(20):
        for stream in range(2):
            device.encoded[100 + stream, 0] = stream, step
        entries = search.begin(0, [0, 1], [100, 101], [0, 0])
        while len(entries):
            entries = search.feed(0, device.decode(entries))
            for outcome in search.outcomes(0):
                faults.add(outcome.fault)
                if outcome.fault:
                    search.open(outcome.stream)
    assert faults <= {Fault.NONE, Fault.NGRAM} and Fault.NGRAM in faults


def test_the_file_outlives_its_model(tmp_path: Path, seed: int) -> None:
    """What the core reads stays mapped as long as the search is there."""
    path = tmp_path / "random.binary"
    ngram_random.write_binary(path, np.random.default_rng(seed), 3, WORDS)
    case = case_with(path, seed)
    search, device = case.fast(1)
    case.toy = None
    path.unlink()
    search.open(0)
    steps = {0: 0}
    for _ in range(5):
        run_step(search, device, [0], steps, {0: seed})
    assert isinstance(search, BeamSearch) and search.best(0)
