# SPDX-License-Identifier: Apache-2.0
"""Hardware checkpoints with random weights, made in memory."""

from __future__ import annotations

import numpy as np

from gharial.checkpoint import FeatureSettings, HardwareCheckpoint, ModelDims

SMALL = ModelDims(
    features=12, hidden=10, pre_layers=2, post_layers=2, stack=2, pred_hidden=7, pred_layers=2, joint=9, classes=11
)

LESS_BLANK = -4.0
"""A bias of blank at which every seed emits tokens: without, one in thirty emits none in a short recording."""


def random_checkpoint(
    seed: int,
    dims: ModelDims = SMALL,
    *,
    pad: bool = False,
    hard_sigmoid: bool = False,
    hard_tanh: bool = False,
    blank_bias: float = 0.0,
) -> HardwareCheckpoint:
    """Weights large enough that units use their range and tokens are emitted.

    Args:
        seed: of the generator.
        dims: sizes.
        pad: pad of the time stack random in place of zero.
        hard_sigmoid: as in the checkpoint.
        hard_tanh: as in the checkpoint.
        blank_bias: added to blank's logit: a large negative one makes every step run into the limit of symbols.
    """
    random = np.random.default_rng(seed)
    state = {}
    for name, shape in dims.shapes().items():
        spread = 0.5 if len(shape) == 1 else 2.0 / np.sqrt(shape[1])
        state[name] = (spread * random.standard_normal(shape)).astype(np.float32)
    state["joint_net.2.bias"][-1] += blank_bias
    post_pad = random.standard_normal(dims.hidden) if pad else np.zeros(dims.hidden)
    return HardwareCheckpoint(
        path="random",
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


def random_features(seed: int, vectors: int, dims: ModelDims = SMALL) -> np.ndarray:
    """Feature vectors of one recording, (vectors, features) float32, of standard deviation 1."""
    return np.random.default_rng(seed).standard_normal((vectors, dims.features)).astype(np.float32)
