# SPDX-License-Identifier: Apache-2.0
"""The options of decoding by themselves: what they say, what is refused, and that the refusal names the option."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import ngram_files
import pytest

from gharial.cli.commands import Parser, hyphenated
from gharial.cli.decoding import _FIELDS, DECODERS, EOS_MODES, Decoding, add_decoding, decoding
from gharial.decoding import DecoderOptions, EosStrategy
from gharial.errors import BadInput

BEAM = ("--decoder", "beam")


def parser(**options: Any) -> argparse.ArgumentParser:
    made = Parser(prog="command")
    add_decoding(made, **options)
    return made


def said(*words: object, **options: Any) -> Decoding:
    return decoding(parser(**options).parse_args(hyphenated([str(word) for word in words])))


def refused(*words: object, **options: Any) -> str:
    """The lines of the refusal."""
    with pytest.raises(BadInput) as error:
        said(*words, **options)
    assert error.value.expected is not None
    assert error.value.remedy is not None or len(str(error.value).splitlines()) == 2
    return str(error.value)


def keywords(folder: Path, text: str) -> Path:
    path = folder / "keywords.json"
    path.write_text(text)
    return path


def test_defaults() -> None:
    assert said() == Decoding("greedy", None, None)
    assert said(*BEAM) == Decoding("beam", DecoderOptions(), None)
    assert said(decoder="beam", resets=True) == Decoding("beam", DecoderOptions(), None, state_resets=True)


@pytest.mark.parametrize(
    ("flag", "value", "field", "expected"),
    [
        ("--beam-width", "32", "width", 32),
        ("--beam_width", "1", "width", 1),
        ("--temperature", "1", "temperature", 1.0),
        ("--max-symbols", "255", "max_symbols", 255),
        ("--max-expansions", "7", "max_expansions", 7),
        ("--topk-threshold", "-1", "topk_threshold", -1.0),
        ("--score-threshold", "0.25", "score_threshold", 0.25),
        ("--final-limit", "-1", "final_limit_s", -1.0),
        ("--blank-penalty", "-0.5", "blank_penalty", -0.5),
        ("--ngram-scale", "0.1", "ngram_scale", 0.1),
        ("--eos-strategy", "ignore", "eos", EosStrategy.IGNORE),
    ],
)
def test_settings_reach_the_search(flag: str, value: str, field: str, expected: object) -> None:
    assert said(*BEAM, flag, value).options == DecoderOptions(**{field: expected})


def test_settings_together() -> None:
    found = said(*BEAM, "--eos-strategy", "predict", "--eos_alpha=0.5", "--eos-beta", 0.1, "--merge-lone-marks")
    expected = DecoderOptions(eos=EosStrategy.PREDICT, eos_alpha=0.5, eos_beta=0.1, merge_lone_marks=True)
    assert found.options == expected


def test_every_field_has_its_option_and_its_default_in_the_help() -> None:
    assert set(_FIELDS.values()) == set(DecoderOptions.names())
    shown = " ".join(parser().format_help().split())
    defaults = DecoderOptions()
    for option, field in _FIELDS.items():
        flag = "--" + option.replace("_", "-")
        assert flag in shown
        value = getattr(defaults, field)
        if value is not None and not isinstance(value, bool):
            number = f"{value:g}" if isinstance(value, float) else str(value)
            assert re.search(rf"{flag} (?:[A-Z]|{{[a-z,]+}}) [^)]*\({re.escape(number)}\)", shown), flag
    assert EosStrategy(said(*BEAM, "--eos-strategy", "predict").options.eos)  # type: ignore[union-attr]
    assert f"{{{','.join(EosStrategy)}}}" in shown
    assert DECODERS == ("greedy", "beam")


def test_of_a_stream() -> None:
    found = said("--eos-mode", "stream", "--silence", 2, "--state-resets", "--prefix", "<pnc>")
    assert found == Decoding("greedy", None, None, "<pnc>", eos_mode="stream", state_resets=True, silence_s=2.0)
    assert said("--no-state-resets", resets=True).state_resets is False
    assert said("--no_state_resets", resets=True).state_resets is False
    assert said(*BEAM, "--alternatives", "4").alternatives == 4
    assert said("--alternatives", "1").alternatives == 1
    assert EOS_MODES[0] == said().eos_mode


def test_n_grams_and_keywords(tmp_path: Path) -> None:
    path = ngram_files.binary()
    assert said(*BEAM, "--ngram", path).ngram == str(path)
    assert said(*BEAM, "--ngram", "none").ngram is False
    assert said("--ngram", "none").ngram is False  # a greedy decoder has none
    file = keywords(tmp_path, '{"keywords": {"go on": 0.5, "stop": -1}}')
    found = said(*BEAM, "--keywords", file)
    assert (found.keywords, found.keyword_file) == ({"go on": 0.5, "stop": -1.0}, str(file))


@pytest.mark.parametrize("name", [*_FIELDS, "ngram", "keywords"])
def test_greedy_has_no_setting_of_the_beam(name: str) -> None:
    flag = "--" + name.replace("_", "-")
    values = {"eos_strategy": "none", "merge_lone_marks": None, "ngram": "x", "keywords": "x"}
    value = values.get(name, "1")
    text = refused(flag, *([] if value is None else [value]))
    assert text.startswith(f"{flag}: ")
    assert "--decoder greedy" in text and "--decoder beam" in text and "--beam-width 1" in text


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--beam-width", "0"], ["--beam-width: ", "found 0", "1 to 32"]),
        (["--beam-width", "33"], ["--beam-width: ", "found 33", "1 to 32"]),
        (["--temperature", "0"], ["--temperature: ", "found 0"]),
        (["--temperature", "nan"], ["--temperature: ", "found nan"]),
        (["--max-symbols", "0"], ["--max-symbols: ", "1 to 255"]),
        (["--max-expansions", "0"], ["--max-expansions: ", "1 to 65536"]),
        (["--topk-threshold", "0"], ["--topk-threshold: ", "above 0, or negative for none"]),
        (["--score-threshold", "0"], ["--score-threshold: ", "above 0, or negative for none"]),
        (["--score-threshold", "-0.0"], ["--score-threshold: ", "above 0, or negative for none"]),
        (["--final-limit", "0"], ["--final-limit: ", "above 0, or negative for none"]),
        (["--blank-penalty", "21"], ["--blank-penalty: ", "-20 to 20"]),
        (["--ngram-scale", "inf"], ["--ngram-scale: ", "-1000 to 1000"]),
        (["--eos-strategy", "predict", "--eos-alpha", "0"], ["--eos-alpha: ", "above 0"]),
        (["--eos-strategy", "predict", "--eos-beta", "2"], ["--eos-beta: ", "0 to 1"]),
        (["--eos-alpha", "0.5"], ["--eos-alpha: ", "--eos-strategy none", "--eos-strategy predict"]),
        (["--eos-beta", "0", "--eos-strategy", "blank"], ["--eos-beta: ", "--eos-strategy blank"]),
        (["--ngram", "none", "--ngram-scale", "0.1"], ["--ngram-scale: ", "--ngram none"]),
        (["--alternatives", "5"], ["--alternatives: ", "found 5", "1 to the beam's width, 4", "--beam-width"]),
        (["--alternatives", "0"], ["--alternatives: ", "found 0"]),
        (["--alternatives", "3", "--beam-width", "2"], ["--alternatives: ", "1 to the beam's width, 2"]),
        (["--silence", "0"], ["--silence: ", "above 0"]),
        (["--silence", "-1"], ["--silence: "]),
        (["--silence", "nan"], ["--silence: "]),
        (["--silence", "inf"], ["--silence: "]),
        (["--silence", "1e308"], ["--silence: ", "1e+09 at most"]),
        (["--ngram", "nowhere.binary"], ["--ngram nowhere.binary: no such file"]),
        (["--ngram", ""], ["--ngram '': no such file"]),
        (["--ngram", __file__], [f"--ngram {__file__}: "]),
        (["--keywords", "nowhere.json"], ["--keywords nowhere.json: no such file", '{"keywords": {text: number}}']),
        (["--keywords", "."], ["--keywords .: is a directory"]),
    ],
)
def test_refusals(words: list[str], parts: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    text = refused(*BEAM, *words)
    for part in parts:
        assert part in " ".join(text.split()), text


def test_alternatives_of_a_greedy_decoder() -> None:
    text = refused("--alternatives", 2)
    assert text.startswith("--alternatives: ") and "--decoder beam" in text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["is no JSON"]),
        ("{", ["is no JSON", "correct the file"]),
        ("[]", ["is no file of keywords", "found a list"]),
        ('{"stop": 1}', ["is no file of keywords", "the keys 'stop'"]),
        ("{}", ["is no file of keywords", "the keys none"]),
        ('{"keywords": ["stop"]}', ["is no file of keywords", "keywords that are a list"]),
        ('{"keywords": {"stop": 1}, "boost": 2}', ["and nothing else"]),
        ('{"keywords": {"stop": 1, "stop": 2}}', ["'stop': is there twice", "leave one of them out"]),
        ('{"keywords": {"stop": "much"}}', ["'stop': boost is no finite number", "found much"]),
        ('{"keywords": {"stop": NaN}}', ["'stop': boost is no finite number", "found nan"]),
        ('{"keywords": {"stop": 1' + "0" * 400 + "}}", ["'stop': boost is no finite number", "too many digits"]),
        ('{"keywords": {"stop": true}}', ["'stop': boost is no finite number", "found True"]),
    ],
)
def test_keyword_files(tmp_path: Path, text: str, parts: list[str]) -> None:
    path = keywords(tmp_path, text)
    with pytest.raises(BadInput) as error:
        said(*BEAM, "--keywords", path)
    assert str(error.value).startswith(f"--keywords {path}: ")
    for part in parts:
        assert part in str(error.value)


def test_errors_of_an_open_model_name_the_option() -> None:
    path = str(ngram_files.binary())
    found = said(*BEAM, "--ngram", path)
    for where, expected in (
        ("eos", "--eos-strategy"),
        ("width", "--beam-width"),
        ("width 32 on emulator", "--beam-width 32 on emulator"),
        ("widths", "widths"),
        ("eos_mode", "--eos-mode"),
        (path, f"--ngram {path}"),
        (f"{path}: words", f"--ngram {path}: words"),
        ("model.gprog", "model.gprog"),
        (None, None),
    ):
        with pytest.raises(BadInput) as error, found.named():
            raise BadInput("does not fit", where, 1, 2, "another")
        assert error.value.args == ("does not fit", expected, 1, 2, "another")


def test_a_command_may_have_fewer_options(capsys: pytest.CaptureFixture[str]) -> None:
    without = ("alternatives", "prefix", "eos_mode", "keywords", "merge_lone_marks")
    assert said(*BEAM, without=without) == Decoding("beam", DecoderOptions(), None)
    with pytest.raises(SystemExit):
        said("--alternatives", 1, without=without)
    capsys.readouterr()
