# SPDX-License-Identifier: Apache-2.0
"""How large the values of a tensor become: the maximum, and percentiles out of a histogram of fixed bins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# A bin is the upper half of a float32: exponent and 7 bits of mantissa. That makes 128 bins an octave over the whole
# range of the type, the same ones for every tensor, so that two histograms merge by addition and no range has to be
# guessed before the data is seen.
_SHIFT = 16
_BINS = 1 << 15
CLIPPED_BITS = range(7, 15)
"""Fraction bits of an int8 for which a histogram tells what clipping costs."""

# Below so many values, touching every bin would take longer than touching each value's own.
_FEW = 4096


@dataclass(frozen=True)
class Magnitude:
    """Absolute values of one tensor over a calibration.

    Attributes:
        count: values seen.
        maximum: the largest, exact (as float32); 0 where none was seen.
        p99_99: 99.99 % of the values are at most this; up to 1/128 above the true percentile, never below it, and
            never above `maximum`.
        clipped: for each q of CLIPPED_BITS, the mean over all values of the square of what lies beyond 127.5 * 2^-q;
            to some parts in a thousand of the values that do.
    """

    count: int
    maximum: float
    p99_99: float
    clipped: tuple[float, ...] = (0.0,) * len(CLIPPED_BITS)


class MagnitudeHistogram:
    """Counts absolute values; histograms of parts of the data merge into that of the whole, in any order."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, np.int64)
        self._maximum = 0.0

    @property
    def count(self) -> int:
        """Values seen."""
        return int(self._counts.sum())

    @property
    def maximum(self) -> float:
        """The largest absolute value as float32; 0 where none was seen."""
        return self._maximum

    def add(self, values: np.ndarray) -> None:
        """Count the absolute values of a float array of any shape, empty included.

        Raises:
            ValueError: a value is not a finite float32.
        """
        with np.errstate(over="ignore"):  # what becomes infinite is refused below
            magnitudes = np.abs(np.asarray(values, np.float32).ravel())
        if magnitudes.size == 0:
            return
        largest = float(magnitudes.max())
        if not math.isfinite(largest):
            raise ValueError("a value is not finite")
        self._maximum = max(self._maximum, largest)
        bins = magnitudes.view(np.uint32) >> np.uint32(_SHIFT)
        if bins.size < _FEW:
            np.add.at(self._counts, bins, 1)
        else:
            self._counts += np.bincount(bins, minlength=_BINS)

    def merge(self, other: MagnitudeHistogram) -> None:
        """Count everything that `other` counted as well."""
        self._counts += other._counts
        self._maximum = max(self._maximum, other._maximum)

    def percentile(self, percent: float) -> float:
        """Smallest bin edge such that at least `percent` % of the values lie at or below it; 0 where none was seen.

        Args:
            percent: above 0, up to 100, to four decimals.
        """
        if not 0.0 < percent <= 100.0:
            raise ValueError(f"percentile {percent} is outside (0, 100]")
        below = np.cumsum(self._counts)
        total = int(below[-1])
        if total == 0:
            return 0.0
        # In integers: as a float, 99.9 % of 41000 values is a little more than 40959 of them.
        rank = -(-total * round(percent * 10000) // 1_000_000)
        index = int(np.searchsorted(below, rank))
        # The bin's upper edge; in the last bin that is occupied, the maximum is a tighter one.
        edge = np.array([(index + 1) << _SHIFT], np.uint32).view(np.float32)[0]
        return min(float(edge), self._maximum)

    def summary(self) -> Magnitude:
        """The figures a calibration keeps."""
        return Magnitude(self.count, self._maximum, self.percentile(99.99), self._clipped())

    def _clipped(self) -> tuple[float, ...]:
        if self._maximum <= 127.5 * 2.0 ** -CLIPPED_BITS[-1]:
            return (0.0,) * len(CLIPPED_BITS)
        bins = np.flatnonzero(self._counts)
        edges = np.stack([bins, bins + 1]).astype(np.uint32) << np.uint32(_SHIFT)
        # No value is above the maximum, so the last bin's middle is not either.
        middle = np.minimum(edges.view(np.float32).astype(np.float64), self._maximum).mean(axis=0)
        shares = self._counts[bins] / self.count
        return tuple(
            float((np.square(np.maximum(middle - 127.5 * 2.0**-bits, 0.0)) * shares).sum()) for bits in CLIPPED_BITS
        )
