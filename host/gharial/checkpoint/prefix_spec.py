# SPDX-License-Identifier: Apache-2.0
"""Prefixes that a model was trained with, out of the `prefix_spec` of a checkpoint.

`valid_prefix` is a regular expression of somebody else's making, and Python's matcher takes exponential time on some.
It is therefore never run. Since it "matches exactly the prefixes seen in training" it stands for a finite list, so it
is parsed here (literals, escapes, groups, `|`, `?`, character classes without negation, `^` and `$` at the ends of the
whole or of an alternative outside groups) and written out as that list. A pattern of another kind, or of more than
`MAX_PREFIXES` prefixes, is no list: its prefixes cannot be validated (docs/prefixes.md). Every pattern is done with in
a bounded number of steps, as its length, its nesting and the texts that it stands for are bounded all along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gharial.checkpoint.config import Section
from gharial.checkpoint.text import listed, shown
from gharial.errors import BadInput

_PATTERN = "a regular expression of all prefixes"
_EXPORT = "export the checkpoint again with the prefix_spec that it was trained with"

MAX_PATTERN = 4096
MAX_PREFIXES = 1024
_MAX_CHARACTERS = 1 << 16
_MAX_NESTING = 32


@dataclass(frozen=True)
class PrefixSpec:
    """What prefixes a model takes.

    Attributes:
        pattern: the checkpoint's regular expression.
        prefixes: every prefix it stands for, sorted; None where it is no finite list that can be written out, so that
            no prefix can be validated. `("",)` is a model that takes none.
        default: prefix used when none is asked for, or None.
    """

    pattern: str
    prefixes: tuple[str, ...] | None
    default: str | None


def parse_prefix_spec(value: Any, where: str) -> PrefixSpec | None:
    """The spec, or None if the checkpoint has none (`value` None): its prefixes are then unknown.

    Raises:
        BadInput: not a dict, no pattern, a pattern that is too long, or a default that is not among the prefixes.
    """
    if value is None:
        return None
    section = Section(value, where)
    pattern = section.maybe_text("valid_prefix")
    default = section.maybe_text("default_prefix")
    if pattern is None:
        raise BadInput("valid_prefix is missing", where, listed(map(shown, value), 6) or "nothing", _PATTERN, _EXPORT)
    if len(pattern) > MAX_PATTERN:
        found = f"{len(pattern)} characters"
        raise BadInput("valid_prefix is too long", where, found, f"at most {MAX_PATTERN}", _EXPORT)
    prefixes = expand(pattern)
    if default is not None and prefixes is not None and default not in prefixes:
        raise BadInput(
            "the default prefix is not a valid one",
            where,
            shown(default),
            listed((shown(prefix) or "''" for prefix in prefixes), 6),
            "export the checkpoint again with a default_prefix that valid_prefix matches",
        )
    return PrefixSpec(pattern, prefixes, default)


def expand(pattern: str) -> tuple[str, ...] | None:
    """Every text that `pattern` matches as a whole, sorted.

    None if it uses other constructs than the ones above, or stands for more than `MAX_PREFIXES` texts.
    """
    try:
        return tuple(sorted(_Parser(pattern).whole()))
    except _NotAListError:
        return None


class _NotAListError(Exception):
    """The pattern cannot be written out as a list."""


class _Parser:
    """Recursive descent over the pattern; each part gives the set of texts it stands for."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def whole(self) -> set[str]:
        result = self._choice(0)
        if self._at != len(self._text):
            raise _NotAListError
        return result

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        character = self._peek()
        if not character:
            raise _NotAListError
        self._at += 1
        return character

    def _choice(self, nesting: int) -> set[str]:
        if nesting > _MAX_NESTING:
            raise _NotAListError
        result = self._sequence(nesting)
        while self._peek() == "|":
            self._at += 1
            result |= self._sequence(nesting)
            self._check(len(result), sum(map(len, result)))
        return result

    def _sequence(self, nesting: int) -> set[str]:
        result = {""}
        if nesting == 0 and self._peek() == "^":
            self._at += 1
        while self._peek() not in ("", "|", ")"):
            if nesting == 0 and self._text[self._at : self._at + 2] in ("$", "$|"):
                self._at += 1
                break
            item = self._item(nesting)
            if self._peek() == "?":
                self._at += 1
                item.add("")
            characters = len(result) * sum(map(len, item)) + len(item) * sum(map(len, result))
            self._check(len(result) * len(item), characters)
            result = {head + tail for head in result for tail in item}
        return result

    def _item(self, nesting: int) -> set[str]:
        character = self._next()
        if character == "(":
            if self._peek() == "?":
                self._at += 1
                if self._next() != ":":
                    raise _NotAListError
            group = self._choice(nesting + 1)
            if self._next() != ")":
                raise _NotAListError
            return group
        if character == "[":
            return self._characters()
        if character == "\\":
            return {self._escaped()}
        if character in ".*+?{}]^$":
            raise _NotAListError
        return {character}

    def _characters(self) -> set[str]:
        result: set[str] = set()
        while (character := self._next()) != "]":
            if character in "^-[":
                raise _NotAListError
            result.add(self._escaped() if character == "\\" else character)
        if not result:  # a bracket that comes first is one of the characters
            raise _NotAListError
        return result

    def _escaped(self) -> str:
        character = self._next()
        # A letter or digit behind a backslash is a class of characters or a back-reference.
        if character.isalnum():
            raise _NotAListError
        return character

    def _check(self, count: int, characters: int) -> None:
        if count > MAX_PREFIXES or characters > _MAX_CHARACTERS:
            raise _NotAListError
