# SPDX-License-Identifier: Apache-2.0
"""What a model of given sizes takes of a configuration, without its weights: bytes, slots, steps of the array.

The model is laid out as the compiler lays it out, with matrices that have a shape and no content, so the figures are
those of the program that it would make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gharial.checkpoint.dims import ModelDims
from gharial.compiler.emit import Images
from gharial.compiler.layout import Laid, lay_out
from gharial.compiler.network import Layer, Network, Part, pad_to, unit_multiple
from gharial.compiler.quantise import Rows
from gharial.errors import BadInput
from gharial.isa.configs import Config
from gharial.isa.header import HEADER, TABLE_BYTES
from gharial.program.pace import Pace, pace_of

_WORD = 4
_CAPACITIES = {
    "code": "code_bytes",
    "weights": "weight_bytes",
    "scales": "scale_bytes",
    "biases": "bias_bytes",
    "embedding": "embed_bytes",
}


@dataclass(frozen=True)
class Fit:
    """A model on a configuration.

    Attributes:
        config: the configuration.
        short: what it lacks, a clause each ("weights need 300000 bytes, 262144 there"); none: the model fits.
        bytes: that the program's spaces would have, by name; empty where the model cannot be laid out at all.
        header: the program header's figures of slots, scratch and sums; likewise.
        pace: steps of the array; None likewise.
    """

    config: Config
    short: tuple[str, ...]
    bytes: Mapping[str, int]
    header: Mapping[str, int]
    pace: Pace | None

    @property
    def fits(self) -> bool:
        """Whether the compiler would make a program of it."""
        return not self.short


def fit(dims: ModelDims, config: Config) -> Fit:
    """How a model of these sizes fits a configuration."""
    least = sure_shortages(dims, config)
    if least:
        return Fit(config, tuple(least), {}, {}, None)
    sizes = _Sizes(config)
    try:
        laid = lay_out(_shapes(dims, config), dims, config, 0, sizes)
    except BadInput as error:
        return Fit(config, (_told(error),), {}, {}, None)
    except ValueError as error:  # what an instruction's field does not hold
        return Fit(config, (str(error),), {}, {}, None)
    space_bytes = _space_bytes(dims, config, laid, sizes)
    short = shortages(config, laid.header, space_bytes, dims.classes)
    return Fit(config, tuple(short), space_bytes, laid.header, pace_of(laid.code, config))


def sure_shortages(dims: ModelDims, config: Config) -> list[str]:
    """What a model lacks on a configuration however it is laid out, a clause each."""
    least = sum(shape[0] * shape[1] for name, shape in dims.shapes().items() if len(shape) == 2 and "embed" not in name)
    short = []
    if least > config.weight_bytes:
        short.append(f"weights need at least {least} bytes, {config.weight_bytes} there")
    if dims.classes > config.max_classes:
        short.append(f"logits need {dims.classes} classes, {config.max_classes} there")
    return short


def shortages(config: Config, header: Mapping[str, int], sizes: Mapping[str, int], classes: int) -> list[str]:
    """What a program lacks on a configuration, a clause each.

    Args:
        config: the configuration.
        header: figures of the program's header; those that are not there are not looked at.
        sizes: bytes of its spaces, likewise.
        classes: of the model.
    """
    short = []
    for name, capacity in _CAPACITIES.items():
        there = int(getattr(config, capacity))
        if sizes.get(name, 0) > there:
            short.append(f"{name} need {sizes[name]} bytes, {there} there")
    if classes > config.max_classes:
        short.append(f"logits need {classes} classes, {config.max_classes} there")
    scratch = header.get("scratch_units", 0)
    if scratch > config.scratch_units:
        short.append(f"scratch needs {scratch * config.cols} bytes, {config.scratch_units * config.cols} there")
    for field, size in (("a_units", config.cols), ("c_units", 2 * config.cell_unit)):
        for kind in ("enc", "pred"):
            need, there = header.get(f"{kind}_{field}", 0), int(getattr(config, f"{kind}_{field}"))
            if need > there:
                short.append(f"a state slot needs {need * size} bytes, {there * size} there")
    bank = header.get("joint_enc_units", 0)
    if config.in_memory and bank > config.pred_c_units:
        need, there = (units * 2 * config.cell_unit for units in (bank, config.pred_c_units))
        short.append(f"a bank of joint_enc needs {need} bytes, {there} there")
    return short


class _Sizes(Images):
    """Images of which only the places are kept."""

    def part(self, layer: Layer, index: int) -> tuple[int, int]:
        key = (layer.name, index)
        if key not in self.parts:
            rows = layer.parts[index].rows
            self.parts[key] = (self.tiles, self.groups)
            self.tiles += rows.weights.size // self.config.tile_bytes
            self.groups += len(rows.scales) // self.config.rows
        return self.parts[key]

    def bias(self, layer: Layer) -> int:
        if layer.name not in self.bias_groups:
            self.bias_groups[layer.name] = self.bias_used
            self.bias_used += len(layer.bias) // self.config.rows
        return self.bias_groups[layer.name]


def _space_bytes(dims: ModelDims, config: Config, laid: Laid, sizes: _Sizes) -> dict[str, int]:
    embedding = laid.header["tokens"] * pad_to(dims.pred_hidden, unit_multiple(config))
    embedding += pad_to(dims.hidden, unit_multiple(config))  # the pad of the time stack
    return {
        "code": HEADER.bytes + sum(words.nbytes for code in laid.code.values() for words in code),
        "weights": sizes.tiles * config.tile_bytes,
        "scales": sizes.groups * config.rows * _WORD,
        "biases": sizes.bias_used * config.rows * _WORD,
        "tables": TABLE_BYTES,
        "embedding": pad_to(embedding, int(np.lcm(_WORD, config.cols))),
    }


def _told(error: BadInput) -> str:
    found = "" if error.found is None else f": {error.found}"
    return f"{error.what}{found}" + ("" if error.expected is None else f", {error.expected} there")


def _shapes(dims: ModelDims, config: Config) -> Network:
    """The quantised network's shapes (gharial.compiler.network); its arrays take no memory."""
    multiple = unit_multiple(config)
    hidden, pred = (dims.hidden, pad_to(dims.hidden, multiple)), (dims.pred_hidden, pad_to(dims.pred_hidden, multiple))
    layers: list[Layer] = []
    splits = [(dims.features, pad_to(dims.features, config.cols))]
    for index in range(dims.pre_layers):
        layers.append(_lstm(f"encoder.pre_rnn.{index}", splits, hidden))
        splits = [hidden]
    splits = splits * dims.stack
    for index in range(dims.post_layers):
        layers.append(_lstm(f"encoder.post_rnn.{index}", splits, hidden))
        splits = [hidden]
    joint = dims.joint, pad_to(dims.joint, config.rows)
    layers.append(_linear("joint_enc", splits, joint))
    layers += [_lstm(f"prediction.{index}", [pred], pred) for index in range(dims.pred_layers)]
    layers.append(_linear("joint_pred", [pred], joint))
    layers.append(_linear("logits", [joint], (dims.classes, pad_to(dims.classes, config.rows))))
    embedding, pad = _nothing(dims.vocabulary, pred[1]), np.zeros(hidden[1], np.int8)
    return Network({layer.name: layer for layer in layers}, embedding, 1.0, pad)


def _lstm(name: str, splits: list[tuple[int, int]], units: tuple[int, int]) -> Layer:
    rows = 4 * units[1]
    parts = (*(_part("x", columns, width, rows) for columns, width in splits), _part("h", *units, rows))
    return Layer(name, "lstm", *units, np.zeros(rows, np.int64), parts)


def _linear(name: str, splits: list[tuple[int, int]], outputs: tuple[int, int]) -> Layer:
    parts = tuple(_part("x", columns, width, outputs[1]) for columns, width in splits)
    return Layer(name, "linear", *outputs, np.zeros(outputs[1], np.int64), parts)


def _part(kind: str, columns: int, width: int, rows: int) -> Part:
    none = np.broadcast_to(np.int64(0), (rows,))
    return Part(kind, 0, columns, width, Rows(_nothing(rows, width), none.astype(np.float64), none, none))


def _nothing(rows: int, columns: int) -> np.ndarray:
    return np.broadcast_to(np.int8(0), (rows, columns))
