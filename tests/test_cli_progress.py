# SPDX-License-Identifier: Apache-2.0
"""What is said about how far something is: a line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from gharial.bench.watch import Watch
from gharial.cli import terminal
from gharial.cli.terminal import Progress


class Stderr(io.StringIO):
    """Standard error that is a terminal, or none."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time, which goes by as the test says."""
    clock = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(terminal.time, "monotonic", lambda: clock.seconds)
    return clock


def test_elsewhere_a_line_a_minute_tells_the_time_left(now: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Stderr(False))
    progress = Progress("clocks simulated")
    for done in range(0, 1_000_001, 10_000):  # a hundred seconds and then some
        progress(done, 1_000_000)
        now.seconds += 1.5
    progress.close()
    assert sys.stderr.getvalue().splitlines() == [
        "gharial: clocks simulated: 400,000 of 1,000,000, 90 s left",
        "gharial: clocks simulated: 800,000 of 1,000,000, 30 s left",
    ]


def test_elsewhere_nothing_is_said_of_what_is_short(now: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Stderr(False))
    progress = Progress("recordings")
    progress(0, 2)
    now.seconds += 59
    progress(2, 2)
    progress.close()
    assert sys.stderr.getvalue() == ""


def test_minutes_left_are_told_in_minutes(now: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Stderr(False))
    progress = Progress("clocks")
    now.seconds += 60
    progress(1, 11)
    now.seconds += 60
    progress(0, 11)
    assert sys.stderr.getvalue().splitlines() == [
        "gharial: clocks: 1 of 11, 10 min left",
        "gharial: clocks: 0 of 11, time left not known",
    ]


def test_a_terminal_has_one_line_which_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Stderr(True))
    progress = Progress("clocks simulated")
    progress(0, 2_000_000)
    for done in (500_000, 1_000_000, 100_000):  # begins anew at last
        progress._bar.mininterval = 0
        progress(done, 2_000_000)
    shown = sys.stderr.getvalue()
    assert "\n" not in shown and "clocks simulated: 1.00M/2.00M" in shown and " left" in shown
    progress.close()
    assert sys.stderr.getvalue().endswith("\r")
    assert Progress("x", enabled=False)(1, 2) is None


def test_what_a_part_takes_longer_is_expected_of_the_next() -> None:
    clock = SimpleNamespace(now=100)
    told: list[tuple[int, int]] = []
    watch = Watch(lambda: clock.now, lambda *pair: told.append(pair), [100.0, 300.0])
    watch.look()
    clock.now = 300  # twice as long
    watch.look()
    watch.next()
    watch.look()
    clock.now = 1000
    watch.look()
    assert told == [(0, 400), (200, 400), (200, 800), (900, 900)]
