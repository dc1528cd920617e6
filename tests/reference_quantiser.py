# SPDX-License-Identifier: Apache-2.0
"""Function tables and a small quantiser of LSTM layers, from docs/numerics.md, sections 3, 4, 8 and 11 alone.

The compiler has its own; these are here so that the reference model is measured without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sim.reference.layout import Part, Product, Tables
from sim.reference.model import Layer

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

GATE_UNIT = 2.0**-12


def half_up(x: npt.ArrayLike) -> Int:
    return np.floor(np.asarray(x, np.float64) + 0.5).astype(np.int64)


def sigmoid(x: npt.ArrayLike) -> Float:
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


def chords(f: Callable[[Float], Float]) -> Int:
    """Section 4's table of a function, (512, 2)."""
    rows = []
    for i in range(512):
        left, right = (2.0**17 * float(f(np.float64(at / 64))) for at in (i, i + 1))
        slope = int(half_up(right - left))
        g = np.arange(512)
        deviation = 2.0**17 * f((512 * i + g) / 2.0**15) - (left + slope * g / 512)
        e = 0.0 if i == 0 else max(deviation, key=abs) / 2
        rows.append((int(half_up(left + e)), slope))
    return np.array(rows, np.int64)


def differences(points: Int) -> Int:
    return np.stack([points[:-1], np.diff(points)], axis=1)


def tables() -> Tables:
    at = np.arange(65) / 64
    return Tables(
        sigmoid=chords(sigmoid),
        tanh=chords(np.tanh),
        exp=differences(half_up(2.0**17 * 2.0**-at)),
        log=differences(half_up(2.0**17 * np.log2(1 + at))),
    )


def multiplier(ratio: float) -> tuple[int, int]:
    """Section 3's m and k of a unit over the output's unit."""
    if ratio == 0:
        return 0, 0
    mantissa, exponent = np.frexp(ratio)  # in [0.5, 1)
    m, k = int(half_up(mantissa * 2**17)), -int(exponent)
    if m == 2**17:
        m, k = 2**16, k - 1
    if k < -8:
        raise ValueError("the weights are too large")
    return (m >> (k - 23), 23) if k > 23 else (m, k)


def part(name: str, column: int, W: Float, unit: float, output_unit: float) -> Part:
    """One part of a product, rows as they are given."""
    scale = np.abs(W).max(axis=1) / 127
    safe = np.where(scale > 0, scale, 1.0)
    W8 = np.clip(half_up(W / safe[:, None]), -127, 127).astype(np.int8)
    pairs = [multiplier(s * unit / output_unit) for s in scale]
    m, k = (np.array(values, np.int64) for values in zip(*pairs, strict=True))
    return Part(name, column, W8, W.shape[1], m, k)


def bias(b: Float, output_unit: float) -> Int:
    return np.clip(half_up(b / (output_unit * 2.0**-10)), -(2**30), 2**30)


def interleave(rows: Float) -> Float:
    """PyTorch's four blocks of gate rows to rows 4u + gate."""
    H = len(rows) // 4
    return rows[[gate * H + u for u in range(H) for gate in range(4)]]


@dataclass
class FloatLstm:
    """Weights of one layer as PyTorch has them: (4H, I), (4H, H) and both biases added, (4H,)."""

    w_x: Float
    w_h: Float
    b: Float


def choose_qh(h: Float) -> int:
    def error(q: int) -> float:
        beyond = np.maximum(np.abs(h) - 127.5 * 2.0**-q, 0)
        return float(4.0**-q / 12 + np.mean(beyond**2))

    return min(range(7, 15), key=error)


def choose_qc(c: Float) -> int:
    return max(q for q in range(8, 16) if q == 8 or 1.25 * np.abs(c).max() < 2.0 ** (15 - q))


def lstm_layer(weights: FloatLstm, x_unit: float, qc: int, qh: int) -> Layer:
    """The integer layer, without padding."""
    parts = (
        part("x", 0, interleave(weights.w_x), x_unit, GATE_UNIT),
        part("h", 0, interleave(weights.w_h), 2.0**-qh, GATE_UNIT),
    )
    units = weights.w_h.shape[1]
    return Layer("lstm", units, units, Product(bias(interleave(weights.b), GATE_UNIT), parts), qc, qh)


def run_layer(layer: Layer, found: Tables, x8: Int) -> tuple[Int, Int]:
    """h and c over time, (T, H), of int8 inputs (T, I), from zero states."""
    h, c = np.zeros(layer.units, np.int64), np.zeros(layer.units, np.int64)
    hs, cs = [], []
    for x in x8:
        _, h, c = layer.lstm(found, x, h, c)
        hs.append(h)
        cs.append(c)
    return np.array(hs), np.array(cs)
