# SPDX-License-Identifier: Apache-2.0
"""Segments of the batch machine as the benches of the array unit draw, pack and evaluate them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MIN_CLOCKS = 16  # of a segment (docs/blocks/array_unit.md)
SPACING = 8  # clocks between results of one slice from two segments
ADDRESSES = 2**20  # of activation units

# Fields of segment_t behind the mask that the array unit reads, then how many bits it does not read.
UNREAD_BITS = 4 + 4 + 4 * 16 + 3 + 16 + 4 + 4 + 7 + 1 + 20 + 16 + 5 + 1 + 20 + 5 + 20 + 5


@dataclass(frozen=True)
class Segment:
    """What the array unit reads of a `segment_t`."""

    seats: tuple[int, ...]  # ascending
    first_vector: int
    vectors: int
    tiles: int
    source: int
    stride: int
    shift: int

    def pack(self, seats: int, rng: np.random.Generator) -> int:
        """As the packed structure in seat_pkg has it for so many seats; what the unit does not read is drawn."""
        mask = sum(1 << seat for seat in self.seats)
        word = int(rng.integers(0, 4))  # thread, ends
        for value, bits in (
            (mask, seats),
            (self.first_vector, 2),
            (self.vectors - 1, 2),
            (int(rng.integers(0, 2**24)), 24),  # tile
            (self.tiles, 16),
            (self.source, 20),
            (self.stride, 16),
            (self.shift, 5),
        ):
            word = word << bits | value
        return word << UNREAD_BITS | int.from_bytes(rng.bytes(UNREAD_BITS // 8 + 1), "little") >> 8 - UNREAD_BITS % 8

    @property
    def sums(self) -> list[tuple[int, int]]:
        """Seat and vector of the segment of each sum, in order."""
        return [(seat, vector) for seat in self.seats for vector in range(self.vectors)]

    @property
    def steps(self) -> int:
        """Clocks in which products are computed."""
        return self.tiles * len(self.sums)

    @property
    def clocks(self) -> int:
        """Clocks that the segment takes where nothing holds it back."""
        return max(self.steps, MIN_CLOCKS)

    def address(self, seat: int, vector: int, tile: int) -> int:
        """Activation unit of a step."""
        return (self.source + (seat << self.shift) + vector * self.stride + tile) % ADDRESSES


class Contents:
    """Activations at every address and the tiles in the order in which they come, each drawn when first asked for.

    Weights in [-127, 127], activations in [-128, 127]. `kind` is "random"; or "extreme", all at their limits.
    """

    def __init__(self, rows: int, cols: int, seed: int, kind: str = "random") -> None:
        self.rows, self.cols, self.seed, self.kind = rows, cols, seed, kind
        self.tile = functools.cache(self._tile)
        self.unit = functools.cache(self._unit)

    def _draw(self, memory: int, address: int, shape: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng([self.seed, memory, address])
        if self.kind == "extreme":
            return rng.choice(np.array([-128 if memory else -127, 127], np.int8), shape)
        return rng.integers(-128 if memory else -127, 128, shape).astype(np.int8)

    def _tile(self, number: int) -> np.ndarray:
        return self._draw(0, number, (self.rows, self.cols))

    def _unit(self, address: int) -> np.ndarray:
        return self._draw(1, address, (self.cols,))

    def sums(self, segment: Segment, first_tile: int) -> np.ndarray:
        """What the segment gives, its tiles being those from number `first_tile` on: int64 (sums, rows)."""
        weights = np.stack([self.tile(first_tile + tile) for tile in range(segment.tiles)]).astype(np.int64)
        out = [
            [self.unit(segment.address(seat, vector, tile)) for tile in range(segment.tiles)]
            for seat, vector in segment.sums
        ]
        return np.einsum("trc,stc->sr", weights, np.array(out, np.int64))


def draw_segment(
    rng: np.random.Generator, tiles: int, seats: Sequence[int], vectors: int, most_vectors: int = 4
) -> Segment:
    """A segment of that shape at random addresses."""
    return Segment(
        seats=tuple(sorted(seats)),
        first_vector=int(rng.integers(0, most_vectors - vectors + 1)),
        vectors=vectors,
        tiles=tiles,
        source=int(rng.integers(0, ADDRESSES)),
        stride=int(rng.integers(0, 2**16)),
        shift=int(rng.integers(0, 20)),
    )
