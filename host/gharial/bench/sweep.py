# SPDX-License-Identifier: Apache-2.0
"""Word errors over the weight of an n-gram: which scale is the best on a set, and how sure that is.

Scales of a grid are tried, then scales on both sides of the best one, half as far away each time. If the largest scale
is the best, the grid goes on above it. Every scale is decoded by itself, from the audio on, as `gharial transcribe`
does it: the n-gram changes which hypotheses there are, so one scale's search says nothing of another's.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gharial.bench.bootstrap import LEVEL, RESAMPLES, SEED, Bootstrap, Difference
from gharial.bench.words import word_count, word_errors
from gharial.errors import BadInput

GRID = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
REFINEMENTS = 2
LARGEST = 1.0
"""The grid does not go on above this scale by itself."""

_MOST_SCALES = 1000
_DIGITS = 6  # of a scale: halves of a grid's steps stay exact

Texts = Callable[[float | None], Sequence[str]]
"""What is heard of each utterance of the set at a scale; None: by greedy decoding."""


@dataclass(frozen=True)
class Swept:
    """Word errors of a set by scale.

    Attributes:
        scales: K scales tried, rising.
        errors: (n, K + 1) int64 word errors of each utterance at each scale, those of greedy decoding last.
        words: (n,) int64 reference words of each utterance.
    """

    scales: tuple[float, ...]
    errors: np.ndarray
    words: np.ndarray


def check_grid(scales: Sequence[float], where: str = "--scales") -> tuple[float, ...]:
    """Scales in rising order, each once.

    Raises:
        BadInput: none, too many, or one that is below 0 or no finite number.
    """
    if not 1 <= len(scales) <= _MOST_SCALES:
        raise BadInput("number of scales is out of range", where, len(scales), f"1 to {_MOST_SCALES}", "0,0.05,0.1 say")
    for scale in scales:
        if not 0 <= scale < math.inf:
            raise BadInput(
                "this is no scale of an n-gram", where, scale, "a finite number, 0 or more", "0,0.05,0.1 say"
            )
    return tuple(sorted({round(scale, _DIGITS) for scale in scales}))


def sweep(
    transcripts: Sequence[str], texts: Texts, grid: Sequence[float] = GRID, refinements: int = REFINEMENTS
) -> Swept:
    """Try scales.

    Args:
        transcripts: what is said in each utterance of the set.
        texts: decodes the set; asked once for each scale, and at the end for greedy decoding.
        grid: scales to begin with.
        refinements: how many times the steps around the best scale are halved; 0: the grid alone, and nothing above it.

    Raises:
        BadInput: as `check_grid`; or the set has no words.
    """
    words = np.array([word_count(said) for said in transcripts], np.int64)
    if not words.sum():
        raise BadInput("nothing is said in this set", "manifest", "no words", "transcripts", "name another set")

    def counted(scale: float | None) -> np.ndarray:
        heard = texts(scale)
        return np.array([word_errors(*pair) for pair in zip(transcripts, heard, strict=True)], np.int64)

    found = {scale: counted(scale) for scale in check_grid(grid)}

    def best() -> float:
        scales = sorted(found)
        totals = np.array([[found[scale].sum() for scale in scales]])
        return scales[int(_lowest(totals)[0])]

    step = max(found) - sorted(found)[-2] if len(found) > 1 else 0.0
    while refinements and step and best() == max(found) and max(found) + step <= LARGEST + 1e-9:
        scale = round(max(found) + step, _DIGITS)
        found[scale] = counted(scale)
    for _ in range(refinements):
        for scale in _around(sorted(found), best()):
            found[scale] = counted(scale)
    scales = tuple(sorted(found))
    return Swept(scales, np.column_stack([*(found[scale] for scale in scales), counted(None)]), words)


def runs_planned(grid: Sequence[float], refinements: int) -> int:
    """Times that `sweep` decodes the set, if the grid does not go on above its largest scale."""
    return 1 + len(grid) + (2 * refinements if len(grid) > 1 else 0)


def summary(swept: Swept, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Any]:
    """What a sweep says, as data that can be written as JSON; rates are fractions, each `ci` is [low, high] at 95 %.

    Returns:
        words, utterances; greedy: {errors, wer, ci}; points: of each scale {scale, errors, wer, ci, against_greedy,
        against_none}, where the latter two are {rate, ci, better, by_chance} of its rate less that of greedy decoding
        and that of scale 0 (None where that was not tried); best: the recommended scale's point, with scale_ci, the
        interval of the best scales of the drawn sets (of equal ones all); alike: [lowest, highest] of the scales around
        the best that the set does not tell from it; bootstrap: {resamples, seed, level}.
    """
    drawn = Bootstrap(swept.errors, swept.words, resamples, seed)
    count = len(swept.scales)
    totals = swept.errors.sum(axis=0)

    def rated(system: int) -> dict[str, Any]:
        low, high = drawn.interval(system) or (math.nan, math.nan)
        return {"errors": int(totals[system]), "wer": float(drawn.observed[system]), "ci": [low, high]}

    def against(system: int, other: int | None) -> Difference | None:
        return None if other is None else drawn.difference(system, other)

    none = 0 if swept.scales[0] == 0 else None
    points = []
    for system, scale in enumerate(swept.scales):
        others = {"against_greedy": against(system, count), "against_none": against(system, none)}
        told = {name: None if other is None else other.as_json() for name, other in others.items()}
        points.append({"scale": scale} | rated(system) | told)
    best = int(_lowest(totals[None, :count])[0])
    bounds = _best_scales(np.array(swept.scales), drawn.rates[:, :count])
    by_chance = [(apart := drawn.difference(best, system)) is None or apart.by_chance for system in range(count)]
    first, last = _run_around(best, by_chance)
    return {
        "words": int(swept.words.sum()),
        "utterances": len(swept.words),
        "greedy": rated(count),
        "points": points,
        "best": points[best] | {"scale_ci": bounds},
        "alike": [swept.scales[first], swept.scales[last]],
        "bootstrap": {"resamples": resamples, "seed": seed, "level": LEVEL},
    }


def _lowest(values: np.ndarray) -> np.ndarray:
    """Column of the lowest value of each row; of several the middle one, for on a plateau that is the safest."""
    lowest = values <= values.min(axis=1, keepdims=True) * (1 + 1e-12)
    middle = (lowest.sum(axis=1, keepdims=True) + 1) // 2
    found: np.ndarray = (lowest.cumsum(axis=1) == middle).argmax(axis=1)
    return found


def _best_scales(scales: np.ndarray, rates: np.ndarray) -> list[float]:
    """Between which scales the best ones of drawn sets lie; of equal ones the whole range counts."""
    best = rates <= rates.min(axis=1, keepdims=True) * (1 + 1e-12)
    lowest, highest = scales[best.argmax(axis=1)], scales[::-1][best[:, ::-1].argmax(axis=1)]
    low = np.quantile(lowest, (1 - LEVEL) / 2, method="lower")
    high = np.quantile(highest, (1 + LEVEL) / 2, method="higher")
    return [float(low), float(high)]


def _around(scales: Sequence[float], best: float) -> list[float]:
    """The middles between the best scale and its neighbours."""
    at = bisect_left(scales, best)
    neighbours = [scales[k] for k in (at - 1, at + 1) if 0 <= k < len(scales)]
    middles = {round((best + neighbour) / 2, _DIGITS) for neighbour in neighbours}
    return sorted(middles - set(scales))


def _run_around(at: int, holds: Sequence[bool]) -> tuple[int, int]:
    """First and last place of the run of True that a place is in."""
    first = last = at
    while first and holds[first - 1]:
        first -= 1
    while last + 1 < len(holds) and holds[last + 1]:
        last += 1
    return first, last
