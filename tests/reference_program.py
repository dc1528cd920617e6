# SPDX-License-Identifier: Apache-2.0
"""Small random programs made without the compiler: manifest and images of a network of quantised integers.

They hold no instructions, which the reference model does not read. Tiles are laid byte by byte with the formula of
docs/isa.md, section 2.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from reference_quantiser import tables

from gharial.isa.configs import Config, config
from gharial.isa.header import HEADER, INTERFACE_VERSION, MAGIC

Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Dims:
    """Sizes of a network; the defaults need padding everywhere on configuration tiny."""

    features: int = 10
    hidden: int = 6
    pre_layers: int = 2
    post_layers: int = 2
    stack: int = 2
    pred_hidden: int = 5
    pred_layers: int = 2
    joint: int = 11
    classes: int = 37


@dataclass
class RawPart:
    """A part as it was drawn: W int (rows, columns), m and k (rows,)."""

    input: str
    column: int
    W: Int
    m: Int
    k: Int


@dataclass
class RawLayer:
    """A layer as it was drawn, without padding."""

    name: str
    units: int
    padded: int
    bias: Int
    parts: list[RawPart]
    qc: int = 0
    qh: int = 0


@dataclass
class TestProgram:
    """What gharial.program.Program has, and what went into it."""

    __test__ = False

    config: Config
    dims: Dims
    manifest: dict[str, Any]
    sections: dict[str, bytes]
    layers: dict[str, RawLayer]
    embedding: Int
    pad: Int
    zs: int
    e: int


@dataclass
class _Images:
    """Images as they grow, and the entries of `layers`."""

    config: Config
    weights: bytearray = field(default_factory=bytearray)
    scales: bytearray = field(default_factory=bytearray)
    biases: bytearray = field(default_factory=bytearray)
    entries: list[dict[str, Any]] = field(default_factory=list)

    def lay(self, W: Int, groups: int, columns: int) -> int:
        """Tiles of a padded matrix; the first tile's number."""
        R, C = self.config.rows, self.config.cols
        first = len(self.weights) // (R * C)
        block = bytearray(groups * R * columns)
        for row, values in enumerate(W):
            for column, value in enumerate(values):
                g, r, t, c = row // R, row % R, column // C, column % C
                block[((g * (columns // C) + t) * R + r) * C + c] = int(value) & 0xFF
        self.weights += block
        return first

    def add(self, layer: RawLayer, kind: str) -> None:
        R, C = self.config.rows, self.config.cols
        rows = layer.padded * (4 if kind == "lstm" else 1)
        groups = rows // R
        entry: dict[str, Any] = {"name": layer.name, "kind": kind, "units": layer.units, "padded": layer.padded}
        entry |= {"row_groups": groups, "bias_group": len(self.biases) // (4 * R), "parts": []}
        if kind == "lstm":
            entry |= {"qc": layer.qc, "qh": layer.qh}
        self.biases += np.pad(layer.bias, (0, rows - len(layer.bias))).astype("<i4").tobytes()
        for part in layer.parts:
            columns = part.W.shape[1]
            padded = -(-columns // C) * C
            place = {"tile": self.lay(part.W, groups, padded), "scale_group": len(self.scales) // (4 * R)}
            words = (part.m | (part.k & 0x3F) << 17).astype("<u4")
            self.scales += np.pad(words, (0, rows - len(words))).astype("<u4").tobytes()
            where = {"input": part.input, "column": part.column, "columns": columns, "padded": padded}
            entry["parts"].append(where | place)
        self.entries.append(entry)


def _parts(rng: np.random.Generator, rows: int, splits: list[tuple[str, int, int]], step: int) -> list[RawPart]:
    """Random parts of rows; the sum of all has a spread of about `step` output units."""
    total = sum(columns for _, _, columns in splits)
    k = round(math.log2(73 * 73 * math.sqrt(total) / step)) - 1
    parts = []
    for name, column, columns in splits:
        W = rng.integers(-127, 128, (rows, columns))
        m = rng.integers(1 << 16, 1 << 17, rows)
        parts.append(RawPart(name, column, W, m, k + rng.integers(0, 2, rows)))
    return parts


def make_program(
    seed: int, name: str = "tiny", dims: Dims | None = None, pad: bool = True, blank_bias: int = 0
) -> TestProgram:
    """A random program. `pad` draws a stack-time pad, else it is zero; `blank_bias` is added to blank's logit."""
    rng, dims, hardware = np.random.default_rng(seed), dims or Dims(), config(name)
    R, C = hardware.rows, hardware.cols
    multiple = math.lcm(R // 4, C)

    def padded(units: int, to: int) -> int:
        return -(-units // to) * to

    def lstm(layer: str, units: int, inputs: list[int]) -> RawLayer:
        splits, column = [], 0
        for width in inputs:
            splits.append(("x", column, width))
            column += width
        splits.append(("h", 0, units))
        rng.shuffle(splits)
        bias = rng.integers(-(1 << 22), 1 << 22, 4 * units)
        parts = _parts(rng, 4 * units, splits, 5000)
        qc, qh = int(rng.integers(10, 14)), int(rng.integers(6, 9))
        return RawLayer(layer, units, padded(units, multiple), bias, parts, qc, qh)

    def linear(layer: str, units: int, inputs: list[int], step: int) -> RawLayer:
        bias = rng.integers(-(1 << 20), 1 << 20, units)
        splits = [("x", sum(inputs[:at]), width) for at, width in enumerate(inputs)]
        return RawLayer(layer, units, padded(units, R), bias, _parts(rng, units, splits, step))

    layers: list[tuple[RawLayer, str]] = []
    for prefix, count, units, first in (
        ("encoder.pre_rnn", dims.pre_layers, dims.hidden, [dims.features]),
        ("encoder.post_rnn", dims.post_layers, dims.hidden, [dims.hidden] * dims.stack),
    ):
        layers += [(lstm(f"{prefix}.{at}", units, first if at == 0 else [units]), "lstm") for at in range(count)]
    encoded = [dims.hidden] * (1 if dims.post_layers else dims.stack)
    layers.append((linear("joint_enc", dims.joint, encoded, 3000), "linear"))
    for at in range(dims.pred_layers):
        layers.append((lstm(f"prediction.{at}", dims.pred_hidden, [dims.pred_hidden]), "lstm"))
    layers.append((linear("joint_pred", dims.joint, [dims.pred_hidden], 3000), "linear"))
    logits = linear("logits", dims.classes, [dims.joint], 2000)
    logits.bias[-1] += blank_bias
    layers.append((logits, "linear"))

    images = _Images(hardware)
    for layer, kind in layers:
        images.add(layer, kind)
    joint_padded = padded(dims.joint, R)
    images.entries.insert(-1, {"name": "joint", "kind": "joint", "units": dims.joint, "padded": joint_padded})

    tokens = dims.classes - 1
    embedding = rng.integers(-127, 128, (tokens, dims.pred_hidden))
    row = padded(dims.pred_hidden, C)
    space = np.zeros((tokens, row), np.int8)
    space[:, : dims.pred_hidden] = embedding
    pad_values = rng.integers(-127, 128, dims.hidden) if pad else np.zeros(dims.hidden, np.int64)
    hidden = padded(dims.hidden, multiple)
    constant = np.pad(pad_values, (0, hidden - dims.hidden)).astype(np.int8)
    t = tables()
    sections = {
        "weights": bytes(images.weights),
        "scales": bytes(images.scales),
        "biases": bytes(images.biases),
        "tables": b"".join(table.astype("<i4").tobytes() for table in (t.sigmoid, t.tanh, t.exp, t.log)),
        "embedding": space.tobytes() + constant.tobytes(),
    }
    zs, e = int(rng.integers(4, 8)), 8
    program_id = zlib.crc32(b"".join(sections.values()))
    sections["code"] = _code(hardware, dims, sections, program_id, e, hidden, padded(dims.pred_hidden, multiple))
    manifest = {
        "interface_version": "1.1",
        "config": {"name": name, "id": hardware.config_id},
        "program_id": program_id,
        "sections": {key: {"sha256": hashlib.sha256(data).hexdigest()} for key, data in sections.items()},
        "features": {"count": dims.features, "padded": padded(dims.features, C)},
        "numerics": {"frac_bits": {"features": 4, "logits": e}, "joint_shift": zs},
        "layers": images.entries,
        "pad": {"embedding_unit": tokens * row // C, "bytes": hidden},
        "decoding": {"blank": dims.classes - 1, "max_symbols": 30},
        "trace": [],
    }
    by_name = {layer.name: layer for layer, _ in layers}
    return TestProgram(hardware, dims, manifest, sections, by_name, embedding, pad_values, zs, e)


def _code(
    hardware: Config, dims: Dims, sections: dict[str, bytes], program_id: int, e: int, hidden: int, pred: int
) -> bytes:
    """A header, and no instructions."""
    C, cell = hardware.cols, hardware.cell_unit
    encoder, prediction = hidden * (dims.pre_layers + dims.post_layers), pred * dims.pred_layers
    J = -(-dims.joint // hardware.rows) * hardware.rows
    feature_bytes = -(-dims.features // C) * C
    words = HEADER.pack(
        magic=MAGIC,
        version=INTERFACE_VERSION,
        config_id=hardware.config_id,
        program_id=program_id,
        code_bytes=HEADER.bytes,
        weight_bytes=len(sections["weights"]),
        scale_bytes=len(sections["scales"]),
        bias_bytes=len(sections["biases"]),
        table_bytes=len(sections["tables"]),
        embed_bytes=len(sections["embedding"]),
        feature_bytes=feature_bytes,
        vectors=dims.stack,
        scratch_units=dims.stack * feature_bytes // C,
        enc_a_units=encoder // C,
        enc_c_units=(encoder + 2 * J) // cell,
        pred_a_units=prediction // C,
        pred_c_units=(prediction + J) // cell,
        joint_enc_unit=encoder // cell,
        joint_enc_units=J // cell,
        joint_pred_unit=prediction // cell,
        joint_pred_units=J // cell,
        classes=dims.classes,
        blank=dims.classes - 1,
        logit_bits=e,
        tokens=dims.classes - 1,
    )
    words[-1] = zlib.crc32(words[:-1].tobytes())
    return words.tobytes()
