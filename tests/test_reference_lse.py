# SPDX-License-Identifier: Apache-2.0
"""Log-sum-exp against double precision, with the bound of docs/numerics.md, section 8."""

import numpy as np
import pytest
import reference_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from reference_quantiser import Int, tables
from sim.reference.ranking import log_sum_exp

TABLES = tables()
SIZES = (2, 256, 8704, 17408)
TEMPERATURES = (0.25, 1 / 1.4, 1.0, 1.4, 2.0, 3.9)
ROUNDINGS = 3.3e-4  # nat: what all roundings but the floor of a term come to at most


def floor_bound(V: int) -> float:
    return ROUNDINGS + V * 2.0**-24


def spread_bound(V: int) -> float:
    """Where classes lie at all distances, roundings even out and a floor takes half a unit."""
    return 1.5e-4 + V * 2.0**-25


def lse(logits: Int, T: int, e: int) -> int:
    return log_sum_exp(TABLES.exp, TABLES.log, logits, T, e)


def error(logits: Int, T: int, e: int) -> float:
    """Nat, against the exact value of the same logits."""
    x = logits * (T * 2.0 ** -(e + 14))
    exact = x.max() + np.log(np.exp(x - x.max()).sum())
    return lse(logits, T, e) * 2.0**-16 - float(exact)


def int16(x: np.ndarray) -> Int:
    return np.clip(np.floor(x + 0.5), -32768, 32767).astype(np.int64)


@pytest.mark.parametrize("e", range(4, 13))
@pytest.mark.parametrize("V", SIZES)
def test_spread_logits(V: int, e: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for temperature in TEMPERATURES:
        T = round(temperature * 16384)
        for logits in (rng.normal(0, 3, V), rng.uniform(-20, 20, V), np.full(V, rng.normal())):
            assert abs(error(int16(logits * 2**e), T, e)) <= spread_bound(V)


@pytest.mark.parametrize("e", [4, 8, 12])
@pytest.mark.parametrize("V", SIZES)
def test_one_peak_over_a_flat_tail(V: int, e: int, seed: int) -> None:
    """All other classes at one distance below the best: the roundings of all terms agree, and their floors add up."""
    rng = np.random.default_rng(seed)
    for temperature in TEMPERATURES:
        T = round(temperature * 16384)
        furthest = min(65535, int(20 / temperature * 2**e))
        for d in rng.integers(0, furthest + 1, 40):
            logits = np.full(V, 32767 - d)
            logits[rng.integers(V)] = 32767
            assert abs(error(logits, T, e)) <= floor_bound(V)


def test_the_floor_needs_its_place_in_the_bound() -> None:
    """The bound is no looser than it has to be: this case uses most of it."""
    logits = np.full(17408, 32767 - 11365)
    logits[0] = 32767
    assert floor_bound(17408) >= abs(error(logits, round(1.4 * 16384), 10)) >= 0.7 * floor_bound(17408)


def test_the_order_of_classes_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.integers(-32768, 32768, 1000)
    assert len({lse(rng.permutation(logits), 16384, 8) for _ in range(5)}) == 1


@pytest.mark.parametrize("e", range(4, 13))
def test_one_class_is_its_own_sum(e: int, seed: int) -> None:
    for value in (*np.random.default_rng(seed).integers(-32768, 32768, 10), -32768, 0, 32767):
        assert lse(np.array([value]), 16384, e) == oracle.rsr(int(value) * 16384, e - 2)


def test_equal_logits_and_the_most_classes() -> None:
    """The sum is 2^40, the largest that the page allows."""
    assert abs(lse(np.full(65536, 100), 16384, 4) - (100 / 16 + 16 * np.log(2)) * 65536) <= 2


@pytest.mark.parametrize("T", [0, 1, 65535])
def test_ends_of_the_temperature(T: int, seed: int) -> None:
    logits = np.random.default_rng(seed).integers(-32768, 32768, 300)
    for e in (4, 12):
        assert abs(error(logits, T, e)) <= floor_bound(300)


def test_the_furthest_logits() -> None:
    for T in (16384, 65535):
        for e in (4, 12):
            assert lse(np.array([32767, -32768]), T, e) == oracle.log_sum_exp(
                TABLES.exp, TABLES.log, [32767, -32768], T, e
            )


def test_any_table(seed: int) -> None:
    """Tables over their whole width, so that a term counts up to the last octave that has a share."""
    rng = np.random.default_rng(seed)
    exp = np.stack([rng.integers(200000, 1 << 18, 64), rng.integers(0, 1 << 17, 64)], axis=1)
    exp[0] = 1 << 16, 0  # the largest logit's own term, small so that the others show
    log = np.stack([rng.integers(0, 1 << 18, 64), rng.integers(-1000, 1000, 64)], axis=1)
    for octave in (23, 24, 25, 26):
        first = round(octave * np.log(2) * 256) + 2  # e = 8
        logits = [0, *(int(v) for v in rng.integers(-first - 150, -first, 3000))]
        assert log_sum_exp(exp, log, np.array(logits), 16384, 8) == oracle.log_sum_exp(exp, log, logits, 16384, 8)


@given(
    logits=st.lists(st.one_of(st.integers(-32768, 32767), st.integers(-300, 300)), min_size=1, max_size=40),
    T=st.integers(0, 65535),
    e=st.integers(4, 12),
)
def test_log_sum_exp_is_the_page(logits: list[int], T: int, e: int) -> None:
    assert lse(np.array(logits), T, e) == oracle.log_sum_exp(TABLES.exp, TABLES.log, logits, T, e)
