# SPDX-License-Identifier: Apache-2.0
"""The event simulation of live streams: figures that can be told without it, and refusals."""

from __future__ import annotations

import math

import pytest

from gharial.bench import capacity
from gharial.bench.capacity import Clocks, bench_capacity, clocks_of, simulate
from gharial.errors import BadInput
from gharial.isa.configs import config

HZ = 300e6
# An encoder batch takes 0.1 ms for one entry and 1 ms for sixteen; a decode command 0.02 ms, and nothing of the array.
ROUND = ((1, 2e-5 * HZ), (16, 2e-5 * HZ))
EASY = Clocks(((1, 1e-4 * HZ), (16, 1e-3 * HZ)), ROUND, ROUND, ((1, 0.0), (16, 0.0)))


def test_clocks_between_and_beyond_the_points() -> None:
    points = ((1, 10.0), (5, 30.0))
    assert [clocks_of(points, n) for n in (1, 3, 5, 10, 11)] == [10, 20, 30, 60, 70]


def test_one_stream_alone_waits_for_nothing() -> None:
    found = simulate(config("u50"), EASY, 1, "greedy", 50.0, 1)
    alone = 0.1 + 0.05 + 0.02 + 0.05  # encode, turnaround, one round, turnaround
    assert found["cl50_ms"] == pytest.approx(alone, rel=1e-6)
    assert alone <= found["cl99_ms"] <= alone + 4 * (0.02 + 0.05) + 1e-6  # tokens: a round each
    assert found["load"] == pytest.approx(0.1 / 60, rel=0.05)


def test_a_turnaround_counts_in_every_round() -> None:
    slow = simulate(config("u50"), EASY, 1, "greedy", 1000.0, 1)
    assert slow["cl50_ms"] == pytest.approx(0.1 + 1 + 0.02 + 1, rel=1e-6)


def test_steps_gather_while_others_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fuller batches: less of the time the array has work; no step waits longer than it may for others."""
    monkeypatch.setattr(capacity, "_SECONDS", 3.0)
    found = {}
    for patience in (0.0, 0.6):
        monkeypatch.setattr(capacity, "GATHER_MS", patience)
        found[patience] = simulate(config("u50"), EASY, 400, "greedy", 50.0, 1)
    assert found[0.6]["load"] < found[0.0]["load"]
    assert found[0.6]["cl50_ms"] < found[0.0]["cl50_ms"] + 0.6


def test_more_streams_wait_longer_until_they_are_too_many(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "_SECONDS", 3.0)
    found = [simulate(config("u50"), EASY, count, "greedy", 50.0, seed) for count in (1, 400, 800, 1200)]
    latencies = [f["cl99_ms"] for f in found]
    assert latencies[0] < latencies[1] < latencies[2] < 60
    assert latencies[3] == math.inf and found[3]["load"] > 0.99  # 16 steps a millisecond are 960 streams


def test_search_ends_at_what_the_device_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clocks, "load", classmethod(lambda cls, config, model: EASY))
    monkeypatch.setattr(capacity, "_SECONDS", 2.5)
    found = bench_capacity(config("u50"), "base", 100, limit_ms=20.0)
    assert 850 <= found["max_streams"] <= 980  # 960, and what two seconds of too many streams leave within 20 ms
    assert found["cl99_ms"] < 20 and found["streams"] == 100 and found["turnaround_us"] == 50.0
    over = bench_capacity(config("u50"), "base", 2000, limit_ms=20.0)
    assert over["cl99_ms"] is None and abs(over["max_streams"] - found["max_streams"]) <= 20


@pytest.mark.parametrize(
    ("name", "streams", "decoder", "what"),
    [
        ("u50", 0, "greedy", "number of streams"),
        ("u50", 1, "best", "unknown decoder"),
        ("ecp5-85f", 1, "greedy", "no clock"),
        ("kv260", 1, "greedy", "no clocks have been measured"),
    ],
)
def test_refusals(name: str, streams: int, decoder: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        bench_capacity(config(name), "no such model", streams, decoder=decoder)
