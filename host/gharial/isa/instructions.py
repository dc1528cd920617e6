# SPDX-License-Identifier: Apache-2.0
"""The instruction table (docs/isa.md, section 4): one place that says where each field lies."""

from enum import IntEnum

from gharial.isa.words import Field, Record

WORDS = 8
NO_SECOND = 0xFFFF  # CELL without a second destination
SECTION_LIMIT = 255  # instructions of a section: "depends on" has 8 bits


class Opcode(IntEnum):
    """Instructions."""

    MATVEC = 1
    LOOKUP = 2
    JOINT = 3


class Post(IntEnum):
    """Post-operation of MATVEC."""

    NONE = 0
    CELL = 1
    I16 = 2
    I8 = 3
    LOGIT = 4


class Predicate(IntEnum):
    """For which entries an instruction has an effect."""

    ALWAYS = 0
    MORE = 1
    AT_MOST = 2


class Space(IntEnum):
    """Space of an activation operand."""

    SCRATCH = 0
    SOURCE = 1
    DESTINATION = 2


def operand(space: Space, offset: int) -> int:
    """An activation operand: space and offset in activation units (0..16383)."""
    if not 0 <= offset < 1 << 14:
        raise ValueError(f"activation offset {offset} does not fit in 14 bits")
    return int(space) << 14 | offset


_COMMON = {"opcode": Field(0, 0, 8), "predicate": Field(0, 11, 2), "threshold": Field(0, 13, 2)}

MATVEC = Record(
    "MATVEC",
    WORDS,
    _COMMON
    | {
        "post": Field(0, 8, 3),
        "vectors_less_1": Field(0, 15, 2),
        "first": Field(0, 17, 4),
        "last": Field(0, 21, 4),
        "tile": Field(1),
        "row_groups": Field(2, 0, 16),
        "col_tiles": Field(2, 16, 16),
        "source": Field(3, 0, 16),
        "source_stride": Field(3, 16, 16),
        "destination": Field(4, 0, 16),
        "destination_stride": Field(4, 16, 16),
        "cell": Field(5, 0, 16),
        "second": Field(5, 16, 16),
        "sum": Field(6, 0, 16),
        "depends": Field(6, 16, 8),
        "shift": Field(6, 24, 4),  # qc of CELL, s of I8
        "qh": Field(6, 28, 4),
        "scale_group": Field(7, 0, 16),
        "bias_group": Field(7, 16, 16),
    },
)

LOOKUP = Record(
    "LOOKUP",
    WORDS,
    _COMMON
    | {
        "constant": Field(0, 8, 3),
        "unit": Field(1),
        "units": Field(2, 16, 16),
        "destination": Field(4, 0, 16),
        "depends": Field(6, 16, 8),
    },
)

JOINT = Record(
    "JOINT",
    WORDS,
    _COMMON
    | {
        "cell_units": Field(2, 0, 16),
        "encoder": Field(3, 0, 16),
        "prediction": Field(3, 16, 16),
        "destination": Field(4, 0, 16),
        "depends": Field(6, 16, 8),
        "shift": Field(6, 24, 4),
    },
)

RECORDS = {Opcode.MATVEC: MATVEC, Opcode.LOOKUP: LOOKUP, Opcode.JOINT: JOINT}


def i8_range(high: int, signed: bool) -> int:
    """The `second` field of an I8 post-operation: ceiling 1..127, floor -127 if signed, else 0."""
    return high | int(signed) << 7
