# SPDX-License-Identifier: Apache-2.0
"""Scores of an n-gram over a model's pieces, from a file that is mapped and never copied."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gharial.checkpoint.sentencepiece_model import PieceKind, read_pieces
from gharial.decoding._search import Ngram
from gharial.errors import BadInput
from gharial.ngram.checking import NgramFile, check_file
from gharial.ngram.inspect import known_share
from gharial.ngram.native import native_ngram

LN_10 = math.log(10.0)
"""KenLM's logarithms are to the base of ten."""

_NOT_SCORED = (PieceKind.CONTROL, PieceKind.USER_DEFINED)

State = Any
"""What the n-gram remembers of a hypothesis: a kenlm.State. Equal states score alike whatever follows; hashable."""


class NgramModel:
    """An n-gram file, open.

    The file is mapped as it is needed: opening costs nothing, and all processes that use it share its pages. It must
    not be written to meanwhile; a rename over it does no harm.

    Args:
        path: the file, marked or not.
        sentencepiece: bytes of the SentencePiece `.model` file of the model that it is used with.
        note: as in `check_file`: is told once about a file that is not marked.

    Attributes:
        file: what the file is.
        order: length of its longest n-grams.
        native: the same file as the search's core reads it; None where it does not, and scores come from KenLM.

    Raises:
        BadInput: the file cannot be used, is another model's or, if it does not say whose, not over this model's
            pieces; or the Python package kenlm is not there.
    """

    def __init__(
        self, path: str | os.PathLike[str], sentencepiece: bytes, note: Callable[[str], object] | None = None
    ) -> None:
        self._kenlm = kenlm = _package()
        self.file = check_file(path, sentencepiece, note)
        config = kenlm.Config()
        config.load_method = kenlm.LoadMethod.LAZY
        try:
            self._model = kenlm.Model(os.fsencode(self.file.path), config)
        except OSError as error:
            raise BadInput(
                "KenLM cannot load the file",
                self.file.path,
                error,
                "a binary of this KenLM",
                "build it again: gharial ngram build",
            ) from error
        status = Path(self.file.path).stat()
        if (status.st_dev, status.st_ino) != self.file.identity:
            raise BadInput(
                "the file was replaced while it was opened",
                self.file.path,
                "another file",
                "the one that was checked",
                "open it again",
            )
        self.order = int(self._model.order)
        self.native: Ngram | None = native_ngram(self.file)
        pieces = read_pieces(sentencepiece, self.file.path)
        if self.file.mark is None:
            _check_words(self.file, [piece.text for piece in pieces])
        # What has no word in the n-gram is None here.
        self._words: list[str | None] = [None if piece.kind in _NOT_SCORED else piece.text for piece in pieces]
        self._words.append(None)  # blank, the class behind the last piece

    def begin(self) -> State:
        """The state of a hypothesis without tokens: the context of a sentence's start."""
        state = self._kenlm.State()
        self._model.BeginSentenceWrite(state)
        return state

    def score(self, state: State, token: int) -> tuple[float, State]:
        """What a token adds to a hypothesis.

        Args:
            state: of the hypothesis; not changed.
            token: id of a piece, or of blank.

        Returns:
            ln p(token | state), and the state after it. 0 and the same state for blank, for control and for
            user-defined symbols. A piece that the n-gram does not know has the probability of its unknown word.

        Raises:
            IndexError: there is no such token.
        """
        word = self._words[token]
        if word is None:
            return 0.0, state
        following = self._kenlm.State()
        return LN_10 * self._model.BaseScore(state, word, following), following

    @property
    def words(self) -> list[str | None]:
        """By class: its word, None for blank, control and user-defined symbols."""
        return self._words

    @property
    def base_score(self) -> Callable[[State, str, State], float]:
        """(state, word, following) -> log10 p(word | state), the state behind the word written to `following`."""
        scorer: Callable[[State, str, State], float] = self._model.BaseScore
        return scorer

    def new_state(self, begin: bool = False) -> State:
        """A state to be written to, or that of a sentence's start."""
        return self.begin() if begin else self._kenlm.State()

    def knows(self, token: int) -> bool:
        """Whether a token is a word of the n-gram."""
        word = self._words[token]
        return word is not None and word in self._model


def _check_words(file: NgramFile, pieces: Sequence[str]) -> None:
    """Refuse a file that says not whose it is, and has words of other pieces, or whole words of text."""
    known, every = known_share(file, pieces) or (0, 0)
    if 2 * known < every:
        raise BadInput(
            "the n-gram's words are not this model's pieces",
            file.path,
            f"{known} of {every} words are",
            "half of them at least",
            "use the n-gram that was made with this model, or build one: gharial ngram build",
        )


def _package() -> Any:
    try:
        import kenlm
    except ImportError:
        raise BadInput(
            "n-grams need the Python package kenlm", "kenlm", "none", "it is installed", "pip install gharial[ngram]"
        ) from None
    return kenlm
