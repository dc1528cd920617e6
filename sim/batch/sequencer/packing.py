# SPDX-License-Identifier: Apache-2.0
"""Packed structures at the batch sequencer's ports, as seat_pkg has them: fields from the top bit."""

from __future__ import annotations

from sim.sequencer.packing import HEADER, Fields, pack, unpack

__all__ = ["HEADER", "RANK_DONE_WORDS", "pack", "unpack"]

ACT, CELL, SHIFT, WORK = 20, 20, 5, 3  # bits
RANK_DONE_WORDS = 3  # words that the bench's rank unit writes for a job, at most


def seat_bits(seats: int) -> int:
    """Bits of a seat's number."""
    return max(1, (seats - 1).bit_length())


def segment(seats: int) -> Fields:
    """`segment_t`."""
    return (
        *(("thread", 1), ("ends", 1), ("seats", seats), ("first_vector", 2), ("vectors_less_1", 2)),
        *(("tile", 24), ("col_tiles", 16), ("source", ACT), ("source_stride", 16), ("source_shift", SHIFT)),
        *(("first", 4), ("last", 4), ("sum_group", 16), ("sum_stride", 16), ("scale_group", 16), ("bias_group", 16)),
        *(("post", 3), ("group", 16), ("shift", 4), ("qh", 4), ("i8_high", 7), ("i8_signed", 1)),
        *(("destination", ACT), ("destination_stride", 16), ("destination_shift", SHIFT)),
        *(("second_valid", 1), ("second", ACT), ("second_shift", SHIFT), ("cell_unit", CELL), ("cell_shift", SHIFT)),
    )


def aux_job(seats: int) -> Fields:
    """`seat_aux_job_t`."""
    return (
        *(("thread", 1), ("seats", seats), ("joint", 1), ("row", 1), ("embed_unit", 32), ("unit_count", 16)),
        *(("joint_enc", CELL), ("joint_pred", CELL), ("joint_enc_shift", SHIFT), ("joint_pred_shift", SHIFT)),
        *(("shift", 4), ("destination", ACT), ("destination_shift", SHIFT)),
    )


def batch(seats: int) -> Fields:
    """`batch_t`; `vectors` and `tokens` hold all seats, seat 0 lowest."""
    return (
        *(("operation", 8), ("work", WORK), ("side", 1), ("index", 16), ("seats", seats), ("vectors", 3 * seats)),
        *(("predicts", seats), ("starts", seats), ("joints", seats), ("tokens", 16 * seats)),
        *(("k", 8), ("mode", 2), ("named", 3), ("named_class", 64), ("temperature", 16)),
        *(("result", 64), ("result_stride", 32)),
    )


def rank_job(seats: int) -> Fields:
    """`rank_job_t`."""
    return (
        *(("seat", seat_bits(seats)), ("greedy", 1), ("mode", 2), ("k", 8), ("named", 3), ("named_class", 64)),
        *(("temperature", 16), ("address", 64)),
    )


DONE: Fields = (
    *(("side", 1), ("fault", 8), ("unit", 8), ("detail", 32), ("entry", 16), ("predictions", 16), ("joints", 16)),
)
