# SPDX-License-Identifier: Apache-2.0
"""Text of token ids: the SentencePiece model of a program, and streaming detokenisation on top of it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

import sentencepiece

from gharial.checkpoint.sentencepiece_model import count_pieces
from gharial.errors import BadInput

WORD_MARK = "▁"  # U+2581, SentencePiece's sign for a space

END_OF_SEQUENCE = "<EOS>"
"""The piece whose token says that a speaker has come to an end, in models that have one."""

_SPACES = re.compile(" +")
_AGAIN = "export or compile the model again"


class Vocabulary:
    """What each token of a model stands for.

    Args:
        model: bytes of a SentencePiece `.model` file; not trusted.
        tokens: tokens the network has, blank not counted.
        where: name of the program or checkpoint, for errors.

    Raises:
        BadInput: the bytes are no SentencePiece model, or one of another number of pieces.

    Attributes:
        names: pieces as SentencePiece has them, with word marks.
        spelling: those that stand for their own letters: no control symbol, no lone byte, not the unknown piece.
        eos: end-of-sequence token, None if the model has none.
    """

    def __init__(self, model: bytes, tokens: int, where: str) -> None:
        where = f"{where}: sentencepiece"
        # Counted without SentencePiece first: its parser is not made for bytes from anywhere.
        pieces = count_pieces(model, where)
        if pieces != tokens:
            raise BadInput(
                "the SentencePiece model does not fit the output layer", where, pieces, f"{tokens} pieces", _AGAIN
            )
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            self._pieces = [_piece(processor, token) for token in range(tokens)]
            self.names = tuple(str(processor.id_to_piece(token)) for token in range(tokens))
            self.spelling = tuple(name for token, name in enumerate(self.names) if _is_text(processor, token))
        except (RuntimeError, ValueError, IndexError) as error:
            raise BadInput(
                "the SentencePiece model cannot be used", where, error, "one that SentencePiece loads", _AGAIN
            ) from error

        self.eos = self.names.index(END_OF_SEQUENCE) if END_OF_SEQUENCE in self.names else None

    def __len__(self) -> int:
        return len(self._pieces)

    def piece(self, token: int) -> str | int:
        """Text of a token by itself, a space where it has a word mark; an int for a piece that is a lone byte."""
        return self._pieces[token]

    def text(self, tokens: Iterable[int]) -> str:
        """Text of a sequence of tokens from its start: words with one space between, none around."""
        detokeniser = Detokeniser(self)
        return "".join([detokeniser.push(token) for token in tokens]).strip()


class Detokeniser:
    """Text of one stream's tokens, one token at a time.

    The text that the tokens of a stream add, joined and stripped, is `Vocabulary.text` of them all: how they came makes
    no difference. A word mark right behind another gives no second space. Of a character spelled in single bytes the
    last byte's token brings the whole character; bytes that form no character become U+FFFD, and those that a stream
    leaves unfinished at its end are dropped.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._after_space = False

    def push(self, token: int) -> str:
        """Text that the token adds; with a space in front where it begins a word, the first of the stream included."""
        piece = self._vocabulary.piece(token)
        if isinstance(piece, int):
            added = self._decoder.decode(bytes([piece]))
        else:
            # What is still held of a broken character comes out in front.
            added = self._decoder.decode(b"", final=True) + piece
        added = _SPACES.sub(" ", added)
        if self._after_space:
            added = added.removeprefix(" ")
        if added:
            self._after_space = added.endswith(" ")
        return added

    def copy(self) -> Detokeniser:
        """One that stands where this one stands, for tokens that may come to nothing."""
        twin = Detokeniser(self._vocabulary)
        twin._decoder.setstate(self._decoder.getstate())
        twin._after_space = self._after_space
        return twin


def _is_text(processor: sentencepiece.SentencePieceProcessor, token: int) -> bool:
    return not (processor.is_control(token) or processor.is_unknown(token) or processor.is_byte(token))


def _piece(processor: sentencepiece.SentencePieceProcessor, token: int) -> str | int:
    piece = str(processor.id_to_piece(token))
    if processor.is_control(token):
        # Whether the end of a sequence is shown is its stream's business.
        return piece if piece == END_OF_SEQUENCE else ""
    if processor.is_unknown(token):
        return str(processor.decode([token]))
    if processor.is_byte(token):
        return int(piece[1:-1], 16)  # "<0xE2>"
    return piece.replace(WORD_MARK, " ")
