# SPDX-License-Identifier: Apache-2.0
"""Settings of the real command, what is said of wrong ones, and the files that ship with it."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from certificates import MISSING, certificate, dated
from command import Run

from gharial.cli.serve import _decoding_rules
from gharial.serve.configuration import settings_of
from gharial.serve.keys import Keys
from gharial.serve.settings import ModelSettings, Settings

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = files("gharial").joinpath("data", "serve")


def config(folder: Path, text: str) -> str:
    path = folder / "serve.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("max_conections = 3\n", [": max_conections: no such setting", "did you mean max_connections?"]),
        ('port = "3030"\n', [": port: is of the wrong type", "a whole number from 0 to 65,535"]),
        ("port = 65536\n", [": port: is out of range"]),
        ("beam_width = 77\n", [": beam_width: setting is out of its range"]),
        ('decoder = "bean"\n', [": decoder: is none of the choices", "did you mean beam?"]),
        ('ngram = "none.binary"\n', [": ngram none.binary: no such file"]),
        ('tls_key = "a.key"\n', [": tls_key: there is no certificate for it"]),
        ('[[models]]\nname = "a"\n[[models]]\nbeam_width = 0\n', [": models[1].beam_width: setting is out"]),
        ('[[models]]\n[[models]]\nname = "general"\n', [": models: the same model twice", "general, version 1"]),
        ('model = "a.hw.pt"\n[[models]]\n', [": model: there are tables [[models]] as well"]),
        ('model = "none.hw.pt"\n', ["none.hw.pt: no such file"]),
        ('api_keys = "none"\n', ["none: no such file"]),
        ('log_file = "none/log"\n', ["none/log: the log cannot be opened"]),
    ],
)
def test_a_wrong_file(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, parts: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    cli("serve", "--check", "--config", config(tmp_path, text)).refused(*parts)


def test_environment_and_flags(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GHARIAL_SERVE_MAX_CONECTIONS", "3")
    cli("serve", "--check").refused("GHARIAL_SERVE_MAX_CONECTIONS: no such setting", "GHARIAL_SERVE_MAX_CONNECTIONS?")
    monkeypatch.delenv("GHARIAL_SERVE_MAX_CONECTIONS")
    monkeypatch.setenv("GHARIAL_SERVE_CONFIG", config(tmp_path, "port = 70000\n"))
    cli("serve", "--check").refused("serve.toml: port: is out of range")
    cli("serve", "--check", "--config", config(tmp_path, "port = 3\n"), "--port", "-1").refused("--port: is out of")
    assert cli("serve", "--check", "--no-compat", "--device", "emulator", "--device", "emulator:u50").code == 0


@pytest.mark.skipif(MISSING, reason="needs openssl to make certificates")
def test_a_bad_certificate(cli: Run, tmp_path: Path) -> None:
    old = dated(tmp_path, 2020, 2021)
    cli("serve", "--tls-certificate", old[0], "--tls-key", old[1]).refused(f"{old[0]}: has ended", "renew it")
    good = certificate(tmp_path)
    cli("serve", "--tls-certificate", good[0], "--tls-key", old[1]).refused(f"{old[1]}: is the key of another")
    cli("serve", "--tls-certificate", good[0]).refused(f"{good[0]}: holds no private key")


def test_a_new_key(cli: Run, tmp_path: Path) -> None:
    outcome = cli("serve", "--new-key", "desk")
    assert outcome.code == 0
    path = tmp_path / "keys"
    path.write_text(outcome.out)
    key = outcome.err.strip().rpartition(" ")[2]
    assert Keys(str(path)).name(None, key) == "desk"
    cli("serve", "--new-key", "two words").refused("no name of a key")


def test_files_that_ship(cli: Run) -> None:
    for name, file in (("unit", "gharial.service"), ("container", "Containerfile"), ("config", "serve.toml")):
        outcome = cli("serve", "--show", name)
        assert outcome.code == 0 and outcome.out == SHIPPED.joinpath(file).read_text()


def test_the_shipped_settings_are_good(cli: Run, tmp_path: Path) -> None:
    text = SHIPPED.joinpath("serve.toml").read_text()
    assert cli("serve", "--check", "--config", config(tmp_path, text)).code == 0
    # What stands there as a comment would be good, too.
    every = re.sub(r"^# (?=\w+ = |\[\[)", "", text, flags=re.MULTILINE)
    known = {rule.name for rule in (*settings_of(Settings), *_decoding_rules())} | {"model", "device", "models"}
    found = tomllib.loads(every)
    assert set(found) <= known and set(found["models"][0]) <= set(ModelSettings.__dataclass_fields__) | known


def test_the_unit_is_one(tmp_path: Path, cli: Run) -> None:
    text = SHIPPED.joinpath("gharial.service").read_text()
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    words = shlex.split(unit["Service"]["ExecStart"])
    assert words[1:3] == ["serve", "--config"] and unit["Service"]["Type"] == "notify"
    assert float(unit["Service"]["TimeoutStopSec"]) > Settings().drain_s + 15
    if shutil.which("systemd-analyze"):
        path = tmp_path / "gharial.service"
        path.write_text(text.replace(words[0], "/bin/true"))
        done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
        assert "gharial.service" not in done.stderr, done.stderr


def test_the_container_file_names_what_there_is(cli: Run) -> None:
    text = SHIPPED.joinpath("Containerfile").read_text()
    assert "docker.io/library/python:3.11-slim" in text and (ROOT / "constraints.txt").is_file()
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    (command,) = re.findall(r"^CMD (.*)$", text, re.MULTILINE)
    assert eval(entry) == ["gharial"]
    (variables,) = re.findall(r"^ENV (.*)$", text, re.MULTILINE)
    known = {rule.variable for rule in settings_of(Settings)}
    assert {word.partition("=")[0] for word in variables.split() if word.startswith("GHARIAL_SERVE_")} <= known
    assert cli(*eval(command), "--check").code == 0


def test_the_page_names_every_setting() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    assert not [rule.name for rule in settings_of(Settings) if f"`{rule.name}`" not in page]
