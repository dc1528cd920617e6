# SPDX-License-Identifier: Apache-2.0
"""A device for tests of the beam search: it answers DECODE entries from a table, and holds them against isa.md."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sim.decoding import Scores

from gharial.isa.commands import Kind, Mode

History = tuple[int, ...]
Table = Callable[[int, int, History], np.ndarray]
"""(stream's seed, step, tokens so far, prefix included) -> int16 logits of all classes."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Results of a device, for it and for the plain search: k classes of `table`, and some named ones."""

    table: Table
    k: int
    named: tuple[int, ...]
    temperature: int
    logit_bits: int
    mode: Mode = Mode.TOP_K

    @cached_property
    def _cache(self) -> dict[tuple[int, int, History], tuple[np.ndarray, np.ndarray, int]]:
        return {}

    def result(self, seed: int, step: int, history: History) -> tuple[np.ndarray, np.ndarray, int]:
        """Logits, the k classes in order, lse."""
        key = (seed, step, history)
        if key not in self._cache:
            logits = self.table(seed, step, history).astype(np.int64)
            order = np.argsort(-logits, kind="stable")
            if self.mode == Mode.FUZZY:
                logits, order = _fuzzy(logits)
            scaled = logits * (self.temperature * 2.0 ** -(self.logit_bits + 14))
            lse = float(scaled.max() + np.log(np.exp(scaled - scaled.max()).sum()))
            self._cache[key] = logits, order[: self.k], math.floor(lse * 65536 + 0.5)
        return self._cache[key]

    def packed(self, seed: int, step: int, history: History) -> bytes:
        """As the device writes it."""
        logits, listed, lse = self.result(seed, step, history)
        names = [int(logits[name]) for name in self.named] + [0] * (4 - len(self.named))
        count = len(logits) if self.mode == Mode.ALL else len(listed)
        head = struct.pack("<i4hHH", lse, *names, count, 0)
        if self.mode == Mode.ALL:
            body = logits.astype("<i2").tobytes()
            return head + body + bytes(-len(body) % 4)
        return head + b"".join(struct.pack("<hH", int(logits[c]), int(c)) for c in listed)

    def scores(self, seed: int, step: int, history: History) -> Scores:
        """The same for the plain search."""
        logits, listed, lse = self.result(seed, step, history)
        unit = self.temperature * 2.0 ** -(self.logit_bits + 14)
        return Scores({int(c): float(int(logits[c]) * unit - lse / 65536) for c in [*listed, *self.named]})


def _fuzzy(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    blocks = logits.reshape(-1, 8, 32)
    survivors = set()
    for block in range(len(blocks)):
        for lane in range(32):
            survivors.add(block * 256 + int(blocks[block, :, lane].argmax()) * 32 + lane)
    least = min(int(logits[c]) for c in survivors)
    changed = np.array([int(v) if c in survivors else least for c, v in enumerate(logits)])
    return changed, np.array(sorted(survivors, key=lambda c: (-int(logits[c]), c)))


class Scoring:
    """One stream of a table, for the plain search."""

    def __init__(self, answers: Answers, seed: int, prefix: Sequence[int] = ()) -> None:
        self._answers, self._seed, self._prefix = answers, seed, tuple(prefix)

    def start(self) -> History:
        return self._prefix

    def advance(self, state: History, token: int) -> History:
        return (*state, token)

    def scores(self, step: int, state: History) -> Scores:
        return self._answers.scores(self._seed, step, state)


class FakeDevice:
    """Prediction slots that hold the tokens they have heard; encoder slots that hold (seed, step) in each bank."""

    def __init__(self, answers: Answers, slots: Sequence[int]) -> None:
        self._answers, self._slots = answers, set(slots)
        self.states: dict[int, History] = {}
        self.encoded: dict[tuple[int, int], tuple[int, int]] = {}
        self.evaluations = 0

    def decode(self, entries: np.ndarray) -> bytearray:
        """Results of a command; they follow one another."""
        words = entries.copy().view("<u4").reshape(-1, 4)
        parsed = []
        for first, slots, token, nothing in words.tolist():
            assert nothing == 0 and first & ~(0xFFFF | 1 << 17 | 3 << 21 | 1 << 23) == 0
            kind, source, destination = Kind(first >> 21 & 3), slots & 0xFFFF, slots >> 16
            assert {source, destination} <= self._slots
            assert kind == Kind.TOKEN or token == 0
            assert kind != Kind.NONE or source == destination
            parsed.append((first & 0xFFFF, first >> 17 & 1, kind, source, destination, token, not first >> 23 & 1))
        for one, (_, _, _, _, destination, _, _) in enumerate(parsed):
            for other, (_, _, _, source, also, _, _) in enumerate(parsed):
                assert one == other or destination not in (source, also), "hazard"
        after, results = dict(self.states), bytearray()
        for encoder, bank, kind, source, destination, token, joint in parsed:
            before = () if kind == Kind.START else self.states[source]
            after[destination] = (*before, token) if kind == Kind.TOKEN else before
            if joint:
                self.evaluations += 1
                results += self._answers.packed(*self.encoded[encoder, bank], after[destination])
            else:  # nothing is written there
                results += b"\xa5" * len(self._answers.packed(0, 0, ()))
        self.states = after
        return results


def random_table(classes: int, blank: int, blank_rise: int, unit: int, spread: int) -> Table:
    """Logits in multiples of `unit`, so that ties come often."""

    def table(seed: int, step: int, history: History) -> np.ndarray:
        rng = np.random.default_rng([seed, step, len(history), *(token + 1 for token in history)])
        logits = rng.integers(-spread, spread + 1, classes) * unit
        for _ in range(int(rng.integers(0, 4))):
            logits[rng.integers(classes)] += unit * spread
        logits[blank] += blank_rise
        return np.clip(logits, -32768, 32767)

    return table
