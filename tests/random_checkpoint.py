# SPDX-License-Identifier: Apache-2.0
"""Small models with random weights for tests (gharial.bench.random_model)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gharial.bench import random_model
from gharial.checkpoint import HardwareCheckpoint, ModelDims

SMALL = ModelDims(
    features=12, hidden=10, pre_layers=2, post_layers=2, stack=2, pred_hidden=7, pred_layers=2, joint=9, classes=11
)

LESS_BLANK = -4.0
"""A bias of blank at which every seed emits tokens: without, one in thirty emits none in a short recording."""


def random_checkpoint(seed: int, dims: ModelDims = SMALL, **options: Any) -> HardwareCheckpoint:
    """As gharial.bench.random_model's, of a small model."""
    return random_model.random_checkpoint(seed, dims, **options)


def random_features(seed: int, vectors: int, dims: ModelDims = SMALL) -> np.ndarray:
    """As gharial.bench.random_model's, of a small model."""
    return random_model.random_features(seed, vectors, dims)
