# SPDX-License-Identifier: Apache-2.0
"""Float matrices to int8 rows with a multiplier and a shift each (docs/numerics.md, sections 3 and 11)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gharial.errors import BadInput

Float = npt.NDArray[np.float64]

GATE_UNIT = 2.0**-12
SUM_BITS = 10  # S has that many fraction bits more than the output
BIAS_LIMIT = 1 << 30
SHIFT_MIN, SHIFT_MAX = -8, 23
WEIGHT_MAX = 127

_NARROWEST = 0.4  # of the range that the largest weight needs: the finest scale that is tried
_TRIED = 25
_BLOCK = 1 << 18  # weights looked at together, so that they stay in the cache


@dataclass(frozen=True)
class WeightType:
    """How weights become steps of their row's scale.

    Attributes:
        name: as on the command line and in the manifest.
        most: the largest step, at most WEIGHT_MAX; the smallest is its negative.
        fitted: the scale is the one of least squares, which clips the row's largest weights; else the largest weight
            is the largest step.
    """

    name: str
    most: int
    fitted: bool


INT8 = WeightType("int8", 127, fitted=False)
INT4 = WeightType("int4", 7, fitted=True)
WEIGHT_TYPES = {kind.name: kind for kind in (INT8, INT4)}
"""The types to choose from, the default first; docs/quantisation.md tells why each is as it is."""


@dataclass(frozen=True)
class Rows:
    """The rows of one part of a product.

    Attributes:
        weights: int8 (rows, columns), in [-127, 127].
        scales: float64 (rows,), the value of one weight step.
        multipliers: int64 (rows,), 0 or in [2^16, 2^17), smaller where the shift is at its limit.
        shifts: int64 (rows,), in [-8, 23].
    """

    weights: npt.NDArray[np.int8]
    scales: Float
    multipliers: npt.NDArray[np.int64]
    shifts: npt.NDArray[np.int64]


def multipliers(ratio: Float, where: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """m and k with m * 2^-(k + 17) = ratio, for ratios >= 0.

    Args:
        ratio: float64 (rows,), a part's unit over its output's unit.
        where: the matrix, for the message.

    Raises:
        BadInput: a ratio is too large: the weights overflow the output's format.
    """
    mantissa, exponent = np.frexp(ratio)
    m = np.floor(mantissa * 2**17 + 0.5).astype(np.int64)
    carried = m == 1 << 17
    m[carried] >>= 1
    k = -(exponent.astype(np.int64) + carried)
    if np.any(k[ratio > 0] < SHIFT_MIN):
        raise BadInput(
            "weights are too large for the fixed-point format",
            where=where,
            found=f"a row step of {ratio.max():.3g} output steps",
            expected=f"below {2.0**-SHIFT_MIN:g}",
            remedy="check that the checkpoint holds trained weights",
        )
    small = np.clip(k - SHIFT_MAX, 0, 63)
    m >>= small
    k = np.where(ratio > 0, np.minimum(k, SHIFT_MAX), 0)
    return m, k


def row_scales(weights: npt.NDArray[np.floating], kind: WeightType) -> Float:
    """The value of one step of each row, float64 (rows,), 0 for a row of zeros.

    Args:
        weights: (rows, columns), finite.
        kind: what the steps are to be.
    """
    largest = np.abs(weights).max(axis=1, initial=0.0).astype(np.float64)
    if not kind.fitted or weights.size == 0:
        return largest / kind.most
    rows = max(1, _BLOCK // weights.shape[1])
    blocks = [slice(at, at + rows) for at in range(0, len(weights), rows)]
    return np.concatenate([_least_squares(weights[block], largest[block], kind.most) for block in blocks])


def _least_squares(weights: npt.NDArray[np.floating], largest: Float, most: int) -> Float:
    """Scales of least squared error: the best of some that clip more or less, then fitted to the steps they give."""
    values = weights.astype(np.float32)
    divisor = np.where(largest > 0, largest, 1.0)
    best, error = largest / most, np.full(len(values), np.inf)
    for share in np.linspace(1.0, _NARROWEST, _TRIED):
        scale = share * divisor / most
        narrow = scale.astype(np.float32)[:, None]
        steps = values / narrow
        steps += np.float32(0.5)
        np.clip(np.floor(steps, out=steps), -most, most, out=steps)
        square = np.einsum("ij,ij->i", steps, steps, dtype=np.float64)
        product = np.einsum("ij,ij->i", steps, values, dtype=np.float64)
        # With the steps as they are, product / square is the scale of least error, and this is the error but for a
        # constant of the row.
        found = np.where(square > 0, -(product**2) / np.where(square > 0, square, 1.0), 0.0)
        better = found < error
        fitted = product / np.where(square > 0, square, 1.0)
        best, error = np.where(better & (square > 0), fitted, best), np.minimum(found, error)
    return np.where(largest > 0, best, 0.0)


def quantise_rows(
    weights: npt.NDArray[np.floating], input_unit: float, output_unit: float, where: str, kind: WeightType = INT8
) -> Rows:
    """Quantise a part row by row.

    Args:
        weights: (rows, columns), finite.
        input_unit: value of one step of the input.
        output_unit: value of one step of the product's output.
        where: the matrix, for messages.
        kind: type of the weights.

    Raises:
        BadInput: see `multipliers`.
    """
    values = weights.astype(np.float64)
    scales = row_scales(values, kind)
    divisor = np.where(scales > 0, scales, 1.0)
    values /= divisor[:, None]
    steps = np.clip(np.floor(values + 0.5), -kind.most, kind.most).astype(np.int8)
    m, k = multipliers(scales * input_unit / output_unit, where)
    return Rows(steps, scales, m, k)


def quantise_bias(bias: npt.NDArray[np.floating], output_unit: float) -> npt.NDArray[np.int64]:
    """A bias in units of S, int64 (rows,), clamped to what seven parts cannot overflow."""
    steps = np.floor(bias.astype(np.float64) / (output_unit * 2.0**-SUM_BITS) + 0.5)
    return np.clip(steps, -BIAS_LIMIT, BIAS_LIMIT).astype(np.int64)


def quantise_table(values: npt.NDArray[np.floating], unit: float) -> npt.NDArray[np.int8]:
    """int8 of values in steps of `unit`, same shape, clamped to ±127."""
    return np.clip(np.floor(values.astype(np.float64) / unit + 0.5), -WEIGHT_MAX, WEIGHT_MAX).astype(np.int8)


def scale_words(m: npt.NDArray[np.int64], k: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Words of the scale space: m in bits 16:0, k in bits 22:17."""
    return (m | (k & 63) << 17).astype("<u4")
