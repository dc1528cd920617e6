# SPDX-License-Identifier: Apache-2.0
"""Settings of the log-mel features that a checkpoint was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gharial.checkpoint.config import Section
from gharial.checkpoint.dims import ModelDims
from gharial.checkpoint.text import shown
from gharial.errors import BadInput
from gharial.features.spec import FeatureSpec

_WINDOW_S = 0.025
_TESTING_WINDOW_S = 0.020
_TESTING_CLASSES = 1024
_REMEDY = "export the checkpoint again with the configuration that it was trained with"


@dataclass(frozen=True)
class FeatureSettings:
    """How audio becomes encoder inputs.

    Attributes:
        sample_rate: samples a second.
        window_size: window length in seconds.
        window_stride: hop in seconds.
        n_fft: points of the Fourier transform, at least as many as the window has samples.
        n_filt: mel bins.
        stacking: frames joined to one input.
        subsampling: every how many-th joined frame is kept.
        dither: standard deviation of the noise added in training, full scale 1.
        given: the encoder's inputs are vectors that are made elsewhere, `n_filt` values and `stacking` of them joined;
            of the settings above the times are true, and no audio becomes features here.
    """

    sample_rate: int = 16000
    window_size: float = _WINDOW_S
    window_stride: float = 0.01
    n_fft: int = 512
    n_filt: int = 80
    stacking: int = 3
    subsampling: int = 3
    dither: float = 1e-5
    given: bool = False

    @property
    def window_samples(self) -> int:
        """Window length in samples."""
        return round(self.window_size * self.sample_rate)

    @property
    def hop_samples(self) -> int:
        """Hop in samples."""
        return round(self.window_stride * self.sample_rate)

    def front_end(self) -> dict[str, Any]:
        """The same as arguments of `gharial.features.FeatureSpec`, which has no part of the noise."""
        return {
            "sample_rate": self.sample_rate,
            "window": self.window_samples,
            "hop": self.hop_samples,
            "n_fft": self.n_fft,
            "n_mels": self.n_filt,
            "stacking": self.stacking,
            "subsampling": self.subsampling,
            "given": self.given,
        }


def feature_settings(config: Section, dims: ModelDims, where: str) -> FeatureSettings:
    """Settings from `rnnt_config.input_val`, with the shipped models' values where the checkpoint states none.

    Checkpoints before 1.4 carry no configuration at all. What their window was is not recorded: 20 ms is taken for the
    testing model, known by its 1024 classes, and 25 ms for all others, as the shipped configurations have it.

    Raises:
        BadInput: a value out of range, a window function or normalisation other than the shipped ones, sizes that
            contradict the tensors, or what the front end does not do.
    """
    bank = config.section("input_val").section("filterbank_features")
    splicing = config.section("input_val").section("frame_splicing")
    default = FeatureSettings(window_size=_TESTING_WINDOW_S if dims.classes == _TESTING_CLASSES else _WINDOW_S)
    for key, only in (("window", "hann"), ("normalize", "per_feature")):
        value = bank.maybe_text(key)
        if value not in (None, only):
            raise BadInput(f"features with this {key} are not supported", where, shown(value), only, _REMEDY)
    settings = FeatureSettings(
        sample_rate=bank.integer("sample_rate", default.sample_rate, 8000, 48000),
        window_size=bank.number("window_size", default.window_size, 0.001, 1.0),
        window_stride=bank.number("window_stride", default.window_stride, 0.001, 1.0),
        n_fft=bank.integer("n_fft", default.n_fft, 16, 65536),
        n_filt=bank.integer("n_filt", default.n_filt, 1, 1024),
        stacking=splicing.integer("frame_stacking", default.stacking, 1, 64),
        subsampling=splicing.integer("frame_subsampling", default.subsampling, 1, 64),
        dither=bank.number("dither", default.dither, 0.0, 1.0),
        given=config.section("input_val").flag("given"),
    )
    if settings.window_samples > settings.n_fft:
        raise BadInput(
            "the window is longer than the Fourier transform",
            where,
            f"{settings.window_samples} samples",
            f"at most n_fft = {settings.n_fft}",
            _REMEDY,
        )
    if settings.n_filt * settings.stacking != dims.features:
        raise BadInput(
            "features do not fit the encoder's inputs",
            where,
            f"{settings.n_filt} mel bins x {settings.stacking} frames = {settings.n_filt * settings.stacking}",
            f"{dims.features}, the columns of encoder.pre_rnn.lstm.weight_ih_l0",
            _REMEDY,
        )
    try:
        FeatureSpec(**settings.front_end(), melmeans=np.zeros(settings.n_filt), melvars=np.ones(settings.n_filt))
    except BadInput as error:
        what = f"the front end does not do these features: {error.what}"
        raise BadInput(what, where, error.found, error.expected, _REMEDY) from None
    return settings
