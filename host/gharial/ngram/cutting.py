# SPDX-License-Identifier: Apache-2.0
"""Sentences cut into the pieces of a SentencePiece model, as lines for KenLM."""

from __future__ import annotations

import re
from collections.abc import Sequence

import sentencepiece as sp

from gharial.checkpoint.sentencepiece_model import PieceKind, read_pieces
from gharial.errors import BadInput

_WHERE = "the SentencePiece model"
_NOT_SCORED = (PieceKind.CONTROL, PieceKind.USER_DEFINED)
_SPECIAL = ("<s>", "</s>", "<unk>")  # KenLM's own, never words of a text


class Cutter:
    """Cuts text, and counts.

    Args:
        sentencepiece: bytes of the `.model` file.
        lowercase: put text into small letters first, but for the model's user-defined symbols.

    Raises:
        BadInput: the bytes are no SentencePiece model.
    """

    def __init__(self, sentencepiece: bytes, lowercase: bool = False) -> None:
        pieces = read_pieces(sentencepiece, _WHERE)
        try:
            self._processor = sp.SentencePieceProcessor(model_proto=sentencepiece)
        except RuntimeError as error:
            raise BadInput(
                "cannot be used", _WHERE, error, "a SentencePiece model", "give the one that it was trained with"
            ) from error
        self._lowercase = lowercase
        self.texts = [piece.text for piece in pieces]
        symbols = [piece.text for piece in pieces if piece.kind == PieceKind.USER_DEFINED]
        symbols.sort(key=len, reverse=True)
        # The longest first, as SentencePiece takes them.
        self._symbols = re.compile(f"({'|'.join(map(re.escape, symbols))})") if symbols else None
        self._unknown = {token for token, piece in enumerate(pieces) if piece.kind == PieceKind.UNKNOWN}
        self._left_out = {
            token for token, piece in enumerate(pieces) if piece.kind in _NOT_SCORED or piece.text in _SPECIAL
        } - self._unknown
        self.begin()

    def begin(self) -> None:
        """Count from the start."""
        self.sentences = self.pieces = self.unknown = 0

    def cut(self, sentences: Sequence[str]) -> bytes:
        """Lines of pieces with spaces between, UTF-8.

        What the network emits outside of any n-gram (control and user-defined symbols) is left out; where a piece is
        not known the line is cut in two, so that no n-gram spans it.
        """
        text = [self._small(sentence) for sentence in sentences] if self._lowercase else list(sentences)
        lines: list[str] = []
        for tokens in self._processor.encode(text, out_type=int):
            line: list[str] = []
            for token in tokens:
                if token in self._unknown:
                    self.unknown += 1
                    lines.append(" ".join(line))
                    line = []
                elif token not in self._left_out:
                    self.pieces += 1
                    line.append(self.texts[token])
            lines.append(" ".join(line))
        self.sentences += len(sentences)
        return "".join(f"{line}\n" for line in lines if line).encode()

    def _small(self, sentence: str) -> str:
        if self._symbols is None:
            return sentence.lower()
        parts = self._symbols.split(sentence)
        return "".join(part if at % 2 else part.lower() for at, part in enumerate(parts))
