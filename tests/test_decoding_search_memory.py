# SPDX-License-Identifier: Apache-2.0
"""A step takes no memory, neither the core's nor Python's; outcomes as arrays are the same as objects."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ngram_random import write_binary
from tests.decoding_device import Answers, FakeDevice
from tests.test_decoding_search import Case, same_tokens
from tests.test_decoding_search_ngram import FileNgram

import gharial.decoding.search
from gharial.bench.decode_device import TableDevice
from gharial.bench.decode_ngram import Language
from gharial.decoding import BeamSearch, DecoderOptions, Fault, Keywords, SearchModel, Token

STREAMS, BATCH = 8, 4


class Steady:
    """Streams of the bench's table, with an n-gram and keywords."""

    def __init__(self, path: Path, native: bool) -> None:
        language = Language.seeded(299, 1)
        pieces = [*language.pieces, ""]
        write_binary(path, np.random.default_rng(1), 4, language.pieces, most=3000)
        ngram = FileNgram(path, pieces, native)
        ngram.words = [*language.pieces, None]
        options = DecoderOptions(ngram_scale=0.05)
        slots = range(STREAMS * 12 + 2 * options.expansions)
        model = SearchModel(pieces, 299, 8)
        self.search = BeamSearch(model, options, streams=STREAMS, slots=slots, ngram=ngram)
        unit = self.search.temperature * 2.0**-22
        self.device = TableDevice(language, 1, len(slots), self.search.k, self.search.stride, unit)
        self.step = 0
        self.tokens = 0
        keywords = Keywords({language.pieces[at].lstrip("▁"): 0.2 for at in range(20)})
        for stream in range(STREAMS):
            self.search.open(stream, keywords)

    def run(self, steps: int) -> None:
        groups = np.split(np.arange(STREAMS, dtype=np.int32), STREAMS // BATCH)
        for _ in range(steps):
            for group in groups:
                entries = self.search.begin(0, group, group, np.zeros_like(group))
                while len(entries):
                    entries, ended = self.search.turn(0, self.device.decode(entries, self.step))
                    assert not ended.streams["fault"].any()
                    self.tokens += len(ended.tokens)
            self.step += 1


@pytest.mark.parametrize("native", [True, False])
def test_a_long_run_takes_no_memory(tmp_path: Path, native: bool) -> None:
    """Pools are as large as at the start, nothing else has been taken, and Python's objects are as many as before."""
    steady = Steady(tmp_path / "f.binary", native)
    steady.run(100)
    capacities = {name: every for name, (_, every) in steady.search.pools.items()}
    grown, told = steady.search.grown, steady.tokens
    tracemalloc.start()
    try:
        steady.run(20)  # views of every size are there
        only = [tracemalloc.Filter(True, gharial.decoding.search.__file__)]
        before = sum(one.size for one in tracemalloc.take_snapshot().filter_traces(only).traces)
        steady.run(250)
        after = sum(one.size for one in tracemalloc.take_snapshot().filter_traces(only).traces)
    finally:
        tracemalloc.stop()
    assert steady.search.grown == grown == 0
    assert {name: every for name, (_, every) in steady.search.pools.items()} == capacities
    assert after - before < 4096, "objects stay"
    assert steady.tokens - told > 200, "nothing was said"


def same_outcomes(search: BeamSearch, lane: int = 0) -> int:
    """Both forms of the lane's outcomes; how many tokens they have."""
    outcomes, ended = search.outcomes(lane), search.ended(lane)
    assert [one.stream for one in outcomes] == ended.streams["stream"].tolist()
    assert [one.fault for one in outcomes] == [Fault(fault) for fault in ended.streams["fault"].tolist()]
    for one, row in zip(outcomes, ended.streams, strict=True):
        tokens = ended.tokens[row["first"] : row["first"] + row["count"]]
        assert len(one.finals) == len(tokens)
        same_tokens(one.finals, [as_token(token) for token in tokens])
    return len(ended.tokens)


def as_token(row: Any) -> Any:
    return Token(int(row["id"]), int(row["step"]), float(row["confidence"]))


def test_outcomes_as_arrays(seed: int) -> None:
    case = Case(DecoderOptions(width=3, final_limit_s=0.2), seed, blank_rise=200)
    search, device = case.fast(5)
    for stream in range(5):
        search.open(stream)
    for step in range(20):
        for stream in range(5):
            device.encoded[100 + stream, 0] = seed + stream, step
        entries = search.begin(0, range(5), range(100, 105), [0] * 5)
        assert len(search.ended(0).streams) == 0
        while len(entries):
            results = device.decode(entries)
            if step == 10 and len(entries) >= 5:
                results[12:14] = b"\xff\xff"  # a wrong count: the first one's stream fails
            entries, ended = search.turn(0, results)
            before = ended.streams.tolist(), ended.tokens.tolist()
            same_outcomes(search)
            assert before == (search.ended(0).streams.tolist(), search.ended(0).tokens.tolist())
            for outcome in search.outcomes(0):
                if outcome.fault:
                    search.open(outcome.stream)


def test_more_tokens_than_there_was_room_for() -> None:
    """A stream alone that says as much as it may: each step's tokens are final at once."""
    case = Case(DecoderOptions(width=1, max_symbols=200, max_expansions=300), 3)
    search, _ = case.fast(1)
    sure = np.where(np.arange(case.classes) == 1, 3000, -3000)
    case.answers = Answers(lambda *_: sure, search.k, search.named, search.temperature, case.logit_bits)
    device = FakeDevice(case.answers, range(3, 1000))
    search.open(0)
    device.encoded[100, 0] = 3, 0
    entries = search.begin(0, [0], [100], [0])
    while len(entries):
        entries, ended = search.turn(0, device.decode(entries))
    assert len(ended.tokens) == 200 and set(ended.tokens["id"].tolist()) == {1}
    assert same_outcomes(search) == 200
    assert search.grown > 0
