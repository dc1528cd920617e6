# SPDX-License-Identifier: Apache-2.0
"""The end-of-sequence token's probability, before candidates are chosen (docs/decoding.md, section 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class EosStrategy(StrEnum):
    """See `Eos`."""

    NONE = "none"
    IGNORE = "ignore"
    BLANK = "blank"
    PREDICT = "predict"


@dataclass(frozen=True)
class Eos:
    """The strategy.

    Attributes:
        token: id of the end-of-sequence token.
        strategy: none: as any token; ignore: never; blank: its probability goes to blank; predict: log p times
            `alpha`, and never where that is not above ln `beta`.
        alpha, beta: of predict; 1 and 0 change nothing.
    """

    token: int
    strategy: EosStrategy = EosStrategy.NONE
    alpha: float = 1.0
    beta: float = 0.0

    def applied(self, log_probs: dict[int, float], blank: int) -> dict[int, float]:
        """Log-probabilities by class, with the strategy in them; those of blank and of the token are among them."""
        own = log_probs[self.token]
        changed = dict(log_probs)
        if self.strategy is EosStrategy.IGNORE:
            changed[self.token] = -math.inf
        elif self.strategy is EosStrategy.BLANK:
            changed[self.token] = -math.inf
            changed[blank] = log_add(log_probs[blank], own)
        elif self.strategy is EosStrategy.PREDICT:
            scaled = self.alpha * own
            least = math.log(self.beta) if self.beta > 0 else -math.inf
            changed[self.token] = scaled if scaled > least else -math.inf
        return changed


def log_add(a: float, b: float) -> float:
    """ln(e^a + e^b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))
