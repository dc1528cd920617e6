# SPDX-License-Identifier: Apache-2.0
"""A seeded language for `bench decode`: pieces that follow one another, and an n-gram of that language."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gharial.bench.ngram_file import LONGEST, MIDDLE, SPECIAL, UNIGRAM, combine, head, table, tail
from gharial.decoding._search import Ngram
from gharial.errors import BadInput
from gharial.files import open_regular, write_atomically
from gharial.model.cache import cache_folder
from gharial.model.vocabulary import WORD_MARK
from gharial.ngram import read_file
from gharial.ngram.header import MAGIC
from gharial.ngram.native import native_ngram

ENTRIES = 2_000_000
"""n-grams of the seeded one, all orders together."""
SUCCESSORS = 16
_TOKENS = 2_500_000  # of the text that the n-grams are taken from


@dataclass(frozen=True, eq=False)
class Language:
    """pieces: text of each token; successors: (tokens, 16) tokens that may follow each, the likelier first."""

    pieces: list[str]
    successors: np.ndarray

    @classmethod
    def seeded(cls, tokens: int, seed: int) -> Language:
        """One of `tokens` pieces, each text once."""
        rng = np.random.default_rng([seed, tokens])
        pieces: dict[str, None] = {}
        while len(pieces) < tokens:
            letters = "".join(rng.choice(list("etaoinshrdlucmfwygpb"), rng.integers(1, 7)))
            pieces[(WORD_MARK if rng.random() < 0.6 else "") + letters] = None
        # A few tokens are much more frequent than the rest.
        follow = (tokens * rng.random((tokens, SUCCESSORS)) ** 3).astype(np.int64)
        return cls(list(pieces), follow)

    def text(self, seed: int) -> np.ndarray:
        """A long sequence of tokens."""
        rng = np.random.default_rng([seed, 1])
        choices = np.minimum(rng.geometric(0.25, _TOKENS) - 1, SUCCESSORS - 1).tolist()
        jumps = rng.random(_TOKENS) < 0.02
        anywhere = rng.integers(0, len(self.pieces), _TOKENS)
        follow = self.successors.tolist()
        token, found = 0, np.empty(_TOKENS, np.int64)
        for at, choice in enumerate(choices):
            token = int(anywhere[at]) if jumps[at] else follow[token][choice]
            found[at] = token
        return found


def _grams(text: np.ndarray, tokens: int) -> list[np.ndarray]:
    """1- to 4-grams of the text, each once, numbers to the base `tokens`; of the longest as many as make all 2 M."""
    found = [np.arange(tokens)]
    joined = text
    for order in range(2, 5):
        joined = joined[:-1] * tokens + text[order - 1 :]
        found.append(np.unique(joined))
    room = max(1, ENTRIES - sum(map(len, found[:3])))
    rng = np.random.default_rng(len(text))
    found[3] = np.sort(rng.permutation(found[3])[:room])
    return found


def _binary(language: Language, seed: int) -> Iterator[bytes]:
    """A KenLM binary of the language's n-grams, with random values."""
    base = len(language.pieces)
    grams = _grams(language.text(seed), base)
    rng = np.random.default_rng([seed, 2])
    words = [*SPECIAL, *language.pieces]
    yield head(words, [len(words), *map(len, grams[1:])])
    for order, some in enumerate(grams, 1):
        # KenLM keeps probabilities without their sign; the sign says that no longer n-gram ends in this one.
        probs = 0.3 + 4 * rng.random(len(some)) ** 2
        if order < len(grams):
            probs[~np.isin(some, grams[order] % base**order)] *= -1
        else:
            probs *= -1
        entries = np.zeros(len(some), UNIGRAM if order == 1 else MIDDLE if order < len(grams) else LONGEST)
        entries["prob"] = probs
        if order < len(grams):
            entries["backoff"] = -rng.random(len(some))
        if order == 1:
            specials = np.array([(-5, 0), (-99, -0.3), (-2, -0.0)], UNIGRAM)
            yield np.concatenate([specials, entries, np.zeros(1, UNIGRAM)]).tobytes()
            continue
        key = (some % base + len(SPECIAL)).astype(np.uint64)
        for power in range(1, order):
            key = combine(key, some // base**power % base + len(SPECIAL))
        entries["key"] = key
        yield table(entries, len(some))
    yield tail(words)


class Scorer:
    """An n-gram file as the search asks it, its words the pieces of a language.

    Args:
        path: a KenLM binary or ARPA file; None: the seeded one, made and kept on first use.
        language: whose pieces are scored.
        seed: of the seeded one.
        note: is told what takes long.

    Raises:
        BadInput: the file cannot be used, or the Python package kenlm is not there.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, language: Language, seed: int, note: Callable[[str], object]
    ) -> None:
        try:
            import kenlm
        except ImportError:
            raise BadInput(
                "n-grams need the Python package kenlm", None, "none", "it is installed", "pip install gharial[ngram]"
            ) from None
        self._kenlm: Any = kenlm
        named = _seeded_file(language, seed, note) if path is None else Path(path)
        with open_regular(named, "an n-gram file") as file:
            binary = file.read(len(MAGIC)) == MAGIC
        self.native: Ngram | None = native_ngram(read_file(named)) if binary else None
        settings: Any = kenlm.Config()
        settings.load_method = kenlm.LoadMethod.LAZY
        settings.show_progress = False
        settings.arpa_complain = kenlm.ARPALoadComplain.NONE
        try:
            self._model: Any = kenlm.Model(os.fsencode(named), settings)
        except OSError as error:
            raise BadInput("KenLM cannot load the file", named, error) from error
        self.words: list[str | None] = [*language.pieces, None]
        self.base_score: Callable[[Any, Any, Any], float] = self._model.BaseScore

    def new_state(self, begin: bool = False) -> Any:
        """A state to be written to, or that of a sentence's begin."""
        state = self._kenlm.State()
        if begin:
            self._model.BeginSentenceWrite(state)
        return state


def _seeded_file(language: Language, seed: int, note: Callable[[str], object]) -> Path:
    folder = cache_folder()
    if folder is None:
        raise BadInput(
            "there is no folder to keep the n-gram in", None, "no home folder", remedy="set XDG_CACHE_HOME, or --ngram"
        )
    path = folder.parent / "bench" / f"ngram-{len(language.pieces)}-{seed}-3.binary"
    if not path.is_file():
        note(f"making an n-gram of {ENTRIES} entries in {path} (half a minute, once)")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _binary(language, seed), cached=False)
    return path
