# SPDX-License-Identifier: Apache-2.0
"""Weights of two published models, in PyTorch's convention (gate rows i, f, g, o)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from published.protobuf import Malformed, integers, submessages, text

_FLOAT = 1  # the code of float32 in both formats


@dataclass(frozen=True)
class Lstm:
    """One layer: (4 H, X), (4 H, H), (4 H,) float32; `bias` is the sum of both."""

    weight_ih: np.ndarray
    weight_hh: np.ndarray
    bias: np.ndarray

    @property
    def hidden(self) -> int:
        return self.weight_hh.shape[1]


@dataclass(frozen=True)
class Dense:
    """(N, K) and (N,) float32."""

    weight: np.ndarray
    bias: np.ndarray


def read_kws(path: Path) -> tuple[Lstm, Dense]:
    """ARM's keyword spotter: the LSTM and the output layer of a TensorFlow frozen graph."""
    constants = graph_constants(path.read_bytes())
    kernel = constants["lstm/rnn/basic_lstm_cell/kernel"]
    bias = constants["lstm/rnn/basic_lstm_cell/bias"].copy()
    hidden = kernel.shape[1] // 4
    # BasicLSTMCell: one kernel for [x, h], gates i, j (= g), f, o, and the cell adds 1 to f's pre-activation.
    bias[2 * hidden : 3 * hidden] += 1.0
    rows = gates(kernel.T, "ijfo", "ifjo")
    inputs = kernel.shape[0] - hidden
    lstm = Lstm(rows[:, :inputs], rows[:, inputs:], gates(bias, "ijfo", "ifjo"))
    return lstm, Dense(constants["W_o"].T, constants["b_o"])


def read_dtln_1(path: Path) -> tuple[list[Lstm], Dense]:
    """First half of DTLN: two ONNX LSTM operators and a mask layer."""
    tensors = onnx_initialisers(path.read_bytes())
    layers = []
    for name in ("lstm_4", "lstm_5"):
        b_w, b_r = np.split(tensors[f"{name}_B"][0], 2)
        w, r, b = (gates(a, "iofc", "ifco") for a in (tensors[f"{name}_W"][0], tensors[f"{name}_R"][0], b_w + b_r))
        layers.append(Lstm(w, r, b))
    return layers, Dense(tensors["dense_2/kernel:0"].T, tensors["dense_2/bias:0"])


@dataclass(frozen=True)
class Dtln2:
    """Second half of DTLN."""

    encoder: np.ndarray  # (256, 512)
    gain: np.ndarray  # (256,) of the layer norm
    offset: np.ndarray
    epsilon: float
    layers: list[Lstm]
    mask: Dense
    decoder: np.ndarray  # (512, 256)


def read_dtln_2(path: Path) -> Dtln2:
    """Second half of DTLN, whose LSTMs were exported as plain products: Keras kernels (X, 4 H), gates i, f, g, o."""
    tensors = onnx_initialisers(path.read_bytes())
    layers = []
    for name in ("model_2/lstm_6", "model_2/lstm_7"):
        x, h, b = (tensors[f"{name}/{part}/ReadVariableOp/resource:0"] for part in ("MatMul", "MatMul_1", "BiasAdd"))
        layers.append(Lstm(x.T, h.T, b))
    norm = "model_2/instant_layer_normalization_1"
    return Dtln2(
        encoder=tensors["conv1d_2/kernel:0"][:, :, 0],
        gain=tensors[f"{norm}/mul/ReadVariableOp/resource:0"],
        offset=tensors[f"{norm}/add_1/ReadVariableOp/resource:0"],
        epsilon=float(tensors[f"{norm}/add/y:0"]),
        layers=layers,
        mask=Dense(
            tensors["model_2/dense_3/Tensordot/Reshape_1:0"].T,
            tensors["model_2/dense_3/BiasAdd/ReadVariableOp/resource:0"],
        ),
        decoder=tensors["conv1d_3/kernel:0"][:, :, 0],
    )


def gates(rows: np.ndarray, found: str, wanted: str) -> np.ndarray:
    """Blocks of rows, one a gate, put into another order."""
    blocks = np.split(rows, len(found))
    return np.concatenate([blocks[found.index(gate)] for gate in wanted])


def graph_constants(data: bytes) -> dict[str, np.ndarray]:
    """Float constants of a TensorFlow GraphDef (node 1; NodeDef: name 1, op 2, attr 5; AttrValue: tensor 8)."""
    constants = {}
    for node in submessages(data, 1):
        if text(node, 2) != "Const":
            continue
        for attribute in submessages(node, 5):
            if text(attribute, 1) != "value":
                continue
            (value,) = submessages(attribute, 2)
            (tensor,) = submessages(value, 8)
            if integers(tensor, 1) == [_FLOAT]:
                # TensorProto: dtype 1, shape 2 (dim 2, size 1), tensor_content 4, float_val 5.
                shape = [integers(dim, 1)[0] for part in submessages(tensor, 2) for dim in submessages(part, 2)]
                constants[text(node, 1)] = _floats([*submessages(tensor, 4), *submessages(tensor, 5)], shape)
    return constants


def onnx_initialisers(data: bytes) -> dict[str, np.ndarray]:
    """Float initialisers of an ONNX model (graph 7; initializer 5: dims 1, type 2, floats 4, name 8, raw 9)."""
    tensors = {}
    (graph,) = submessages(data, 7)
    for tensor in submessages(graph, 5):
        if integers(tensor, 2) == [_FLOAT]:
            raw = [*submessages(tensor, 4), *submessages(tensor, 9)]
            tensors[text(tensor, 8)] = _floats(raw, integers(tensor, 1))
    return tensors


def _floats(parts: Iterable[memoryview], shape: list[int]) -> np.ndarray:
    values = np.frombuffer(b"".join(parts), "<f4")
    if values.size != math.prod(shape):
        raise Malformed(f"{values.size} values in a tensor of shape {shape}")
    return values.reshape(shape)
