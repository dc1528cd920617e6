# SPDX-License-Identifier: Apache-2.0
"""Log-sum-exp, top-k and the order of classes, written from docs/numerics.md, sections 8 and 9."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .numerics import Array, fits, rsr, whole

BLOCK = 256  # classes of a block of the fuzzy top-k
LANES = 32
BLOCK_VECTORS = BLOCK // LANES

LOG2_E = 47274  # log2(e) * 2^15
LN_2 = 45426  # ln 2 * 2^16


def log_sum_exp(exp_table: Array, log_table: Array, logits: npt.ArrayLike, T: int, e: int) -> int:
    """Log-sum-exp of `logits * T`.

    Args:
        exp_table: (64, 2) base and slope.
        log_table: (64, 2) base and slope.
        logits: (V,), int16, unit 2^-e.
        T: inverse temperature, Q2.14, 0..65535.
        e: fraction bits of the logits, 4..12.

    Returns:
        int32, unit 2^-16 nat.
    """
    L = whole(logits)
    base_exp, slope_exp = exp_table[:, 0], exp_table[:, 1]
    base_log, slope_log = log_table[:, 0], log_table[:, 1]

    Lmax = L.max()
    d = Lmax - L
    p = rsr(d * T, e + 2)
    q = rsr(p * LOG2_E, 15)
    n = q >> 12
    i = (q & 4095) >> 6
    g = q & 63
    v = base_exp[i] * 64 + slope_exp[i] * g
    term = np.where(n < 25, (2 * v) >> np.minimum(n, 25), 0)

    total = int(term.sum())
    b = total.bit_length() - 1
    z = (total >> (b - 16)) - 65536
    i_log = z >> 10
    g_log = z & 1023
    w = rsr(base_log[i_log] * 1024 + slope_log[i_log] * g_log, 11)
    lse = rsr(Lmax * T, e - 2) + rsr(((b - 24) * 65536 + w) * LN_2, 16)
    return int(fits(lse, 32, "lse"))


def ranked(logits: npt.ArrayLike) -> list[int]:
    """All classes, larger logit first, equal logits by index."""
    L = [int(value) for value in whole(logits)]
    return sorted(range(len(L)), key=lambda j: (-L[j], j))


def argmax(logits: npt.ArrayLike) -> int:
    """The class with the largest logit; of equal ones the lowest index."""
    return ranked(logits)[0]


def top_k(logits: npt.ArrayLike, k: int) -> list[int]:
    """The first k classes in order."""
    return ranked(logits)[:k]


def survivors(logits: npt.ArrayLike) -> list[int]:
    """The classes that the fuzzy top-k keeps, ascending: one a block and lane. V is a multiple of 256."""
    L = whole(logits)
    kept = []
    for block in range(len(L) // BLOCK):
        for lane in range(LANES):
            rivals = [BLOCK * block + LANES * vector + lane for vector in range(BLOCK_VECTORS)]
            kept.append(min(rivals, key=lambda j: (-int(L[j]), j)))
    return sorted(kept)


def fuzzy(logits: npt.ArrayLike, k: int) -> tuple[list[int], Array]:
    """Fuzzy top-k.

    Returns:
        The first k survivors in order, and the replaced logits (V,) that log-sum-exp and named logits are taken from.
    """
    L = whole(logits)
    kept = survivors(L)
    replaced = np.full_like(L, L[kept].min())
    replaced[kept] = L[kept]
    order = sorted(kept, key=lambda j: (-int(L[j]), j))
    return order[:k], replaced
