# SPDX-License-Identifier: Apache-2.0
"""What a hardware checkpoint is, as data and as text: its sizes, its settings, and whether it is good."""

from __future__ import annotations

import hashlib
import io
import math
import os
from dataclasses import asdict
from typing import Any

import numpy as np

from gharial.checkpoint.hardware import HardwareCheckpoint, load_hardware
from gharial.checkpoint.prefix_spec import PrefixSpec
from gharial.checkpoint.prefixes import Prefixes
from gharial.checkpoint.sentencepiece_model import PieceKind, count_kinds, read_pieces
from gharial.checkpoint.text import listed, shown
from gharial.checkpoint.torchzip import open_checkpoint
from gharial.errors import BadInput

_NOT_MEASURED = 1e6
"""best_wer that CAIMAN-ASR's training begins with."""

_PAD_REACH = 1.0
"""More than the compiler's int8 of an LSTM's output ever holds: its unit is 2^-7 or finer."""


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Facts about a hardware checkpoint, good or bad, that can be written as JSON.

    Never raises for what the file holds. Keys that are always there: file, kind ("hardware checkpoint"), good, problem
    (None, or the parts of the BadInput: what, where, found, expected, remedy), bytes and sha256 (None where the file
    cannot be read). A good file has further: version, epoch, step, best_wer (as stored, in CAIMAN-ASR's files a
    fraction; None where none was measured), parameters, dims, vocabulary, features (seconds and samples), window_ms,
    ngram {embedded, bytes, scale, order, type, problem}, prefixes (None where unknown, else {pattern, prefixes,
    default}), macs {encode_step, joint, prediction_step}, melalpha, hard_sigmoid, hard_tanh, batch_norm_folded, pieces
    (number by kind), symbols (the user-defined ones), sentencepiece_sha256, other_keys, notes (sentences about what is
    unusual).
    """
    name = os.fspath(path)
    facts: dict[str, Any] = {"file": name, "kind": "hardware checkpoint", "good": False, "problem": None}
    facts |= {"bytes": None, "sha256": None}
    try:
        with open_checkpoint(name) as file:
            facts["bytes"] = os.fstat(file.fileno()).st_size
            facts["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
        checkpoint = load_hardware(name)
        Prefixes(checkpoint.prefix_spec, checkpoint.sentencepiece, name).usual()  # whatever uses it would refuse it
        facts |= _facts(checkpoint)
        facts["good"] = True
    except BadInput as error:
        parts = {part: getattr(error, part) for part in ("what", "where", "found", "expected", "remedy")}
        facts["problem"] = {part: None if value is None else str(value) for part, value in parts.items()}
    return facts


def format_description(facts: dict[str, Any]) -> str:
    """Text for a person of what `describe` returned: a headline and one line a fact, without a line end at the end."""
    state = "good" if facts["good"] else "BAD"
    lines = [f"{facts['file']}: {facts['kind']}, {state}"]
    if facts["problem"] is not None:
        # The message of the same error that reading the file raises.
        lines += [f"  {line}" for line in str(BadInput(**facts["problem"])).split("\n")]
    rows: list[tuple[str, str]] = []
    if facts["bytes"] is not None:
        rows += [("size", f"{facts['bytes']:,} bytes"), ("SHA-256", facts["sha256"])]
    if facts["good"]:
        rows += _rows(facts)
    width = max((len(label) for label, _ in rows), default=0)
    lines += [f"  {label:<{width}}  {text}" for label, text in rows]
    return "\n".join(lines)


def _facts(checkpoint: HardwareCheckpoint) -> dict[str, Any]:
    dims, features = checkpoint.dims, checkpoint.features
    wer = checkpoint.best_wer
    ngram = checkpoint.ngram_binary
    pieces = read_pieces(checkpoint.sentencepiece, f"{checkpoint.path}: sentpiece_model")
    return {
        "version": shown(checkpoint.version) or None,
        "epoch": checkpoint.epoch,
        "step": checkpoint.step,
        # Before the first validation it is infinite, which JSON does not have, or the million that training starts at.
        "best_wer": wer if wer is not None and math.isfinite(wer) and wer < _NOT_MEASURED else None,
        "parameters": dims.parameters,
        "dims": asdict(dims),
        "vocabulary": dims.vocabulary,
        "features": asdict(features) | {"window_samples": features.window_samples, "hop_samples": features.hop_samples},
        "window_ms": round(features.window_size * 1000, 3),
        "ngram": {
            "embedded": ngram is not None,
            "bytes": None if ngram is None else len(ngram),
            "scale": checkpoint.ngram_scale,
            **_embedded(ngram),
        },
        "prefixes": None if checkpoint.prefix_spec is None else asdict(checkpoint.prefix_spec),
        "macs": {
            "encode_step": dims.encode_macs,
            "joint": dims.joint_macs,
            "prediction_step": dims.prediction_macs,
        },
        "melalpha": checkpoint.melalpha,
        "hard_sigmoid": checkpoint.hard_sigmoid,
        "hard_tanh": checkpoint.hard_tanh,
        "batch_norm_folded": checkpoint.batch_norm,
        "pieces": count_kinds(pieces),
        "symbols": [piece.text for piece in pieces if piece.kind == PieceKind.USER_DEFINED],
        "sentencepiece_sha256": hashlib.sha256(checkpoint.sentencepiece).hexdigest(),
        "other_keys": list(checkpoint.other_keys),
        "notes": _notes(checkpoint),
    }


def _embedded(binary: bytes | None) -> dict[str, Any]:
    """What the n-gram inside a checkpoint is, and why it cannot be used if it cannot."""
    from gharial.ngram.header import read_header  # which imports this package

    facts: dict[str, Any] = {"order": None, "type": None, "problem": None}
    try:
        if binary is not None:
            header = read_header(io.BytesIO(binary), "ngram")
            facts |= {"order": header.order, "type": header.kind}
    except BadInput as error:
        facts["problem"] = error.what
    return facts


def _notes(checkpoint: HardwareCheckpoint) -> list[str]:
    notes = []
    if checkpoint.melalpha > 0:
        notes.append(f"features are normalised by each stream's own statistics (rate {checkpoint.melalpha:g})")
    if checkpoint.hard_sigmoid or checkpoint.hard_tanh:
        notes.append("the LSTMs use hard activations")
    if checkpoint.batch_norm:
        notes.append("batch normalisation is folded into the weights")
    far = int(np.count_nonzero(np.abs(checkpoint.post_pad) > _PAD_REACH))
    if far:
        notes.append(
            f"the pad of a last step that lacks a vector is beyond {_PAD_REACH:g} in {far} of {checkpoint.dims.hidden} "
            "units, and clamped there when compiled: that step alone is less exact"
        )
    if checkpoint.features.given:
        notes.append("takes vectors that are made elsewhere, no audio; they are normalised by melmeans and melvars")
    if not checkpoint.rnnt_config:
        notes.append("the file holds no configuration: feature settings are those of the shipped models")
    if checkpoint.prefix_spec is not None and checkpoint.prefix_spec.prefixes is None:
        notes.append("valid_prefix is no finite list: prefixes cannot be validated")
    if checkpoint.other_keys:
        notes.append(f"keys that are not known and not read: {listed(checkpoint.other_keys)}")
    return notes


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    dims, features, ngram, macs = facts["dims"], facts["features"], facts["ngram"], facts["macs"]
    training = [f"{key} {facts[key]}" for key in ("epoch", "step") if facts[key] is not None]
    if facts["best_wer"] is not None:
        training.append(f"WER {facts['best_wer']:.4g}")
    ngram_text = f"embedded, {ngram['bytes']:,} bytes" if ngram["embedded"] else "not embedded"
    if ngram["order"] is not None:
        ngram_text += f", order {ngram['order']}, {ngram['type']}"
    if ngram["problem"] is not None:
        ngram_text += f", not usable ({ngram['problem']})"
    if ngram["scale"] is not None:
        ngram_text += f", scale {ngram['scale']:g}"
    kind = "values, given" if features["given"] else "mel bins"
    layers = "layer" if dims["pred_layers"] == 1 else "layers"
    return [
        ("version", facts["version"] or "not stated"),
        ("training", ", ".join(training) or "not stated"),
        (
            "encoder",
            f"{dims['features']} inputs, {dims['pre_layers']} + {dims['post_layers']} LSTM layers of {dims['hidden']}, "
            f"time stack {dims['stack']}",
        ),
        (
            "prediction",
            f"{dims['pred_layers']} LSTM {layers} of {dims['pred_hidden']}",
        ),
        ("joint", f"{dims['joint']} units, {dims['classes']} classes"),
        ("parameters", f"{facts['parameters']:,}"),
        ("vocabulary", f"{facts['vocabulary']:,} tokens"),
        (
            "features",
            f"{features['sample_rate']} Hz, window {facts['window_ms']:g} ms, "
            f"hop {features['window_stride'] * 1000:g} ms, {features['n_filt']} {kind}, "
            f"stacked by {features['stacking']}, every {features['subsampling']} kept",
        ),
        ("n-gram", ngram_text),
        ("prefixes", prefix_text(facts["prefixes"])),
        ("symbols", listed(map(shown, facts["symbols"])) or "none that are user-defined"),
        ("tokeniser", f"SentencePiece model, SHA-256 {facts['sentencepiece_sha256']}"),
        (
            "MACs",
            f"{macs['encode_step']:,} an encoder step, {macs['joint']:,} a joint, "
            f"{macs['prediction_step']:,} a prediction step",
        ),
        *(("note", note) for note in facts["notes"]),
    ]


def prefix_text(prefixes: dict[str, Any] | None) -> str:
    """Text of the fact `prefixes`."""
    if prefixes is None:
        return "not stated"
    spec = PrefixSpec(**prefixes)
    if spec.prefixes == ("",):
        return "none"
    known = shown(spec.pattern) if spec.prefixes is None else listed((shown(p) or "''" for p in spec.prefixes), 8)
    return known if spec.default is None else f"{known}; default {shown(spec.default) or chr(39) * 2}"
