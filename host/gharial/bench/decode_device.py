# SPDX-License-Identifier: Apache-2.0
"""DECODE results from a seeded table, addressed by stream, step and hypothesis, for `bench decode`."""

from __future__ import annotations

import math

import numpy as np

from gharial.bench.decode_ngram import SUCCESSORS, Language

RATE = 0.2
"""Tokens a step."""
_AGAIN = 0.05  # a second token in the step of a first
_UNSURE_TOKEN = 0.4  # of the tokens
_UNSURE_BLANK = 0.05  # of the steps without one
_LEAST = math.log(1e-6)


def _mixed(value: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser on uint64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(value ^ (value >> np.uint64(31)))


class TableDevice:
    """What a device would answer for a model that hears `RATE` tokens a step.

    A hypothesis hears a token, blank for the rest of the step, and blank for certain in most others. Some tokens have a
    rival, some blanks a token beside them; what a hypothesis hears depends on all its tokens, so that those which
    differ go on to differ. Tokens follow one another as the language has it.

    Args:
        language: the tokens; blank is the class behind them.
        seed: of the table.
        slots: prediction slots there are.
        k, stride, unit: of the search's DECODE: classes listed, bytes of a result, nats of a logit step.
    """

    def __init__(self, language: Language, seed: int, slots: int, k: int, stride: int, unit: float) -> None:
        # Small, so that it leaves the search's memory in the caches.
        self._follow, self._blank = language.successors.astype(np.uint16), len(language.pieces)
        self._seed = np.uint64(seed * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        self._history = np.zeros(slots, np.uint64)
        self._last = np.zeros(slots, np.int64)  # token
        self._when = np.full(slots, -1, np.int64)  # its step
        self._k, self._stride, self._unit = k, stride, unit

    def decode(self, entries: np.ndarray, step: int) -> np.ndarray:
        """Results of entries (n, 16) whose encoder slots are their streams' numbers, at one step: bytes (n, stride)."""
        words = entries.view("<u4").reshape(-1, 4)
        stream, kind, token = words[:, 0] & 0xFFFF, words[:, 0] >> 21 & 3, words[:, 2].astype(np.int64)
        source, to = words[:, 1] & 0xFFFF, words[:, 1] >> 16
        said = kind == 1
        history = np.where(kind == 2, np.uint64(0), self._history[source])
        history = np.where(said, _mixed(history * np.uint64(31) + token.astype(np.uint64) + np.uint64(7)), history)
        last = np.where(said, token, np.where(kind == 2, 0, self._last[source]))
        when = np.where(said, step, np.where(kind == 2, -1, self._when[source]))
        self._history[to], self._last[to], self._when[to] = history, last, when
        key = _mixed(history ^ _mixed(self._seed + (stream.astype(np.uint64) << np.uint64(32)) + np.uint64(step)))
        return self._results(key, last, when == step)

    def _results(self, key: np.ndarray, last: np.ndarray, spoke: np.ndarray) -> np.ndarray:
        count, k = len(key), self._k
        draw = [(_mixed(key + np.uint64(n)) >> np.uint64(11)).astype(np.float64) * 2.0**-53 for n in range(1, 6)]
        speaks = draw[0] < np.where(spoke, _AGAIN, RATE)
        unsure = draw[1] < np.where(speaks, _UNSURE_TOKEN, _UNSURE_BLANK)
        main = np.where(unsure, 0.45 + 0.4 * draw[2], 1 - np.exp(-3 - 5 * draw[2]))
        # What is left goes to the rival for the most part, the rest of it to others.
        log_p = np.empty((count, k + 1))
        log_p[:, 0] = np.log(main)
        for at in range(1, k + 1):
            log_p[:, at] = np.maximum(np.log1p(-main) + math.log(0.75) - 1.3 * (at - 1) - 0.2 * draw[4], _LEAST - at)
        choice = np.minimum((-np.log(draw[3]) / 0.29).astype(np.int64), SUCCESSORS - 1)
        # Blank's place in the order: first, or the rival of a token, or far behind.
        place = np.where(~speaks, 0, np.where(draw[4] < 0.5, 1, k))
        classes = np.empty((count, k + 1), np.int64)
        following = self._follow[last, choice].astype(np.int64)
        for at in range(k + 1):
            # Successors a row's number apart are different tokens but for the table's own repeats.
            classes[:, at] = (following + at * 977) % self._blank
        classes[np.arange(count), place] = self._blank
        logits = np.rint(log_p / self._unit).astype(np.int64)
        results = np.zeros((count, self._stride), np.uint8)
        results[:, 4:6] = logits[np.arange(count), place].astype("<i2").view(np.uint8).reshape(-1, 2)
        results[:, 12] = k
        listed = (classes[:, :k] << 16 | (logits[:, :k] & 0xFFFF)).astype("<u4")
        results[:, 16 : 16 + 4 * k] = np.ascontiguousarray(listed).view(np.uint8)
        return results
