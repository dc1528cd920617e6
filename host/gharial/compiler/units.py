# SPDX-License-Identifier: Apache-2.0
"""The units of a program's activations, chosen from what calibration saw (docs/numerics.md, section 11)."""

from dataclasses import dataclass

from gharial.floating.calibrate import Ranges
from gharial.floating.magnitudes import CLIPPED_BITS, Magnitude
from gharial.isa.header import LOGIT_BITS

H_BITS = CLIPPED_BITS  # abs(h) < 1, so with 2^-7 next to nothing is clipped
C_BITS = range(8, 16)
JOINT_SHIFTS = range(7)  # no finer than 1/64 of a joint step, which is more than its rounding needs
HEADROOM = 1.25


@dataclass(frozen=True)
class Units:
    """Fixed-point units of one program.

    Attributes:
        feature_bits: qf.
        h_bits, c_bits: qh and qc by layer name.
        joint: u_z.
        joint_shift: zs.
        logit_bits: e.
    """

    feature_bits: int
    h_bits: dict[str, int]
    c_bits: dict[str, int]
    joint: float
    joint_shift: int
    logit_bits: int


def _finest(bits: range, largest: float, top: float) -> int:
    """The finest of these fraction bits that holds `largest` within `top` steps; the coarsest if none does."""
    fitting = [q for q in bits if largest * 2.0**q <= top]
    return fitting[-1] if fitting else bits[0]


def _least_error(value: Magnitude) -> int:
    """The fraction bits of least squared error: rounding costs a twelfth of a squared step, clipping what was seen."""
    return min(H_BITS, key=lambda q: 4.0**-q / 12 + value.clipped[q - H_BITS[0]])


def choose_units(ranges: Ranges, feature_bits: int) -> Units:
    """Pick each unit as numerics.md, section 11, says; feature_bits is qf, which needs a measurement of its own."""
    largest = max(ranges.joint_enc.maximum, ranges.joint_pred.maximum) * HEADROOM
    # What the ReLU lets through may be next to nothing; what goes into it must fit all the same.
    joint = max(max(ranges.joint.p99_99, 2.0**-10) / 127, largest / 32767)
    reach = largest / joint
    return Units(
        feature_bits=feature_bits,
        h_bits={name: _least_error(value) for name, value in ranges.h.items()},
        c_bits={name: _finest(C_BITS, value.maximum * HEADROOM, 32767) for name, value in ranges.c.items()},
        joint=joint,
        joint_shift=_finest(JOINT_SHIFTS, reach, 32767),
        logit_bits=_finest(LOGIT_BITS, ranges.logits.maximum * HEADROOM, 32767),
    )
