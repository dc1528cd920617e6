# SPDX-License-Identifier: Apache-2.0
"""Packed structures at the sequencer's ports, as gharial_pkg and sequencer_pkg have them: fields from the top bit."""

from __future__ import annotations

from collections.abc import Mapping

Fields = tuple[tuple[str, int], ...]

HEADER: Fields = (
    *((f"{section}_{part}", 16) for section in ("predict", "encode", "joint") for part in ("first", "count")),
    ("feature_units", 16),
    ("vectors", 3),
    *((name, 16) for name in ("feature_unit", "scratch_units")),
    *((name, 16) for name in ("enc_a_units", "enc_c_units", "pred_a_units", "pred_c_units")),
    *((name, 16) for name in ("joint_enc_unit", "joint_enc_units", "joint_pred_unit", "joint_pred_units")),
    *((name, 16) for name in ("classes", "blank")),
    ("logit_bits", 4),
    *((name, 16) for name in ("sum_groups", "tokens")),
    ("tiles", 24),
    *((name, 16) for name in ("scale_groups", "bias_groups")),
    ("embed_units", 32),
)
ENTRY: Fields = (
    *(("operation", 8), ("last", 1), ("index", 16), ("fault", 8), ("unit", 8), ("detail", 32)),
    *(("scratch_bank", 1), ("vectors", 3), ("enc_reset", 1), ("enc_act", 16), ("enc_cell", 16), ("bank", 1)),
    *(("start", 1), ("token_valid", 1), ("token", 16), ("no_joint", 1)),
    *((name, 16) for name in ("source_act", "destination_act", "source_cell", "destination_cell")),
    *(("k", 8), ("mode", 2), ("named", 3), ("named_class", 64), ("temperature", 16), ("result", 64)),
)
DONE: Fields = (
    *(("last", 1), ("index", 16), ("fault", 8), ("unit", 8), ("detail", 32), ("predictions", 16), ("joints", 16)),
)
MATRIX: Fields = (
    *(("tile", 24), ("row_groups", 16), ("col_tiles", 16), ("vectors_less_1", 2)),
    *(("source", 16), ("source_stride", 16)),
)
VECTOR: Fields = (
    *(("thread", 1), ("post", 3), ("vectors_less_1", 2), ("first", 4), ("last", 4)),
    *((name, 16) for name in ("row_groups", "sum_group", "scale_group", "bias_group")),
    *(("shift", 4), ("qh", 4), ("i8_high", 7), ("i8_signed", 1)),
    *(("destination", 16), ("destination_stride", 16), ("second_valid", 1), ("second", 16)),
    *(("cell_source", 16), ("cell_destination", 16)),
)
AUX: Fields = (
    *(("joint", 1), ("zero", 1), ("embed_unit", 32), ("unit_count", 16)),
    *(("joint_enc", 16), ("joint_pred", 16), ("shift", 4), ("destination", 16)),
)


def pack(fields: Fields, values: Mapping[str, int]) -> int:
    """The structure's bits; fields without a value are zero."""
    unknown = values.keys() - {name for name, _ in fields}
    if unknown:
        raise KeyError(f"no fields {sorted(unknown)}")
    word = 0
    for name, bits in fields:
        value = values.get(name, 0)
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{name} = {value} does not fit in {bits} bits")
        word = word << bits | value
    return word


def unpack(fields: Fields, word: int) -> dict[str, int]:
    """The structure's fields."""
    found = {}
    for name, bits in reversed(fields):
        found[name] = word & (1 << bits) - 1
        word >>= bits
    return found
