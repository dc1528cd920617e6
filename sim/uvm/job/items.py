# SPDX-License-Identifier: Apache-2.0
"""Jobs as the sequencer hands them out (gharial_pkg, sequencer_pkg)."""

from __future__ import annotations

Fields = dict[str, int]

MATRIX = (("tile", 24), ("row_groups", 16), ("col_tiles", 16), ("vectors_less_1", 2), ("source", 16), ("stride", 16))
VECTOR = (
    ("thread", 1), ("post", 3), ("vectors_less_1", 2), ("first", 4), ("last", 4), ("row_groups", 16), ("sum", 16),
    ("scale_group", 16), ("bias_group", 16), ("shift", 4), ("qh", 4), ("i8_high", 7), ("i8_signed", 1),
    ("destination", 16), ("destination_stride", 16), ("second_valid", 1), ("second", 16), ("cell_source", 16),
    ("cell_destination", 16),
)  # fmt: skip
AUX = (
    ("joint", 1), ("zero", 1), ("unit", 32), ("units", 16), ("joint_enc", 16), ("joint_pred", 16), ("shift", 4),
    ("destination", 16),
)  # fmt: skip


def unpack(layout: tuple[tuple[str, int], ...], word: int) -> Fields:
    """Fields of a packed structure, whose first field is the uppermost."""
    found = {}
    for name, width in reversed(layout):
        found[name] = word & (1 << width) - 1
        word >>= width
    assert not word, "a job is longer than its fields"
    return found
