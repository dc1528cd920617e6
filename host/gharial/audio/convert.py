# SPDX-License-Identifier: Apache-2.0
"""From blocks of a file to mono at the wanted rate."""

from __future__ import annotations

import numpy as np
import soxr


class MonoConverter:
    """Mixes channels to one by their mean and resamples, block by block.

    Args:
        source_rate: Hz.
        rate: Hz of the result.

    The resampler is soxr's HQ setting (pass band to 91 % of the lower Nyquist frequency), which keeps the time of the
    signal: sample 0 of the result is at the time of sample 0 of the source.
    """

    def __init__(self, source_rate: int, rate: int) -> None:
        self._resampler = (
            None
            if source_rate == rate
            else soxr.ResampleStream(source_rate, rate, num_channels=1, dtype="float32", quality="HQ")
        )

    def push(self, block: np.ndarray) -> np.ndarray:
        """Samples that are ready.

        Args:
            block: (n, channels) float32, or int16 of one channel when the rates agree.

        Returns:
            (m,) of the same type; m may be 0.
        """
        mono = block[:, 0] if block.shape[1] == 1 else _mean_of_channels(block)
        return mono if self._resampler is None else self._resample(mono, last=False)

    def finish(self) -> np.ndarray:
        """What the resampler still holds: (m,) float32; m may be 0."""
        empty = np.empty(0, np.float32)
        return empty if self._resampler is None else self._resample(empty, last=True)

    def _resample(self, mono: np.ndarray, last: bool) -> np.ndarray:
        assert self._resampler is not None
        resampled: np.ndarray = self._resampler.resample_chunk(np.ascontiguousarray(mono), last=last)
        return resampled


def _mean_of_channels(block: np.ndarray) -> np.ndarray:
    """(n, channels) float32 to (n,) float32, channel by channel: numpy's own mean is slow along a short axis."""
    total = block[:, 0].astype(np.float64)
    for channel in range(1, block.shape[1]):
        total += block[:, channel]
    total /= block.shape[1]
    return total.astype(np.float32)
