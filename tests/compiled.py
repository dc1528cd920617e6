# SPDX-License-Identifier: Apache-2.0
"""Programs that the compiler makes of checkpoints with random weights."""

from __future__ import annotations

import numpy as np
from random_checkpoint import SMALL

from gharial.bench.random_model import random_program
from gharial.checkpoint import ModelDims
from gharial.isa.configs import config
from gharial.program import Program


def random_dims(random: np.random.Generator) -> ModelDims:
    """Sizes that are small and even to nothing."""

    def size(low: int, high: int) -> int:
        return int(random.integers(low, high + 1))

    return ModelDims(
        features=size(3, 14),
        hidden=size(3, 20),
        pre_layers=size(1, 3),
        post_layers=size(0, 3),
        stack=size(1, 4),
        pred_hidden=size(3, 12),
        pred_layers=size(1, 2),
        joint=size(3, 20),
        classes=size(3, 40),
    )


def program(
    seed: int, name: str = "tiny", dims: ModelDims = SMALL, blank_bias: float = 0.0, pad: bool = False
) -> Program:
    """A program for configuration `name`, calibrated on random features; `pad` gives it a random pad of the stack."""
    return random_program(seed, config(name), dims, blank_bias=blank_bias, pad=pad)
