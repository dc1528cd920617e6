# SPDX-License-Identifier: Apache-2.0
"""Features against those of NVIDIA DALI at the ends of what samples can be, and over five minutes."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import DEMO
from recordings import FOLDER, cuts, samples
from scripts.golden.signals import FULL, LONG_SECONDS, LOWEST, RATE, extremes, long_signal, summary

from gharial.checkpoint import load_hardware
from gharial.features import FeatureSpec, FeatureStream, logmel

GOLDEN = Path(__file__).parent / "data" / "features" / "dali_extremes.npz"
WINDOWS = (400, 320)
TOLERANCE = 2e-3
MEASURED = 2e-4  # what is reached, with room for another machine's logarithm


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


@cache
def spec(window: int) -> FeatureSpec:
    checkpoint = load_hardware(DEMO)
    return FeatureSpec(window=window, melmeans=checkpoint.melmeans, melvars=checkpoint.melvars)


@cache
def long_samples() -> np.ndarray:
    return long_signal([samples(path) for path in sorted(FOLDER.glob("*.flac"))])


def errors(ours: np.ndarray, theirs: np.ndarray, window: int) -> np.ndarray:
    """Differences of log energies after normalisation."""
    assert ours.shape == theirs.shape
    return np.abs(ours - theirs.astype(np.float64)) / np.sqrt(spec(window).melvars)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", extremes())
def test_extremes(name: str, window: int) -> None:
    ours = logmel(extremes()[name], spec(window))
    found = errors(ours, golden()[f"{name}/{window}"], window).max()
    print(f"{name} {window}: largest error {found:.2e}")
    assert found <= MEASURED <= TOLERANCE


def test_the_extremes_are_extreme() -> None:
    found = extremes()
    assert {name.split("/")[0] for name in golden()} == {*found, "long"}
    assert {(int(found[name].min()), int(found[name].max())) for name in ("square-50", "nyquist")} == {(LOWEST, FULL)}
    assert not found["silence"].any()
    for name in ("impulse-first", "impulse-second", "impulse-between", "impulse-last", "least-sample"):
        assert np.count_nonzero(found[name]) == 1
    assert set(found["least-noise"].tolist()) == {0, 1}


def test_the_long_signal_is_the_one_that_dali_heard() -> None:
    """If it is not, neither are its features: make them again (scripts/golden/make_dali_logmel.py)."""
    heard = long_samples()
    assert len(heard) == LONG_SECONDS * RATE == 4_800_000
    assert hashlib.sha256(heard.astype("<i2").tobytes()).digest() == golden()["long/sha256"].tobytes()


@pytest.mark.parametrize("window", WINDOWS)
def test_five_minutes_in_odd_pieces(window: int, seed: int) -> None:
    """Pieces of any length; every frame is in a mean, one in 250 is compared by itself."""
    plain = spec(window)
    stream = FeatureStream(plain)
    vectors = [stream.push(piece) for piece in cuts(long_samples(), np.random.default_rng(seed), 9999)]
    frames = np.concatenate(vectors).reshape(-1, 80)
    whole = logmel(long_samples(), plain)
    assert len(whole) == 30_000 and len(frames) == 30_000
    normalised = (whole - plain.melmeans) / np.sqrt(plain.melvars)
    np.testing.assert_array_equal(frames, normalised.astype(np.float32))
    for kind, ours in summary(whole).items():
        found = errors(ours, golden()[f"long/{kind}{window}"], window).max()
        print(f"{kind} {window}: largest error {found:.2e}")
        assert found <= MEASURED
