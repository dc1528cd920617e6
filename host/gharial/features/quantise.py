# SPDX-License-Identifier: Apache-2.0
"""Features as the accelerator takes them."""

from __future__ import annotations

import numpy as np


def quantise_features(x: np.ndarray, frac_bits: int) -> np.ndarray:
    """Fixed-point features: floor(x 2^frac_bits + 0.5), held to -127..127.

    Ties go up (towards plus infinity), the rule of every other requantisation here; -128 is never used, so that the
    range is symmetric. The sum is formed in float64, where it is exact for float32 input: in float32 a value just
    below a tie would be rounded onto it.

    Args:
        x: any shape, float32 or float64, no NaN.
        frac_bits: number of fractional bits; negative for steps above one.

    Returns:
        int8, the shape of `x`; one unit is 2^-frac_bits.
    """
    scaled = np.ldexp(np.asarray(x, dtype=np.float64), frac_bits)
    scaled += 0.5
    np.floor(scaled, out=scaled)
    return np.clip(scaled, -127.0, 127.0, out=scaled).astype(np.int8)
