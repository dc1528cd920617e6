# SPDX-License-Identifier: Apache-2.0
"""How far word error rates would vary from one test set to the next: the bootstrap over utterances.

A set is taken as a sample of utterances. Sets of as many utterances are drawn from it with replacement, and the rate is
computed on each: errors summed over words summed, as on the set itself. What lies between the 2.5 % and 97.5 %
quantiles of these rates is the interval. Two systems are compared on the same drawn sets, so that utterances which are
hard for both cancel. Source: M. Bisani and H. Ney, "Bootstrap estimates for confidence intervals in ASR performance
evaluation", ICASSP 2004.

An interval says how the choice of utterances matters. It does not know that utterances share speakers, nor that the
set may be unlike what is said elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000
SEED = 1
LEVEL = 0.95

_CHUNK_CELLS = 1 << 22  # counts held at once


@dataclass(frozen=True)
class Difference:
    """The rate of one system less that of another on the same utterances.

    Attributes:
        rate: on the set itself; below 0 where the first makes fewer errors.
        low, high: the interval.
        better: share of the drawn sets on which the first makes fewer errors (Bisani and Ney's probability of
            improvement).
    """

    rate: float
    low: float
    high: float
    better: float

    @property
    def by_chance(self) -> bool:
        """Whether the interval holds 0: the set does not tell the two apart."""
        return self.low <= 0.0 <= self.high

    def as_json(self) -> dict[str, Any]:
        """rate, ci, better, by_chance."""
        ci = [self.low, self.high]
        return {"rate": self.rate, "ci": ci, "better": self.better, "by_chance": self.by_chance}


class Bootstrap:
    """Error rates of K systems on sets drawn from one set, the same sets for all of them.

    Args:
        errors: (n,) or (n, K) word errors of each utterance, by system.
        words: (n,) reference words of each utterance.
        resamples: sets to draw, B.
        seed: of the draws.

    Attributes:
        rates: (B', K) float64, rates on the drawn sets. A drawn set without a word has no rate and is left out; it
            takes utterances without words to draw one.
        observed: (K,) float64, rates on the set itself; NaN where it has no words.

    Raises:
        ValueError: no utterances, other shapes, negative numbers, or nothing to draw.
    """

    def __init__(
        self, errors: npt.ArrayLike, words: npt.ArrayLike, resamples: int = RESAMPLES, seed: int = SEED
    ) -> None:
        said = np.asarray(words, np.int64)
        wrong = np.asarray(errors, np.int64)
        wrong = wrong[:, None] if wrong.ndim == 1 else wrong
        if said.ndim != 1 or wrong.ndim != 2 or not len(said) or len(said) != len(wrong) or not wrong.shape[1]:
            raise ValueError(f"errors {wrong.shape} do not belong to words {said.shape}")
        if said.min() < 0 or wrong.min() < 0 or resamples < 1:
            raise ValueError("words, errors and the number of sets to draw cannot be negative")
        columns = np.column_stack([said, wrong]).astype(np.float64)
        self.rates = self._drawn(columns, resamples, np.random.default_rng(seed))
        totals = columns.sum(axis=0)
        self.observed = np.full(wrong.shape[1], np.nan) if totals[0] == 0 else totals[1:] / totals[0]

    @staticmethod
    def _drawn(columns: np.ndarray, resamples: int, random: np.random.Generator) -> np.ndarray:
        count = len(columns)
        shares = np.full(count, 1.0 / count)
        parts = []
        for first in range(0, resamples, most := max(1, _CHUNK_CELLS // count)):
            # How often each utterance is in a drawn set. Sums of whole numbers below 2^53 are exact in any order.
            drawn = random.multinomial(count, shares, size=min(most, resamples - first))
            sums = drawn.astype(np.float64) @ columns
            sums = sums[sums[:, 0] > 0]
            parts.append(sums[:, 1:] / sums[:, :1])
        return np.concatenate(parts)

    def interval(self, system: int = 0, level: float = LEVEL) -> tuple[float, float] | None:
        """Quantiles between which `level` of a system's rates lie; None where no drawn set has a word."""
        return _quantiles(self.rates[:, system], level)

    def difference(self, system: int, other: int, level: float = LEVEL) -> Difference | None:
        """A system's rate less another's; None where no drawn set has a word."""
        apart = self.rates[:, system] - self.rates[:, other]
        bounds = _quantiles(apart, level)
        if bounds is None:
            return None
        rate = float(self.observed[system] - self.observed[other])
        return Difference(rate, *bounds, float(np.mean(apart < 0)))


def _quantiles(values: np.ndarray, level: float) -> tuple[float, float] | None:
    if not len(values):
        return None
    # Values that occur, not what lies between two: of a few utterances the rates are few.
    low = np.quantile(values, (1 - level) / 2, method="lower")
    high = np.quantile(values, (1 + level) / 2, method="higher")
    return float(low), float(high)
