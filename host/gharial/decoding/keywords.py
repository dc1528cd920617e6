# SPDX-License-Identifier: Apache-2.0
"""Keywords that are boosted (docs/decoding.md, section 5): their file, their checks, and the trie that is walked."""

from __future__ import annotations

import json
import math
import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from gharial.decoding._search import Trie
from gharial.errors import BadInput
from gharial.files import open_regular
from gharial.model.vocabulary import WORD_MARK

MAX_KEYWORDS = 100_000
MAX_LETTERS = 1000
MAX_BOOST = 1000.0  # far beyond any use: sums of the largest numbers would be infinite, and so would scores
_LAYOUT = '{"keywords": {text: number}}'


def read_keywords(path: str | os.PathLike[str]) -> dict[str, float]:
    """Boosts by keyword, from a JSON file {"keywords": {text: number}}.

    Raises:
        BadInput: the file cannot be read, is no such file, names a keyword twice, or has a boost that is no number
            from -1000 to 1000.
    """
    with open_regular(path, f"a JSON file {_LAYOUT}") as file:
        data = file.read()
    try:
        found = json.loads(data, object_pairs_hook=lambda pairs: _once(pairs, path), parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise BadInput("is no JSON", path, error, _LAYOUT, "correct the file") from error
    if not isinstance(found, dict) or set(found) != {"keywords"} or not isinstance(found["keywords"], dict):
        raise BadInput("is no file of keywords", path, _outline(found), f"{_LAYOUT} and nothing else")
    return {text: _boost(text, boost, path) for text, boost in found["keywords"].items()}


def _whole(digits: str) -> int:
    """A number without a point; of thousands of digits, of which Python makes no int, one that is too large as well."""
    return int(digits[:4000])


def _outline(found: object) -> str:
    """What a JSON file holds, in some words."""
    if not isinstance(found, dict):
        return f"a {type(found).__name__}"
    if isinstance(found.get("keywords"), dict) or "keywords" not in found:
        return f"the keys {', '.join(map(repr, list(found)[:5])) or 'none'}"
    return f"keywords that are a {type(found['keywords']).__name__}"


def _once(pairs: list[tuple[str, object]], path: object) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise BadInput("is there twice", f"{path}: {name!r}", remedy="leave one of them out")
        found[name] = value
    return found


def _boost(text: str, boost: object, where: object) -> float:
    with suppress(OverflowError):  # a whole number of any length is an int
        if not isinstance(boost, bool) and isinstance(boost, int | float) and math.isfinite(boost):
            if abs(boost) <= MAX_BOOST:
                return float(boost)
            limits = f"{-MAX_BOOST:g} to {MAX_BOOST:g}, -1 to 1 as a rule"
            raise BadInput("boost is out of its range", f"{where}: {text!r}", boost, limits, "correct it")
    found = "a number of too many digits" if type(boost) is int else boost
    raise BadInput(
        "boost is no finite number", f"{where}: {text!r}", found, "a number, -1 to 1 as a rule", "correct it"
    )


@dataclass(eq=False)
class _Node:
    """gain: of the edge that leads here; whole: of the keyword that ends here; at_risk: gains less wholes so far."""

    gain: float = 0.0
    whole: float = 0.0
    at_risk: float = 0.0
    number: int = 0
    suffix: _Node | None = None
    next: dict[str, _Node] = field(default_factory=dict)


class Keywords:
    """Boosted keywords, ready to be given to streams.

    Args:
        boosts: score in nats for each character of a keyword, by keyword; a space stands for the word mark.
        pieces: texts of the model's tokens; a keyword that they cannot spell is refused. None: not checked.
        where: what the boosts came from, for errors.

    Raises:
        BadInput: a keyword is empty, longer than 1000 characters or cannot be spelled, or a boost is no number from
            -1000 to 1000.
    """

    def __init__(
        self, boosts: Mapping[str, float], pieces: Sequence[str] | None = None, where: object = "keywords"
    ) -> None:
        if len(boosts) > MAX_KEYWORDS:
            raise BadInput("too many keywords", where, len(boosts), f"{MAX_KEYWORDS} at most")
        spelling = None if pieces is None else _Spelling(pieces)
        root = _Node()
        self.boosts: dict[str, float] = {}
        seen: set[str] = set()
        for text, given in boosts.items():
            if not isinstance(text, str):
                raise BadInput("keyword is no text", f"{where}: {text!r}", type(text).__name__, "a string")
            boost = _boost(text, given, where)
            letters = text.replace(" ", WORD_MARK)
            if not 1 <= len(text) <= MAX_LETTERS:
                raise BadInput("keyword is too short or too long", f"{where}: {text[:40]!r}", f"{len(text)} characters")
            if letters in seen:
                raise BadInput("is there twice", f"{where}: {text!r}", remedy="leave one of them out")
            if spelling is not None and not spelling.possible(letters):
                raise BadInput(
                    "the model's pieces cannot spell the keyword",
                    f"{where}: {text!r}",
                    spelling.missing(letters),
                    "characters of the model's vocabulary, in its case",
                    "write it as the model's transcripts do, or leave it out",
                )
            seen.add(letters)
            self.boosts[text] = boost
            node = root
            for character in letters:
                node = node.next.setdefault(character, _Node())
                node.gain += boost
            node.whole = boost * len(text)
        self.trie = _packed(root)


class _Spelling:
    """Whether tokens can bring a text: it may begin and end within a piece."""

    def __init__(self, pieces: Sequence[str]) -> None:
        texts = [piece for piece in pieces if piece]
        self._pieces = set(texts)
        self._longest = max(map(len, texts), default=0)
        self._begins = {piece[:end] for piece in texts for end in range(1, len(piece) + 1)}
        self._ends = {piece[start:] for piece in texts for start in range(len(piece))}
        self._inside = texts

    def possible(self, text: str) -> bool:
        """Whether some sequence of pieces has `text` in it."""
        size = len(text)
        reached = [True] + [False] * size  # from a place on, whole pieces
        for end in range(1, min(size, self._longest) + 1):
            reached[end] = text[:end] in self._ends
        for start in range(size):
            if not reached[start]:
                continue
            if text[start:] in self._begins:
                return True
            for end in range(start + 1, min(size, start + self._longest) + 1):
                reached[end] = reached[end] or text[start:end] in self._pieces
        return reached[size] or any(text in piece for piece in self._inside)

    def missing(self, text: str) -> str:
        """What a text that is not possible has that the pieces have not."""
        letters = set("".join(self._inside))
        strange = dict.fromkeys(letter for letter in text if letter not in letters)
        return " ".join(map(repr, strange)) or "an order of letters that no pieces have"


def _packed(root: _Node) -> Trie:
    """The trie as arrays, nodes by depth, each with its longest proper suffix that is in the trie."""
    order, queue = [root], deque([root])
    while queue:
        node = queue.popleft()
        for letter, child in node.next.items():
            child.number = len(order)
            child.at_risk = node.at_risk + child.gain - child.whole
            child.suffix = _suffix(node, letter, root)
            order.append(child)
            queue.append(child)
    first, letters, targets = [0], list[int](), list[int]()
    for node in order:
        for letter, child in sorted(node.next.items()):
            letters.append(ord(letter))
            targets.append(child.number)
        first.append(len(letters))
    return Trie(
        np.array(first, np.int32),
        np.array(letters, np.uint32),
        np.array(targets, np.int32),
        np.array([node.suffix.number if node.suffix else 0 for node in order], np.int32),
        np.array([node.gain for node in order]),
        np.array([node.at_risk for node in order]),
    )


def _suffix(parent: _Node, letter: str, root: _Node) -> _Node:
    node = parent.suffix
    while node is not None:
        if letter in node.next:
            return node.next[letter]
        node = node.suffix
    return root
