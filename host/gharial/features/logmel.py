# SPDX-License-Identifier: Apache-2.0
"""Log-mel frames of a stream, the same to the bit however the stream is cut into pushes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gharial.errors import BadInput
from gharial.features._transform import Transform
from gharial.features.filters import hann, mel_filters
from gharial.features.spec import FeatureSpec

ENERGY_FLOOR = 1e-20
"""Smallest mel energy before the logarithm, so that digital silence gives -46.05 and not minus infinity."""

MAX_SAMPLE = 2.0**20
"""Largest float sample, full scale being 1: more than 16-bit integers taken for floats, and its power is finite."""

# Long pushes are taken in pieces of this many samples, which bounds the memory in use.
_PIECE = 16000


class LogMelStream:
    """Log-mel energies of one stream.

    `spec.lead` zeros go in front of the samples, `tail` zeros behind them; pre-emphasis runs over the whole, the first
    sample against itself. Frames come in groups of `spec.stacking`, and a group is the smallest amount ever computed:
    the shapes that reach the matrix product and the transform are then always the same, and so are their bits.

    Args:
        spec: constants; the normalisation fields are not used here.
        seed: starts the dither's generator (only where `spec.dither` is above zero).
        tail: zeros that `finish` adds, in samples; `spec.tail` if None.
    """

    def __init__(self, spec: FeatureSpec, seed: int = 0, tail: int | None = None) -> None:
        self._spec = spec
        self._seed = seed
        self._tail = spec.tail if tail is None else tail
        self._transform, self._filters = _tables(spec.sample_rate, spec.window, spec.n_fft, spec.n_mels)
        self._group_hop = spec.stacking * spec.hop
        self._group_span = (spec.stacking - 1) * spec.hop + spec.window
        self.reset()

    @property
    def spec(self) -> FeatureSpec:
        """Constants of the stream."""
        return self._spec

    def reset(self) -> None:
        """Forget everything and start a new stream."""
        self._noise = np.random.default_rng(self._seed) if self._spec.dither > 0.0 else None
        self._finished = False
        self._samples = 0
        self._frames = 0
        # Pre-emphasised samples from the start of the next group on.
        self._rest = np.empty(0, np.float32)
        self._previous: np.float32 | None = None
        self._rest = self._emphasise(np.zeros(self._spec.lead, np.float32))

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Take more samples.

        Args:
            samples: (n,) int16, or float32 with full scale 1; n may be zero.

        Returns:
            (stacking m, n_mels) float64, natural logarithm of the mel energies of the m groups completed; m may be 0.

        Raises:
            BadInput: wrong type or shape, or a sample that is not finite or beyond `MAX_SAMPLE`.
            RuntimeError: the stream was finished and not reset.
        """
        if self._finished:
            raise RuntimeError("push() after finish(): call reset() to start a new stream")
        values = _as_float(samples)
        self._samples += len(values)
        if len(values) <= _PIECE:
            return self._advance(values)
        pieces = [self._advance(values[start : start + _PIECE]) for start in range(0, len(values), _PIECE)]
        return np.concatenate(pieces)

    def finish(self) -> np.ndarray:
        """End the stream: add the tail and give the frames still due.

        Returns:
            (n, n_mels) float64; n need not be a multiple of `stacking`.

        Raises:
            RuntimeError: the stream was finished already.
        """
        if self._finished:
            raise RuntimeError("finish() twice: call reset() to start a new stream")
        self._finished = True
        frames = self._advance(np.zeros(self._tail, np.float32))
        due = self._spec.frames(self._samples, self._tail) - self._frames
        if due == 0:
            return frames
        # The group is made whole with zeros only to keep the shape; the frames that reach into them are dropped.
        last = np.zeros(self._group_span, np.float32)
        last[: len(self._rest)] = self._rest
        self._frames += due
        return np.concatenate((frames, self._groups(last, 1)[:due]))

    def _advance(self, values: np.ndarray) -> np.ndarray:
        held = np.concatenate((self._rest, self._emphasise(values)))
        count = max(0, (len(held) - self._group_span) // self._group_hop + 1)
        self._rest = held[count * self._group_hop :].copy()
        self._frames += count * self._spec.stacking
        return self._groups(held, count)

    def _emphasise(self, values: np.ndarray) -> np.ndarray:
        if len(values) == 0:
            return values
        if self._noise is not None:
            values = (values + self._spec.dither * self._noise.standard_normal(len(values))).astype(np.float32)
        before = np.empty_like(values)
        before[1:] = values[:-1]
        before[0] = values[0] if self._previous is None else self._previous
        self._previous = values[-1]
        before *= np.float32(self._spec.preemphasis)
        np.subtract(values, before, out=before)
        return before

    def _groups(self, held: np.ndarray, count: int) -> np.ndarray:
        """The first `count` groups of `held`, (count stacking, n_mels).

        Matrix product and logarithm stay inside the loop: their vectorised code may round a value by its place in the
        array, the elementary operations elsewhere in this package never do.
        """
        spec = self._spec
        power = np.empty((count, spec.stacking, spec.n_fft // 2 + 1))
        self._transform.power(held, spec.hop, count * spec.stacking, power)
        energies = np.empty((count, spec.stacking, spec.n_mels))
        for spectra, out in zip(power, energies, strict=True):
            np.matmul(spectra, self._filters, out=out)
            np.maximum(out, ENERGY_FLOOR, out=out)
            np.log(out, out=out)
        return energies.reshape(-1, spec.n_mels)


def logmel(samples: np.ndarray, spec: FeatureSpec, tail: int = 0) -> np.ndarray:
    """Log-mel energies of a whole recording, without normalisation.

    Args:
        samples: (n,) int16, or float32 with full scale 1.
        spec: constants.
        tail: zeros put behind the samples; none by default, `spec.tail` for what a stream gives.

    Returns:
        (T, n_mels) float64, T = floor((spec.lead + n + tail - window) / hop) + 1; the bits of `LogMelStream`.

    Raises:
        BadInput: wrong type or shape, or a sample that is not finite or beyond `MAX_SAMPLE`.
    """
    stream = LogMelStream(spec, tail=tail)
    return np.concatenate((stream.push(samples), stream.finish()))


@lru_cache(maxsize=16)
def _tables(sample_rate: int, window: int, n_fft: int, n_mels: int) -> tuple[Transform, np.ndarray]:
    """Transform and filters, one copy for all streams of a process."""
    filters = mel_filters(sample_rate, n_fft, n_mels)
    filters.setflags(write=False)
    return Transform(hann(window).astype(np.float32), n_fft), filters


def _as_float(samples: object) -> np.ndarray:
    """Samples as float32 with full scale 1; exact for both types, so that a recording gives the same either way."""
    if not isinstance(samples, np.ndarray) or samples.ndim != 1 or samples.dtype not in (np.int16, np.float32):
        found = f"{samples.dtype} {samples.shape}" if isinstance(samples, np.ndarray) else type(samples).__name__
        raise BadInput("samples cannot be used", found=found, expected="a one-dimensional array of int16 or float32")
    values: np.ndarray = samples.astype(np.float32)
    if samples.dtype == np.int16:
        values *= np.float32(1.0 / 32768.0)
    elif not np.isfinite(values).all():
        raise BadInput("a sample is not finite", found="NaN or infinity", expected="numbers of about -1 to 1")
    elif (np.abs(values) > MAX_SAMPLE).any():
        found = f"{float(np.abs(values).max()):g}"
        raise BadInput("a sample is out of its range", found=found, expected="numbers of about -1 to 1")
    return values
