# SPDX-License-Identifier: Apache-2.0
"""What the bytes of a SentencePiece model say without SentencePiece: how many pieces, and what each is.

The protocol buffer is walked here (`ModelProto`: field 1, repeated, a piece each; in a piece field 1 its text, 3 its
kind), so that a checkpoint can be checked without handing untrusted bytes to the tokeniser's own parser, and because
SentencePiece's Python package does not tell which pieces are user-defined. Source: sentencepiece_model.proto and the
protocol buffers wire format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from gharial.errors import BadInput

MAX_PIECES = 1 << 18
"""Pieces of a model: fifteen times what any configuration has classes for. Each takes a while to look at."""

_MAX_FIELDS = MAX_PIECES + 1024  # of the model: its pieces, and a few settings
_MAX_PIECE_FIELDS = 16
_PIECES = 1
_TEXT, _KIND = 1, 3  # of a piece
_REMEDY = "export the checkpoint again with the SentencePiece model it was trained with"
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


class PieceKind(IntEnum):
    """What a piece is."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Piece(NamedTuple):
    """One piece: its text, a word mark where it begins a word, and its kind."""

    text: str
    kind: PieceKind


def count_pieces(model: bytes, where: str) -> int:
    """Pieces of the model; BadInput as for `read_pieces`, so that what was counted can be read."""
    return len(read_pieces(model, where))


def read_pieces(model: bytes, where: str) -> list[Piece]:
    """The model's pieces by token id.

    Raises:
        BadInput: the bytes are no protocol buffer, hold no piece or more than `MAX_PIECES`, or one without text or of a
            kind that there is not.
    """
    pieces: list[Piece] = []
    for field, wire, value in _fields(model, where, _MAX_FIELDS):
        if field == _PIECES and wire == _LENGTH and isinstance(value, bytes):
            pieces.append(_piece(value, where, len(pieces)))
    if not pieces:
        raise _damaged(where, model)
    return pieces


def count_kinds(pieces: list[Piece]) -> dict[str, int]:
    """How many pieces there are of each kind, by its name in small letters; kinds that do not occur are left out."""
    found = Counter(piece.kind for piece in pieces)
    return {kind.name.lower(): found[kind] for kind in PieceKind if found[kind]}


def _piece(data: bytes, where: str, index: int) -> Piece:
    text, kind = "", PieceKind.NORMAL
    try:
        for field, _, value in _fields(data, where, _MAX_PIECE_FIELDS):
            if field == _TEXT and isinstance(value, bytes):
                text = value.decode("utf-8")
            elif field == _KIND and isinstance(value, int):
                kind = PieceKind(value)
    except ValueError:
        text = ""
    if not text:
        found = f"piece {index} of the bytes {data[:16].hex(' ') or 'none'}"
        raise BadInput("this is no SentencePiece model", where, found, "text and a known kind in each", _REMEDY)
    return Piece(text, kind)


def _fields(model: bytes, where: str, most: int) -> Iterator[tuple[int, int, int | bytes]]:
    """(number, wire type, value) of each field of a message; numbers of four and eight bytes as their bytes."""
    at = count = 0
    while at < len(model):
        count += 1
        if count > most:
            expected = f"at most {MAX_PIECES:,} pieces, and few fields of each"
            raise BadInput("this is no SentencePiece model", where, f"over {most:,} fields", expected, _REMEDY)
        tag, at = _varint(model, at, where)
        field, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            number, at = _varint(model, at, where)
            yield field, wire, number
            continue
        if wire == _LENGTH:
            size, at = _varint(model, at, where)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise _damaged(where, model)
        if at + size > len(model):
            raise _damaged(where, model)
        yield field, wire, model[at : at + size]
        at += size


def _varint(model: bytes, at: int, where: str) -> tuple[int, int]:
    """(value, next position) of the variable-length integer at `at`."""
    value = 0
    for i in range(10):
        if at + i >= len(model):
            break
        byte = model[at + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, at + i + 1
    raise _damaged(where, model)


def _damaged(where: str, model: bytes) -> BadInput:
    return BadInput(
        "this is no SentencePiece model",
        where,
        f"{len(model)} bytes, the first {model[:8].hex(' ') or 'of which is not there'}",
        "the bytes of a .model file",
        _REMEDY,
    )
