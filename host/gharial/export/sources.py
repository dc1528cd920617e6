# SPDX-License-Identifier: Apache-2.0
"""Mel statistics and SentencePiece model: out of the training checkpoint, or the files that the user's side names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gharial.checkpoint.dims import ModelDims
from gharial.checkpoint.recognise import GIVE
from gharial.checkpoint.sentencepiece_model import count_pieces
from gharial.checkpoint.text import listed, shown
from gharial.checkpoint.torchzip import load
from gharial.checkpoint.weights import check_finite
from gharial.errors import BadInput
from gharial.export.configuration import TrainingConfig
from gharial.export.training import TrainingCheckpoint
from gharial.files import open_regular

_MAX_MODEL_BYTES = 64 << 20
_STATISTICS = "give the files that the model was trained with: --melmeans FILE --melvars FILE"


def beside(config: TrainingConfig, stated: str) -> Path:
    """The file or folder that a configuration names: from the working folder as training does, else beside the file."""
    path = Path(stated)
    try:
        if path.exists() or path.is_absolute():
            return path
        other = Path(config.path).parent / path
        return other if other.exists() else path
    except OSError as error:  # too long, or a folder that may not be entered
        found, remedy = f"{shown(stated)}: {error.strerror}", "correct it, or give the file by an option"
        raise BadInput("a path in it cannot be followed", config.path, found, "a file or folder", remedy) from None


def sentencepiece_model(
    checkpoint: TrainingCheckpoint, config: TrainingConfig, override: str | None
) -> tuple[bytes, str]:
    """The tokeniser's model and where it is from: the file given, else the checkpoint's own, else the configuration's.

    Raises:
        BadInput: no such file, no SentencePiece model, or one that does not fit the output layer; a tokeniser in the
            checkpoint that contradicts the configuration's.
    """
    labels = config.inference["tokenizer"]["labels"]
    if checkpoint.labels is not None and checkpoint.labels != tuple(labels):
        raise BadInput(
            "tokenizer.labels contradicts the training checkpoint, which was trained with other characters",
            config.path,
            listed((shown(label) for label in labels), 40),
            listed((shown(label) for label in checkpoint.labels), 40),
            "give the configuration that the model was trained with",
        )
    if override is None and checkpoint.sentencepiece is not None:
        model, where = checkpoint.sentencepiece, f"{checkpoint.path}: sentpiece_model"
    else:
        path = Path(override) if override is not None else beside(config, config.sentencepiece_path)
        model, where = _read_model(path, config if override is None else None), str(path)
    _check_pieces(model, checkpoint.dims, where)
    return model, where


def mel_statistics(
    checkpoint: TrainingCheckpoint, config: TrainingConfig, means: str | None, variances: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each mel bin, float32: the files given, else the checkpoint's own, else the stats_path's.

    Raises:
        BadInput: no such file; wrong shape or type; a value that is not finite, or a variance that is not above 0.
    """
    bins: int = config.inference["input_val"]["filterbank_features"]["n_filt"]
    found = []
    for name, own, given in (("melmeans", checkpoint.melmeans, means), ("melvars", checkpoint.melvars, variances)):
        if given is None and own is not None:
            array, where = own, f"{checkpoint.path}: {name}"
        else:
            path = Path(given) if given is not None else _statistics_file(config, name)
            array, where = _statistic(path), str(path)
        if not isinstance(array, np.ndarray) or array.shape != (bins,) or array.dtype not in (np.float32, np.float64):
            kind = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else shown(array)
            expected = f"float32 ({bins},), as n_filt in {config.path} says"
            raise BadInput(f"{name} does not fit", where, kind, expected, _STATISTICS)
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
        check_finite(array, name, where)
        if name == "melvars" and float(array.min()) <= 0:
            raise BadInput("melvars must be above 0", where, float(array.min()), "variances", _STATISTICS)
        found.append(array)
    return found[0], found[1]


def _statistic(path: Path) -> Any:
    try:
        return load(path)
    except BadInput as error:
        remedy = _STATISTICS if error.remedy == GIVE else error.remedy
        raise BadInput(error.what, error.where, error.found, error.expected, remedy) from None


def _statistics_file(config: TrainingConfig, name: str) -> Path:
    if config.stats_path is None:
        raise BadInput(
            f"there are no {name}: stats_path is missing",
            f"{config.path}: input_val.filterbank_features",
            "no such key",
            "the folder of melmeans.pt and melvars.pt",
            _STATISTICS,
        )
    path = beside(config, config.stats_path) / f"{name}.pt"
    if not path.is_file():
        raise BadInput(
            f"the {name} are not where stats_path says",
            f"{config.path}: input_val.filterbank_features",
            "no such file",
            path,
            _STATISTICS,
        )
    return path


def _read_model(path: Path, config: TrainingConfig | None) -> bytes:
    remedy = "give the file with --sentpiece-model FILE"
    if config is not None and not path.is_file():
        raise BadInput(
            "the SentencePiece model is not where sentpiece_model says",
            f"{config.path}: tokenizer",
            "a folder" if path.is_dir() else "no such file",
            path,
            remedy,
        )
    with open_regular(path, "a SentencePiece model", remedy) as file:
        data = file.read(_MAX_MODEL_BYTES + 1)
    if len(data) > _MAX_MODEL_BYTES:
        expected = f"at most {_MAX_MODEL_BYTES} bytes"
        raise BadInput("this is no SentencePiece model", path, "a far larger file", expected, remedy)
    return data


def _check_pieces(model: bytes, dims: ModelDims, where: str) -> None:
    pieces = count_pieces(model, where)
    if pieces != dims.vocabulary:
        raise BadInput(
            "the SentencePiece model does not fit the output layer",
            where,
            f"{pieces} pieces",
            f"{dims.vocabulary} (the output layer has {dims.classes} classes, one of them blank)",
            "give the model that it was trained with",
        )
