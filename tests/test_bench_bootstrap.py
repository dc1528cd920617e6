# SPDX-License-Identifier: Apache-2.0
"""The bootstrap of word error rates, against all sets that can be drawn from small ones."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from gharial.bench.bootstrap import Bootstrap


def drawable(errors: list[int], words: list[int]) -> list[Fraction]:
    """The rates of all sets that can be drawn, each as likely as any other, in order."""
    rates = []
    for chosen in product(range(len(words)), repeat=len(words)):
        said = sum(words[at] for at in chosen)
        if said:
            rates.append(Fraction(sum(errors[at] for at in chosen), said))
    return sorted(rates)


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ([0, 1], [1, 1]),
        ([1, 0, 2], [3, 2, 4]),
        ([0, 0, 3, 1], [1, 5, 2, 7]),
        ([2, 0, 1, 1], [0, 3, 1, 2]),  # an utterance without words
        ([1, 4, 0, 0, 2], [7, 4, 3, 3, 9]),
    ],
)
def test_as_all_drawable_sets(errors: list[int], words: list[int], seed: int) -> None:
    exact = drawable(errors, words)
    rates = Bootstrap(errors, words, 40_000, seed).rates[:, 0]
    # No rate but theirs, and each as often as its share says: within 7 deviations, whatever the seed.
    values = sorted(set(exact))
    nearest = np.abs(rates[:, None] - np.array([float(value) for value in values])).argmin(axis=1)
    assert np.abs(rates - np.array([float(value) for value in values])[nearest]).max() < 1e-12
    for at, value in enumerate(values):
        share = exact.count(value) / len(exact)
        assert abs(np.mean(nearest == at) - share) <= 7 * np.sqrt(share * (1 - share) / len(rates)), value


def test_interval_of_a_small_set(seed: int) -> None:
    """Four sets can be drawn of two utterances: the extremes have a quarter each, far more than 2.5 %."""
    found = Bootstrap([0, 3], [2, 4], seed=seed)
    assert found.interval() == (0.0, 0.75)
    assert found.interval(level=0.2) == (0.5, 0.5)  # half of them hold both utterances: 3 of 6
    assert found.observed.tolist() == [0.5]


def test_interval_of_a_large_set(seed: int) -> None:
    """Utterances of one word: the number of errors in a drawn set is binomial."""
    errors = np.zeros(400, int)
    errors[:40] = 1
    low, high = Bootstrap(errors, np.ones(400, int), seed=seed).interval() or (0, 0)
    spread = np.sqrt(0.1 * 0.9 / 400)  # 0.015
    assert abs(low - (0.1 - 1.96 * spread)) < 0.005 and abs(high - (0.1 + 1.96 * spread)) < 0.005


def test_systems_are_compared_on_the_same_sets(seed: int) -> None:
    """One word error less in each utterance: the difference is the same in every drawn set, the rates are not."""
    random = np.random.default_rng(seed)
    errors = random.integers(1, 9, 50)
    errors[:2] = 1, 8
    found = Bootstrap(np.column_stack([errors - 1, errors]), np.full(50, 10), 2000, seed)
    low, high = found.interval(1) or (0, 0)
    assert low < high
    apart = found.difference(0, 1)
    assert apart is not None and not apart.by_chance and apart.better == 1.0
    assert max(abs(value + 0.1) for value in (apart.rate, apart.low, apart.high)) < 1e-12
    back = found.difference(1, 0)
    assert back is not None and (back.rate, back.better) == (-apart.rate, 0.0) and not back.by_chance
    same = found.difference(0, 0)
    assert same is not None and (same.low, same.high, same.better) == (0.0, 0.0, 0.0) and same.by_chance
    assert same.as_json() == {"rate": 0.0, "ci": [0.0, 0.0], "better": 0.0, "by_chance": True}


def test_the_same_seed_gives_the_same(seed: int) -> None:
    random = np.random.default_rng(seed)
    errors, words = (
        random.integers(0, 5, (7000, 2)),
        random.integers(0, 9, 7000),
    )
    one, other = (Bootstrap(errors, words, 1000, seed) for _ in range(2))
    assert np.array_equal(one.rates, other.rates) and one.rates.shape == (1000, 2)
    assert not np.array_equal(one.rates, Bootstrap(errors, words, 1000, seed + 1).rates)


def test_no_words_at_all() -> None:
    found = Bootstrap([2, 0], [0, 0])
    assert found.rates.shape == (0, 1) and np.isnan(found.observed).all()
    assert found.interval() is None and found.difference(0, 0) is None


@pytest.mark.parametrize(
    ("errors", "words", "resamples"),
    [([], [], 9), ([1], [1, 2], 9), ([[[1]]], [1], 9), ([-1], [1], 9), ([1], [-1], 9), ([1], [1], 0)],
    ids=["nothing", "lengths", "shape", "errors", "words", "draws"],
)
def test_what_is_refused(errors: list[int], words: list[int], resamples: int) -> None:
    with pytest.raises(ValueError):
        Bootstrap(errors, words, resamples)
