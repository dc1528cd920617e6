# SPDX-License-Identifier: Apache-2.0
"""Settings of the front end, and features as integers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gharial
from gharial.checkpoint.features import FeatureSettings
from gharial.checkpoint.hardware import load_hardware
from gharial.errors import BadInput
from gharial.features import FeatureSpec, FeatureStream, quantise_features

DEMO = Path(gharial.__file__).parent / "data" / "demo" / "demo-small.hw.pt"


def test_figures_of_the_published_models():
    base, testing = FeatureSpec(), FeatureSpec(window=320)
    assert (base.lead, testing.lead) == (240, 160)
    assert base.tail == 3840
    assert base.vector_size == 240
    assert base.vector_seconds == pytest.approx(0.03)


def test_spec_of_the_demo_model():
    checkpoint = load_hardware(DEMO)
    spec = FeatureSpec.from_checkpoint(checkpoint)
    assert spec == FeatureSpec(melmeans=checkpoint.melmeans, melvars=checkpoint.melvars)
    assert FeatureSpec.from_checkpoint(checkpoint, dither=True).dither == 1e-5


def test_spec_follows_every_setting_of_a_checkpoint():
    checkpoint = SimpleNamespace(
        features=FeatureSettings(
            sample_rate=8000,
            window_size=0.02,
            window_stride=0.0125,
            n_fft=256,
            n_filt=40,
            stacking=2,
            subsampling=2,
            dither=1e-4,
        ),
        melmeans=np.arange(40, dtype=np.float32),
        melvars=np.arange(1, 41, dtype=np.float32),
        melalpha=0.001,
    )
    expected = FeatureSpec(
        sample_rate=8000,
        window=160,
        hop=100,
        n_fft=256,
        n_mels=40,
        stacking=2,
        subsampling=2,
        melmeans=np.arange(40.0),
        melvars=np.arange(1.0, 41.0),
        melalpha=0.001,
        dither=1e-4,
    )
    assert FeatureSpec.from_checkpoint(checkpoint, dither=True) == expected
    # ... and the stream follows them too.
    vectors = FeatureStream(expected).push(np.ones(8000, np.int16))
    assert vectors.shape == (8000 // 200, 80)


def test_stacking_that_skips_or_repeats_frames_is_refused():
    checkpoint = load_hardware(DEMO)
    odd = replace(checkpoint, features=replace(checkpoint.features, subsampling=2))
    with pytest.raises(BadInput, match="subsampling") as caught:
        FeatureSpec.from_checkpoint(odd)
    assert 1 <= len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize(
    "change",
    [
        {"sample_rate": 0},
        {"hop": 0},
        {"hop": 401},
        {"window": 513},
        {"n_fft": 513},
        {"n_fft": 600},
        {"n_fft": 1 << 17},
        {"n_mels": 40},
        {"subsampling": 1},
        {"preemphasis": 1.0},
        {"preemphasis": float("nan")},
        {"melalpha": 1.0},
        {"melalpha": -0.1},
        {"dither": -1e-5},
        {"melmeans": np.full(80, np.nan)},
        {"melmeans": np.zeros((80, 1))},
        {"melvars": np.zeros(80)},
        {"melvars": -np.ones(80)},
    ],
)
def test_values_out_of_range_are_refused(change):
    with pytest.raises(BadInput):
        FeatureSpec(**change)


def test_specs_compare_by_value_and_keep_their_arrays():
    means = np.zeros(80)
    one = FeatureSpec(melmeans=means)
    same = FeatureSpec()
    assert one == same
    assert hash(one) == hash(same)
    means[3] = 1
    assert one == same
    assert FeatureSpec(melmeans=means) != one
    with pytest.raises(ValueError, match="read-only"):
        one.melmeans[0] = 5


@pytest.mark.parametrize(
    ("value", "frac_bits", "expected"),
    [
        (0.0, 4, 0),
        (0.03125, 4, 1),  # a tie goes up,
        (-0.03125, 4, 0),  # also below zero
        (np.nextafter(np.float32(0.03125), np.float32(0)), 4, 0),
        (np.nextafter(np.float32(-0.03125), np.float32(-1)), 4, -1),
        (7.9375, 4, 127),
        (7.97, 4, 127),
        (-7.9375, 4, -127),
        (-8.0, 4, -127),
        (1e30, 4, 127),
        (-np.inf, 4, -127),
        (100.0, 0, 100),
        (100.0, -2, 25),
        (0.01, 7, 1),
    ],
)
def test_quantise_values(value, frac_bits, expected):
    got = quantise_features(np.array([value], np.float32), frac_bits)
    assert got.dtype == np.int8
    assert got.tolist() == [expected]


@given(st.lists(st.floats(-20, 20, width=32), min_size=1), st.integers(-3, 10))
def test_quantise_is_the_nearest_step(values, frac_bits):
    x = np.array(values, np.float32)
    got = quantise_features(x, frac_bits).astype(np.float64)
    exact = x.astype(np.float64) * 2.0**frac_bits
    assert np.all(np.abs(got) <= 127)
    inside = np.abs(exact) < 127
    assert np.all(np.abs(got - exact)[inside] <= 0.5)
    assert np.all(got[~inside] == 127 * np.sign(exact[~inside]))


def test_quantise_keeps_the_shape_and_the_input():
    x = np.ones((2, 240), np.float32)
    assert quantise_features(x, 4).shape == (2, 240)
    assert np.all(x == 1)
    assert quantise_features(np.empty((0, 240), np.float32), 4).shape == (0, 240)
