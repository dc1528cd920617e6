# SPDX-License-Identifier: Apache-2.0
"""The training configuration, CONFIG.yaml: what inference needs of it, and the files that it names.

It is the exporting user's own file, so the paths in it are followed. Keys that are not known here are harmless; of the
known ones each must be there and of its type. What becomes `rnnt_config` is `FIELDS` and nothing else, the part that
CAIMAN-ASR itself keeps, and hard activations where the model was trained with them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gharial.checkpoint.activations import hard_activations
from gharial.checkpoint.config import Section
from gharial.checkpoint.text import shown
from gharial.errors import BadInput
from gharial.export.yamlfile import read_yaml

FIELDS: dict[tuple[str, ...], dict[str, type]] = {
    ("input_val", "filterbank_features"): {
        "dither": float,
        "n_fft": int,
        "n_filt": int,
        "normalize": str,
        "sample_rate": int,
        "window": str,
        "window_size": float,
        "window_stride": float,
    },
    ("input_val", "frame_splicing"): {"frame_stacking": int, "frame_subsampling": int},
    ("rnnt",): {
        "enc_n_hid": int,
        "enc_post_rnn_layers": int,
        "enc_pre_rnn_layers": int,
        "enc_stack_time_factor": int,
        "in_feats": int,
        "joint_n_hid": int,
        "pred_n_hid": int,
        "pred_rnn_layers": int,
    },
    ("tokenizer",): {"labels": list, "sentpiece_model": str},
}
"""Section by section, the keys of the inference configuration and their types."""

_WORDS = {float: "a number", int: "an integer", str: "text", list: "a list of texts"}
_REMEDY = "give the configuration that the model was trained with"
_MOST_LABELS = 1 << 16


@dataclass(frozen=True)
class TrainingConfig:
    """What export takes from a training configuration.

    Attributes:
        path: the file's name.
        inference: `rnnt_config` of the hardware checkpoint.
        sentencepiece_path: of the tokeniser's model.
        stats_path: folder of the mel statistics, None where not stated (before 1.9).
        ngram_path: folder of the n-gram, None where not stated (before 1.11).
        ngram_scale: its weight in decoding, None where not stated.
        batch_norm: whether (encoder, prediction network) have batch normalisation, None where not stated.
        prefix_spec: the section of that name as it stands there, or None.
        hard_activations: whether hard activations are asked for, which training followed up to 1.5.
        end_of_sequence: the end-of-sequence token of `user_tokens`, None where there is none.
    """

    path: str
    inference: dict[str, Any]
    sentencepiece_path: str
    stats_path: str | None
    ngram_path: str | None
    ngram_scale: float | None
    batch_norm: tuple[bool | None, bool | None]
    prefix_spec: Any
    hard_activations: bool
    end_of_sequence: str | None


def read_config(path: str | os.PathLike[str]) -> TrainingConfig:
    """Read a training configuration.

    Raises:
        BadInput: no such file, no YAML, or a key that is missing or has another type.
    """
    name = os.fspath(path)
    tree = read_yaml(name)
    if not isinstance(tree, Mapping):
        raise BadInput("this is no training configuration", name, shown(tree), "sections input_val, rnnt, ...", _REMEDY)
    inference: dict[str, Any] = {}
    for sections, fields in FIELDS.items():
        target = inference
        for section in sections:
            target = target.setdefault(section, {})
        source = _section(tree, sections, name)
        where = f"{name}: {'.'.join(sections)}"
        target |= {key: _value(source, key, kind, where) for key, kind in fields.items()}
    rnnt = Section(tree["rnnt"], f"{name}: rnnt")
    bank = Section(tree["input_val"]["filterbank_features"], f"{name}: input_val.filterbank_features")
    ngram = Section(_with_number(tree.get("ngram"), "scale_factor"), f"{name}: ngram")
    return TrainingConfig(
        path=name,
        inference=inference,
        sentencepiece_path=inference["tokenizer"]["sentpiece_model"],
        stats_path=bank.maybe_text("stats_path"),
        ngram_path=ngram.maybe_text("ngram_path"),
        ngram_scale=ngram.maybe_number("scale_factor", 0.0, 100.0),
        batch_norm=(rnnt.maybe_flag("enc_batch_norm"), rnnt.maybe_flag("pred_batch_norm")),
        prefix_spec=tree.get("prefix_spec"),
        hard_activations=hard_activations(tree, name),
        end_of_sequence=Section(tree.get("user_tokens"), f"{name}: user_tokens").maybe_text("eos"),
    )


def _section(tree: Mapping[Any, Any], sections: tuple[str, ...], name: str) -> Mapping[Any, Any]:
    source: Any = tree
    for depth, section in enumerate(sections, 1):
        source = source.get(section)
        if not isinstance(source, Mapping):
            where = f"{name}: {'.'.join(sections[:depth])}"
            what = "the section is missing" if source is None else "this must be a section"
            raise BadInput(what, where, "nothing" if source is None else shown(source), "keys and values", _REMEDY)
    return source


def _value(source: Mapping[Any, Any], key: str, kind: type, where: str) -> Any:
    value = source.get(key)
    if value is None:
        found = "None" if key in source else "no such key"
        raise BadInput(f"the key {key} is missing", where, found, _WORDS[kind], _REMEDY)
    converted = _converted(value, kind)
    if converted is None:
        raise BadInput(f"{key} has a value that is not usable", where, shown(value), _WORDS[kind], _REMEDY)
    return converted


def _with_number(section: Any, key: str) -> Any:
    """A section whose `key` is a number where it is text that reads as one; anything else as it is."""
    if not isinstance(section, Mapping) or type(section.get(key)) is not str:
        return section
    number = _converted(section[key], float)
    return section if number is None else {**section, key: number}


def _converted(value: Any, kind: type) -> Any:
    """`value` as its type, None if it is none. YAML 1.1 reads 1e-5, which has no point, as text."""
    if kind is list:
        sound = isinstance(value, list) and len(value) <= _MOST_LABELS and all(map(_is_text, value))
        return list(value) if sound else None
    if kind is str:
        return value if _is_text(value) and value else None
    if type(value) not in (int, float, str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if kind is int:
        return int(number) if number.is_integer() and abs(number) < 1 << 53 else None
    return number if math.isfinite(number) else None


def _is_text(value: Any) -> bool:
    """Text that can be written as UTF-8."""
    return type(value) is str and not any("\ud800" <= c <= "\udfff" for c in value)
