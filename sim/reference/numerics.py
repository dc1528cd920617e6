# SPDX-License-Identifier: Apache-2.0
"""The machine's arithmetic, operation by operation, written from docs/numerics.md, sections 1 to 5 and 7.

Made to be laid beside the page: names, order and constants are the page's. Everything is an exact integer in numpy
int64; a float argument is refused. Where the page states a width, the value is checked against it (OverflowError), so
that a width which turns out too small is an error here and not a surprise in hardware.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
"""Whole numbers; scalars are arrays of no dimension."""

U_LIMIT = (1 << 18) - 1  # largest magnitude of a table's argument, Q3.15
SIGMOID_C = 32768
TANH_C = 0


def whole(v: npt.ArrayLike) -> Array:
    """The value as int64.

    Raises:
        TypeError: it is not made of integers.
    """
    a = np.asarray(v)
    if a.dtype.kind not in "iu":
        raise TypeError(f"the machine knows integers only, not {a.dtype}")
    return a.astype(np.int64)


def fits(v: Array, bits: int, what: str) -> Array:
    """The value unchanged, after a check that it fits in so many bits, sign included.

    Raises:
        OverflowError: it does not.
    """
    limit = 1 << (bits - 1)
    if v.size and (int(v.min()) < -limit or int(v.max()) >= limit):
        raise OverflowError(f"{what} does not fit in {bits} bits")
    return v


# Section 1: notation


def rsr(v: npt.ArrayLike, n: npt.ArrayLike) -> Array:
    """Rounding shift right, half up; a left shift where n is negative. n broadcasts against v."""
    v, n = whole(v), whole(n)
    right = np.maximum(n, 0)
    left = np.maximum(-n, 0)
    half = (np.int64(1) << right) >> 1  # 2^(n-1), and 0 for n = 0
    return np.asarray(((v + half) >> right) << left)


def clamp(v: npt.ArrayLike, lo: int, hi: int) -> Array:
    """`min(hi, max(lo, v))`."""
    return np.asarray(np.minimum(hi, np.maximum(lo, whole(v))))


def sat8(v: npt.ArrayLike) -> Array:
    """Clamp to [-127, 127]."""
    return clamp(v, -127, 127)


def sat16(v: npt.ArrayLike) -> Array:
    """Clamp to [-2^15, 2^15 - 1]."""
    return clamp(v, -(1 << 15), (1 << 15) - 1)


def sat18(v: npt.ArrayLike) -> Array:
    """Clamp to [-2^17, 2^17 - 1]."""
    return clamp(v, -(1 << 17), (1 << 17) - 1)


# Section 3: matrix product


def part(S: npt.ArrayLike, W: npt.ArrayLike, x: npt.ArrayLike, m: npt.ArrayLike, k: npt.ArrayLike) -> Array:
    """The sums after one part of a product.

    Args:
        S: sums so far, (rows,); the bias before the first part.
        W: weights, (rows, columns), -127..127.
        x: inputs, (columns,), int8.
        m: multipliers, (rows,), 0..2^17 - 1.
        k: shifts, (rows,), -8..23.

    Returns:
        (rows,).
    """
    acc = fits(np.asarray(whole(W) @ whole(x)), 32, "acc")  # 1
    a = sat18(rsr(acc, k))  # 2
    t = fits(rsr(a * whole(m), 7), 29, "t")  # 3
    return fits(whole(S) + t, 32, "S")  # 4


def output(S: npt.ArrayLike) -> Array:
    """The row's output y, int16, after the last part. It is the result of the post-operations I16 and LOGIT."""
    return sat16(rsr(S, 10))


def i8(y: npt.ArrayLike, s: int, lo: int, hi: int) -> Array:
    """Post-operation I8: int8 with a floor (0 or -127) and a ceiling (1..127)."""
    return clamp(rsr(y, s), lo, hi)


# Section 4: function tables


def function(table: Array, u: npt.ArrayLike, C: int) -> Array:
    """Interpolated function of u, Q3.15, by a table (512, 2) of base and slope; Q0.15."""
    u = whole(u)
    base, slope = table[:, 0], table[:, 1]
    mag = np.minimum(np.abs(u), U_LIMIT)
    i = mag >> 9
    g = mag & 511
    v = rsr(base[i] * 512 + slope[i] * g, 11)
    v = clamp(v, 0, 32767)
    return np.where(u >= 0, v, C - v)


def sigmoid(table: Array, u: npt.ArrayLike) -> Array:
    """Sigmoid of u, Q3.15, in Q0.15: 1..32767."""
    return function(table, u, SIGMOID_C)


def tanh(table: Array, u: npt.ArrayLike) -> Array:
    """Hyperbolic tangent of u, Q3.15, in Q0.15: -32767..32767."""
    return function(table, u, TANH_C)


# Section 5: LSTM cell


def cell(
    sigmoid_table: Array, tanh_table: Array, y: npt.ArrayLike, c: npt.ArrayLike, qc: int, qh: int
) -> tuple[Array, Array]:
    """One step of LSTM units.

    Args:
        sigmoid_table: (512, 2).
        tanh_table: (512, 2).
        y: pre-activations Q3.12, (units, 4), gates i, f, g, o.
        c: cell states before the step, (units,), unit 2^-qc.
        qc: 8..15.
        qh: 5..14.

    Returns:
        Cell states after the step, (units,), int16, and outputs h, (units,), int8, unit 2^-qh.
    """
    y, c = whole(y), whole(c)
    i = sigmoid(sigmoid_table, 8 * y[..., 0])
    f = sigmoid(sigmoid_table, 8 * y[..., 1])
    g = tanh(tanh_table, 8 * y[..., 2])
    o = sigmoid(sigmoid_table, 8 * y[..., 3])
    total = fits((f * c << (15 - qc)) + i * g, 39, "cell sum")
    c_new = sat16(rsr(total, 30 - qc))
    u = clamp(c_new << (15 - qc), -U_LIMIT, U_LIMIT)
    h_new = sat8(rsr(o * tanh(tanh_table, u), 30 - qh))
    return c_new, h_new


# Section 7: joint


def joint(joint_enc: npt.ArrayLike, joint_pred: npt.ArrayLike, zs: int) -> Array:
    """`z`, int8 in 0..127, of the two int16 vectors of the same unit."""
    total = fits(whole(joint_enc) + whole(joint_pred), 17, "joint sum")
    return clamp(rsr(total, zs), 0, 127)
