# SPDX-License-Identifier: Apache-2.0
"""The quantised network: a checkpoint's layers as products of int8 rows, padded for a configuration."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gharial.checkpoint.hardware import HardwareCheckpoint
from gharial.compiler.quantise import (
    GATE_UNIT,
    INT8,
    WEIGHT_MAX,
    Float,
    Rows,
    WeightType,
    quantise_bias,
    quantise_rows,
    quantise_table,
)
from gharial.compiler.units import Units
from gharial.isa.configs import Config


@dataclass(frozen=True)
class Part:
    """Columns of a product: `column .. column + columns` of input "x" or "h", stored as `padded` columns."""

    input: str
    column: int
    columns: int
    padded: int
    rows: Rows


@dataclass(frozen=True)
class Layer:
    """One product with its post-operation.

    Attributes:
        name: as in docs/program.md.
        kind: "lstm" or "linear".
        units, padded: hidden units or outputs, without and with padding.
        bias: int64 (rows,), padded; LSTM rows interleaved by gate.
        parts: in the order x, h for an LSTM.
        qc, qh: LSTM only.
    """

    name: str
    kind: str
    units: int
    padded: int
    bias: npt.NDArray[np.int64]
    parts: tuple[Part, ...]
    qc: int = 0
    qh: int = 0


@dataclass(frozen=True)
class Network:
    """All layers by name, and the embedding: int8 (tokens, padded) with its unit; the stack-time pad int8 (padded,)."""

    layers: dict[str, Layer]
    embedding: npt.NDArray[np.int8]
    embedding_unit: float
    pad: npt.NDArray[np.int8]


def pad_to(value: int, multiple: int) -> int:
    """The next multiple."""
    return -(-value // multiple) * multiple


def unit_multiple(config: Config) -> int:
    """Hidden sizes are padded to a multiple of this, so that h is whole in rows and in column tiles."""
    return math.lcm(config.rows // 4, config.cols)


def _grow(matrix: npt.NDArray[np.generic], rows: int, columns: int) -> npt.NDArray[np.generic]:
    return np.pad(matrix, ((0, rows - matrix.shape[0]), (0, columns - matrix.shape[1])))


def _pad_rows(part: Rows, rows: int, columns: int) -> Rows:
    extra = (0, rows - len(part.scales))
    return Rows(
        _grow(part.weights, rows, columns).astype(np.int8),
        np.pad(part.scales, extra),
        np.pad(part.multipliers, extra),
        np.pad(part.shifts, extra),
    )


def interleave(matrix: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Rows i | f | g | o, blocks of H, to rows 4u + gate; any trailing shape."""
    hidden = matrix.shape[0] // 4
    return matrix.reshape(4, hidden, *matrix.shape[1:]).swapaxes(0, 1).reshape(matrix.shape)


class _Builder:
    """Makes layers for one checkpoint, configuration and choice of units."""

    def __init__(self, checkpoint: HardwareCheckpoint, config: Config, units: Units, kind: WeightType) -> None:
        self.state = checkpoint.state
        self.path = checkpoint.path
        self.kind = kind
        self.config = config
        self.units = units
        self.multiple = unit_multiple(config)

    def lstm(self, name: str, prefix: str, index: int, splits: list[tuple[int, int]], x_unit: float) -> Layer:
        """One LSTM layer; `splits` are (columns, padded) of the x parts."""
        w_x = interleave(self.state[f"{prefix}.weight_ih_l{index}"])
        w_h = interleave(self.state[f"{prefix}.weight_hh_l{index}"])
        bias: Float = self.state[f"{prefix}.bias_ih_l{index}"].astype(np.float64)
        bias = bias + self.state[f"{prefix}.bias_hh_l{index}"]
        hidden = w_h.shape[1]
        padded = pad_to(hidden, self.multiple)
        qh = self.units.h_bits[name]
        parts = []
        column = 0
        for columns, width in splits:
            where = f"{self.path}: {prefix}.weight_ih_l{index}"
            rows = quantise_rows(w_x[:, column : column + columns], x_unit, GATE_UNIT, where, self.kind)
            parts.append(Part("x", column, columns, width, _pad_rows(rows, 4 * padded, width)))
            column += columns
        rows = quantise_rows(w_h, 2.0**-qh, GATE_UNIT, f"{self.path}: {prefix}.weight_hh_l{index}", self.kind)
        parts.append(Part("h", 0, hidden, padded, _pad_rows(rows, 4 * padded, padded)))
        full = np.pad(quantise_bias(interleave(bias), GATE_UNIT), (0, 4 * (padded - hidden)))
        return Layer(name, "lstm", hidden, padded, full, tuple(parts), self.units.c_bits[name], qh)

    def linear(
        self, name: str, prefix: str, splits: list[tuple[int, int]], input_unit: float, output_unit: float
    ) -> Layer:
        """One dense layer; `splits` are (columns, padded) of its parts."""
        weights = self.state[f"{prefix}.weight"]
        outputs = len(weights)
        padded = pad_to(outputs, self.config.rows)
        parts = []
        column = 0
        for columns, width in splits:
            chosen = weights[:, column : column + columns]
            rows = quantise_rows(chosen, input_unit, output_unit, f"{self.path}: {prefix}.weight", self.kind)
            parts.append(Part("x", column, columns, width, _pad_rows(rows, padded, width)))
            column += columns
        bias = np.pad(quantise_bias(self.state[f"{prefix}.bias"], output_unit), (0, padded - outputs))
        return Layer(name, "linear", outputs, padded, bias, tuple(parts))


def quantise_network(checkpoint: HardwareCheckpoint, config: Config, units: Units, kind: WeightType = INT8) -> Network:
    """Quantise and pad every layer of the checkpoint.

    Raises:
        BadInput: weights that the fixed-point format cannot hold.
    """
    dims = checkpoint.dims
    build = _Builder(checkpoint, config, units, kind)
    layers: list[Layer] = []
    hidden = pad_to(dims.hidden, build.multiple)
    features = (dims.features, pad_to(dims.features, config.cols))

    splits, x_unit = [features], 2.0**-units.feature_bits
    for index in range(dims.pre_layers):
        name = f"encoder.pre_rnn.{index}"
        layers.append(build.lstm(name, "encoder.pre_rnn.lstm", index, splits, x_unit))
        splits, x_unit = [(dims.hidden, hidden)], 2.0 ** -units.h_bits[name]
    pad_unit = x_unit
    splits = splits * dims.stack
    for index in range(dims.post_layers):
        name = f"encoder.post_rnn.{index}"
        layers.append(build.lstm(name, "encoder.post_rnn.lstm", index, splits, x_unit))
        splits, x_unit = [(dims.hidden, hidden)], 2.0 ** -units.h_bits[name]
    joint_unit = units.joint * 2.0**-units.joint_shift
    layers.append(build.linear("joint_enc", "joint_enc", splits, x_unit, joint_unit))

    table = checkpoint.state["prediction.embed.weight"]
    embedding_unit = float(max(np.abs(table).max(initial=0.0), 2.0**-20)) / WEIGHT_MAX
    width = pad_to(dims.pred_hidden, build.multiple)
    splits, x_unit = [(dims.pred_hidden, width)], embedding_unit
    for index in range(dims.pred_layers):
        name = f"prediction.{index}"
        layers.append(build.lstm(name, "prediction.dec_rnn.lstm", index, splits, x_unit))
        x_unit = 2.0 ** -units.h_bits[name]
    layers.append(build.linear("joint_pred", "joint_pred", splits, x_unit, joint_unit))
    joined = [(dims.joint, pad_to(dims.joint, config.rows))]
    layers.append(build.linear("logits", "joint_net.2", joined, units.joint, 2.0**-units.logit_bits))

    embedding = _grow(quantise_table(table, embedding_unit), len(table), width).astype(np.int8)
    pad = np.zeros(hidden, np.int8)
    if checkpoint.post_pad is not None:
        pad[: dims.hidden] = quantise_table(checkpoint.post_pad, pad_unit)
    return Network({layer.name: layer for layer in layers}, embedding, embedding_unit, pad)
