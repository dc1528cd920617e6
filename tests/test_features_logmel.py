# SPDX-License-Identifier: Apache-2.0
"""Log-mel frames against their definition, written out a second time in the plainest way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gharial.features import FeatureSpec, logmel
from gharial.features.filters import hann, hz_to_mel, mel_filters, mel_to_hz

FLOOR = math.log(1e-20)


def _slaney_hz(mel: float) -> float:
    return mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)


def _plain_logmel(samples: np.ndarray, window: int) -> np.ndarray:
    """The contract step by step: matrix Fourier transform, one filter at a time, no library but array sums."""
    x = np.concatenate((np.zeros(window - 160), samples))
    x = x - 0.97 * np.concatenate((x[:1], x[:-1]))
    hop = 160
    frames = (len(x) - window) // hop + 1
    t = np.arange(window)
    shape = 0.5 * (1 - np.cos(2 * np.pi * (t + 0.5) / window))
    transform = np.exp(-2j * np.pi * np.outer(t, np.arange(257)) / 512)
    power = np.array([np.abs((x[i * hop : i * hop + window] * shape) @ transform) ** 2 for i in range(frames)])
    top = 15 + 27 * math.log(8) / math.log(6.4)
    edges = [_slaney_hz(top * i / 81) for i in range(82)]
    result = np.empty((frames, 80))
    for channel in range(80):
        low, centre, high = edges[channel : channel + 3]
        energy = np.zeros(frames)
        for k in range(257):
            hz = k * 16000 / 512
            if low < hz <= centre:
                energy += power[:, k] * (hz - low) / (centre - low)
            elif centre < hz < high:
                energy += power[:, k] * (high - hz) / (high - centre)
        result[:, channel] = np.log(np.maximum(energy * 2 / (high - low), 1e-20))
    return result


def _assert_close(ours: np.ndarray, plain: np.ndarray, atol: float) -> None:
    """Equal but for single precision: some 2^-24 of the amplitude of a frame's loudest channel in all its channels."""
    depth = plain - plain.max(axis=1, keepdims=True)
    round_off = 8 * 2.0**-24 * np.exp(-depth / 2)
    assert np.all(np.abs(ours - plain) <= np.maximum(atol, round_off))


@pytest.mark.parametrize("window", [400, 320])
def test_is_what_the_definition_says(seed, window):
    rng = np.random.default_rng(seed)
    samples = rng.uniform(-1, 1, 4321).astype(np.float32)
    ours = logmel(samples, FeatureSpec(window=window))
    _assert_close(ours, _plain_logmel(samples.astype(np.float64), window), atol=1e-3)


@pytest.mark.parametrize("window", [400, 320])
def test_number_of_frames(window):
    spec = FeatureSpec(window=window)
    for count in [*range(5), 159, 160, 161, 319, 320, 321, 479, 480, 481, 959, 960, 961, 16000, 16001]:
        for tail in (0, 1, spec.tail):
            expected = math.floor((window - 160 + count + tail - window) / 160) + 1
            assert spec.frames(count, tail) == expected
            assert logmel(np.zeros(count, np.int16), spec, tail).shape == (expected, 80)


def test_silence_is_the_floor():
    frames = logmel(np.zeros(4000, np.int16), FeatureSpec())
    assert np.all(frames == FLOOR)


def test_an_impulse_reaches_the_frames_whose_window_holds_it():
    samples = np.zeros(8000, np.int16)
    at = 4000
    samples[at] = 20000
    for window in (400, 320):
        spec = FeatureSpec(window=window)
        loud = np.flatnonzero((logmel(samples, spec) > FLOOR).all(axis=1))
        # Pre-emphasis gives the impulse an echo one sample later.
        first, last = spec.lead + at, spec.lead + at + 1
        held = [i for i in range(50) if i * 160 <= last and first < i * 160 + window]
        assert loud.tolist() == held


@pytest.mark.parametrize("value", [32767, -32768, 1, -1])
def test_constant_full_scale_and_smallest(value):
    # After the first samples pre-emphasis leaves 3 % of a constant, and the window all but the lowest channels' share.
    samples = np.full(3200, value, np.int16)
    frames = logmel(samples, FeatureSpec())
    assert np.isfinite(frames).all()
    _assert_close(frames, _plain_logmel(samples / 32768.0, 400), atol=2e-2)
    assert frames[-1].argmax() == 0


def test_alternating_full_scale_is_loudest_in_the_top_channel():
    samples = np.where(np.arange(3200) % 2 == 0, 32767, -32768).astype(np.int16)
    frames = logmel(samples, FeatureSpec())
    _assert_close(frames[2:], _plain_logmel(samples / 32768.0, 400)[2:], atol=1e-4)
    assert (frames[2:].argmax(axis=1) == 79).all()


def test_first_sample_is_emphasised_against_itself():
    # With a window as long as the hop there is no zero in front, so the first sample has no other neighbour.
    spec = FeatureSpec(window=160)
    steady = logmel(np.full(160, 16000, np.int16), spec)
    half = logmel(np.full(320, 16000, np.int16), spec)
    np.testing.assert_array_equal(steady[0], half[1])


def test_half_the_amplitude_is_a_quarter_of_the_energy(seed):
    samples = np.random.default_rng(seed).uniform(-1, 1, 3000).astype(np.float32)
    difference = logmel(samples, FeatureSpec()) - logmel(samples / 2, FeatureSpec())
    np.testing.assert_allclose(difference, math.log(4), rtol=0, atol=1e-9)


def test_window_is_sampled_at_half_integers():
    window = hann(400)
    assert window.min() > 0
    np.testing.assert_allclose(window, window[::-1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(window + np.roll(window, 200), 1, rtol=0, atol=1e-15)
    assert window[0] == pytest.approx(math.sin(math.pi / 800) ** 2, rel=1e-12)


def test_mel_scale():
    np.testing.assert_allclose(hz_to_mel(np.array([0, 500, 1000, 6400])), [0, 7.5, 15, 42])
    hz = np.linspace(0, 8000, 401)
    np.testing.assert_allclose(mel_to_hz(hz_to_mel(hz)), hz, atol=1e-9)


def test_filters_have_area_one():
    filters = mel_filters(16000, 1 << 16, 80)
    np.testing.assert_allclose(filters.sum(axis=0) * 16000 / (1 << 16), 1, atol=1e-3)
    assert filters.min() == 0
    # A bin belongs to two neighbouring channels at most.
    assert (filters > 0).sum(axis=1).max() == 2
