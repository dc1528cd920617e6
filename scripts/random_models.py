# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of the sizes that CAIMAN-ASR trains, with the weights that a network has before training."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import torch

from gharial.bench.random_model import SHAPES
from gharial.checkpoint import ModelDims, load_hardware
from gharial.checkpoint.weights import size_keys
from gharial.model import demo_model

SEED = 5


def state(seed: int, dims: ModelDims, spread: float = 1.0) -> dict[str, np.ndarray]:
    """Weights as PyTorch draws them by default: LSTMs and dense layers uniform within one over the root of the width.

    Args:
        seed: of the generator.
        dims: sizes.
        spread: factor on the range of all but the embedding, which is normal.
    """
    random = np.random.default_rng(seed)

    def draw(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if "embed" in name:
            return random.standard_normal(shape)
        widths = {"encoder": dims.hidden, "prediction": dims.pred_hidden}
        widths |= {"joint_enc": dims.hidden, "joint_pred": dims.pred_hidden, "joint_net": dims.joint}
        return random.uniform(-spread, spread, shape) / np.sqrt(widths[name.split(".")[0]])

    return {name: draw(name, shape).astype(np.float32) for name, shape in dims.shapes().items()}


def write(path: Path, dims: ModelDims, seed: int = SEED, spread: float = 1.0) -> None:
    """Write a hardware checkpoint with such weights, and all else as the shipped one has it.

    The SentencePiece model is the shipped one's with further pieces that no text has.
    """
    demo = load_hardware(demo_model())
    config = size_keys(dims)
    top = {
        "state_dict": {name: torch.from_numpy(array) for name, array in state(seed, dims, spread).items()},
        "epoch": 0,
        "step": 0,
        "best_wer": 100.0,
        "melmeans": torch.from_numpy(np.array(demo.melmeans)),
        "melvars": torch.from_numpy(np.array(demo.melvars)),
        "melalpha": 0.0,
        "sentpiece_model": demo.sentencepiece + _pieces(demo.dims.classes - 1, dims.classes - 1),
        "version": "1.14.0",
        "rnnt_config": {**demo.rnnt_config, "rnnt": config},
        "ngram": {"binary": None, "scale_factor": None},
    }
    torch.save(top, path)


def named(path: Path, name: str) -> Path:
    """Write the checkpoint of one of the sizes of SHAPES into a folder; returns its path."""
    file = path / f"random-{name}.hw.pt"
    write(file, SHAPES[name])
    return file


def _pieces(first: int, end: int) -> bytes:
    """Pieces of a SentencePiece model: field 1 of ModelProto, each with a text (field 1) and a score (field 2)."""
    found = b""
    for index in range(first, end):
        text = f"\u2581piece{index}".encode()
        body = b"\x0a" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", -100.0 - index)
        found += b"\x0a" + bytes([len(body)]) + body
    return found
