# SPDX-License-Identifier: Apache-2.0
"""Settings of the server from file, environment and flags: what wins, and what is said of what is wrong."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gharial.errors import BadInput
from gharial.serve.configuration import Configured, Setting, add_flags, configured, parsed, setting, settings_of


@dataclass(frozen=True)
class Example:
    host: str = setting("localhost", "address", group="network")
    port: int = setting(3030, "port", least=0, most=65535, metavar="N")
    wait: float = setting(0.002, "seconds to wait", least=0.0)
    level: str = setting("info", "how much", choices=("debug", "info"))
    quiet: bool = setting(False, "say nothing")
    lists: tuple[str, ...] = setting((), "several")
    file: str | None = setting(None, "a file")
    other: int = 3


MODELS = Setting("models", kind=dict, name="models", table=settings_of(Example))
RULES = (*settings_of(Example), MODELS)


def write(folder: Path, text: str) -> str:
    path = folder / "serve.toml"
    path.write_text(text)
    return str(path)


def flags(*words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_flags(parser, RULES)
    return vars(parser.parse_args(words))


def test_the_fields_are_the_settings() -> None:
    assert [rule.name for rule in RULES] == ["host", "port", "wait", "level", "quiet", "lists", "file", "models"]
    assert [rule.kind for rule in RULES] == [str, int, float, str, bool, tuple, str, dict]
    assert RULES[1].flag == "--port" and RULES[1].variable == "GHARIAL_SERVE_PORT"


def test_what_comes_later_wins(tmp_path: Path) -> None:
    file = write(tmp_path, 'port = 1\nwait = 1\nhost = "a"\nquiet = true\nlists = ["x", "y"]\n')
    environ = {"GHARIAL_SERVE_PORT": "2", "GHARIAL_SERVE_WAIT": "2.5", "GHARIAL_SERVE_LISTS": "p, q", "OTHER": "x"}
    found = configured(RULES, flags("--port", "3", "--no-quiet"), environ, file)
    assert found.values == {"host": "a", "port": 3, "wait": 2.5, "quiet": False, "lists": ("p", "q")}
    assert found.sources["host"] == f"{file}: host"
    assert found.sources["wait"] == "GHARIAL_SERVE_WAIT"
    assert found.sources["port"] == "--port" and found.sources["quiet"] == "--quiet"
    assert configured(RULES, flags(), {}).values == {}
    assert configured(RULES, flags("--lists", "a,b", "--lists", "c"), {}).values["lists"] == ("a,b", "c")


def test_the_environment_names_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "port = 7\n")
    assert configured(RULES, {}, {"GHARIAL_SERVE_CONFIG": file}).values == {"port": 7}
    other = tmp_path / "other.toml"
    other.write_text("port = 8\n")
    assert configured(RULES, {}, {"GHARIAL_SERVE_CONFIG": file}, str(other)).values == {"port": 8}


def test_numbers_become_what_the_setting_is(tmp_path: Path) -> None:
    found = configured(RULES, {}, {}, write(tmp_path, "wait = 3\n")).values
    assert found == {"wait": 3.0} and isinstance(found["wait"], float)


def test_tables(tmp_path: Path) -> None:
    file = write(tmp_path, '[[models]]\nhost = "a"\n[[models]]\nport = 5\n')
    assert configured(RULES, {}, {}, file).values["models"] == [{"host": "a"}, {"port": 5}]
    for text, where in (
        ("[[models]]\n[[models]]\nprot = 5\n", "models[1].prot"),
        ("[[models]]\nport = -5\n", "models[0].port"),
        ("models = [3]\n", "models[0]"),
        ("models = 3\n", "models"),
    ):
        with pytest.raises(BadInput) as raised:
            configured(RULES, {}, {}, write(tmp_path, text))
        assert raised.value.where == f"{file}: {where}"
    with pytest.raises(BadInput, match="no such setting"):
        configured(RULES, {}, {"GHARIAL_SERVE_MODELS": "x"})


@pytest.mark.parametrize(
    ("text", "where", "parts"),
    [
        ("prot = 3\n", "prot", ["no such setting", "did you mean port?"]),
        ("zzz = 3\n", "zzz", ["no such setting", "there are file, host"]),
        ("port = 3.5\n", "port", ["wrong type", "3.5 (a number)", "a whole number from 0 to 65,535"]),
        ('port = "3"\n', "port", ["wrong type", "'3' (a text)"]),
        ("port = true\n", "port", ["wrong type", "True (true or false)"]),
        ("port = 65536\n", "port", ["out of range", "65536"]),
        ("wait = nan\n", "wait", ["out of range", "nan"]),
        ("wait = -1\n", "wait", ["out of range", "a number, 0 or more"]),
        ('level = "inof"\n', "level", ["none of the choices", "did you mean info?"]),
        ("quiet = 1\n", "quiet", ["wrong type", "true or false"]),
        ("host = []\n", "host", ["wrong type", "(a list)"]),
        ('host = "a\\u0000"\n', "host", ["zero byte"]),
        ("lists = [1]\n", "lists", ["wrong type", "a list of texts"]),
        ("[host]\nx = 1\n", "host", ["wrong type", "(a table)"]),
        ("port = 2020-01-01\n", "port", ["wrong type"]),
    ],
)
def test_a_wrong_file_says_where_and_what(tmp_path: Path, text: str, where: str, parts: list[str]) -> None:
    file = write(tmp_path, text)
    with pytest.raises(BadInput) as raised:
        configured(RULES, {}, {}, file)
    assert raised.value.where == f"{file}: {where}"
    for part in parts:
        assert part in str(raised.value)


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"port 3\n", "is not TOML"), (b"port = 3\nport = 4\n", "is not TOML"), (b"\xff = 3\n", "is no text")],
)
def test_what_is_no_toml(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "serve.toml"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=part):
        configured(RULES, {}, {}, str(path))
    with pytest.raises(BadInput, match="no such file"):
        configured(RULES, {}, {}, str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("variable", "text", "parts"),
    [
        ("GHARIAL_SERVE_PROT", "3", ["no such setting in the environment", "did you mean GHARIAL_SERVE_PORT?"]),
        ("GHARIAL_SERVE_PORT", "many", ["is no number", "many"]),
        ("GHARIAL_SERVE_PORT", "3.0", ["is no number"]),
        ("GHARIAL_SERVE_WAIT", "inf", ["out of range"]),
        ("GHARIAL_SERVE_QUIET", "perhaps", ["wrong type", "true or false"]),
    ],
)
def test_a_wrong_environment_says_so(variable: str, text: str, parts: list[str]) -> None:
    with pytest.raises(BadInput) as raised:
        configured(RULES, {}, {variable: text})
    assert raised.value.where == variable
    for part in parts:
        assert part in str(raised.value)


def test_a_wrong_flag_names_itself() -> None:
    with pytest.raises(BadInput) as raised:
        configured(RULES, flags("--port", "-1"), {})
    assert raised.value.where == "--port"


@pytest.mark.parametrize("text", ["true", "Yes", "ON", "1"])
def test_words_for_yes(text: str) -> None:
    (rule,) = (rule for rule in RULES if rule.kind is bool)
    assert parsed(rule, text, "x") is True


def test_errors_found_later_name_where_the_value_came_from() -> None:
    found = Configured({"file": "a.pem"}, {"file": "serve.toml: file", "host": "--host"})
    for where, expected in (
        ("file", "serve.toml: file"),
        ("file a.pem", "serve.toml: file a.pem"),
        ("--file: x", "serve.toml: file: x"),
        ("filed", "filed"),
        (None, None),
    ):
        with pytest.raises(BadInput) as raised, found.named({"--file": "file"}):
            raise BadInput("is wrong", where)
        assert raised.value.where == expected


def test_help_shows_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        flags("--help")
    out = capsys.readouterr().out
    assert "port (3030)" in out and "how much (info)" in out and "say nothing (off)" in out
    assert "a file\n" in out and "--no-quiet" not in out.split("options:")[1] and "--models" not in out
