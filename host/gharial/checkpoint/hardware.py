# SPDX-License-Identifier: Apache-2.0
"""Hardware checkpoints (`*.hw.pt`): everything a server needs of a trained RNN-T, in one file.

Which keys exist changed from version to version of the format, and the stated version is not to be relied on, so
only the keys that are there decide.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gharial.checkpoint.activations import hard_activations
from gharial.checkpoint.config import Section
from gharial.checkpoint.dims import ModelDims
from gharial.checkpoint.features import FeatureSettings, feature_settings
from gharial.checkpoint.prefix_spec import PrefixSpec, parse_prefix_spec
from gharial.checkpoint.sentencepiece_model import count_pieces
from gharial.checkpoint.tensors import TensorRef
from gharial.checkpoint.text import listed, shown
from gharial.checkpoint.torchzip import load
from gharial.checkpoint.weights import check_finite, finish, weight_refs
from gharial.errors import BadInput

__all__ = [
    "FeatureSettings",
    "HardwareCheckpoint",
    "ModelDims",
    "PrefixSpec",
    "is_training_checkpoint",
    "load_hardware",
]

_REQUIRED = ("state_dict", "melmeans", "melvars", "sentpiece_model")
_OPTIONAL = ("melalpha", "epoch", "step", "best_wer", "version", "rnnt_config", "ngram", "prefix_spec")
_TRAINING = ("ema_state_dict", "optimizer", "logmel_norm_weight")
_LONGEST_VERSION = 1024  # characters; a program holds no more
_EXPORT = "export a hardware checkpoint from the training checkpoint and give that"


@dataclass(frozen=True, eq=False)
class HardwareCheckpoint:
    """A hardware checkpoint, checked as a whole.

    Attributes:
        path: file it was read from.
        state: float32 arrays by torch name, exactly those of `dims.shapes()`, contiguous, read-only, finite. Batch
            normalisation, if the file has it, is folded in.
        dims: sizes.
        post_pad: (hidden,) float32, what the encoder's second part is given for each step that is missing in the last
            stack of a stream: zeros, or -b/a where batch normalisation was folded.
        batch_norm: True if batch normalisation was folded.
        hard_sigmoid: gates use clamp(0.5 + x/8, 0, 1) in place of the sigmoid.
        hard_tanh: cells use clamp(x, -1, 1) in place of tanh.
        melmeans: (n_filt,) float32, mean of each log-mel bin.
        melvars: (n_filt,) float32, variance of each, above 0.
        melalpha: 0.0, or the rate in (0, 1) at which a stream's own statistics replace the stored ones.
        sentencepiece: bytes of the SentencePiece model, `dims.vocabulary` pieces.
        rnnt_config: the configuration as the file has it, {} before version 1.4.
        features: feature settings.
        version: version that the file states, "" before 1.4; for display only.
        epoch: epoch of training, None where not stated.
        step: step of training, None where not stated.
        best_wer: word error rate in training, None where not stated.
        ngram_binary: KenLM binary kept inside the file (untrusted bytes), or None.
        ngram_scale: its weight in decoding, or None.
        prefix_spec: prefixes the model takes, or None where unknown.
        other_keys: keys of the file that are not known here, and not read.
    """

    path: str
    state: dict[str, np.ndarray]
    dims: ModelDims
    post_pad: np.ndarray
    batch_norm: bool
    hard_sigmoid: bool
    hard_tanh: bool
    melmeans: np.ndarray
    melvars: np.ndarray
    melalpha: float
    sentencepiece: bytes
    rnnt_config: dict[str, Any]
    features: FeatureSettings
    version: str
    epoch: int | None
    step: int | None
    best_wer: float | None
    ngram_binary: bytes | None
    ngram_scale: float | None
    prefix_spec: PrefixSpec | None
    other_keys: tuple[str, ...]


def is_training_checkpoint(checkpoint: Mapping[Any, Any]) -> bool:
    """True if the top level of a checkpoint is that of a training checkpoint: raw weights, averages, optimiser."""
    return "ema_state_dict" in checkpoint or "optimizer" in checkpoint


def load_hardware(path: str | os.PathLike[str]) -> HardwareCheckpoint:
    """Reads and checks the hardware checkpoint `path`.

    Raises:
        BadInput: all that `load` raises; a training checkpoint or a bare state dict; a key that is missing or has the
            wrong type; tensors that are missing, unexpected, misshapen, not float32, or not finite; a configuration
            or SentencePiece model that contradicts the tensors.
    """
    name = os.fspath(path)
    top = _TopLevel(name)
    return top.checked(load(name, top.select))


class _TopLevel:
    """The top-level dict of one file, in two passes: names and shapes before tensors are read, values after."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._dims: ModelDims | None = None
        self._other: tuple[str, ...] = ()

    def select(self, tree: Any) -> dict[str, Any]:
        """What is to be read of `tree`; everything that can be judged without the tensors' data is judged here."""
        self._check_kind(tree)
        for key in _REQUIRED:
            if tree.get(key) is None:
                raise BadInput(
                    f"the key {key} is missing", self._path, listed(map(shown, tree)), listed(_REQUIRED), _EXPORT
                )
        config = Section(tree.get("rnnt_config"), f"{self._path}: rnnt_config")
        where = f"{self._path}: state_dict"
        refs = weight_refs(tree["state_dict"], config.section("rnnt"), where)
        self._dims = refs.dims
        self._other = tuple(shown(key) for key in tree if key not in (*_REQUIRED, *_OPTIONAL))
        bins = feature_settings(config, refs.dims, f"{self._path}: rnnt_config").n_filt
        for key in ("melmeans", "melvars"):
            ref = tree[key]
            if not isinstance(ref, TensorRef) or ref.shape != (bins,) or ref.dtype_name != "float32":
                found = f"{ref.dtype_name} {ref.shape}" if isinstance(ref, TensorRef) else shown(ref)
                raise BadInput(f"{key} does not fit", self._path, found, f"float32 ({bins},)", _EXPORT)
        chosen = {key: tree[key] for key in (*_REQUIRED[1:], *_OPTIONAL) if key in tree}
        return {**chosen, "tensors": refs.tensors, "norms": refs.norms, "duplicates": refs.duplicates}

    def checked(self, top: dict[str, Any]) -> HardwareCheckpoint:
        """The checkpoint made of what `select` chose, tensors as arrays."""
        dims = self._dims
        assert dims is not None, "select comes first"
        weights = finish(top["tensors"], top["norms"], top["duplicates"], dims, f"{self._path}: state_dict")
        section = Section(top, self._path)
        where_config = f"{self._path}: rnnt_config"
        config = Section(top.get("rnnt_config"), where_config)
        hard = hard_activations(top.get("rnnt_config"), where_config)
        ngram = Section(top.get("ngram"), f"{self._path}: ngram")
        return HardwareCheckpoint(
            path=self._path,
            state=weights.state,
            dims=dims,
            post_pad=weights.post_pad,
            batch_norm=weights.batch_norm,
            hard_sigmoid=hard,
            hard_tanh=hard,
            melmeans=self._statistic(top, "melmeans"),
            melvars=self._statistic(top, "melvars"),
            melalpha=section.number("melalpha", 0.0, 0.0, 0.999999),
            sentencepiece=self._sentencepiece(section, dims),
            rnnt_config=dict(top.get("rnnt_config") or {}),
            features=feature_settings(config, dims, where_config),
            version=section.maybe_text("version", _LONGEST_VERSION) or "",
            epoch=section.maybe_integer("epoch"),
            step=section.maybe_integer("step"),
            best_wer=section.maybe_number("best_wer"),
            ngram_binary=ngram.maybe_bytes("binary"),
            ngram_scale=ngram.maybe_number("scale_factor", -1e3, 1e3),
            prefix_spec=parse_prefix_spec(top.get("prefix_spec"), f"{self._path}: prefix_spec"),
            other_keys=self._other,
        )

    def _check_kind(self, tree: Any) -> None:
        if not isinstance(tree, Mapping):
            raise BadInput("this is no hardware checkpoint", self._path, shown(tree), "a dict", _EXPORT)
        if is_training_checkpoint(tree):
            raise BadInput(
                "this is a training checkpoint: export it first",
                self._path,
                f"the keys {listed(key for key in _TRAINING if key in tree)}",
                "a hardware checkpoint (.hw.pt)",
                "run 'gharial export' with the configuration it was trained with, and give its output",
            )
        if any(isinstance(key, str) and key.endswith("joint_enc.weight") for key in tree):
            raise BadInput(
                "this is a bare state dict",
                self._path,
                "weights alone",
                "a hardware checkpoint: weights, mel statistics and SentencePiece model",
                _EXPORT,
            )

    def _statistic(self, top: dict[str, Any], key: str) -> np.ndarray:
        array: np.ndarray = top[key]
        check_finite(array, key, self._path)
        if key == "melvars" and float(array.min()) <= 0:
            raise BadInput("melvars must be above 0", self._path, float(array.min()), "variances", _EXPORT)
        return np.ascontiguousarray(array)

    def _sentencepiece(self, section: Section, dims: ModelDims) -> bytes:
        model = section.maybe_bytes("sentpiece_model") or b""
        pieces = count_pieces(model, f"{self._path}: sentpiece_model")
        if pieces != dims.vocabulary:
            raise BadInput(
                "the SentencePiece model does not fit the output layer",
                f"{self._path}: sentpiece_model",
                f"{pieces} pieces",
                f"{dims.vocabulary} (the output layer has {dims.classes} classes, one of them blank)",
                "export the checkpoint again with the SentencePiece model it was trained with",
            )
        return model
