# SPDX-License-Identifier: Apache-2.0
"""Pieces counted in a SentencePiece model without the tokeniser's parser."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import sentencepiece
from checkpoint_files import complete, demo

from gharial.checkpoint.sentencepiece_model import MAX_PIECES, count_pieces, read_pieces
from gharial.errors import BadInput

PIECE = b"\x0a\x03\x0a\x01a"


def test_count_is_the_tokenisers() -> None:
    model = demo()["sentpiece_model"]
    assert count_pieces(model, "m") == sentencepiece.SentencePieceProcessor(model_proto=model).get_piece_size() == 255


def test_count_of_a_loose_model(data_dir: Path) -> None:
    assert count_pieces((data_dir / "models/en255.model").read_bytes(), "m") == 255


@pytest.mark.parametrize(
    ("other", "pieces"),
    [
        (b"", 2),
        (b"\x12\x02ab", 2),  # another message
        (b"\x18\x96\x01", 2),  # a number
        (b"\x19" + bytes(8), 2),  # eight bytes
        (b"\x1d" + bytes(4), 2),  # four bytes
        (b"\x9a\x06\x00", 2),  # field 99
        (b"\x08\x05", 2),  # field 1 as a number is no piece
        (b"\x09" + bytes(8), 2),  # nor as eight bytes
    ],
)
def test_other_fields_are_passed_over(other: bytes, pieces: int) -> None:
    assert count_pieces(PIECE + other + PIECE, "m") == pieces


@pytest.mark.parametrize(
    "model",
    [
        b"",
        b"\x12\x00",  # no piece
        PIECE[:-1],
        PIECE + b"\x0a",
        PIECE + b"\x0a\xff\xff\xff\xff\x0f",  # a length beyond the end
        PIECE + b"\x19" + bytes(7),
        PIECE + b"\x1d" + bytes(3),
        PIECE + b"\x0b",  # a wire type that is no longer used
        PIECE + b"\x0f",  # one that never was
        PIECE + b"\x80" * 9,
        PIECE + b"\x80" * 10 + b"\x01",  # a number of more than ten bytes
        PIECE + b"\x0a\x00",  # a piece of nothing
        PIECE + b"\x0a\x03\x0a\x01\xff",  # of no text
        PIECE + b"\x0a\x05\x0a\x01a\x18\x09",  # of no kind that there is
    ],
)
def test_damaged(model: bytes) -> None:
    with pytest.raises(BadInput, match="m: this is no SentencePiece model"):
        count_pieces(model, "m")


@pytest.mark.parametrize(
    "model",
    [
        PIECE * 8_000_000,
        PIECE + b"\x10\x00" * 20_000_000,  # numbers
        PIECE + b"\x0a\x80\x80\x04\x0a\x01a" + b"\x20\x00" * 32766 + b"\x20",  # a piece of nothing but numbers
    ],
    ids=["pieces", "numbers", "numbers of a piece"],
)
def test_more_than_any_model_has(model: bytes) -> None:
    """Refused after a bounded number of them: looking at all would take minutes."""
    began = time.process_time()
    with pytest.raises(BadInput, match="m: this is no SentencePiece model") as caught:
        read_pieces(model, "m")
    assert time.process_time() - began < 10
    assert "fields, expected at most 262,144 pieces" in str(caught.value)
    complete(caught.value)


def test_as_many_as_there_may_be() -> None:
    assert len(read_pieces(PIECE * MAX_PIECES, "m")) == MAX_PIECES
