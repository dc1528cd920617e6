# SPDX-License-Identifier: Apache-2.0
"""The demo model with symbols in its vocabulary, so that a trained network ends sequences and takes prefixes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import sentencepiece
from checkpoint_files import saved

EOS, HEARD, TOLD = "<EOS>", "<pnc>", "<lang_en>"
_PIECES = {"▁go": EOS, "▁no": HEARD, "▁the": TOLD}
"""Pieces and the symbols put in their place: the shipped recordings hold each of the first two more than ten times."""

PREFIXES = ("", HEARD, HEARD + TOLD)


def symbolic(folder: Path) -> Path:
    """A checkpoint that hears what the demo model hears, and calls some of it otherwise."""

    def change(top: dict[str, Any]) -> dict[str, Any]:
        top["sentpiece_model"] = _renamed(top["sentpiece_model"])
        top["prefix_spec"] = {"valid_prefix": f"^(?:{HEARD}(?:{TOLD})?)?$", "default_prefix": ""}
        return top

    return saved(folder, change)


def _renamed(model: bytes) -> bytes:
    """The SentencePiece model with the symbols, user-defined, at the places of the pieces."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for piece, symbol in _PIECES.items():
        score = struct.pack("<f", processor.get_score(processor.piece_to_id(piece)))
        old, new = _entry(piece, b"\x15" + score), _entry(symbol, b"\x15" + score + b"\x18\x04")
        assert model.count(old) == 1
        model = model.replace(old, new)
    return model


def _entry(piece: str, rest: bytes) -> bytes:
    """A piece of the model's list, as protocol buffers have it: `pieces { piece: ... }`, lengths below 128."""
    text = piece.encode()
    body = b"\x0a" + bytes([len(text)]) + text + rest
    return b"\x0a" + bytes([len(body)]) + body
