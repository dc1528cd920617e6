# SPDX-License-Identifier: Apache-2.0
"""A small declarative validator for JSON from untrusted files: a schema is a table of what each key may hold.

A rule is called with a value and the place it stands at, and raises BadInput naming that place. Keys that a record
does not list are allowed, so that newer writers can add some.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from gharial.errors import BadInput

Rule = Callable[[Any, str], None]

_SHOWN = 60  # characters of a strange value that an error repeats


def shown(value: object) -> str:
    """A value of unknown size and content, short enough for one line of an error."""
    if isinstance(value, dict | list):
        return f"a {'record' if isinstance(value, dict) else 'list'} of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _refuse(where: str, value: object, expected: str) -> BadInput:
    return BadInput("manifest entry cannot be used", where, shown(value), expected)


def boolean(value: Any, where: str) -> None:
    """true or false."""
    if not isinstance(value, bool):
        raise _refuse(where, value, "true or false")


def integer(low: int, high: int) -> Rule:
    """An integer in low..high."""

    def rule(value: Any, where: str) -> None:
        # A bool is an int to Python, and True would pass for 1.
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _refuse(where, value, f"an integer in {low}..{high}")

    return rule


def number(low: float, high: float, *, above: bool = False) -> Rule:
    """A finite number in [low, high], or in (low, high] if `above`."""

    def rule(value: Any, where: str) -> None:
        good = (
            not isinstance(value, bool)
            and isinstance(value, int | float)
            and math.isfinite(value)
            and (low < value if above else low <= value)
            and value <= high
        )
        if not good:
            raise _refuse(where, value, f"a number {'above' if above else 'of at least'} {low:g}, at most {high:g}")

    return rule


def text(longest: int, pattern: str | None = None, meaning: str = "") -> Rule:
    """A string of at most `longest` characters, matching `pattern` as a whole if one is given."""
    compiled = re.compile(pattern) if pattern is not None else None
    expected = meaning or f"text of at most {longest} characters"

    def rule(value: Any, where: str) -> None:
        if not isinstance(value, str) or len(value) > longest or (compiled and not compiled.fullmatch(value)):
            raise _refuse(where, value, expected)

    return rule


def one_of(values: Collection[str]) -> Rule:
    """One of these strings."""

    def rule(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in values:
            raise _refuse(where, value, " or ".join(values))

    return rule


def nullable(inner: Rule) -> Rule:
    """null, or what `inner` takes."""

    def rule(value: Any, where: str) -> None:
        if value is not None:
            inner(value, where)

    return rule


def list_of(inner: Rule, fewest: int, most: int) -> Rule:
    """A list of fewest..most items that `inner` takes."""

    def rule(value: Any, where: str) -> None:
        if not isinstance(value, list) or not fewest <= len(value) <= most:
            raise _refuse(where, value, f"a list of {fewest} to {most} items")
        for index, item in enumerate(value):
            inner(item, f"{where}[{index}]")

    return rule


def map_of(name: Rule, inner: Rule, most: int) -> Rule:
    """A record with any keys that `name` takes, at most `most`, each holding what `inner` takes."""

    def rule(value: Any, where: str) -> None:
        if not isinstance(value, dict) or len(value) > most:
            raise _refuse(where, value, f"a record of at most {most} keys")
        for key, item in value.items():
            name(key, where)
            inner(item, f"{where}.{key}")

    return rule


def record(required: Mapping[str, Rule], optional: Mapping[str, Rule] | None = None) -> Rule:
    """A record that has all `required` keys; other keys than these and the `optional` ones are not looked at."""
    allowed = optional or {}

    def rule(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise _refuse(where, value, "a record")
        for key, inner in required.items():
            if key not in value:
                raise BadInput("manifest entry is missing", f"{where}.{key}")
            inner(value[key], f"{where}.{key}")
        for key, inner in allowed.items():
            if key in value:
                inner(value[key], f"{where}.{key}")

    return rule


def case_of(key: str, cases: Mapping[str, Rule]) -> Rule:
    """A record whose string under `key` picks the rule for the whole."""
    pick = record({key: one_of(tuple(cases))})

    def rule(value: Any, where: str) -> None:
        pick(value, where)
        cases[value[key]](value, where)

    return rule
