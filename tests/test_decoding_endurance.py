# SPDX-License-Identifier: Apache-2.0
"""Bounded time and memory of the fast search: hours of audio, models that never stop, devices that write nonsense."""

from __future__ import annotations

import gc
import math
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.decoding_device import Answers, FakeDevice
from tests.test_decoding_search import Case, ToyNgram, nothing_left, run_step, same_hypotheses

from gharial.decoding import BeamSearch, DecoderOptions, Fault, Keywords, SearchModel

HOUR = 60_000
"""Steps."""
_BITS = 8
_PAGE = 4096


class Tape:
    """Results by step alone, over and over: each hypothesis hears the same, but silence once it has spoken. No memory.

    Args:
        search: what asks.
        rows: log-probabilities (steps, classes); blank is the last.
    """

    def __init__(self, search: BeamSearch, rows: np.ndarray) -> None:
        silence = np.full(rows.shape[1], -60.0)
        silence[-1] = -0.01
        logits = np.maximum(np.rint(np.vstack([rows, silence]) * 2**_BITS), -32768).astype(int)
        self._results = []
        for row in logits:
            order = np.argsort(-row, kind="stable")[: search.k]
            scaled = row * 2.0**-_BITS
            lse = math.floor(float(scaled.max() + np.log(np.exp(scaled - scaled.max()).sum())) * 65536 + 0.5)
            head = struct.pack("<i4hHH", lse, int(row[search.named[0]]), 0, 0, 0, search.k, 0)
            self._results.append(head + b"".join(struct.pack("<hH", int(row[c]), int(c)) for c in order))
        self._silence = self._results.pop()

    def step(self, search: BeamSearch, number: int) -> tuple[int, int]:
        """One step of stream 0; how many evaluations and finals."""
        result, evaluations, finals = self._results[number % len(self._results)], 0, 0
        entries = search.begin(0, [0], [0], [0])
        while len(entries):
            evaluations += len(entries)
            spoke = entries[:, 2] & 0x20  # a token is put behind it
            entries = search.feed(0, b"".join(self._silence if new else result for new in spoke.tolist()))
            for outcome in search.outcomes(0):
                assert outcome.error is None
                finals += len(outcome.finals)
        return evaluations, finals


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def speech(rng: np.random.Generator, classes: int) -> np.ndarray:
    """Log-probabilities of some steps: a token in five, two of five of these with a rival, silence in between."""
    steps = 997
    rows = np.full((steps, classes), -60.0)
    for row in rows:
        token, other = rng.integers(0, classes - 1, 2)
        kind = rng.random()
        best = 0.6 if kind < 0.08 else 0.97
        row[other], row[classes - 1] = math.log(0.3 if kind < 0.08 else 0.02), math.log(0.05)
        row[token if kind < 0.2 else classes - 1] = math.log(best)
    return rows


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_hours_of_audio() -> None:
    """Four hours: after the first, neither the pools grow nor the process, and a step takes no more than before."""
    pieces = [f"▁{number}" for number in range(63)]
    model = SearchModel([*pieces, ""], len(pieces), _BITS)
    options = DecoderOptions(temperature=1.0, ngram_scale=0.05)
    search = BeamSearch(
        model,
        options,
        streams=1,
        slots=range(200),
        ngram=ToyNgram(model.pieces, frozenset()),  # type: ignore[arg-type]
    )
    tape = Tape(search, speech(np.random.default_rng(7), len(model.pieces)))
    search.open(0, Keywords({"1 2": 0.3, "21": -0.2}))
    hours = []
    for hour in range(4):
        evaluations = finals = 0
        for number in range(hour * HOUR, (hour + 1) * HOUR):
            some, new = tape.step(search, number)
            evaluations, finals = evaluations + some, finals + new
            if not number % 100:
                search.best(0, 4)
        gc.collect()
        hours.append((resident(), sys.getallocatedblocks(), evaluations, finals, dict(search.pools)))
        # Who hears a partial result, hears of few tokens.
        assert max(len(one.tokens) for one in search.best(0, 4)) < 100
    first, *_, last = hours
    assert last[0] - first[0] < 2 << 20 and last[1] - first[1] < 2000
    assert {name: every for name, (_, every) in last[4].items()} == {n: every for n, (_, every) in first[4].items()}
    assert last[2] <= 1.2 * first[2] and last[3] > 0.9 * first[3] > 0.1 * HOUR
    search.close(0)
    nothing_left(search)


@pytest.mark.parametrize(("logit", "width"), [(32767, 1), (32767, 4), (32767, 32), (-32768, 1), (-32768, 4), (0, 4)])
def test_saturated_logits(logit: int, width: int) -> None:
    """All classes alike, at an end of the range: an answer like any other, of an undecided model."""
    case = Case(DecoderOptions(width=width, max_symbols=3, final_limit_s=0.2), 1, ngram=True, boosts={"ab": 0.5})
    search, _ = case.fast(1)
    case.answers = Answers(
        lambda *_: np.full(case.classes, logit), search.k, search.named, search.temperature, case.logit_bits
    )
    device = FakeDevice(case.answers, range(3, 3 + 4 * (case.options.expansions + width)))
    search.open(0, case.keywords)
    steps, reference = {0: 0}, case.plain(0)
    for _ in range(6):
        run_step(search, device, [0], steps, {0: 0})
        reference.step()
        same_hypotheses(search.kept(0), reference.kept, reference.finals)
        assert all(math.isfinite(one.score) for one in search.kept(0))


def test_nonsense_is_an_error_of_the_device(seed: int) -> None:
    """Random bytes in place of results: the stream fails with a reason, in a bounded number of rounds."""
    rng = np.random.default_rng(seed)
    case = Case(DecoderOptions(), seed, ngram=True)
    search, _ = case.fast(2)
    for _ in range(300):
        for stream in range(2):
            search.open(stream)
        entries, rounds, faults = search.begin(0, range(2), range(2), [0, 0]), 0, []
        while len(entries):
            entries, rounds = search.feed(0, rng.bytes(len(entries) * search.stride)), rounds + 1
            faults += [(outcome.fault, outcome.error) for outcome in search.outcomes(0)]
        assert rounds <= 2 * case.options.expansions and len(faults) == 2
        for fault, error in faults:
            assert (fault == Fault.NONE) == (error is None)
            assert error is None or "result" in str(error)
    for stream in range(2):
        search.close(stream)
    nothing_left(search)
