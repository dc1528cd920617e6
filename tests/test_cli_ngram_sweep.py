# SPDX-License-Identifier: Apache-2.0
"""`gharial ngram sweep` on the shipped recordings: it decodes as transcribe does; what it prints, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Run
from recordings import FILES, FOLDER
from scripts.word_ngram import SHIPPED as NGRAM

from gharial.bench.manifest import read_set
from gharial.bench.words import word_errors

WORDS = ("ngram", "sweep", "--set", FOLDER, "--limit", 3)


@pytest.fixture(autouse=True)
def _kenlm() -> None:
    pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")


def test_it_decodes_as_transcribe(cli: Run, tmp_path: Path) -> None:
    """Each scale's errors are those of `transcribe` with that scale and the same other settings."""
    pytest.importorskip("matplotlib")
    keywords = tmp_path / "keywords.json"
    keywords.write_text('{"keywords": {"yes": 0.2}}')
    settings = ("--beam-width", 3, "--keywords", keywords, "--state-resets")
    plot = tmp_path / "sweep.svg"
    words = (*WORDS, "--ngram", NGRAM, *settings, "--scales", "0.4,0", "--resamples", 200)
    outcome = cli(*words, "--json", "--plot", plot)
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert (found["set"], found["model"], found["device"], found["beam"]) == ("recordings", "demo-small", "emulator", 3)
    assert (found["ngram"], found["utterances"]) == (str(NGRAM), 3)
    assert [point["scale"] for point in found["points"]] == [0.0, 0.4]
    said = [utterance.transcript for utterance in read_set(FOLDER)[:3]]
    beam = ("--decoder", "beam", *settings, "--ngram", NGRAM, "--ngram-scale")
    runs = [
        ((*beam, 0), found["points"][0]),
        ((*beam, 0.4), found["points"][1]),
        (("--state-resets",), found["greedy"]),
    ]
    for options, point in runs:
        out = cli("transcribe", *FILES[:3], *options, "--json").out
        heard = [json.loads(line)["text"] for line in out.splitlines()]
        assert point["errors"] == sum(map(word_errors, said, heard))
    assert plot.read_text().startswith("<?xml") and sorted(tmp_path.iterdir()) == [keywords, plot]


def test_what_it_prints(cli: Run) -> None:
    outcome = cli(*WORDS, "--ngram", NGRAM, "--scales", "0,0.1", "--resamples", 200)
    lines = outcome.out.splitlines()
    assert outcome.code == 0 and lines[0].startswith(f"recordings, demo-small, beam 4, {NGRAM}: 3 utterances, ")
    assert [line.split()[0] for line in lines[1:4]] == ["greedy", "0", "0.1"]
    assert lines[4].startswith("recommended scale 0")
    assert lines[5].startswith("  against no n-gram: ") and lines[5].endswith("within chance")
    assert "points (95 %:" in lines[6]


def test_what_it_refuses(cli: Run, tmp_path: Path) -> None:
    cli(*WORDS).refused("--ngram", "no n-gram to sweep", "gharial ngram build")
    cli(*WORDS, "--ngram", "none").refused("--ngram", "beam search alone")
    cli(*WORDS, "--decoder", "greedy").refused("--decoder", "greedy")
    words = (*WORDS, "--ngram", NGRAM)
    for option, value in (
        ("--scales", "0,x"),
        ("--scales", "-1"),
        ("--scales", ""),
        ("--limit", 0),
        ("--resamples", 9),
    ):
        cli(*words, option, value).refused(option)
    cli(*words, "--plot", tmp_path / "a.gif").refused("--plot", ".svg, .png, .pdf")
    cli(*words, "--plot", tmp_path / "none" / "a.svg").refused("none")
    cli(*words, "--plot", FOLDER / "manifest.json").refused("manifest.json")
    cli(*words, "--eos-strategy", "ignore").refused("--eos-strategy", "no end-of-sequence token")
    cli(*words, "--prefix", "<en>").refused("prefix")
    cli("ngram", "sweep", "--set", tmp_path, "--ngram", NGRAM).refused("manifest")
    for option in ("--ngram-scale", "--alternatives"):
        assert cli(*words, option, "1").code == 2
    assert list(tmp_path.iterdir()) == []
