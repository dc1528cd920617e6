# SPDX-License-Identifier: Apache-2.0
"""Jobs of the rank unit, and the words that the reference model says they write."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gharial.compiler.tables import default_tables
from gharial.isa.commands import Mode
from sim.reference import ranking

TABLES = default_tables()
PLACES = 33
NAMED = 4


@dataclass(frozen=True)
class Job:
    """A `rank_job_t`: temperature in Q2.14, address in bytes."""

    seat: int
    greedy: bool
    mode: Mode
    k: int
    named: tuple[int, ...]
    temperature: int
    address: int

    def pack(self, seat_bits: int) -> int:
        """As the packed structure in seat_pkg has it; classes that are not named hold what must not be looked at."""
        word = 0
        classes = [*self.named, *[0xFFFF] * (NAMED - len(self.named))]
        fields = [(self.seat, seat_bits), (self.greedy, 1), (self.mode, 2), (self.k, 8), (len(self.named), 3)]
        fields += [(index, 16) for index in reversed(classes)]
        for value, bits in [*fields, (self.temperature, 16), (self.address, 64)]:
            word = word << bits | value
        return word

    def words(self, logits: np.ndarray, bits: int) -> list[tuple[int, int]]:
        """Address and value of each word that is written, in order, for the logits (V,) with `bits` fraction bits."""
        order, values = ranking.top_k(logits, self.k), logits
        if self.greedy:
            best = ranking.argmax(logits)
            data = [_pair(best, logits[best]), self._lse(logits, bits)]
        else:
            if self.mode == Mode.FUZZY:
                order, values = ranking.fuzzy(logits, self.k)
            named = [int(values[index]) for index in self.named] + [0] * (NAMED - len(self.named))
            data = [self._lse(values, bits), _pair(named[1], named[0]), _pair(named[3], named[2])]
            if self.mode == Mode.ALL:
                every = [*map(int, logits), *[0] * (len(logits) % 2)]
                data += [len(logits), *(_pair(high, low) for low, high in zip(every[::2], every[1::2], strict=True))]
            else:
                data += [self.k, *(_pair(index, logits[index]) for index in order)]
        return [(self.address + 4 * place, word) for place, word in enumerate(data)]

    def _lse(self, logits: np.ndarray, bits: int) -> int:
        return ranking.log_sum_exp(TABLES["exp"], TABLES["log"], logits, self.temperature, bits) & 0xFFFFFFFF


def _pair(high: int, low: int) -> int:
    return (int(high) & 0xFFFF) << 16 | (int(low) & 0xFFFF)


def draw_logits(rng: np.random.Generator, classes: int) -> np.ndarray:
    """Logits of a seat, int16 (V,): spread, equal, at the limits, tied, ascending, descending or normal."""
    kind = rng.integers(7)
    if kind == 0:
        return rng.integers(-32768, 32768, classes)
    if kind == 1:
        return np.full(classes, rng.integers(-32768, 32768))
    if kind == 2:
        return rng.choice([-32768, 32767], classes)
    if kind == 3:
        return rng.integers(-3, 4, classes)
    if kind in (4, 5):
        ascending = np.sort(rng.integers(-500, 500, classes))
        return ascending if kind == 4 else ascending[::-1]
    return np.clip(np.round(rng.normal(0, rng.choice([50, 500, 8000]), classes)), -32768, 32767).astype(int)


def draw_job(rng: np.random.Generator, seat: int, classes: int) -> Job:
    """A job of any kind that the classes allow."""
    modes = [Mode.TOP_K, Mode.ALL] + [Mode.FUZZY] * 2 * (classes % 256 == 0)
    mode = modes[rng.integers(len(modes))]
    most = min(PLACES, classes // 8 if mode == Mode.FUZZY else classes)
    k = int(rng.choice([1, most, rng.integers(1, most + 1)]))
    named = tuple(int(index) for index in rng.integers(0, classes, rng.integers(NAMED + 1)))
    temperature = int(rng.choice([4096, 11703, 16384, 65535, 0, rng.integers(65536)]))
    address = int(rng.integers(1 << 62)) & ~3
    return Job(seat, bool(rng.random() < 0.3), mode, k, named, temperature, address)
