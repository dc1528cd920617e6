# SPDX-License-Identifier: Apache-2.0
"""Argmax, top-k and fuzzy top-k: ties go to the lowest index everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim.reference.ranking import argmax, fuzzy, survivors, top_k

# Few values, so that ties are the rule.
LOGITS = st.lists(st.integers(-3, 3), min_size=1, max_size=60)


@given(logits=LOGITS, k=st.integers(1, 33))
def test_top_k_is_a_stable_sort(logits: list[int], k: int) -> None:
    expected = np.argsort(-np.array(logits), kind="stable")[:k].tolist()
    assert top_k(logits, k) == expected
    assert argmax(logits) == expected[0] == int(np.argmax(logits))


def test_ties_go_to_the_lowest_index() -> None:
    assert top_k([5, 9, 9, -1, 9], 4) == [1, 2, 4, 0]
    assert top_k([7] * 40, 33) == list(range(33))
    assert argmax([-32768] * 5) == 0


def brute_force(logits: np.ndarray) -> set[int]:
    """Survivors: nobody in the same block and lane is larger, or as large with a lower index."""
    index = np.arange(len(logits))
    group = index // 256 * 32 + index % 32
    return {
        int(j)
        for j in index
        if not any(
            group[r] == group[j] and (logits[r] > logits[j] or (logits[r] == logits[j] and r < j))
            for r in range(j // 256 * 256, j // 256 * 256 + 256)
        )
    }


@pytest.mark.parametrize("spread", [1, 4, 30000])
def test_survivors(spread: int, seed: int) -> None:
    logits = np.random.default_rng(seed).integers(-spread, spread + 1, 768)
    assert set(survivors(logits)) == brute_force(logits)


@pytest.mark.parametrize("spread", [1, 50, 30000])
@pytest.mark.parametrize("k", [1, 5, 32])
def test_fuzzy_top_k(spread: int, k: int, seed: int) -> None:
    logits = np.random.default_rng(seed).integers(-spread, spread + 1, 512)
    best, replaced = fuzzy(logits, k)
    kept = survivors(logits)
    assert len(kept) == 512 // 8
    assert best == [kept[j] for j in np.argsort(-logits[kept], kind="stable")[:k]]
    assert best[0] == argmax(logits)  # the best class always survives
    others = np.setdiff1d(np.arange(512), kept)
    np.testing.assert_array_equal(replaced[kept], logits[kept])
    assert (replaced[others] == logits[kept].min()).all()


def test_the_second_best_of_a_lane_is_lost() -> None:
    logits = np.zeros(256, np.int64)
    logits[[3, 35, 64]] = 100, 90, 80  # 3 and 35 share lane 3
    best, replaced = fuzzy(logits, 2)
    assert best == [3, 64]
    assert replaced[35] == 0


def test_a_replaced_logit_may_rise() -> None:
    logits = np.full(256, -500)
    logits[:32] = np.arange(32)
    best, replaced = fuzzy(logits, 32)
    assert best == list(range(31, -1, -1))
    assert (replaced[32:] == 0).all()


def test_fuzzy_ties_go_to_the_lowest_index() -> None:
    best, replaced = fuzzy(np.full(512, -7), 33)
    assert best == [*range(32), 256]
    assert (replaced == -7).all()
