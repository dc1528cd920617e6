# SPDX-License-Identifier: Apache-2.0
"""Training checkpoints and the configuration beside them, in the layout that `gharial export` takes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from gharial.checkpoint import ModelDims
from gharial.checkpoint.weights import size_keys
from gharial.errors import BadInput
from gharial.files import write_atomically

LAST, BEST, CONFIG, TOKENS = "last.pt", "best.pt", "config.yaml", "tokens.model"
"""Names in a training's folder: to go on from; the best averaged weights; configuration; SentencePiece model."""


def write_torch(path: Path, tree: Any) -> None:
    """`torch.save`, whole or not at all."""
    buffer = io.BytesIO()
    torch.save(tree, buffer)
    write_atomically(path, iter([buffer.getvalue()]))


def read_training(path: Path) -> dict[str, Any]:
    """A training checkpoint of ours.

    Raises:
        BadInput: the file is none.
    """
    try:
        # Plain data and tensors alone: no code of the file is run.
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise BadInput("cannot be gone on from", path, error, "a checkpoint of this script", "remove it") from error
    if not isinstance(state, dict) or "optimizer" not in state:
        raise BadInput("cannot be gone on from", path, "other content", "a checkpoint of this script", "remove it")
    return state


def configuration(dims: ModelDims) -> dict[str, Any]:
    """What an export needs to be told of a training: features, sizes, tokens."""
    return {
        "tokenizer": {
            "sentpiece_model": TOKENS,
            "labels": [" ", *"abcdefghijklmnopqrstuvwxyz", "'"],
        },
        "rnnt": size_keys(dims),
        "input_val": {
            "filterbank_features": {
                # Every string has at least that much noise of its own (`Mixture.hiss_db`).
                "dither": 1e-5,
                "n_fft": 512,
                "n_filt": 80,
                "normalize": "per_feature",
                "sample_rate": 16000,
                "window": "hann",
                "window_size": 0.025,
                "window_stride": 0.01,
            },
            "frame_splicing": {"frame_stacking": 3, "frame_subsampling": 3},
        },
    }


def write_config(
    folder: Path, dims: ModelDims, sentencepiece: bytes, melmeans: np.ndarray, melvars: np.ndarray
) -> None:
    """Write the configuration, the SentencePiece model that it points to, and the mel statistics."""
    write_atomically(folder / TOKENS, iter([sentencepiece]))
    write_torch(folder / "melmeans.pt", torch.from_numpy(melmeans))
    write_torch(folder / "melvars.pt", torch.from_numpy(melvars))
    write_atomically(folder / CONFIG, iter([yaml.safe_dump(configuration(dims), sort_keys=False).encode()]))


def training_checkpoint(
    state: dict[str, Any], melmeans: np.ndarray, melvars: np.ndarray, sentencepiece: bytes
) -> dict[str, Any]:
    """A training's state with what an export needs beside the weights."""
    return {
        **state,
        "melmeans": torch.from_numpy(melmeans),
        "melvars": torch.from_numpy(melvars),
        "melalpha": 0.0,
        "sentpiece_model": sentencepiece,
        "logmel_norm_weight": 1.0,
    }


def best_of(state: dict[str, Any], errors: int, words: int) -> dict[str, Any]:
    """A training checkpoint whose averaged weights are the best that the dev set saw, without the optimiser's state."""
    progress = state["progress"]
    chosen = {key: value for key, value in state.items() if key not in ("progress", "optimizer")}
    return chosen | {
        "ema_state_dict": progress["best"],
        "step": progress["best_step"],
        "best_wer": 100.0 * errors / words,
        "optimizer": {},
    }
