# SPDX-License-Identifier: Apache-2.0
"""Signals at the ends of what samples can be, and a long one; the same numbers on every machine.

`make_dali_logmel.py` gives them to DALI, `tests/test_features_dali.py` to the front end. Noise comes from SplitMix64
over a counter (Steele, Lea and Flood, 2014) and not from a library, whose generators may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.int16]

RATE = 16000
LONG_SECONDS = 300
FULL, LOWEST = 32767, -32768

_SHORT = 2720  # samples: 17 hops
_GAINS = (0, 0, 0, 3, 6, 9, 12)  # right shifts of the recordings in the long signal: 0 to -72 dB


def random_words(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """(count,) random words of 64 bits."""
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def noise(seed: int, count: int) -> Samples:
    """White noise, every value of a sample being as likely as any other."""
    return (random_words(seed, count) >> np.uint64(48)).astype(np.uint16).view(np.int16)


def extremes() -> dict[str, Samples]:
    """Short signals by name."""
    at = np.arange(_SHORT)
    two_levels = np.where(noise(2, _SHORT) < 0, LOWEST, FULL)
    found = {
        "square-1000": np.where(at % 16 < 8, FULL, LOWEST),
        "square-50": np.where(at % 320 < 160, FULL, LOWEST),
        "nyquist": np.where(at % 2 == 0, FULL, LOWEST),
        "sine-440": np.round(FULL * np.sin(2 * np.pi * 440 * at / RATE)),
        "noise": noise(1, _SHORT),
        "noise-two-levels": two_levels,
        "constant": np.full(_SHORT, LOWEST),
        "onset": np.where(at < 1360, 0, two_levels),
        "silence": np.zeros(_SHORT),
        "least-noise": noise(3, _SHORT) >= 0,
        "least-sample": at == 1000,
        "impulse-first": FULL * (at == 0),
        "impulse-second": LOWEST * (at == 1),
        "impulse-between": FULL * (at == 1599),
        "impulse-last": LOWEST * (at == _SHORT - 1),
    }
    return {name: np.asarray(values).astype(np.int16) for name, values in found.items()}


def long_signal(recordings: Sequence[Samples]) -> Samples:
    """Five minutes: recordings at any level, digital silence, noise as loud as it can be and as faint.

    Args:
        recordings: at `RATE`; each is taken several times.
    """
    words = (int(word) for word in random_words(4, 10_000))
    pieces: list[Samples] = []
    missing = LONG_SECONDS * RATE
    while missing > 0:
        kind, choice, length = next(words) % 16, next(words), 1 + next(words) % 12000
        if kind < 10:
            piece = recordings[choice % len(recordings)] >> _GAINS[next(words) % len(_GAINS)]
        elif kind < 13:
            piece = np.zeros(length, np.int16)
        else:
            piece = noise(choice % 1000, length) >> (0, 8, 15)[kind - 13]
        pieces.append(piece[:missing].astype(np.int16))
        missing -= len(pieces[-1])
    return np.concatenate(pieces)


LONG_STEP = 250
"""Of the long signal's frames so many make a block; the first of each is kept whole."""


def summary(frames: npt.NDArray[np.float32]) -> Mapping[str, npt.NDArray[np.float32]]:
    """What is kept of (T, channels) frames of the long signal: `frames` and each block's `means`, (n, channels)."""
    blocks = len(frames) // LONG_STEP
    whole = frames[: blocks * LONG_STEP].reshape(blocks, LONG_STEP, -1)
    return {"frames": whole[:, 0].copy(), "means": whole.mean(axis=1, dtype=np.float64).astype(np.float32)}
