# SPDX-License-Identifier: Apache-2.0
"""Models of other frameworks, written by hand: protocol buffers of a TensorFlow graph and of ONNX."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def varint(value: int) -> bytes:
    data = b""
    while value >= 0x80:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def frozen_graph(tensors: Mapping[str, np.ndarray]) -> bytes:
    """A GraphDef of these float constants, and of a node that is none."""
    nodes = message(1, message(1, b"input") + message(2, b"Placeholder"))
    for name, array in tensors.items():
        shape = b"".join(message(2, number(1, size)) for size in array.shape)
        tensor = number(1, 1) + message(2, shape) + message(4, array.astype("<f4").tobytes())
        value = message(1, b"value") + message(2, message(8, tensor))
        nodes += message(1, message(1, name.encode()) + message(2, b"Const") + message(5, value))
    return nodes


def onnx(tensors: Mapping[str, np.ndarray]) -> bytes:
    """A model of these float initialisers, dimensions packed as ONNX writes them."""
    graph = b""
    for name, array in tensors.items():
        dims = b"".join(map(varint, array.shape))
        parts = message(1, dims) if array.ndim else b""
        data = b"".join(struct.pack("<f", value) for value in array.ravel())
        graph += message(5, parts + number(2, 1) + message(8, name.encode()) + message(9, data))
    return number(1, 6) + message(7, graph)


def draw(random: np.random.Generator, *shape: int, spread: float | None = None) -> np.ndarray:
    """Normal numbers, of deviation 1 over the root of the last axis unless told."""
    return (spread or shape[-1] ** -0.5) * random.standard_normal(shape)


def write_kws(path: Path, random: np.random.Generator, hidden: int = 6) -> Path:
    """A keyword spotter that was never trained."""
    cell = "lstm/rnn/basic_lstm_cell"
    tensors = {
        f"{cell}/kernel": draw(random, 10 + hidden, 4 * hidden, spread=0.2),
        f"{cell}/bias": draw(random, 4 * hidden, spread=0.2),
        "W_o": draw(random, hidden, 12),
        "b_o": draw(random, 12),
    }
    path.write_bytes(frozen_graph(tensors))
    return path


def write_dtln(folder: Path, random: np.random.Generator, hidden: int = 5, features: int = 7) -> tuple[Path, Path]:
    """Both halves of a noise suppressor that was never trained."""
    first: dict[str, np.ndarray] = {}
    for name, inputs in (("lstm_4", 257), ("lstm_5", hidden)):
        first |= {
            f"{name}_W": draw(random, 1, 4 * hidden, inputs),
            f"{name}_R": draw(random, 1, 4 * hidden, hidden),
            f"{name}_B": draw(random, 1, 8 * hidden, spread=0.2),
        }
    first |= {"dense_2/kernel:0": draw(random, hidden, 257, spread=1), "dense_2/bias:0": draw(random, 257, spread=0.5)}
    resource = "ReadVariableOp/resource:0"
    second: dict[str, np.ndarray] = {}
    for name, inputs in (("model_2/lstm_6", features), ("model_2/lstm_7", hidden)):
        second |= {
            f"{name}/MatMul/{resource}": draw(random, inputs, 4 * hidden, spread=0.4),
            f"{name}/MatMul_1/{resource}": draw(random, hidden, 4 * hidden, spread=0.4),
            f"{name}/BiasAdd/{resource}": draw(random, 4 * hidden, spread=0.2),
        }
    norm, dense = "model_2/instant_layer_normalization_1", "model_2/dense_3"
    second |= {
        f"{norm}/mul/{resource}": np.ones(features),
        f"{norm}/add_1/{resource}": np.zeros(features),
        f"{norm}/add/y:0": np.array(1e-7),
        f"{dense}/Tensordot/Reshape_1:0": draw(random, hidden, features, spread=1),
        f"{dense}/BiasAdd/{resource}": draw(random, features, spread=0.5),
        "conv1d_2/kernel:0": draw(random, features, 512, 1, spread=0.05),
        "conv1d_3/kernel:0": draw(random, 512, features, 1, spread=0.05),
    }
    paths = folder / "first.onnx", folder / "second.onnx"
    for path, tensors in zip(paths, (first, second), strict=True):
        path.write_bytes(onnx(tensors))
    return paths
