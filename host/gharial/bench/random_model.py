# SPDX-License-Identifier: Apache-2.0
"""Models with random weights, in the sizes that CAIMAN-ASR trains or any other: speed without a checkpoint."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from gharial.checkpoint import FeatureSettings, HardwareCheckpoint, ModelDims
from gharial.compiler.calibrate import Calibration
from gharial.compiler.compile import compile_checkpoint
from gharial.floating.calibrate import calibrate_ranges
from gharial.floating.network import FloatNetwork
from gharial.isa.configs import Config
from gharial.program import Program

SHAPES = {
    "testing": ModelDims(240, 1024, 2, 3, 2, 512, 2, 512, 1024),
    "base": ModelDims(240, 1024, 2, 6, 2, 512, 2, 768, 8704),
    "large": ModelDims(240, 1536, 2, 6, 2, 768, 2, 1024, 17408),
}
"""Sizes of the models that CAIMAN-ASR trains, by name."""

_CALIBRATED = 24  # random feature vectors that the units are chosen by
_FEATURE_BITS = 4


def random_checkpoint(
    seed: int,
    dims: ModelDims,
    *,
    pad: bool = False,
    hard_sigmoid: bool = False,
    hard_tanh: bool = False,
    blank_bias: float = 0.0,
    path: str = "random",
) -> HardwareCheckpoint:
    """Weights large enough that units use their range and tokens are emitted.

    Args:
        seed: of the generator.
        dims: sizes.
        pad: pad of the time stack random in place of zero.
        hard_sigmoid: as in the checkpoint.
        hard_tanh: as in the checkpoint.
        blank_bias: added to blank's logit: a large negative one makes every step run into the limit of symbols.
        path: what messages name; compiling needs a file there.
    """
    random = np.random.default_rng(seed)
    state = {}
    for name, shape in dims.shapes().items():
        spread = 0.5 if len(shape) == 1 else 2.0 / np.sqrt(shape[1])
        state[name] = (spread * random.standard_normal(shape)).astype(np.float32)
    state["joint_net.2.bias"][-1] += blank_bias
    post_pad = random.standard_normal(dims.hidden) if pad else np.zeros(dims.hidden)
    return HardwareCheckpoint(
        path=path,
        state=state,
        dims=dims,
        post_pad=post_pad.astype(np.float32),
        batch_norm=pad,
        hard_sigmoid=hard_sigmoid,
        hard_tanh=hard_tanh,
        melmeans=np.zeros(80, np.float32),
        melvars=np.ones(80, np.float32),
        melalpha=0.0,
        sentencepiece=b"",
        rnnt_config={},
        features=FeatureSettings(),
        version="",
        epoch=None,
        step=None,
        best_wer=None,
        ngram_binary=None,
        ngram_scale=None,
        prefix_spec=None,
        other_keys=(),
    )


def random_features(seed: int, vectors: int, dims: ModelDims) -> np.ndarray:
    """Feature vectors of one recording, (vectors, features) float32, of standard deviation 1."""
    return np.random.default_rng(seed).standard_normal((vectors, dims.features)).astype(np.float32)


def random_program(
    seed: int, config: Config | None, dims: ModelDims, *, blank_bias: float = 0.0, pad: bool = False
) -> Program:
    """A program of random weights, calibrated on random features; the same arguments give the same program.

    Raises:
        BadInput: the sizes do not fit the configuration.
    """
    with tempfile.TemporaryDirectory() as folder:
        # The compiler notes the digest of the checkpoint's file.
        file = Path(folder) / "random.hw.pt"
        file.write_bytes(f"random weights, seed {seed}: {dims}".encode())
        checkpoint = random_checkpoint(seed, dims, blank_bias=blank_bias, pad=pad, path=str(file))
        ranges = calibrate_ranges(FloatNetwork(checkpoint), [random_features(seed, _CALIBRATED, dims)])
        return compile_checkpoint(checkpoint, config, Calibration(ranges, _FEATURE_BITS))
