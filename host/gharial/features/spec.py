# SPDX-License-Identifier: Apache-2.0
"""Constants of the front end, checked once so that the streams need not check them again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gharial.errors import BadInput

if TYPE_CHECKING:
    from gharial.checkpoint.hardware import HardwareCheckpoint

TAIL_SECONDS = 0.24
"""Silence added at the end of a stream, so that the encoder's look-ahead does not swallow the last word."""

MOST_POINTS = 1 << 16
"""Largest Fourier transform."""

SETTINGS = ("sample_rate", "window", "hop", "n_fft", "n_mels", "stacking", "subsampling", "melalpha")
"""Fields of a `FeatureSpec` that a program's manifest repeats; the mel statistics are sections of the program."""


@dataclass(frozen=True, eq=False)
class FeatureSpec:
    """What turns samples into feature vectors.

    The defaults are CAIMAN-ASR's base and large models without normalisation (mean 0, variance 1).

    Args:
        sample_rate: Hz.
        window: length of a frame in samples: 400 (25 ms; base, large) or 320 (20 ms; testing).
        hop: samples from one frame to the next.
        n_fft: points of the Fourier transform, a power of two, at least `window`.
        n_mels: mel channels.
        stacking: frames joined into one vector.
        subsampling: of so many stacked vectors one is kept; must equal `stacking`, as in every published model.
        preemphasis: coefficient of the first-order high-pass, in [0, 1).
        melmeans: (n_mels,) mean of each channel's log energy.
        melvars: (n_mels,) variance of each channel's log energy, above zero.
        melalpha: 0 = fixed statistics; above 0 (below 1) = statistics follow the stream at that rate.
        dither: standard deviation of the noise added to the samples, full scale being 1; 0 = none.
        given: vectors are made elsewhere and come as they are (docs/bring_your_lstm.md); melmeans and melvars are those
            of their columns, and there are no features of audio.

    Raises:
        BadInput: a value is outside its range.
    """

    sample_rate: int = 16000
    window: int = 400
    hop: int = 160
    n_fft: int = 512
    n_mels: int = 80
    stacking: int = 3
    subsampling: int = 3
    preemphasis: float = 0.97
    melmeans: np.ndarray = field(default_factory=lambda: np.zeros(80))
    melvars: np.ndarray = field(default_factory=lambda: np.ones(80))
    melalpha: float = 0.0
    dither: float = 0.0
    given: bool = False

    def __post_init__(self) -> None:
        for name in ("sample_rate", "hop", "n_mels", "stacking", "subsampling"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        _require(self.hop <= self.window, "window", self.window, f"at least the hop, {self.hop} samples")
        power_of_two = 8 <= self.n_fft <= MOST_POINTS and self.n_fft & (self.n_fft - 1) == 0
        expected = f"a power of two from {self.window} to {MOST_POINTS}"
        _require(power_of_two and self.n_fft >= self.window, "n_fft", self.n_fft, expected)
        _require(self.subsampling == self.stacking, "subsampling", self.subsampling, f"stacking, {self.stacking}")
        _require(0.0 <= self.preemphasis < 1.0, "preemphasis", self.preemphasis, "0 <= preemphasis < 1")
        _require(0.0 <= self.melalpha < 1.0, "melalpha", self.melalpha, "0 <= melalpha < 1")
        _require(0.0 <= self.dither < 1.0, "dither", self.dither, "0 <= dither < 1")
        for name in ("melmeans", "melvars"):
            # A private read-only copy: the spec is a key of caches and is shared by all streams.
            values = np.array(getattr(self, name), dtype=np.float64)
            _require(values.shape == (self.n_mels,), name, f"shape {values.shape}", f"shape ({self.n_mels},)")
            _require(bool(np.isfinite(values).all()), name, "a value that is not finite", "finite numbers")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        lowest = float(self.melvars.min())
        _require(lowest > 0.0, "melvars", f"a variance of {lowest:g}", "variances above zero")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def vector_size(self) -> int:
        """Length of one feature vector (240)."""
        return self.n_mels * self.stacking

    @property
    def lead(self) -> int:
        """Zeros put in front of a stream, in samples: the first frame then ends with the first hop of sound."""
        return self.window - self.hop

    @property
    def tail(self) -> int:
        """Zeros put behind a stream, in samples."""
        return round(TAIL_SECONDS * self.sample_rate)

    @property
    def vector_seconds(self) -> float:
        """Time from one feature vector to the next (0.03 s)."""
        return self.hop * self.subsampling / self.sample_rate

    def frames(self, samples: int, tail: int | None = None) -> int:
        """Number of log-mel frames of `samples` samples with lead and tail: floor((N - window) / hop) + 1."""
        total = self.lead + samples + (self.tail if tail is None else tail)
        return (total - self.window) // self.hop + 1

    def vectors(self, samples: int) -> int:
        """Number of feature vectors of `samples` samples with lead and tail: ceil(frames / stacking)."""
        return -(-self.frames(samples) // self.stacking)

    @classmethod
    def from_checkpoint(cls, checkpoint: HardwareCheckpoint, dither: bool = False) -> FeatureSpec:
        """Spec of a hardware checkpoint: its feature settings and mel statistics.

        Args:
            checkpoint: as `gharial.checkpoint.load_hardware` gives it.
            dither: add the noise that the model was trained with; off by default, so that runs can be repeated.

        Raises:
            BadInput: the checkpoint asks for what this front end does not do.
        """
        settings = checkpoint.features
        return cls(
            melmeans=checkpoint.melmeans,
            melvars=checkpoint.melvars,
            melalpha=checkpoint.melalpha,
            dither=settings.dither if dither else 0.0,
            **settings.front_end(),
        )

    def require_audio(self, where: object) -> None:
        """Raise BadInput if the model, `where`, takes vectors that are made elsewhere."""
        if self.given:
            raise BadInput(
                "this network takes vectors that are made elsewhere, no audio",
                where,
                remedy="calibrate with a folder of them (gharial compile --calibrate DIR), run it by gharial.Encoder",
            )

    def normalised(self, vectors: np.ndarray) -> np.ndarray:
        """What the network is given: vectors made elsewhere normalised by mean and variance; others are already.

        Args:
            vectors: (n, vector_size) float.

        Returns:
            float64 of the same shape.

        Raises:
            BadInput: another shape, or a value that is not finite.
        """
        found = np.asarray(vectors, np.float64)
        if found.ndim != 2 or found.shape[1] != self.vector_size:
            raise BadInput("vectors have the wrong shape", found=found.shape, expected=f"(any, {self.vector_size})")
        if not np.isfinite(found).all():
            raise BadInput("a value of the vectors is not finite", expected="finite numbers")
        if not self.given:
            return found
        means, variances = (np.tile(values, self.stacking) for values in (self.melmeans, self.melvars))
        return (found - means) / np.sqrt(variances)

    def _key(self) -> tuple[object, ...]:
        return (
            self.sample_rate,
            self.window,
            self.hop,
            self.n_fft,
            self.n_mels,
            self.stacking,
            self.subsampling,
            self.preemphasis,
            self.melmeans.tobytes(),
            self.melvars.tobytes(),
            self.melalpha,
            self.dither,
            self.given,
        )


def _require(holds: bool, name: str, found: object, expected: str) -> None:
    if not holds:
        raise BadInput(f"{name} is out of range", where="feature settings", found=found, expected=expected)
