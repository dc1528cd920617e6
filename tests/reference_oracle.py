# SPDX-License-Identifier: Apache-2.0
"""docs/numerics.md once more, in exact fractions, Python's unbounded integers and plain loops.

Nothing here shifts, clips or vectorises, so a slip in the reference model's way of doing it shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Table = Any  # (entries, 2) of base and slope
HALF = Fraction(1, 2)


def rsr(v: int, n: int) -> int:
    return math.floor(Fraction(v) / Fraction(2) ** n + HALF)


def limited(v: int, lo: int, hi: int) -> int:
    if v < lo:
        return lo
    return hi if v > hi else v


def sat(v: int, bits: int) -> int:
    return limited(v, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def term(weights: Sequence[int], x: Sequence[int], m: int, k: int) -> int:
    """What one part adds to the sum of one row."""
    acc = 0
    for w, v in zip(weights, x, strict=True):
        acc += int(w) * int(v)
    return rsr(sat(rsr(acc, k), 18) * m, 7)


def function(table: Table, u: int, C: int) -> int:
    mag = min(abs(u), 2**18 - 1)
    base, slope = table[mag // 512]
    v = limited(math.floor((Fraction(int(base)) + Fraction(int(slope) * (mag % 512), 512)) / 4 + HALF), 0, 32767)
    return v if u >= 0 else C - v


def cell(sigmoid: Table, tanh: Table, y: Sequence[int], c: int, qc: int, qh: int) -> tuple[int, int]:
    """c and h after the step."""
    i, f, o = (function(sigmoid, 8 * int(y[gate]), 32768) for gate in (0, 1, 3))
    g = function(tanh, 8 * int(y[2]), 0)
    one = Fraction(1, 2**15)
    value = f * one * Fraction(c, 2**qc) + i * one * g * one
    c_new = sat(math.floor(value * 2**qc + HALF), 16)
    u = limited(c_new * 2 ** (15 - qc), -(2**18 - 1), 2**18 - 1)
    h = math.floor(o * one * function(tanh, u, 0) * one * 2**qh + HALF)
    return c_new, limited(h, -127, 127)


def joint(a: int, b: int, zs: int) -> int:
    return limited(rsr(a + b, zs), 0, 127)


def log_sum_exp(exp: Table, log: Table, logits: Sequence[int], T: int, e: int) -> int:
    highest = max(logits)
    total = 0
    for value in logits:
        p = rsr((highest - value) * T, e + 2)
        q = rsr(p * 47274, 15)
        octaves, rest = divmod(q, 4096)
        base, slope = exp[rest // 64]
        v = int(base) * 64 + int(slope) * (rest % 64)
        if octaves < 25:
            total += 2 * v // 2**octaves
    b = math.floor(math.log2(total))
    while 2**b > total:
        b -= 1
    while 2 ** (b + 1) <= total:
        b += 1
    z = math.floor(Fraction(total * 65536, 2**b)) - 65536
    base, slope = log[z // 1024]
    w = rsr(int(base) * 1024 + int(slope) * (z % 1024), 11)
    return rsr(highest * T, e - 2) + rsr(((b - 24) * 65536 + w) * 45426, 16)
