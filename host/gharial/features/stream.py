# SPDX-License-Identifier: Apache-2.0
"""Feature vectors of a stream: log-mel frames, normalised and stacked."""

from __future__ import annotations

import numpy as np

from gharial.features.logmel import LogMelStream
from gharial.features.spec import FeatureSpec


class FeatureStream:
    """Feature vectors of one stream, one each 30 ms.

    Each log-mel channel is normalised: (x - mean) / sqrt(variance), with the spec's statistics, or, where
    `spec.melalpha` is above zero, with statistics that follow this stream from there. Vector i is frames 3i, 3i + 1 and
    3i + 2 one after the other; in the last vector the frames that are missing are zeros (after normalisation, so that
    they stand for an average frame and not for silence).

    Args:
        spec: constants.
        seed: starts the dither's generator (only where `spec.dither` is above zero).
    """

    def __init__(self, spec: FeatureSpec, seed: int = 0) -> None:
        self._spec = spec
        self._logmel = LogMelStream(spec, seed)
        self._deviations = np.sqrt(spec.melvars)
        self.reset()

    @property
    def spec(self) -> FeatureSpec:
        """Constants of the stream."""
        return self._spec

    def reset(self) -> None:
        """Forget everything, adapted statistics included, and start a new stream."""
        self._logmel.reset()
        self._means = self._spec.melmeans.copy()
        self._variances = self._spec.melvars.copy()

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Take more samples.

        Args:
            samples: (n,) int16, or float32 with full scale 1; n may be zero.

        Returns:
            (m, 240) float32, the m vectors that became complete; m may be 0.

        Raises:
            BadInput: wrong type or shape, or a sample that is not finite or beyond 2^20.
            RuntimeError: the stream was finished and not reset.
        """
        return self._stack(self._normalise(self._logmel.push(samples)))

    def finish(self) -> np.ndarray:
        """End the stream: 0.24 s of zero samples go behind it, and what is still due comes out.

        Returns:
            (m, 240) float32. Over the whole stream of n samples there are `spec.vectors(n)` vectors.

        Raises:
            RuntimeError: the stream was finished already.
        """
        return self._stack(self._normalise(self._logmel.finish()))

    def _normalise(self, frames: np.ndarray) -> np.ndarray:
        """Normalised frames; the array is changed in place."""
        alpha = self._spec.melalpha
        if alpha == 0.0:
            frames -= self._spec.melmeans
            frames /= self._deviations
            return frames
        for frame in frames:
            delta = frame - self._means
            self._means += alpha * delta
            self._variances += alpha * delta * delta
            self._variances *= 1.0 - alpha
            frame -= self._means
            frame /= np.sqrt(self._variances)
        return frames

    def _stack(self, frames: np.ndarray) -> np.ndarray:
        vectors = -(-len(frames) // self._spec.stacking)
        stacked = np.zeros((vectors * self._spec.stacking, self._spec.n_mels), np.float32)
        stacked[: len(frames)] = frames
        return stacked.reshape(vectors, self._spec.vector_size)
