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
        strings: see `Plan`, as for the next three.
        longest: most words of a string.
        easy: batches over which strings grow to that.
        ramp: batches over which strings and features become as varied as they are in the end.
        rate: highest learning rate, reached after `warm_up` steps; a half cosine leads from there to `last_rate`.
        warm_up: see above.
        last_rate: see above.
        decay: AdamW's weight decay, of matrices alone.
        betas: AdamW's.
        clip: largest norm of the gradient of a batch's loss a token.
        dropout: see `Network`.
        average: how much of the averaged weights stays at each step, in the long run.
        check: steps from one look at the dev set to the next.
        mixture: how strings are joined in the end.
        variation: how features are varied in the end.
        speakers: number of the rule that gives each speaker a set; the first one held nobody out (`recordings`).
    """

    seed: int = 1
    steps: int = 8000
    strings: int = 64
    longest: int = 7
    easy: int = 1000
    ramp: int = 3000
    rate: float = 3e-3
    warm_up: int = 200
    last_rate: float = 3e-5
    decay: float = 1e-2
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = 1.0
    dropout: float = 0.05
    average: float = 0.999
    check: int = 500
    mixture: Mixture = field(default=VARIED)
    variation: Variation = field(default=TRAINING)
    speakers: int = 2

    @property
    def plan(self) -> Plan:
        """The part that batches are made by."""
        return Plan(self.seed, self.strings, self.longest, self.easy, self.ramp, self.mixture, self.variation)

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
