# SPDX-License-Identifier: Apache-2.0
"""Signal over noise, limits and histograms of one tensor; weights and their scales."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gharial.compiler.quantise import INT4, INT8, WeightType, quantise_rows, row_scales
from gharial.fidelity.noise import BINS, TensorNoise, decibels


def ratio(signal: np.ndarray, noise: np.ndarray) -> float:
    return float(10 * np.log10(np.square(signal).sum() / np.square(noise).sum()))


def test_ratios_are_those_of_the_sums(seed: int) -> None:
    random = np.random.default_rng(seed)
    unit = 0.125
    noise = TensorNoise(unit, -127, 127)
    signals, errors, changes, moved = [], [], [], []
    for steps in (5, 1, 9):
        exact = (random.standard_normal((steps, 4, 3)) + 2).astype(np.float32)
        found = np.clip(np.floor(exact / unit + 0.5), -127, 127).astype(np.int8)
        noise.add(exact, found)
        error = found * unit - exact.astype(np.float64)
        signals.append(exact.ravel().astype(np.float64))
        errors.append(error.ravel())
        changes.append((exact - exact.mean(axis=0, dtype=np.float64)).ravel())
        moved.append((error - error.mean(axis=0)).ravel())
    noise.add(np.zeros((0, 4, 3)), np.zeros((0, 4, 3), np.int8))
    assert noise.sqnr == pytest.approx(ratio(np.concatenate(signals), np.concatenate(errors)))
    assert noise.sqnr_changes == pytest.approx(ratio(np.concatenate(changes), np.concatenate(moved)), rel=1e-6)
    assert noise.count == 15 * 12 == noise.histogram.sum()
    worst = noise.worst(12)
    assert [value for _, value in worst] == sorted(value for _, value in worst)
    by_unit = (
        np.concatenate([part.reshape(-1, 12) for part in signals]),
        np.concatenate([part.reshape(-1, 12) for part in errors]),
    )
    unit_of_worst, value = worst[0]
    assert value == pytest.approx(ratio(by_unit[0][:, unit_of_worst], by_unit[1][:, unit_of_worst]))


def test_limits_are_counted() -> None:
    noise = TensorNoise(1.0, -127, 127)
    noise.add(np.array([[126.0, 127.4, 127.6, -127.4, -300.0, 0.0]]), np.array([[126, 127, 127, -127, -127, 0]]))
    assert (noise.at_limit, noise.beyond, noise.largest) == (4, 2, 300.0)
    held = TensorNoise(1.0, -127, 127, held=True)
    held.add(np.array([[300.0, -1.5]]), np.array([[127, -1]]))
    assert (held.at_limit, held.beyond, held.sqnr) == (
        1,
        1,
        pytest.approx(ratio(np.array([127, 1.5]), np.array([0.5]))),
    )
    relu = TensorNoise(1.0, 0, 127)
    relu.add(np.array([[0.0, 0.0, 127.0, 128.0]]), np.array([[0, 0, 127, 127]]))
    assert (relu.at_limit, relu.beyond) == (2, 1)  # zeros are what a ReLU gives
    assert (relu.histogram[0], relu.histogram[BINS - 1]) == (2, 2)


def test_nothing_seen_and_nothing_wrong() -> None:
    noise = TensorNoise(1.0, -127, 127)
    assert (noise.sqnr, noise.sqnr_changes, noise.worst(3)) == (None, None, [])
    noise.add(np.array([[3.0]]), np.array([[3]]))
    assert (noise.sqnr, noise.worst(3)) == (None, [])
    assert decibels(0.0, 1.0) == -math.inf


@pytest.mark.parametrize("kind", [INT8, INT4], ids=lambda kind: kind.name)
def test_steps_stay_within_the_type(seed: int, kind: WeightType) -> None:
    weights = np.random.default_rng(seed).standard_t(2, (40, 33)).astype(np.float32)
    weights[7] = 0
    rows = quantise_rows(weights, 2.0**-7, 2.0**-6, "test", kind)
    assert np.abs(rows.weights).max() == kind.most
    assert rows.scales[7] == 0 and not rows.weights[7].any()


def test_a_fitted_scale_is_no_worse_than_the_largest_weight(seed: int) -> None:
    random = np.random.default_rng(seed)
    weights = np.concatenate([random.standard_normal((30, 50)), random.standard_t(2, (30, 50)), np.zeros((2, 50))])
    weights[3] = 0.25  # one value: exact with any type
    errors = []
    for fitted in (False, True):
        kind = WeightType("int4", 7, fitted)
        scales = row_scales(weights, kind)
        assert scales.shape == (62,) and (scales[60:] == 0).all()
        divisor = np.where(scales > 0, scales, 1)[:, None]
        steps = np.clip(np.floor(weights / divisor + 0.5), -7, 7)
        errors.append(np.square(weights - steps * scales[:, None]).sum(axis=1))
    # But for the single precision in which scales are tried.
    assert (errors[1] <= errors[0] * (1 + 1e-4) + 1e-9).all()
    assert errors[1][:30].sum() < errors[0][:30].sum()


def test_scales_do_not_depend_on_how_rows_are_gathered(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.random.default_rng(seed).standard_normal((33, 20))
    whole = row_scales(weights, INT4)
    monkeypatch.setattr("gharial.compiler.quantise._BLOCK", 60)
    assert np.array_equal(row_scales(weights, INT4), whole)
