# SPDX-License-Identifier: Apache-2.0
"""The soak in short: clients of every bad kind leave nothing behind, and nobody else notices."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from scripts import bench_soak
from scripts.soak.clients import Clients
from scripts.soak.server import Taken


def test_all_kinds_beside_streams_that_behave(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--connections", "44", "--seconds", "3", "--behaved", "2", "--faults", "0", "--seed", str(seed)]
    # How much memory so few take says nothing; what is left open does.
    code = bench_soak.main([*words, "--parts", "2", "--recording", "u084", "--decoder", "greedy", "--growth", "1"])
    assert code == 0, capsys.readouterr().out


def test_what_is_wrong_is_told() -> None:
    clients = Clients(0, {}, {}, random.Random(1))
    good = Taken(100, 8, 5, 0)
    assert bench_soak.judged([good, good], clients, 0.02) == []
    for last, part in (
        (Taken(103, 8, 5, 0), "memory grew by 3.0%"),
        (Taken(100, 9, 5, 0), "1 file descriptors"),
        (Taken(100, 8, 6, 0), "1 more threads"),
        (Taken(100, 8, 5, 2), "2 streams are left"),
    ):
        (sentence,) = bench_soak.judged([good, last], clients, 0.02)
        assert part in sentence
    clients.wrong.append("u084: closed with 1011")
    assert bench_soak.judged([good, good], clients, 0.02) == ["u084: closed with 1011"]


@pytest.mark.parametrize("broken", ["message", "code"])
def test_a_wrong_reply_is_seen(seed: int, broken: str, tmp_path: Path) -> None:
    """A server whose replies are not those that are expected, or that ends a stream too early, does not pass."""
    import asyncio

    from scripts.soak.server import Server

    audio = bench_soak.recordings(["u084"])
    right = bench_soak.expected(audio, "greedy")
    if broken == "message":
        right["u084"][3] = right["u084"][3].replace("0", "1", 1)
    words = [*bench_soak.SETTINGS, "--decoder", "greedy", "--max-duration-s", "0.001"][
        : None if broken == "code" else -2
    ]
    server = Server(words, tmp_path / "log")
    try:
        clients = Clients(server.port, audio, right, random.Random(seed))
        asyncio.run(clients.behaved(live=broken == "code"))
        assert len(clients.wrong) == 1
        assert ("messages, not the" in clients.wrong[0]) is (broken == "message")
    finally:
        assert server.stop() == 0
