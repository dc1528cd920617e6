# SPDX-License-Identifier: Apache-2.0
"""Keyword boosting (docs/decoding.md, section 5): a trie of characters, walked by every hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

WORD_MARK = "▁"


@dataclass
class _Node:
    """A place in the trie.

    Attributes:
        gain: of the edge that leads here: the sum over the keywords through it.
        whole: what the keyword that ends here is worth as a whole, 0 where none does.
        next: by character.
    """

    gain: float = 0.0
    whole: float = 0.0
    next: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Threads:
    """Where a hypothesis stands: for each live thread its node, and what it has gained but may have to give back."""

    live: tuple[tuple[_Node, float], ...] = ()


class Keywords:
    """The trie.

    Args:
        boosts: natural-log score for each character of a keyword, by keyword; a space stands for the word mark.
    """

    def __init__(self, boosts: Mapping[str, float]) -> None:
        self._root = _Node()
        for text, boost in boosts.items():
            node = self._root
            for character in text.replace(" ", WORD_MARK):
                node = node.next.setdefault(character, _Node())
                node.gain += boost
            node.whole = boost * len(text)

    def advance(self, threads: Threads, text: str) -> tuple[float, Threads]:
        """Score that the characters of `text` bring, and where the threads stand after them."""
        total = 0.0
        for character in text:
            delta, threads = self._step(threads, character)
            total += delta
        return total, threads

    def _step(self, threads: Threads, character: str) -> tuple[float, Threads]:
        delta = 0.0
        live: list[tuple[_Node, float]] = []
        for node, at_risk in (*threads.live, (self._root, 0.0)):
            following = node.next.get(character)
            if following is None:
                delta -= at_risk
            else:
                delta += following.gain
                live.append((following, at_risk + following.gain - following.whole))
        return delta, Threads(tuple(live))
