# SPDX-License-Identifier: Apache-2.0
"""Quantiles of the last seconds, of any number of values, in fixed memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import ceil, exp, log

LEAST_S = 50e-6
STEP = 1.05
"""Each bucket ends this much later than the one before; a quantile is right to half of that."""

_LOG_STEP = log(STEP)
_BUCKETS = ceil(log(120.0 / LEAST_S) / _LOG_STEP)


class Window:
    """Durations of the last seconds, and since the beginning.

    Not for several threads at once.

    Args:
        seconds: whole seconds that quantiles look back.
        bounds: upper ends of the buckets that count since the beginning.
    """

    def __init__(self, seconds: int = 10, bounds: Sequence[float] = ()) -> None:
        self._seconds = seconds
        self._slots = [[0] * _BUCKETS for _ in range(seconds)]
        self._times = [-1] * seconds
        self._counts = [0] * seconds
        self.bounds = tuple(bounds)
        self.totals = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        """Values since the beginning."""
        return sum(self.totals)

    def add(self, value: float, now: float, times: int = 1) -> None:
        """Take a duration in seconds, `times` times, at a moment on a clock that never goes back."""
        second = int(now)
        at = second % self._seconds
        if self._times[at] != second:
            self._times[at] = second
            self._counts[at] = 0
            self._slots[at] = [0] * _BUCKETS
        self._slots[at][_bucket(value)] += times
        self._counts[at] += times
        self.totals[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def recent(self, now: float) -> int:
        """Values of the last seconds."""
        return sum(self._counts[at] for at in self._live(now))

    def quantiles(self, wanted: Sequence[float], now: float) -> list[float | None]:
        """The durations that so large parts of the last seconds' are not above; None where there are none.

        Args:
            wanted: parts, 0 to 1, rising.
            now: the moment.
        """
        live = self._live(now)
        total = sum(self._counts[at] for at in live)
        if not total:
            return [None] * len(wanted)
        merged = [sum(column) for column in zip(*(self._slots[at] for at in live), strict=True)]
        found: list[float | None] = []
        bucket, passed = 0, merged[0]
        for part in wanted:
            while passed < part * total and bucket < _BUCKETS - 1:
                bucket += 1
                passed += merged[bucket]
            found.append(LEAST_S * exp((bucket - 0.5) * _LOG_STEP))
        return found

    def _live(self, now: float) -> list[int]:
        oldest = int(now) - self._seconds
        return [at for at, second in enumerate(self._times) if second > oldest and second >= 0]


def _bucket(value: float) -> int:
    if value <= LEAST_S:
        return 0
    return min(_BUCKETS - 1, ceil(log(value / LEAST_S) / _LOG_STEP))
