# SPDX-License-Identifier: Apache-2.0
"""The transform of the front end, to the bit: its order of operations (docs/features.md), written out a second time."""

from __future__ import annotations

import numpy as np
import pytest

from gharial.features._transform import Transform
from gharial.features.filters import hann

F = np.float32
TURN = 2 * np.pi


def split_radix(x: np.ndarray) -> np.ndarray:
    """Conjugate-pair split radix over the last axis but one; x is float32 (n, 2), real and imaginary parts."""
    n = len(x)
    if n == 1:
        return x
    if n == 2:
        return np.stack([x[0] + x[1], x[0] - x[1]])
    even, ahead, behind = split_radix(x[::2]), split_radix(x[1::4]), split_radix(np.roll(x, 1, axis=0)[::4])
    for k in range(1, n // 4):
        c, s = F(np.cos(TURN * k / n)), F(-np.sin(TURN * k / n))
        (a, b), (d, e) = ahead[k], behind[k]
        ahead[k] = a * c - b * s, b * c + a * s
        behind[k] = d * c + e * s, e * c - d * s
    total, rest = ahead + behind, ahead - behind
    turned = np.stack([rest[:, 1], -rest[:, 0]], axis=1)  # times -i
    first, second = np.split(even, 2)
    return np.concatenate([first + total, second + turned, first - total, second - turned])


def power(frame: np.ndarray, window: np.ndarray, points: int) -> np.ndarray:
    """Power spectrum of one frame, float32 throughout."""
    offset = (points - len(window)) // 2
    x = np.zeros(points, F)
    x[offset : offset + len(window)] = frame * window
    z = split_radix(x.reshape(-1, 2).copy())
    half = points // 2
    found = np.zeros(half + 1, F)
    for k in range(half):
        s, c = np.sin(TURN * k / points), np.cos(TURN * k / points)
        low, minus, high, plus = F(0.5 * (1 - s)), F(-0.5 * c), F(0.5 * (1 + s)), F(0.5 * c)
        (re, im), (mirror_re, mirror_im) = z[k], z[-k]
        real = (re * low - im * minus) + (mirror_re * high + mirror_im * plus)
        imaginary = (im * low + re * minus) + (mirror_re * plus - mirror_im * high)
        found[k] = real * real + imaginary * imaginary
    last = z[0, 0] - z[0, 1]
    found[half] = last * last
    return found


def ours(samples: np.ndarray, window: np.ndarray, points: int, hop: int = 1, frames: int = 1) -> np.ndarray:
    found = np.full((frames, points // 2 + 1), np.nan)
    Transform(window, points).power(samples, hop, frames, found)
    return found


@pytest.mark.parametrize(
    ("length", "points"), [(8, 8), (5, 16), (32, 32), (400, 512), (320, 512), (511, 512), (1, 1024)]
)
def test_every_bit(length: int, points: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    window = hann(length).astype(F)
    samples = (rng.standard_normal(length) * 10.0 ** rng.uniform(-3, 3, length)).astype(F)
    expected = power(samples, window, points)
    assert expected.dtype == F
    np.testing.assert_array_equal(ours(samples, window, points)[0], expected.astype(float))


def test_it_is_a_fourier_transform(seed: int) -> None:
    samples = np.random.default_rng(seed).standard_normal(400).astype(F)
    window = hann(400).astype(F)
    exact = np.abs(np.fft.rfft((samples * window).astype(float), 512)) ** 2
    error = np.abs(np.sqrt(ours(samples, window, 512)[0]) - np.sqrt(exact)).max()
    assert error < 16 * 2.0**-24 * np.sqrt(exact.max())


def test_frames_are_independent(seed: int) -> None:
    samples = np.random.default_rng(seed).standard_normal(1000).astype(F)
    window = hann(320).astype(F)
    together = ours(samples, window, 512, hop=160, frames=5)
    for n, spectrum in enumerate(together):
        np.testing.assert_array_equal(ours(samples[160 * n : 160 * n + 320].copy(), window, 512)[0], spectrum)


@pytest.mark.parametrize("points", [0, 4, 500, 1 << 17])
def test_sizes_that_are_refused(points: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        Transform(np.ones(4, F), points)


def test_buffers_that_are_refused() -> None:
    transform = Transform(np.ones(8, F), 8)
    with pytest.raises(TypeError, match="samples: format 'f'"):
        transform.power(np.zeros(8), 1, 1, np.zeros(5))
    with pytest.raises(TypeError, match="power: format 'd'"):
        transform.power(np.zeros(8, F), 1, 1, np.zeros(5, F))
    for samples, hop, frames, bins in ((7, 1, 1, 5), (8, 1, 1, 4), (8, 1, 2, 10), (8, 0, 1, 5), (8, 1, -1, 5)):
        with pytest.raises(ValueError, match="do not lie in"):
            transform.power(np.zeros(samples, F), hop, frames, np.zeros(bins))
    transform.power(np.zeros(0, F), 1, 0, np.zeros(0))
    with pytest.raises(ValueError, match="window"):
        Transform(np.ones(9, F), 8)
