# SPDX-License-Identifier: Apache-2.0
"""A program's function tables: sigmoid, tanh, 2^-x, log2(1 + x) as chords (docs/numerics.md, sections 4 and 8)."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gharial.isa.header import TABLE_ENTRIES

Table = npt.NDArray[np.int64]
Function = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]

_ONE = 1 << 17  # tables are in Q0.17
_SEGMENT = 512  # arguments of one activation segment, in Q3.15
_SEGMENTS_PER_UNIT = 64


def activation_table(function: Function) -> Table:
    """Balanced chords of a function over [0, 8); int64 (512, 2) of (base, slope).

    Args:
        function: float64 to float64, element-wise, values in [0, 1] for arguments in [0, 8].
    """
    entries = TABLE_ENTRIES["sigmoid"]
    nodes = function(np.arange(entries + 1) / _SEGMENTS_PER_UNIT) * _ONE
    slope = np.floor(np.diff(nodes) + 0.5)
    step = np.arange(_SEGMENT) / _SEGMENT
    inner = function((np.arange(entries)[:, None] + step) / _SEGMENTS_PER_UNIT) * _ONE
    deviation = inner - (nodes[:-1, None] + slope[:, None] * step)
    # Half of the largest deviation balances the error of a chord; the first segment keeps f(0) exact.
    largest = np.take_along_axis(deviation, np.abs(deviation).argmax(axis=1)[:, None], axis=1)[:, 0]
    largest[0] = 0.0
    base = np.floor(nodes[:-1] + largest / 2 + 0.5)
    return np.stack([base, slope], axis=1).astype(np.int64)


def _segment_table(function: Function, entries: int) -> Table:
    """Plain chords between the points i / entries of [0, 1]; int64 (entries, 2) of (base, slope)."""
    nodes = np.floor(function(np.arange(entries + 1) / entries) * _ONE + 0.5)
    return np.stack([nodes[:-1], np.diff(nodes)], axis=1).astype(np.int64)


def sigmoid(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Logistic function, element-wise."""
    return 1.0 / (1.0 + np.exp(-x))


def hard_sigmoid(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """CAIMAN's hard sigmoid: clamp(0.5 + x/8, 0, 1)."""
    return np.clip(0.5 + x / 8, 0.0, 1.0)


def hard_tanh(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """CAIMAN's hard tanh: clamp(x, -1, 1)."""
    return np.clip(x, -1.0, 1.0)


def function_tables(sigmoid_function: Function = sigmoid, tanh_function: Function = np.tanh) -> dict[str, Table]:
    """The four tables in the order of the table space."""
    return {
        "sigmoid": activation_table(sigmoid_function),
        "tanh": activation_table(tanh_function),
        "exp": _segment_table(lambda x: 2.0**-x, TABLE_ENTRIES["exp"]),
        "log": _segment_table(lambda x: np.log2(1.0 + x), TABLE_ENTRIES["log"]),
    }


def default_tables() -> dict[str, Table]:
    """The shipped tables: sigmoid, tanh, exp, log; int64 (entries, 2) of (base, slope)."""
    return function_tables()


def table_image(tables: dict[str, Table]) -> bytes:
    """The table space: pairs of words (base, slope in two's complement), little-endian."""
    return b"".join(tables[name].astype("<i4").tobytes() for name in TABLE_ENTRIES)
