# SPDX-License-Identifier: Apache-2.0
"""Stacks of LSTM layers with a dense layer on top, as hardware checkpoints (docs/bring_your_lstm.md)."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gharial.checkpoint.dims import POST, PRE, ModelDims
from gharial.checkpoint.weights import size_keys
from gharial.errors import BadInput, GharialError
from gharial.export.zipping import checkpoint_pieces
from gharial.features.vectors import SUFFIX
from gharial.files import write_atomically
from gharial.floating.lstm import LstmLayer, sigmoid

CHECKPOINT, CALIBRATION = ".hw.pt", ".calibration"

# A SentencePiece model of one piece, <unk>: ModelProto.pieces 1 {piece 1, score 2, type 3 = UNKNOWN 2}.
_ONE_PIECE = b"\x0a\x0e" + b"\x0a\x05<unk>" + b"\x15\0\0\0\0" + b"\x18\x02"
# Columns that hardly move have no scale of their own: their deviation is taken as this share of the largest.
_LEAST_DEVIATION = 1e-6
_NAME = "name another output file"


@dataclass(frozen=True)
class Lstm:
    """One layer: (4 H, X), (4 H, H), (4 H,) float; gate rows i, f, g, o; `bias` is all that is added."""

    weight_ih: np.ndarray
    weight_hh: np.ndarray
    bias: np.ndarray

    @property
    def hidden(self) -> int:
        """H."""
        return int(self.weight_hh.shape[1])

    def run(self, x: np.ndarray) -> np.ndarray:
        """h of each step, (T, H), in double precision, for inputs (T, X) from zero states."""
        of_x, of_h, bias = (np.asarray(array, np.float64) for array in (self.weight_ih, self.weight_hh, self.bias))
        return LstmLayer(of_x, of_h, bias, sigmoid, np.tanh).run(np.asarray(x, np.float64)[None]).h[0]


@dataclass(frozen=True)
class Dense:
    """(J, H) and (J,) float."""

    weight: np.ndarray
    bias: np.ndarray

    def run(self, x: np.ndarray) -> np.ndarray:
        """(T, J) in double precision for (T, H)."""
        return np.asarray(x, np.float64) @ self.weight.T.astype(np.float64) + self.bias


@dataclass(frozen=True)
class Framing:
    """Times of the vectors, in samples at `rate` Hz: one each `hop`, of `window`."""

    rate: int
    window: int
    hop: int


def gates(rows: np.ndarray, found: str, wanted: str = "ifgo") -> np.ndarray:
    """Blocks of rows, one a gate, put into another order; a letter names a gate in both."""
    blocks = np.split(rows, len(found))
    return np.concatenate([blocks[found.index(gate)] for gate in wanted])


def run_float(layers: Sequence[Lstm], x: np.ndarray) -> np.ndarray:
    """h of the last of some layers, (T, H), for inputs (T, X)."""
    for layer in layers:
        x = layer.run(x)
    return x


def encoder_checkpoint(
    layers: Sequence[Lstm], head: Dense, vectors: Sequence[np.ndarray], framing: Framing
) -> dict[str, Any]:
    """What a hardware checkpoint of these layers holds.

    Args:
        layers: first layer first, all of one width.
        head: reads the last layer's h.
        vectors: (T, X) inputs, of recordings like those the network will run on; their columns' mean and deviation
            become the features' normalisation, and the first layer takes it back.
        framing: when a vector comes.

    Raises:
        BadInput: sizes that contradict each other, or no vectors.
    """
    dims = _dims(layers, head)
    for index, x in enumerate(vectors):
        if x.ndim != 2 or x.shape[1] != dims.features or not np.isfinite(x).all():
            expected = f"(any, {dims.features}), finite"
            raise BadInput("these are no vectors of the network", f"recording {index}", x.shape, expected)
    joined = np.concatenate([np.zeros((0, dims.features)), *vectors])
    if not len(joined):
        raise BadInput("no vectors to take means and deviations of", expected="recordings")
    means = joined.mean(axis=0).astype(np.float32)
    deviations = joined.std(axis=0)
    deviations = np.maximum(deviations, _LEAST_DEVIATION * deviations.max() or 1.0)
    variances = np.square(deviations).astype(np.float32)
    state = {name: np.zeros(shape, np.float32) for name, shape in dims.shapes().items()}
    for index, layer in enumerate(layers):
        weight, bias = layer.weight_ih.astype(np.float64), layer.bias.astype(np.float64)
        if index == 0:
            # As the program will have them: rounded to float32.
            bias = bias + weight @ means.astype(np.float64)
            weight = weight * np.sqrt(variances.astype(np.float64))
        prefix, k = (f"{PRE}.lstm.", 0) if index == 0 else (f"{POST}.lstm.", index - 1)
        for name, array in (("weight_ih", weight), ("weight_hh", layer.weight_hh), ("bias_ih", bias)):
            state[f"{prefix}{name}_l{k}"] = array.astype(np.float32)
    state |= {"joint_enc.weight": head.weight.astype(np.float32), "joint_enc.bias": head.bias.astype(np.float32)}
    state["joint_net.2.bias"][-1] = 1.0  # blank, always: nothing is decoded
    return {
        "state_dict": state,
        "melmeans": means,
        "melvars": variances,
        "melalpha": 0.0,
        "sentpiece_model": _ONE_PIECE,
        "version": "",
        "rnnt_config": _config(dims, framing),
        "ngram": {"binary": None, "scale_factor": None},
    }


def write_encoder(
    path: Path, layers: Sequence[Lstm], head: Dense, vectors: Sequence[np.ndarray], framing: Framing
) -> Path:
    """Write a checkpoint, and its vectors beside it for the compiler to calibrate with.

    Args:
        path: NAME.hw.pt to write; the vectors go to the folder NAME.calibration, in place of what is there.
        layers, head, vectors, framing: as in `encoder_checkpoint`.

    Returns:
        The folder of vectors.

    Raises:
        BadInput: as `encoder_checkpoint`; the name has another ending, or cannot be written to.
        GharialError: writing failed.
    """
    if not path.name.endswith(CHECKPOINT):
        raise BadInput("the checkpoint's name has another ending", path, path.name, f"NAME{CHECKPOINT}", _NAME)
    tree = encoder_checkpoint(layers, head, vectors, framing)
    folder = path.with_name(path.name.removesuffix(CHECKPOINT) + CALIBRATION)
    if not path.parent.is_dir():
        raise BadInput("the folder does not exist", path.parent, "nothing", "a folder", f"make it, or {_NAME}")
    there = folder.exists() or folder.is_symlink()
    if there and (not folder.is_dir() or any(entry.suffix != SUFFIX for entry in folder.iterdir())):
        raise BadInput("there is something else in place of the folder of vectors", folder, remedy="remove it")
    made = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.part")
    try:
        made.mkdir()
        for index, array in enumerate(vectors):
            np.save(made / f"{index:04}{SUFFIX}", np.asarray(array, np.float32))
        write_atomically(path, checkpoint_pieces(tree, path))
        if there:
            shutil.rmtree(folder)
        made.rename(folder)
    except OSError as error:
        raise GharialError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)  # not there any more where all went well
    return folder


def _dims(layers: Sequence[Lstm], head: Dense) -> ModelDims:
    if not layers:
        raise BadInput("there are no layers", expected="one LSTM layer or more")
    hidden = layers[0].hidden
    for index, layer in enumerate(layers):
        inputs = layer.weight_ih.shape[1] if index == 0 else hidden
        found = (layer.weight_ih.shape, layer.weight_hh.shape, layer.bias.shape)
        expected = ((4 * hidden, inputs), (4 * hidden, hidden), (4 * hidden,))
        if found != expected:
            raise BadInput("shapes do not fit: all layers must have one width", f"layer {index}", found, expected)
    if head.weight.shape != (len(head.bias), hidden):
        raise BadInput("shapes do not fit", "dense layer", head.weight.shape, (len(head.bias), hidden))
    return ModelDims(
        features=layers[0].weight_ih.shape[1],
        hidden=hidden,
        pre_layers=1,
        post_layers=len(layers) - 1,
        stack=1,
        pred_hidden=1,
        pred_layers=1,
        joint=len(head.bias),
        classes=2,
    )


def _config(dims: ModelDims, framing: Framing) -> dict[str, Any]:
    return {
        "input_val": {
            "given": True,
            "filterbank_features": {
                "sample_rate": framing.rate,
                "window_size": framing.window / framing.rate,
                "window_stride": framing.hop / framing.rate,
                "n_fft": 1 << (framing.window - 1).bit_length(),
                "n_filt": dims.features,
            },
            "frame_splicing": {"frame_stacking": 1, "frame_subsampling": 1},
        },
        "rnnt": size_keys(dims),
    }
