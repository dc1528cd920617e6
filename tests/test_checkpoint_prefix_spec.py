# SPDX-License-Identifier: Apache-2.0
"""Prefix patterns: written out as lists, without ever being run as regular expressions."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from gharial.checkpoint.prefix_spec import MAX_PATTERN, MAX_PREFIXES, expand, parse_prefix_spec


@pytest.mark.parametrize(
    ("pattern", "prefixes"),
    [
        ("^$", [""]),
        ("", [""]),
        ("^<pnc>$", ["<pnc>"]),
        ("^(?:<pnc>|<nopnc>)$", ["<nopnc>", "<pnc>"]),
        ("^(?:<a>)?$", ["", "<a>"]),
        ("^(<a>|<b>)?<c>$", ["<a><c>", "<b><c>", "<c>"]),
        ("^(?:|<a>)$", ["", "<a>"]),
        (r"^<a\.b\$>\\$", ["<a.b$>\\"]),
        (r"^a\$$", ["a$"]),
        (r"a\\$", ["a\\"]),
        ("[ab]c?", ["a", "ac", "b", "bc"]),
        (r"[\]\-]", ["-", "]"]),
        ("a|b|", ["", "a", "b"]),
        ("^$|^<a>$", ["", "<a>"]),
        ("^<a>$|^<b>$|<c>", ["<a>", "<b>", "<c>"]),
        (r"^a\$|\^b$", ["^b", "a$"]),
        (r"^<lang\-en>$", ["<lang-en>"]),
        ("^(?:(?:a|b)(?:c|(?:d|e)f))$", ["ac", "adf", "aef", "bc", "bdf", "bef"]),
    ],
)
def test_lists(pattern: str, prefixes: list[str]) -> None:
    assert expand(pattern) == tuple(prefixes)
    assert all(re.fullmatch(pattern, prefix) for prefix in prefixes)


@pytest.mark.parametrize(
    "pattern",
    [
        "a*",
        "a+",
        "a{2}",
        ".",
        "[a-z]",
        "[^a]",
        r"\w",
        r"\d",
        "(?P<n>a)",
        "(?=a)",
        "(?i)a",
        "a??",
        "(a",
        "a)",
        "[a",
        "[]",
        "a|[]",
        "[]a]?",
        "a\\",
        "(?",
        "a^b",
        "a$b",
        "(?:^a$|^b$)",
        "^^a",
        "a$$",
        "?",
        "$?",
        "(a+)+$",
        "(" * 1000 + ")" * 1000,
        "(?:a|b|c|d)" * 300,
    ],
)
def test_no_lists(pattern: str) -> None:
    # No text that any of the patterns matches; that cannot be known, so it is not refused.
    default = "a" * 40 + "!"
    spec = parse_prefix_spec({"valid_prefix": pattern, "default_prefix": default}, "m")
    assert expand(pattern) is None
    assert spec is not None
    assert spec.prefixes is None


def test_repeats_do_not_multiply() -> None:
    # Python's matcher takes 2**500 steps to see that this does not match.
    assert expand("(?:a|a)" * 500) == ("a" * 500,)
    assert len(expand("(?:a|)" * 200) or ()) == 201


def test_bounds() -> None:
    assert len(expand("(?:a|b)" * 10) or ()) == 1024 == MAX_PREFIXES
    assert expand("(?:a|b)" * 11) is None
    # Many prefixes, each of them long.
    assert expand("(?:a|b)" * 10 + "c" * 3000) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(?:a|b)" * 10 + "c" * 54 + "()" * 1980,  # as many prefixes as there may be, of the length that there may be
        "(a?" * 30 + ")" * 30 + "a?" * 1900,
        "(?:a|a|a|a)" * 372,
        "|" * 4096,
        "[" + "ab" * 2046 + "]",
        "(" * 4096,
        "a?" * 2048,
        "(?:" + "|".join("abcdefghijklmnopqrstuvwxyz") + ")?" + "(|)" * 1300,
    ],
)
def test_steps_are_bounded(pattern: str) -> None:
    """None takes more than a few million steps; a test that took exponential time would not end."""
    expand(pattern[:MAX_PATTERN])


def test_random_patterns_against_re(seed: int) -> None:
    choose = random.Random(seed)

    def pattern(depth: int) -> str:
        kind = choose.randrange(5 if depth else 2)
        if kind < 2:
            return choose.choice(["a", "b", r"\.", "[ab]", "a?"])
        if kind == 2:
            return f"(?:{pattern(depth - 1)}|{pattern(depth - 1)})"
        if kind == 3:
            return f"({pattern(depth - 1)})?"
        return pattern(depth - 1) + pattern(depth - 1)

    checked = 0
    words = ["".join(w) for n in range(5) for w in itertools.product("ab.", repeat=n)]
    for _ in range(200):
        text = pattern(3)
        listed = expand(text)
        assert listed is not None
        matched = {word for word in words if re.fullmatch(text, word)}
        assert {word for word in listed if len(word) <= 4} == matched
        checked += len(matched)
    assert checked > 200
