# SPDX-License-Identifier: Apache-2.0
"""Number of pieces in the bytes of a SentencePiece model.

Only the outermost level of the protocol buffer is walked (field 1 of `ModelProto`, repeated: one piece each), so that
a checkpoint can be checked without handing untrusted bytes to the tokeniser's own parser. Source:
sentencepiece_model.proto and the protocol buffers wire format.
"""

from __future__ import annotations

from gharial.errors import BadInput

_PIECES = 1
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def count_pieces(model: bytes, where: str) -> int:
    """Pieces of the model; BadInput if the bytes are no protocol buffer or hold none."""
    at = 0
    pieces = 0
    while at < len(model):
        tag, at = _varint(model, at, where)
        field, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            _, at = _varint(model, at, where)
        elif wire == _LENGTH:
            size, at = _varint(model, at, where)
            at += size
            pieces += field == _PIECES
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise _damaged(where)
        if at > len(model):
            raise _damaged(where)
    if pieces == 0:
        raise _damaged(where)
    return pieces


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
    raise _damaged(where)


def _damaged(where: str) -> BadInput:
    return BadInput(
        "this is no SentencePiece model",
        where,
        expected="the bytes of a .model file",
        remedy="export the checkpoint again with the SentencePiece model it was trained with",
    )
