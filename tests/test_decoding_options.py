# SPDX-License-Identifier: Apache-2.0
"""Settings and keyword files: what is refused, and that the error names it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gharial.decoding import DecoderOptions, Keywords, SearchModel, asked_for, read_keywords
from gharial.errors import BadInput
from gharial.isa.commands import Mode


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("width", wrong) for wrong in (0, 33, -1, 4.0, True, None)],
        *[("max_symbols", wrong) for wrong in (0, 256)],
        *[("max_expansions", wrong) for wrong in (0, 65537)],
        *[("temperature", wrong) for wrong in (0, -1.0, math.nan, math.inf, 0.2, "1")],
        *[(name, 0) for name in ("topk_threshold", "score_threshold", "final_limit_s")],
        *[(name, math.nan) for name in ("topk_threshold", "score_threshold", "final_limit_s", "ngram_scale")],
        *[("ngram_scale", wrong) for wrong in (-1001, 1000.5, math.inf, 10**400)],
        *[("blank_penalty", wrong) for wrong in (20.5, -21, math.inf)],
        *[("eos", wrong) for wrong in ("classic", 3)],
        *[("eos_alpha", wrong) for wrong in (0, -1, math.inf)],
        *[("eos_beta", wrong) for wrong in (-0.1, 1.1)],
        ("merge_lone_marks", 1),
    ],
)
def test_refused_settings(name: str, value: Any) -> None:
    with pytest.raises(BadInput) as error:
        DecoderOptions(**{name: value})
    assert (error.value.where == name and error.value.found == value) or value is math.nan
    assert error.value.expected is not None


def test_room_in_a_result() -> None:
    def asked(width: int, classes: int = 40, **settings: Any) -> int:
        model = SearchModel(
            pieces=[*(chr(97 + at) for at in range(classes - 1)), ""], blank=classes - 1, logit_bits=8, eos=1
        )
        return asked_for(model, DecoderOptions(width=width, **settings), Mode.TOP_K)[0]

    both = {"blank_penalty": 1.0, "eos": "blank"}
    assert (asked(32), asked(32, eos="ignore"), asked(31, **both), asked(32, 33, **both)) == (32, 33, 33, 33)
    with pytest.raises(BadInput) as error:
        asked(32, **both)
    assert (error.value.where, error.value.found) == ("width", 32)


def test_numbers_of_other_types() -> None:
    assert DecoderOptions(width=np.int64(6), max_expansions=np.int32(9)) == DecoderOptions(width=6, max_expansions=9)


def test_defaults() -> None:
    options = DecoderOptions()
    assert (options.inverse_temperature, options.expansions) == (11703, 24)
    assert DecoderOptions(temperature=1.0).inverse_temperature == 16384
    assert DecoderOptions(topk_threshold=-1, score_threshold=-0.5, final_limit_s=-1).topk_threshold == -1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"keywords": []}',
        '{"keywords": {}, "more": 1}',
        '{"keywords": {"a": 1, "a": 2}}',
        '{"keywords": {"a": 1}, "keywords": {}}',
        '{"keywords": {"a": "1"}}',
        '{"keywords": {"a": true}}',
        '{"keywords": {"a": NaN}}',
        '{"keywords": {"a": 1e999}}',
        '{"keywords": {"a": 1001}}',
        '{"keywords": {"a": -1e9}}',
        "[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_refused_files(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "keywords.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput, match=r"keywords\.json"):
        read_keywords(path)


def test_a_boost_of_any_number_of_digits(tmp_path: Path) -> None:
    """Python makes no int of more than some thousands, and says so in words of its own."""
    path = tmp_path / "keywords.json"
    for digits in (300, 399, 400, 4301, 10_000):
        path.write_text('{"keywords": {"a": 1' + "0" * digits + "}}")
        with pytest.raises(BadInput, match="boost is") as error:
            read_keywords(path)
        assert "sys." not in str(error.value)
        assert str(error.value.where).endswith("'a'")


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keywords.json"
    path.write_text('{"keywords": {"Gharial": 0.5, "a b": -1}}')
    assert read_keywords(path) == {"Gharial": 0.5, "a b": -1.0}
    with pytest.raises(BadInput):
        read_keywords(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("hello", True),
        ("ello", True),
        ("hell", True),
        ("lo hel", True),
        ("lo hello", True),
        ("l", True),
        (" ", True),
        ("Hello", False),
        ("hex", False),
        ("helhe", False),
        ("lohe", False),
        ("lolo", True),
    ],
)
def test_spelling(text: str, fits: bool) -> None:
    """A keyword may begin and end within a piece; between lie whole ones."""
    pieces = ["▁hel", "lo", "x"]
    if fits:
        assert Keywords({text: 1.0}, pieces).boosts == {text: 1.0}
    else:
        with pytest.raises(BadInput, match="cannot spell"):
            Keywords({text: 1.0}, pieces)


def test_refused_keywords() -> None:
    for boosts in ({"": 1.0}, {"a" * 1001: 1.0}, {"a": math.inf}, {"a": 1e4}, {"a b": 1.0, "a▁b": 1.0}):
        with pytest.raises(BadInput):
            Keywords(boosts)
