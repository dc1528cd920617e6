# SPDX-License-Identifier: Apache-2.0
"""Jobs of the matrix unit as the benches draw and evaluate them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

MIN_CLOCKS = 16  # of a job (docs/blocks/matrix_unit.md)
SPACING = 4  # clocks between results of one place in their row group, from two jobs


@dataclass(frozen=True)
class Job:
    """A `mat_job_t`, in the units of docs/isa.md."""

    tile: int
    row_groups: int
    col_tiles: int
    vectors: int
    source: int
    stride: int

    def pack(self) -> int:
        """As the packed structure in gharial_pkg has it."""
        word = 0
        for value, bits in (
            (self.tile, 24),
            (self.row_groups, 16),
            (self.col_tiles, 16),
            (self.vectors - 1, 2),
            (self.source, 16),
            (self.stride, 16),
        ):
            word = word << bits | value
        return word

    @property
    def steps(self) -> int:
        """Clocks in which a tile is issued."""
        return self.row_groups * self.col_tiles * self.vectors

    @property
    def clocks(self) -> int:
        """Clocks that the job takes where nothing holds it back."""
        return max(self.steps, MIN_CLOCKS)


class Contents:
    """Weights and activations at every address, each drawn when first asked for, weights in [-127, 127], activations
    in [-128, 127]: the host may send a feature that no quantiser gives.

    `kind` is "random"; or "extreme", all at their limits; or "opposed", all weights 127 and all activations -128.
    """

    def __init__(self, rows: int, cols: int, seed: int, kind: str = "random") -> None:
        self.rows, self.cols, self.seed, self.kind = rows, cols, seed, kind
        self.tile = functools.cache(self._tile)
        self.unit = functools.cache(self._unit)

    def _draw(self, memory: int, address: int, shape: tuple[int, ...]) -> np.ndarray:
        if self.kind == "opposed":
            return np.full(shape, -128 if memory else 127, np.int8)
        rng = np.random.default_rng([self.seed, memory, address])
        if self.kind == "extreme":
            return rng.choice(np.array([-128 if memory else -127, 127], np.int8), shape)
        return rng.integers(-128 if memory else -127, 128, shape).astype(np.int8)

    def _tile(self, address: int) -> np.ndarray:
        return self._draw(0, address, (self.rows, self.cols))

    def _unit(self, address: int) -> np.ndarray:
        return self._draw(1, address, (self.cols,))

    def sums(self, job: Job) -> np.ndarray:
        """What the job gives: int64 (row groups, vectors, rows)."""
        out = np.zeros((job.row_groups, job.vectors, self.rows), np.int64)
        for vector in range(job.vectors):
            first = job.source + vector * job.stride
            units = [self.unit((first + tile) % 2**16).astype(np.int64) for tile in range(job.col_tiles)]
            for group in range(job.row_groups):
                for tile, unit in enumerate(units):
                    weights = self.tile((job.tile + group * job.col_tiles + tile) % 2**24)
                    out[group, vector] += weights.astype(np.int64) @ unit
        return out


def draw_job(rng: np.random.Generator, row_groups: int, col_tiles: int, vectors: int) -> Job:
    """A job of that shape at random addresses."""
    tile = int(rng.integers(0, 2**24 - row_groups * col_tiles))
    return Job(tile, row_groups, col_tiles, vectors, int(rng.integers(0, 2**16)), int(rng.integers(0, 2**16)))
