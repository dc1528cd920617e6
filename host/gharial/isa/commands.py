# SPDX-License-Identifier: Apache-2.0
"""Command descriptors, entries, results and completions (docs/isa.md, section 5)."""

from enum import IntEnum

from gharial.isa.words import Field, Record

MAX_K = 33
UNIT_TEMPERATURE = 1 << 14  # T = 1.0 in Q2.14
MAX_NAMED = 4


class Operation(IntEnum):
    """What a command does."""

    NOP = 1
    LOAD = 2
    START = 3
    ENCODE = 16
    DECODE = 17
    GREEDY = 18
    RESET = 32
    FREE = 33
    COPY = 34
    SAVE = 35
    RESTORE = 36


class Flag(IntEnum):
    """Bits of a descriptor's flags."""

    PREDICTION = 1
    CHECKED = 2
    INTERRUPT = 4
    IN_PLACE = 8
    UNCHECKED = 16


class Mode(IntEnum):
    """What a DECODE result lists."""

    TOP_K = 0
    FUZZY = 1
    ALL = 2


class Kind(IntEnum):
    """Input of a decode entry's prediction step."""

    NONE = 0
    TOKEN = 1
    START = 2


DESCRIPTOR = Record(
    "descriptor",
    16,
    {
        "operation": Field(0, 0, 8),
        "flags": Field(0, 8, 8),
        "entries": Field(0, 16, 16),
        "tag": Field(1),
        "entry_lo": Field(2),
        "entry_hi": Field(3),
        "result_lo": Field(4),
        "result_hi": Field(5),
        "k": Field(6, 0, 8),
        "mode": Field(6, 8, 2),
        "named": Field(6, 10, 6),
        "temperature": Field(6, 16, 16),
        "named_01": Field(7),
        "named_23": Field(8),
        "stride": Field(9),
        "feature_lo": Field(10),
        "feature_hi": Field(11),
        "offset": Field(12),
        "bytes": Field(13, 0, 29),
        "space": Field(13, 29, 3),
        "body_crc": Field(14),
        "crc": Field(15),
    },
)

ENCODE_ENTRY = Record(
    "encode entry",
    4,
    {
        "slot": Field(0, 0, 16),
        "reset": Field(0, 16, 1),
        "bank": Field(0, 17, 1),
        "vectors": Field(0, 18, 3),
        "offset": Field(1),
        "crc": Field(2),
    },
)

DECODE_ENTRY = Record(
    "decode entry",
    4,
    {
        "slot": Field(0, 0, 16),
        "bank": Field(0, 17, 1),
        "kind": Field(0, 21, 2),
        "no_joint": Field(0, 23, 1),
        "source": Field(1, 0, 16),
        "destination": Field(1, 16, 16),
        "token": Field(2),
    },
)

GREEDY_ENTRY = Record("greedy entry", 4, ENCODE_ENTRY.fields | {"prediction": Field(3, 0, 16)})

SLOT_ENTRY = Record("slot entry", 4, {"slot": Field(0, 0, 16), "second": Field(1, 0, 16), "offset": Field(2)})

COMPLETION = Record(
    "completion",
    8,
    {
        "tag": Field(0),
        "status": Field(1, 0, 8),
        "unit": Field(1, 8, 8),
        "entry": Field(1, 16, 16),
        "detail": Field(2),
        "index": Field(3),
        "cycles_lo": Field(4),
        "cycles_hi": Field(5),
        "predictions": Field(6, 0, 16),
        "joints": Field(6, 16, 16),
        "crc": Field(7),
    },
)

DECODE_RESULT_HEAD = 16  # bytes before the list of a DECODE result
GREEDY_RESULT_HEAD = 8  # bytes before the tokens of a GREEDY result


def decode_result_bytes(mode: Mode, k: int, classes: int) -> int:
    """Bytes of one DECODE result, a multiple of 4."""
    if mode == Mode.ALL:
        return DECODE_RESULT_HEAD + (2 * classes + 3) // 4 * 4
    return DECODE_RESULT_HEAD + 4 * k


def greedy_result_bytes(max_symbols: int) -> int:
    """Bytes of one GREEDY result at most."""
    return GREEDY_RESULT_HEAD + 8 * max_symbols
