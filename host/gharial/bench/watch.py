# SPDX-License-Identifier: Apache-2.0
"""How far a run of the RTL is, in clocks of those that it is expected to take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Progress = Callable[[int, int], object]


class Watch:
    """Tells clocks done and clocks expected.

    Args:
        clock: the device's clock.
        progress: told both; None for nobody.
        parts: clocks that each part of the run takes at least. What a part takes longer is expected of those after it.
    """

    def __init__(self, clock: Callable[[], int], progress: Progress | None, parts: Sequence[float]) -> None:
        self._clock, self._progress = clock, progress
        self._left = list(parts)
        self._start = self._begun = clock()
        self._longer = 1.0

    def look(self) -> None:
        """Tell how far it is."""
        if self._progress is not None:
            now = self._clock()
            expected = self._begun - self._start + int(self._longer * sum(self._left))
            self._progress(now - self._start, max(expected, now - self._start, 1))

    def next(self) -> None:
        """A part is over."""
        now = self._clock()
        part = self._left.pop(0)
        if part and now > self._begun:
            self._longer = (now - self._begun) / part
        self._begun = now
