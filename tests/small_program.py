# SPDX-License-Identifier: Apache-2.0
"""A small program written by hand, instruction by instruction, for configuration tiny (16 rows x 4 columns).

One layer of each kind: 4 features, 2 vectors a step, 4 units in every LSTM, 16 joint units, 16 classes. Every LSTM has
one row group, one activation unit of h and one cell unit of c. Tests change a field here and there.
"""

from __future__ import annotations

import copy
import zlib
from typing import Any

import numpy as np

from gharial.isa.configs import config
from gharial.isa.header import HEADER, INTERFACE_VERSION, MAGIC, TABLE_ENTRIES
from gharial.isa.instructions import JOINT, LOOKUP, MATVEC, NO_SECOND, Opcode, Post, Predicate, Space, operand
from gharial.program import Program

TINY = config("tiny")
TOKENS, CLASSES, WIDTH = 15, 16, 4
PAD_UNIT = TOKENS
SECTIONS = ("predict", "encode", "joint")

Code = dict[str, list[dict[str, int]]]


def scratch(unit: int) -> int:
    return operand(Space.SCRATCH, unit)


def old(unit: int) -> int:
    return operand(Space.SOURCE, unit)


def new(unit: int) -> int:
    return operand(Space.DESTINATION, unit)


def matvec(tile: int, source: int, **fields: int) -> dict[str, int]:
    """A part over one vector and one column tile; its scales lie where its tile does, but for the logits."""
    plain = {"opcode": Opcode.MATVEC, "row_groups": 1, "col_tiles": 1, "tile": tile, "scale_group": tile}
    return plain | {"source": source} | fields


def begin(bias: int) -> dict[str, int]:
    return {"first": 1, "bias_group": bias}


def cell(destination: int, at: int, second: int = NO_SECOND) -> dict[str, int]:
    fields = {"post": Post.CELL, "last": 1, "destination": destination, "cell": at, "second": second}
    return fields | {"shift": 11, "qh": 7}


def code() -> Code:
    """The instructions. Scratch: features 0 and 1, h of pre_rnn 2 and 3, embedded token 4, joint 5 to 8."""
    output = {"last": 1, "post": Post.I16}
    return {
        "encode": [
            {"opcode": Opcode.LOOKUP, "predicate": Predicate.AT_MOST, "threshold": 1, "constant": 1}
            | {"unit": PAD_UNIT, "units": 1, "destination": scratch(3)},
            matvec(0, scratch(0), vectors_less_1=1, source_stride=1, first=3, bias_group=0, sum=0),
            matvec(1, old(0), sum=0, **cell(scratch(2), 0)),
            matvec(2, old(1), sum=2, **begin(1)),
            matvec(
                1, scratch(2), sum=1, predicate=Predicate.MORE, threshold=1, depends=3, **cell(scratch(3), 0, new(0))
            ),
            matvec(3, scratch(2), sum=2, depends=3),
            matvec(4, scratch(3), sum=2, depends=5, **cell(new(1), 1)),
            matvec(5, new(1), depends=7, **begin(2), **output),
        ],
        "predict": [
            {"opcode": Opcode.LOOKUP, "unit": 0, "units": 1, "destination": scratch(4)},
            matvec(6, old(0), sum=3, **begin(3)),
            matvec(7, scratch(4), sum=3, depends=1, **cell(new(0), 0)),
            matvec(8, new(0), depends=3, **begin(4), **output),
        ],
        "joint": [
            {"opcode": Opcode.JOINT, "cell_units": 4, "destination": scratch(5), "shift": 6},
            matvec(9, scratch(5), col_tiles=4, depends=1, last=1, post=Post.LOGIT, **begin(5)),
        ],
    }


def header() -> dict[str, int]:
    """Fields of the header that are not made from the sections."""
    return {
        "magic": MAGIC,
        "version": INTERFACE_VERSION,
        "config_id": TINY.config_id,
        "feature_bytes": WIDTH,
        "vectors": 2,
        "scratch_units": 9,
        "enc_a_units": 2,
        "enc_c_units": 10,
        "pred_a_units": 1,
        "pred_c_units": 5,
        "joint_enc_unit": 2,
        "joint_enc_units": 4,
        "joint_pred_unit": 1,
        "joint_pred_units": 4,
        "classes": CLASSES,
        "blank": CLASSES - 1,
        "logit_bits": 8,
        "sum_groups": 4,
        "tokens": TOKENS,
    }


def _part(name: str, column: int, columns: int, tile: int) -> dict[str, Any]:
    where = {"input": name, "column": column, "columns": columns, "padded": columns}
    return where | {"tile": tile, "scale_group": tile}


def _lstm(name: str, bias: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
    sizes = {"units": 4, "padded": 4, "row_groups": 1, "bias_group": bias, "qc": 11, "qh": 7}
    return {"name": name, "kind": "lstm", **sizes, "parts": parts}


def _linear(name: str, bias: int, part: dict[str, Any]) -> dict[str, Any]:
    sizes = {"units": 16, "padded": 16, "row_groups": 1, "bias_group": bias}
    return {"name": name, "kind": "linear", **sizes, "parts": [part]}


def manifest() -> dict[str, Any]:
    """The manifest without `sections` and `program_id`."""

    def made(section: str, instruction: int, vector: int, layer: str) -> dict[str, Any]:
        return {"section": section, "instruction": instruction, "vector": vector, "layer": layer}

    features = {"sample_rate": 16000, "window": 400, "hop": 160, "n_fft": 512, "n_mels": 4, "stacking": 1}
    return {
        "interface_version": "1.1",
        "config": {"name": "tiny", "id": TINY.config_id},
        "compiler": "by hand",
        "model": {
            "name": "small",
            "source_sha256": "0" * 64,
            "version": "",
            "parameters": 1000,
            "dims": {"features": 4, "hidden": 4, "classes": CLASSES},
        },
        "features": features | {"subsampling": 1, "melalpha": 0.0, "frac_bits": 4, "count": WIDTH, "padded": WIDTH},
        "numerics": {
            "frac_bits": {"features": 4, "logits": 8},
            "joint_shift": 6,
            "joint_unit": 0.05,
            "embedding_unit": 0.01,
        },
        "layers": [
            _lstm("encoder.pre_rnn.0", 0, [_part("x", 0, 4, 0), _part("h", 0, 4, 1)]),
            _lstm("encoder.post_rnn.0", 1, [_part("h", 0, 4, 2), _part("x", 0, 4, 3), _part("x", 4, 4, 4)]),
            _linear("joint_enc", 2, _part("x", 0, 4, 5)),
            _lstm("prediction.0", 3, [_part("h", 0, 4, 6), _part("x", 0, 4, 7)]),
            _linear("joint_pred", 4, _part("x", 0, 4, 8)),
            {"name": "joint", "kind": "joint", "units": 16, "padded": 16},
            _linear("logits", 5, _part("x", 0, 16, 9)),
        ],
        "pad": {"embedding_unit": PAD_UNIT, "bytes": WIDTH},
        "decoding": {"blank": CLASSES - 1, "max_symbols": 5, "prefix_spec": None, "ngram_scale": None},
        "trace": [
            made("encode", 2, 0, "encoder.pre_rnn.0"),
            made("encode", 4, 1, "encoder.pre_rnn.0"),
            made("encode", 6, 0, "encoder.post_rnn.0"),
            made("encode", 7, 0, "joint_enc"),
            made("predict", 2, 0, "prediction.0"),
            made("predict", 3, 0, "joint_pred"),
            made("joint", 0, 0, "joint"),
            made("joint", 1, 0, "logits"),
        ],
    }


def spaces(seed: int) -> dict[str, bytes]:
    """Random numbers in all spaces but the code, such that units use their range."""
    random = np.random.default_rng(seed)
    tiles, groups, biases = 13, 10, 6
    scales = random.integers(1 << 16, 1 << 17, 16 * groups) | 1 << 17
    table = np.zeros((sum(TABLE_ENTRIES.values()), 2), "<i4")
    x = np.arange(513) / 64
    curves = {
        "sigmoid": (1 / (1 + np.exp(-x)), 1),
        "tanh": (np.tanh(x), 1),
        "exp": (2.0 ** -(np.arange(65) / 64), 1),
        "log": (np.log2(1 + np.arange(65) / 64), 1),
    }
    at = 0
    for name, entries in TABLE_ENTRIES.items():
        points = np.round(curves[name][0] * (1 << 17)).astype(np.int64)
        table[at : at + entries, 0] = points[:-1]
        table[at : at + entries, 1] = np.diff(points)
        at += entries
    return {
        "weights": random.integers(-127, 128, 64 * tiles).astype(np.int8).tobytes(),
        "scales": scales.astype("<u4").tobytes(),
        "biases": random.integers(-(1 << 21), 1 << 21, 16 * biases).astype("<i4").tobytes(),
        "tables": table.tobytes(),
        "embedding": random.integers(-127, 128, WIDTH * (TOKENS + 1)).astype(np.int8).tobytes(),
    }


_RECORDS = {Opcode.MATVEC: MATVEC, Opcode.LOOKUP: LOOKUP, Opcode.JOINT: JOINT}


def assemble(
    instructions: Code | None = None,
    fields: dict[str, int] | None = None,
    entries: dict[str, Any] | None = None,
    images: dict[str, bytes] | None = None,
    seed: int = 1,
) -> Program:
    """A program of these instructions, header fields, manifest and images; what is not given is as above.

    CRCs, sizes and the program id are made to fit, so that only what a test changed is wrong.
    """
    images = spaces(seed) | (images or {})
    sections = code() if instructions is None else instructions
    words: list[np.ndarray] = []
    values = header() | (fields or {})
    for name in SECTIONS:
        values |= {f"{name}_first": len(words), f"{name}_count": len(sections[name])} | {
            key: value for key, value in (fields or {}).items() if key.startswith(name)
        }
        words += [_RECORDS[Opcode(i["opcode"])].pack(**i) for i in sections[name]]
    program_id = 0
    for name in ("weights", "scales", "biases", "tables", "embedding"):
        program_id = zlib.crc32(images[name], program_id)
    sizes = {
        "code_bytes": HEADER.bytes + 32 * len(words),
        "weight_bytes": len(images["weights"]),
        "scale_bytes": len(images["scales"]),
        "bias_bytes": len(images["biases"]),
        "table_bytes": len(images["tables"]),
        "embed_bytes": len(images["embedding"]),
        "program_id": program_id,
    }
    head = HEADER.pack(**sizes | values)
    if "crc" not in values:
        head[-1] = zlib.crc32(head[:-1].tobytes())
    code_image = head.tobytes() + b"".join(w.tobytes() for w in words)
    other = {"sentencepiece": b"pieces", "melmeans": bytes(32), "melvars": np.ones(4).tobytes()}
    full = manifest() if entries is None else entries
    return Program({"program_id": program_id} | full, {"code": code_image, **images, **other})


def changed(section: str, index: int, **fields: int) -> Code:
    """The instructions with some fields of one of them changed."""
    result = copy.deepcopy(code())
    result[section][index] |= fields
    return result
