# SPDX-License-Identifier: Apache-2.0
"""What quantisation does to one tensor: signal against noise, in all and unit by unit, and what met a limit."""

from __future__ import annotations

import math

import numpy as np

BINS = 64


def decibels(signal: float, noise: float) -> float | None:
    """10 log10 of signal over noise energy; None where there is no noise, -inf where there is noise alone."""
    if noise <= 0:
        return None
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf


class TensorNoise:
    """Sums over recordings of one tensor.

    Args:
        unit: value of one integer step.
        low, high: the least and largest integer that the tensor can hold.
        held: hold float values to that range before they are compared, where nothing beyond it makes a difference.

    Attributes:
        count: elements seen.
        at_limit: of them, integers at `low` or `high`; a low of 0 is no limit (it is the ReLU's).
        beyond: of them, float values more than half a step outside of low..high.
        largest: the largest magnitude of the float tensor.
        histogram: int64 (BINS,), integers in equal parts of low..high.
    """

    def __init__(self, unit: float, low: int, high: int, held: bool = False) -> None:
        self.unit, self.low, self.high, self._held = unit, low, high, held
        self.count = self.at_limit = self.beyond = 0
        self.largest = 0.0
        self.histogram = np.zeros(BINS, np.int64)
        self._sums: np.ndarray | None = None  # (4, units): signal and noise energy, and both without their means

    def add(self, exact: np.ndarray, steps: np.ndarray) -> None:
        """Take one recording.

        Args:
            exact: float (T, ...), the float model's.
            steps: integers of the same shape.
        """
        if len(exact) == 0:
            return
        signal = exact.reshape(len(exact), -1).astype(np.float64)
        whole = steps.reshape(signal.shape)
        top, bottom = (self.high + 0.5) * self.unit, (self.low - 0.5) * self.unit
        self.count += whole.size
        self.largest = max(self.largest, float(np.abs(signal).max()))
        self.at_limit += int(np.count_nonzero(whole >= self.high))
        self.beyond += int(np.count_nonzero(signal > top))
        if self.low < 0:
            self.at_limit += int(np.count_nonzero(whole <= self.low))
            self.beyond += int(np.count_nonzero(signal < bottom))
        if self._held:
            np.clip(signal, self.low * self.unit, self.high * self.unit, out=signal)
        noise = whole * self.unit - signal
        means = signal.mean(axis=0), noise.mean(axis=0)
        sums = np.stack(
            [np.square(values).sum(axis=0) for values in (signal, noise, signal - means[0], noise - means[1])]
        )
        self._sums = sums if self._sums is None else self._sums + sums
        places = (whole.astype(np.int64).ravel() - self.low) * BINS // (self.high - self.low + 1)
        self.histogram += np.bincount(np.clip(places, 0, BINS - 1), minlength=BINS)

    @property
    def sqnr(self) -> float | None:
        """Signal over noise in dB."""
        return self._ratio(0, 1)

    @property
    def sqnr_changes(self) -> float | None:
        """The same after the mean over each recording is taken out of both, unit by unit."""
        return self._ratio(2, 3)

    def worst(self, count: int) -> list[tuple[int, float]]:
        """(unit, dB) of the units with the lowest ratio, lowest first; units without noise or signal are left out."""
        if self._sums is None:
            return []
        signal, noise = self._sums[:2]
        units = np.flatnonzero((noise > 0) & (signal > 0))
        ratios = 10 * np.log10(signal[units] / noise[units])
        order = np.argsort(ratios, kind="stable")[:count]
        return [(int(units[i]), float(ratios[i])) for i in order]

    def _ratio(self, signal: int, noise: int) -> float | None:
        if self._sums is None:
            return None
        return decibels(float(self._sums[signal].sum()), float(self._sums[noise].sum()))
