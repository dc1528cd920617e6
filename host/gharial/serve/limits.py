# SPDX-License-Identifier: Apache-2.0
"""What a connection may take: how fast its audio may come; and who may connect at all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


class Pace:
    """How fast audio may come: so many seconds at once, and from then on so many times real time.

    Args:
        rate: seconds of audio a second; 0 for any.
        burst_s: seconds that may come ahead of that.
        now: seconds on a clock that never goes back.
    """

    def __init__(self, rate: float, burst_s: float, now: float) -> None:
        self._rate, self._burst, self._room, self._then = rate, burst_s, burst_s, now

    def take(self, audio_s: float, now: float) -> float:
        """Audio has come; the seconds to wait until it is within the pace, 0 where it is."""
        if not self._rate:
            return 0.0
        self._room = min(self._burst, self._room + (now - self._then) * self._rate) - audio_s
        self._then = now
        return max(0.0, -self._room / self._rate)


@dataclass
class Admission:
    """Who may connect: at most so many at a time, and so many from one address.

    Attributes:
        most: connections at a time, 0 for any number.
        most_each: connections at a time from one address, 0 for any number.
        open: those that are open.
        refused: those that were turned away, by reason.
    """

    most: int
    most_each: int = 0

    def __post_init__(self) -> None:
        self.open = 0
        self.refused: Counter[str] = Counter()
        self._each: Counter[str] = Counter()

    def enter(self, address: str) -> str | None:
        """A connection comes; None and it is counted, or the reason why it may not."""
        if self.most and self.open >= self.most:
            return self.turn_away("connections", f"all {self.most} connections are taken")
        if self.most_each and self._each[address] >= self.most_each:
            return self.turn_away("address", f"{self.most_each} connections from one address are the most")
        self.open += 1
        self._each[address] += 1
        return None

    def leave(self, address: str) -> None:
        """A connection that entered has gone."""
        self.open -= 1
        self._each[address] -= 1
        if not self._each[address]:
            del self._each[address]  # addresses are forgotten, or there would be ever more

    def turn_away(self, kind: str, reason: str) -> str:
        """Count a connection that is refused; the reason."""
        self.refused[kind] += 1
        return reason
