# SPDX-License-Identifier: Apache-2.0
"""Variation of feature vectors in training: another microphone, another vocal tract, parts that are missing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

_COSINES = 4


@dataclass(frozen=True)
class Variation:
    """How features are varied; the values are for frames that are normalised to a variance of 1.

    Attributes:
        response: standard deviation of each of the first four cosines of a curve over the mel bins, added to all
            frames: a microphone's and a room's response.
        warp: the mel axis is stretched by a factor of 1 - warp to 1 + warp.
        bands: masks over mel bins.
        band_bins: widest mask.
        times: masks over time.
        time_frames: longest mask, in frames of 10 ms.
    """

    response: float
    warp: float
    bands: int
    band_bins: int
    times: int
    time_frames: int

    def at(self, share: float) -> Variation:
        """A weaker variation: none at a share of 0, this one at 1; the number of masks stays."""
        return replace(
            self,
            response=share * self.response,
            warp=share * self.warp,
            band_bins=int(share * self.band_bins),
            time_frames=int(share * self.time_frames),
        )


TRAINING = Variation(response=0.15, warp=0.08, bands=2, band_bins=10, times=2, time_frames=6)


def vary(vectors: np.ndarray, quiet: np.ndarray, random: np.random.Generator, variation: Variation) -> np.ndarray:
    """Features varied.

    Args:
        vectors: (T2, 240) normalised feature vectors of one string.
        quiet: (80,) what digital silence is after normalisation: frames of it stay as they are, since no microphone
            was there.
        random: where every choice comes from.
        variation: by how much.

    Returns:
        (T2, 240) float32.
    """
    bins = len(quiet)
    frames = vectors.reshape(-1, bins)
    # Frames of zeros are those missing from the last vector.
    sound = (frames[:, 0] > quiet[0] + 1e-3) & frames.any(axis=1)
    varied = _warped(frames, 1.0 + random.uniform(-variation.warp, variation.warp))
    grid = (np.arange(bins) + 0.5) * (np.pi / bins)
    curve = random.normal(0.0, variation.response, _COSINES) @ np.cos(np.outer(np.arange(_COSINES), grid))
    varied += curve.astype(np.float32)
    for _ in range(variation.bands):
        width = int(random.integers(variation.band_bins + 1))
        start = int(random.integers(bins - width + 1))
        varied[:, start : start + width] = 0.0
    for _ in range(variation.times):
        length = int(random.integers(variation.time_frames + 1))
        start = int(random.integers(max(1, len(frames) - length)))
        varied[start : start + length] = 0.0
    return np.where(sound[:, None], varied, frames).reshape(vectors.shape)


def _warped(frames: np.ndarray, factor: float) -> np.ndarray:
    """Frames read at `factor` times the mel bin, linearly between two bins, the last bin beyond the end."""
    at = np.minimum(np.arange(frames.shape[1]) * factor, frames.shape[1] - 1)
    low = np.minimum(at.astype(int), frames.shape[1] - 2)
    share = (at - low).astype(np.float32)
    return frames[:, low] * (1.0 - share) + frames[:, low + 1] * share
