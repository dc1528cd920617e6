# SPDX-License-Identifier: Apache-2.0
"""The recipe of the demo model: every number that its training depends on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from scripts.training.augment import TRAINING, Variation
from scripts.training.batches import Plan
from scripts.training.strings import VARIED, Mixture


@dataclass(frozen=True)
class Recipe:
    """A training from start to end.

    Attributes:
        seed: starts everything random.
        steps: batches, an update of the weights each.
        words: words of a batch.
        longest: most words of a string.
        easy_steps: first so many batches have strings of at most `easy_longest` words.
        easy_longest: see above.
        rate: highest learning rate, reached after `warm_up` steps; a half cosine leads from there to `last_rate`.
        warm_up: see above.
        last_rate: see above.
        decay: AdamW's weight decay, of matrices alone.
        betas: AdamW's.
        clip: largest norm of the gradient of a batch's loss a token.
        dropout: see `Network`.
        average: how much of the averaged weights stays at each step, in the long run.
        check: steps from one look at the dev set to the next.
        mixture: how strings are joined.
        variation: how features are varied.
    """

    seed: int = 1
    steps: int = 9000
    words: int = 200
    longest: int = 7
    easy_steps: int = 300
    easy_longest: int = 3
    rate: float = 4e-3
    warm_up: int = 200
    last_rate: float = 4e-5
    decay: float = 1e-2
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = 1.0
    dropout: float = 0.1
    average: float = 0.998
    check: int = 500
    mixture: Mixture = field(default=VARIED)
    variation: Variation = field(default=TRAINING)

    @property
    def plan(self) -> Plan:
        """The part that batches are made by."""
        return Plan(
            self.seed, self.words, self.longest, self.easy_steps, self.easy_longest, self.mixture, self.variation
        )

    def rate_at(self, step: int) -> float:
        """Learning rate of an update, `step` counted from 0."""
        if step < self.warm_up:
            return self.rate * (step + 1) / self.warm_up
        share = (step - self.warm_up) / max(1, self.steps - self.warm_up)
        return self.last_rate + (self.rate - self.last_rate) * 0.5 * (1.0 + math.cos(math.pi * min(1.0, share)))

    def kept_at(self, step: int) -> float:
        """How much of the averaged weights stays at an update: little at first, when the weights are still poor."""
        return min(self.average, (step + 1) / (step + 10))

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain types."""
        return asdict(self)
