# SPDX-License-Identifier: Apache-2.0
"""Models: hardware checkpoints, training checkpoints, programs; and traces, which are zip archives as well."""

from __future__ import annotations

import hashlib
import math
import os
import shlex
from collections.abc import Mapping
from typing import Any

from gharial import checkpoint as checkpoints
from gharial import program as programs
from gharial.checkpoint import ModelDims, Prefixes, is_training_checkpoint
from gharial.checkpoint.inspect import prefix_text
from gharial.checkpoint.prefix_spec import parse_prefix_spec
from gharial.checkpoint.sentencepiece_model import count_kinds, read_pieces
from gharial.checkpoint.text import listed, shown
from gharial.checkpoint.torchzip import open_checkpoint
from gharial.checkpoint.ziparchive import ZipArchive
from gharial.errors import BadInput
from gharial.inspect.description import Description, aligned, bad, good
from gharial.inspect.fits import configurations, paced, placed, table
from gharial.model import prefixes as prefixes_of
from gharial.model.ngram import beside
from gharial.ngram import inspect as ngrams
from gharial.program import Program
from gharial.program.pace import program_pace

_SYMBOLS = 12  # that a line names
_EXPORT = "export it for inference: gharial export --ckpt {} --config CONFIG.yaml -o MODEL.hw.pt"


def archive(file: str) -> Description:
    """A zip archive: a checkpoint of torch's, a trace, or another."""
    if _holds_arrays(file):
        return _trace(file)
    try:
        training = bool(checkpoints.load(file, _is_training))
    except BadInput:
        training = False  # described below, with what is wrong
    return _training(file) if training else _hardware(file)


def program(file: str, instructions: bool) -> Description:
    """A compiled program."""
    try:
        found = Program.read(file)
        facts = programs.describe(file, instructions=instructions, program=found)
        more = _program_facts(found)
    except BadInput as error:
        return bad(file, "program", error)
    rows = [
        ("vocabulary", _vocabulary(more["pieces"])),
        ("symbols", listed(map(shown, more["symbols"]), _SYMBOLS) or "none"),
        ("prefixes", prefix_text(more["prefixes"])),
        *_beside_rows(more["ngram"]),
        ("n-gram scale", "not stated" if more["ngram_scale"] is None else f"{more['ngram_scale']:g}"),
        ("device memory", _memory(more)),
        ("clocks a step", f"{more['pace']['live_clocks']:,} of a live stream at least"),
        ("live streams", _live(more["pace"])),
    ]
    lines = [programs.format_description({**facts, "instructions": []}), *aligned(rows)]
    lines += [f"    {line}" for line in facts.get("instructions", [])]
    return Description(facts | {"file": file, "good": True, "problem": None} | more, "\n".join(lines))


def pieces_facts(model: bytes, where: str) -> dict[str, Any]:
    """pieces (number by kind) and symbols (the user-defined ones) of a SentencePiece model, with its SHA-256."""
    pieces = read_pieces(model, where)
    symbols = list(Prefixes(None, model, where).symbols)
    return {"pieces": count_kinds(pieces), "symbols": symbols, "sentencepiece_sha256": _sha256(model)}


def _hardware(file: str) -> Description:
    facts = checkpoints.describe(file)
    lines = [checkpoints.format_description(facts)]
    if facts["good"]:
        features = facts["features"]
        # Asked of the facts, not of the weights: they are not read a second time.
        dims = ModelDims(**facts["dims"])
        step = features["window_stride"] * features["subsampling"] * dims.stack
        facts["step_ms"] = round(1000 * step, 3)
        facts["configurations"] = configurations(dims, step)
        lines += table(facts["configurations"])
    return Description(facts, "\n".join(lines))


def _training(file: str) -> Description:
    from gharial.export.training import read_training, weight_text

    try:
        found = read_training(file)
        parse_prefix_spec(found.prefix_spec, f"{file}: prefix_spec")  # export would refuse it
    except BadInput as error:
        return bad(file, "training checkpoint", error)
    dims, weight = found.dims, found.norm_weight
    facts = {
        "epoch": found.epoch,
        "step": found.step,
        "parameters": dims.parameters,
        "dims": {name: getattr(dims, name) for name in dims.__dataclass_fields__},
        "vocabulary": dims.vocabulary,
        "batch_norm": any(found.batch_norm),
        "logmel_norm_weight": weight if weight is not None and math.isfinite(weight) else None,
        "melstats": found.melmeans is not None and found.melvars is not None,
        "sentencepiece_sha256": None if found.sentencepiece is None else _sha256(found.sentencepiece),
    }
    rows = [
        ("encoder", f"{dims.features} inputs, {dims.pre_layers} + {dims.post_layers} LSTM layers of {dims.hidden}"),
        ("prediction", f"{dims.pred_layers} of {dims.pred_hidden}"),
        ("joint", f"{dims.joint} units, {dims.classes} classes"),
        ("parameters", f"{dims.parameters:,} (the averaged weights)"),
        (
            "mel weight",
            "not stated" if weight is None else weight_text(weight) + ("" if weight == 1 else ", not yet 1"),
        ),
        ("to use it", _EXPORT.format(shlex.quote(file))),
    ]
    return good(file, "training checkpoint", facts, rows)


def _trace(file: str) -> Description:
    from gharial.trace import read_trace

    try:
        arrays = read_trace(file)
    except BadInput as error:
        return bad(file, "NumPy archive", error)
    facts = {
        "tensors": {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()},
        "prefix": arrays["prefix"].tolist(),
        "tokens": arrays["tokens"].tolist(),
        "steps": len(arrays["joint_enc"]),
    }
    rows = [
        ("tensors", f"{len(arrays)}, of {facts['steps']} encoder steps"),
        ("tokens", f"{len(arrays['tokens'])}" + (f" after the prefix {facts['prefix']}" if facts["prefix"] else "")),
    ]
    return good(file, "trace", facts, rows)


def _program_facts(found: Program) -> dict[str, Any]:
    features, header = found.manifest["features"], found.header
    step = features["hop"] * features["subsampling"] * header["vectors"] / features["sample_rate"]
    where = placed(header, found.config, len(found.section("weights")), len(found.section("embedding")))
    spec = prefixes_of(found)
    pattern = (found.manifest["decoding"].get("prefix_spec") or {}).get("valid_prefix")
    return {
        **_vocabulary_facts(found),
        "prefixes": None if pattern is None else {"pattern": pattern, "prefixes": spec.valid, "default": spec.default},
        "ngram": _ngram_beside(found),
        "ngram_scale": found.manifest["decoding"].get("ngram_scale"),
        "stream_bytes": where["stream_bytes"],
        "memory": where["memory"],
        "pace": paced(program_pace(found), where["slots"]["encoder"]["slots"], step),
    }


def _ngram_beside(found: Program) -> dict[str, Any] | None:
    """Facts of the n-gram file that lies beside a program, if one does."""
    path = None if found.path is None else beside(found.path)
    if path is None or not path.is_file():
        return None
    return ngrams.describe(path, found.sections.get("sentencepiece"))


def _beside_rows(facts: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if facts is None:
        return []
    if not facts["good"]:
        return [("n-gram", f"{facts['file']}, BAD: {facts['problem']['what']}")]
    whose = {True: "made for this model", False: "made for ANOTHER model"}.get(facts["for_model"], "not marked")
    return [("n-gram", f"{facts['file']}, order {facts['order']}, {whose}")]


def _vocabulary_facts(found: Program) -> dict[str, Any]:
    if "sentencepiece" not in found.sections:  # a network that is no recogniser
        return {"pieces": {}, "symbols": [], "sentencepiece_sha256": None}
    return pieces_facts(found.section("sentencepiece"), f"{found.where}: sentencepiece")


def _memory(facts: Mapping[str, Any]) -> str:
    memory, stream = facts["memory"], facts["stream_bytes"]
    if memory is None:
        return f"state on chip, {stream:,} bytes a stream"
    return (
        f"{memory['needed']:,} of {memory['there']:,} bytes: weights {memory['weights']:,}, embedding "
        f"{memory['embedding']:,}, all slots {memory['state']:,} ({stream:,} a stream)"
    )


def _live(pace: Mapping[str, Any]) -> str:
    if pace["live_streams"] is None:
        return f"one needs {pace['mhz']:.3g} MHz"
    return f"{pace['live_streams']:,} at most, by array, memory and slots"


def _vocabulary(pieces: Mapping[str, int]) -> str:
    if not pieces:
        return "none"
    kinds = ", ".join(f"{count:,} {kind.replace('_', '-')}" for kind, count in pieces.items())
    return f"{sum(pieces.values()):,} tokens ({kinds})"


def _is_training(tree: Any) -> bool:
    return isinstance(tree, Mapping) and is_training_checkpoint(tree)


def _holds_arrays(file: str) -> bool:
    """Whether a zip archive is NumPy's: all of its members are arrays."""
    try:
        with open_checkpoint(file) as opened:
            names = ZipArchive(opened, os.fstat(opened.fileno()).st_size, file).members
    except BadInput:
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
