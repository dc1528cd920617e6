# SPDX-License-Identifier: Apache-2.0
"""Programs made by the compiler of random checkpoints of drawn sizes."""

from __future__ import annotations

import sys

import numpy as np
from scripts.rtl.tools import ROOT

from gharial.checkpoint import ModelDims
from sim.uvm.program.drawn import SPACES, DrawnProgram

TESTS = str(ROOT / "tests")  # its makers of checkpoints and programs are used here too


def make(seed: int, dims: ModelDims, blank_bias: float = 1.0, pad: bool = True) -> DrawnProgram:
    """A program of random weights for configuration tiny."""
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    from compiled import program

    made = program(seed, "tiny", dims, blank_bias, pad=pad)
    return DrawnProgram({name: made.sections[name] for name in SPACES}, made.manifest)


def lively() -> DrawnProgram:
    """A program whose greedy steps end after no token, one, or two, whatever the features: some in a few tries each."""
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    from random_checkpoint import SMALL

    return make(21, SMALL, 1.5, pad=False)


def heated(program: DrawnProgram, rng: np.random.Generator) -> DrawnProgram:
    """The program with some rows' scales up to sixteen times as large, so that sums and outputs run into their limits,
    which a calibrated program avoids."""
    words = np.frombuffer(program.images["scales"], "<u4").copy()
    k = (words >> 17 & 63).astype(np.int64)
    k = np.where(k >= 32, k - 64, k)
    less = np.where(rng.random(len(words)) < 0.3, rng.integers(1, 5, len(words)), 0)
    k = np.maximum(k - less, -8)
    words = words & np.uint32(0x1FFFF) | (k & 63).astype(np.uint32) << np.uint32(17)
    return program.with_image("scales", words.astype("<u4").tobytes())


def draw_dims(rng: np.random.Generator) -> ModelDims:
    """Sizes from nothing to a few tiles, edges of tiles often: one below, at, and one above a whole number of them."""

    def size(low: int, high: int, tile: int) -> int:
        if rng.random() < 0.5:
            return int(rng.integers(low, high + 1))
        edge = tile * int(rng.integers(1, high // tile + 1)) + int(rng.integers(-1, 2))
        return min(max(edge, low), high)

    return ModelDims(
        features=size(1, 18, 4),
        hidden=size(1, 18, 4),
        pre_layers=int(rng.integers(1, 4)),
        post_layers=int(rng.integers(1, 4)),
        stack=int(rng.integers(1, 5)),
        pred_hidden=size(1, 13, 4),
        pred_layers=int(rng.integers(1, 3)),
        joint=size(1, 34, 16),
        classes=size(2, 70, 16),
    )


# Every remainder of rows and columns, every stack factor, and one of everything to three of everything.
EDGES = (
    ModelDims(4, 8, 1, 1, 1, 4, 1, 16, 16),
    ModelDims(5, 9, 2, 1, 2, 5, 1, 17, 33),
    ModelDims(14, 6, 2, 2, 3, 6, 2, 10, 40),
    ModelDims(3, 11, 3, 3, 4, 11, 1, 31, 15),
)
