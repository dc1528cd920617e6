# SPDX-License-Identifier: Apache-2.0
"""Features against those of NVIDIA DALI, the pipeline the models were trained with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gharial
from gharial.checkpoint.hardware import load_hardware
from gharial.features import FeatureSpec, FeatureStream, logmel
from gharial.features.filters import hann, mel_filters

GOLDEN = Path(__file__).parent / "data" / "features" / "dali_logmel.npz"
DEMO = Path(gharial.__file__).parent / "data" / "demo" / "demo-small.hw.pt"
CLIPS = ("022cd682_nohash_0", "18f8afd5_nohash_1", "4fd1443e_nohash_3", "impulse", "zeros", "chirp")
TOLERANCE = 2e-3

# How far (nepers of energy) under its frame's loudest channel a value may lie and still be signal in DALI's single
# precision: 95 dB. At -22 an amplitude is 1.7e-5 of the loudest, its round-off (a few 2^-24) some 1e-3 of it.
AUDIBLE = -22.0


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def statistics() -> tuple[np.ndarray, np.ndarray]:
    checkpoint = load_hardware(DEMO)
    return np.asarray(checkpoint.melmeans, np.float64), np.asarray(checkpoint.melvars, np.float64)


def _errors(golden, statistics, clip, window):
    means, variances = statistics
    theirs = golden[f"{clip}/logmel{window // 16}"].astype(np.float64)
    ours = logmel(golden[f"{clip}/audio"], FeatureSpec(window=window))
    assert ours.shape == theirs.shape
    deviations = np.sqrt(variances)
    return np.abs((ours - means) / deviations - (theirs - means) / deviations), ours


def test_every_clip_is_compared(golden):
    assert {name.split("/")[0] for name in golden} == set(CLIPS)


@pytest.mark.parametrize("window", [400, 320])
@pytest.mark.parametrize("clip", [clip for clip in CLIPS if clip != "chirp"])
def test_agrees_with_dali(golden, statistics, clip, window):
    errors, _ = _errors(golden, statistics, clip, window)
    print(f"{clip} {window}: largest error {errors.max():.2e}")
    assert errors.max() <= TOLERANCE


@pytest.mark.parametrize("window", [400, 320])
def test_agrees_with_dali_on_a_pure_tone_down_to_its_round_off(golden, statistics, window):
    # A loud tone over digital silence: many channels lie more than 95 dB under it, where DALI's value is noise.
    errors, ours = _errors(golden, statistics, "chirp", window)
    depth = ours - ours.max(axis=1, keepdims=True)
    audible = depth >= AUDIBLE
    print(f"chirp {window}: {errors[audible].max():.2e} where audible, {errors.max():.2e} anywhere")
    assert audible.mean() > 0.35
    assert (errors <= TOLERANCE).mean() > 0.8
    assert errors[audible].max() <= TOLERANCE
    # Below, the error follows the noise: 2 x relative error of the amplitude, which grows as the amplitude falls.
    noise = 4 * 2.0**-24 * np.exp(-depth / 2)
    assert np.all(errors[~audible] <= noise[~audible])


def _single_precision(samples, window):
    """The same pipeline in float32 throughout, with NumPy's transform."""
    x = np.concatenate([np.zeros(window - 160, np.float32), samples.astype(np.float32) / np.float32(32768)])
    y = x - np.float32(0.97) * np.concatenate([x[:1], x[:-1]])
    frames = np.lib.stride_tricks.sliding_window_view(y, window)[::160] * hann(window).astype(np.float32)
    spectrum = np.fft.rfft(frames, 512)
    assert spectrum.dtype == np.complex64
    energies = np.square(np.abs(spectrum)) @ mel_filters(16000, 512, 80).astype(np.float32)
    return np.log(np.maximum(energies, np.float32(1e-20)))


@pytest.mark.parametrize("window", [400, 320])
def test_single_precision_alone_makes_as_much_of_a_difference(golden, statistics, window):
    """What parts us from DALI deep below a tone parts us from any float32 pipeline, as much and in the same places."""
    errors, ours = _errors(golden, statistics, "chirp", window)
    single = np.abs(_single_precision(golden["chirp/audio"], window) - ours) / np.sqrt(statistics[1])
    depth = ours - ours.max(axis=1, keepdims=True)
    for low, high in ((-40, -30), (-30, -26), (-26, -22), (-22, -15)):
        where = (low <= depth) & (depth < high)
        theirs, mine = np.median(errors[where]), np.median(single[where])
        print(f"chirp {window}, {low} to {high} nepers: DALI {theirs:.1e}, float32 {mine:.1e}, {where.sum()} values")
        assert mine / 2 < theirs < 4 * mine


@pytest.mark.parametrize("window", [400, 320])
def test_stream_is_dalis_features_stacked(golden, statistics, window):
    means, variances = statistics
    clip = "4fd1443e_nohash_3"
    stream = FeatureStream(FeatureSpec(window=window, melmeans=means, melvars=variances))
    vectors = stream.push(golden[f"{clip}/audio"])
    theirs = (golden[f"{clip}/logmel{window // 16}"] - means) / np.sqrt(variances)
    whole = len(vectors) * 3
    assert len(theirs) - whole < 3
    np.testing.assert_allclose(vectors, theirs[:whole].reshape(-1, 240), rtol=0, atol=TOLERANCE)
