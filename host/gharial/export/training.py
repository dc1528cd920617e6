# SPDX-License-Identifier: Apache-2.0
"""The training checkpoint, TRAIN.pt: of all that it holds only what export needs is read.

It is somebody else's file: read by the same allow-list as a hardware checkpoint, its raw weights and optimiser left in
the file, and no path out of it followed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gharial.checkpoint.config import Section
from gharial.checkpoint.dims import GROUPS, PREDICTION, ModelDims
from gharial.checkpoint.hardware import is_training_checkpoint
from gharial.checkpoint.tensors import TensorRef
from gharial.checkpoint.text import listed, shown
from gharial.checkpoint.torchzip import load
from gharial.checkpoint.weights import finish, weight_refs
from gharial.errors import BadInput

_NORM_WEIGHT_WITHIN = 1e-9
_GIVE = "give the checkpoint that training saved (RNN-T_best_checkpoint.pt)"
_ARGUMENTS = ("args", "training_args")
"""Keys under which a training loop may keep its arguments: CAIMAN-ASR's public releases keep none."""

_NUMBERS = ("epoch", "step", "best_wer")
_KNOWN = (*_NUMBERS, *_ARGUMENTS, "tokenizer_kw", "sentpiece_model", "prefix_spec", "raw_prefix_token_map")


@dataclass(frozen=True, eq=False)
class TrainingCheckpoint:
    """What export takes from a training checkpoint.

    Attributes:
        path: the file's name.
        state: float32 arrays by torch name without `module.`: the averaged (EMA) weights, complete, finite; batch
            normalisations where the model has them, not folded.
        dims: sizes.
        batch_norm: whether (encoder, prediction network) have batch normalisation.
        epoch: epoch of training, None where not stated.
        step: step of training, None where not stated.
        best_wer: word error rate in training, None where not stated.
        norm_weight: weight that the dataset's mel statistics had at the end, None before 1.9.
        melmeans: (n,) float array, None where the file has none.
        melvars: (n,) float array, None where the file has none.
        sentencepiece: bytes of the tokeniser's model, None where the file has none.
        labels: characters of the tokeniser that it was trained with, None where not stated.
        sentencepiece_path: where the model lay in training: for comparison only, None where not stated.
        prefix_spec: the training's prefixes as the file states them, or None.
        prefix_map: a `raw_prefix_token_map` is there, which is not read: its layout is not public.
    """

    path: str
    state: dict[str, np.ndarray]
    dims: ModelDims
    batch_norm: tuple[bool, bool]
    epoch: int | None
    step: int | None
    best_wer: float | None
    norm_weight: float | None
    melmeans: np.ndarray | None
    melvars: np.ndarray | None
    sentencepiece: bytes | None
    labels: tuple[str, ...] | None
    sentencepiece_path: str | None
    prefix_spec: Any
    prefix_map: bool


def read_training(path: str | os.PathLike[str]) -> TrainingCheckpoint:
    """Read and check a training checkpoint.

    Raises:
        BadInput: all that `gharial.checkpoint.load` raises; a hardware checkpoint or something else; no averaged
            weights; tensors that are missing, unexpected, misshapen, not float32 or not finite.
    """
    name = os.fspath(path)
    reader = _Reader(name)
    return reader.checked(load(name, reader.select))


class _Reader:
    """One file in two passes: names and shapes before tensors are read, values after."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._where = f"{path}: ema_state_dict"
        self._dims: ModelDims | None = None

    def select(self, tree: Any) -> dict[str, Any]:
        self._check_kind(tree)
        refs = weight_refs(tree["ema_state_dict"], Section(None, self._where), self._where)
        self._dims = refs.dims
        skipped = ("state_dict", "ema_state_dict", "optimizer")
        # Tensors that nothing here asks for stay in the file; those of known names are judged.
        rest = {
            key: value
            for key, value in tree.items()
            if key not in skipped and (key in _KNOWN or not isinstance(value, TensorRef))
        }
        rest |= {key: tree.get(key) for key in ("melmeans", "melvars", "logmel_norm_weight")}
        return {"rest": rest, "tensors": refs.tensors, "norms": refs.norms, "duplicates": refs.duplicates}

    def checked(self, chosen: dict[str, Any]) -> TrainingCheckpoint:
        dims = self._dims
        assert dims is not None, "select comes first"
        # Only judged here: what is exported is what was trained, and a reader folds batch normalisation.
        finish(chosen["tensors"], chosen["norms"], chosen["duplicates"], dims, self._where)
        rest = chosen["rest"] | {key: _plain(chosen["rest"].get(key)) for key in _NUMBERS}
        top = Section(rest, self._path)
        tokenizer = Section(rest.get("tokenizer_kw"), f"{self._path}: tokenizer_kw")
        groups = [group for group in GROUPS if any(name.startswith(f"{group}.batch_norms") for name in chosen["norms"])]
        state = {**chosen["tensors"], **chosen["norms"]}
        return TrainingCheckpoint(
            path=self._path,
            state={name: np.ascontiguousarray(array, np.float32) for name, array in _named(state, groups).items()},
            dims=dims,
            batch_norm=(any(group != PREDICTION for group in groups), PREDICTION in groups),
            epoch=top.maybe_integer("epoch"),
            step=top.maybe_integer("step"),
            best_wer=top.maybe_number("best_wer"),
            norm_weight=_number(rest["logmel_norm_weight"], top),
            melmeans=self._statistic(rest, "melmeans"),
            melvars=self._statistic(rest, "melvars"),
            sentencepiece=top.maybe_bytes("sentpiece_model"),
            labels=_labels(rest.get("tokenizer_kw")),
            sentencepiece_path=tokenizer.maybe_text("sentpiece_model"),
            prefix_spec=self._prefix_spec(rest),
            prefix_map=rest.get("raw_prefix_token_map") is not None,
        )

    def _check_kind(self, tree: Any) -> None:
        expected = "a training checkpoint: ema_state_dict, epoch, step, ..."
        if not isinstance(tree, Mapping):
            raise BadInput("this is no training checkpoint", self._path, shown(tree), expected, _GIVE)
        if not is_training_checkpoint(tree):
            keys = listed(map(shown, tree))
            if "melmeans" in tree and "sentpiece_model" in tree:
                remedy = "it is exported already: use it as it is"
                raise BadInput("this is a hardware checkpoint", self._path, keys, expected, remedy)
            raise BadInput("this is no training checkpoint", self._path, keys, expected, _GIVE)
        if tree.get("ema_state_dict") is None:
            raise BadInput(
                "there are no averaged weights in it, which are what is exported",
                self._where,
                "none",
                "a state dict",
                "train with an exponential moving average of the weights (ema above 0)",
            )

    def _statistic(self, rest: Mapping[str, Any], key: str) -> np.ndarray | None:
        value = rest[key]
        if value is not None and not isinstance(value, np.ndarray):
            raise BadInput(f"{key} does not fit", self._path, shown(value), "a tensor", _GIVE)
        return value

    def _prefix_spec(self, rest: Mapping[str, Any]) -> Any:
        if rest.get("prefix_spec") is not None:
            return rest["prefix_spec"]
        for key in _ARGUMENTS:
            arguments = rest.get(key)
            if isinstance(arguments, Mapping):
                if arguments.get("prefix_spec") is not None:
                    return arguments["prefix_spec"]
                if arguments.get("valid_prefix") is not None:
                    return {part: arguments.get(part) for part in ("valid_prefix", "default_prefix")}
        return None


def check_norm_weight(checkpoint: TrainingCheckpoint, melalpha: float | None) -> float:
    """melalpha of the hardware checkpoint: 0, or the one given for a model from before 1.9.

    Raises:
        BadInput: the model was not trained to the end of the ramp that brings the dataset's statistics in.
    """
    weight = checkpoint.norm_weight
    if weight is None:
        if melalpha is not None:
            return melalpha
        raise BadInput(
            "logmel_norm_weight is missing, so it is not known which normalisation the model was trained with",
            checkpoint.path,
            "no such key",
            "1.0",
            "for a model of CAIMAN-ASR 1.8 or earlier give --melalpha 0.001, or what it was exported with then",
        )
    if not math.isclose(weight, 1.0, rel_tol=0.0, abs_tol=_NORM_WEIGHT_WITHIN):
        raise BadInput(
            "logmel_norm_weight is not 1: the ramp to the dataset's mel statistics was not finished",
            checkpoint.path,
            weight_text(weight),
            "1.0",
            "resume the training past --norm_ramp_end_step and export that checkpoint",
        )
    if melalpha:
        raise BadInput(
            "melalpha contradicts the checkpoint, which was trained with fixed mel statistics",
            "--melalpha",
            f"{melalpha:g}",
            "0, or no such option",
            "leave the option out",
        )
    return 0.0


def weight_text(weight: float) -> str:
    """Text of logmel_norm_weight, with the digits that tell it from 1."""
    short = f"{weight:g}"
    return repr(weight) if short == "1" and weight != 1 else short


def _named(state: Mapping[str, np.ndarray], groups: list[str]) -> dict[str, np.ndarray]:
    """The tensors under the names of the variant: layers with batch normalisation are modules of their own."""
    named = {}
    for name, array in state.items():
        group, dot, rest = name.partition(".lstm.")
        if dot and group in groups:
            part, _, layer = rest.rpartition("_l")
            name = f"{group}.lstms.{layer}.{part}_l0"
        named[name] = array
    return named


def _plain(value: Any) -> Any:
    """The number in a tensor of one, as training loops keep what they have reduced; anything else as it is."""
    return value.item() if isinstance(value, np.ndarray) and value.shape in ((), (1,)) else value


def _number(value: Any, top: Section) -> float | None:
    if isinstance(value, np.ndarray) and value.shape in ((), (1,)) and value.dtype.kind == "f":
        return float(value.reshape(()))
    return top.maybe_number("logmel_norm_weight", -math.inf, math.inf)


def _labels(tokenizer: Any) -> tuple[str, ...] | None:
    labels = tokenizer.get("labels") if isinstance(tokenizer, Mapping) else None
    if not isinstance(labels, list) or not all(type(label) is str for label in labels):
        return None
    return tuple(labels)
