# SPDX-License-Identifier: Apache-2.0
"""`gharial transcribe --decoder beam`: every option does what it does in Python, errors name the option."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import ngram_files
import prefix_models
import pytest
from command import Run
from recordings import LONG, SHORT

from gharial.decoding import DecoderOptions, EosStrategy
from gharial.model import compile_model
from gharial.ngram import append_mark
from gharial.recognise import Recogniser, load

BEAM = ("--decoder", "beam")
SCALE = ("--ngram-scale", "0.1")
ANY = {"valid_prefix": prefix_models.ANY}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with random weights, so that hypotheses are close, user-defined symbols and an <EOS>."""
    folder = tmp_path_factory.mktemp("model")
    shutil.copy(SHORT, folder / "talk.flac")
    program = compile_model(prefix_models.checkpoint(folder, 1, ANY, blank=-1.0), "tiny", folder)
    program.write(folder / "model.gprog")
    return folder / "model.gprog"


def facts(line: str | dict[str, Any]) -> dict[str, Any]:
    """What of a JSON line does not depend on time and name."""
    found = json.loads(line) if isinstance(line, str) else line
    return {key: value for key, value in found.items() if key not in ("file", "compute_s")}


def spoken(cli: Run, *words: object) -> list[dict[str, Any]]:
    outcome = cli("transcribe", "--json", *words)
    assert (outcome.code, outcome.err) == (0, ""), outcome
    return [facts(line) for line in outcome.out.splitlines()]


def in_python(recogniser: Recogniser, file: Path = SHORT) -> dict[str, Any]:
    return facts(recogniser.transcribe(file).as_json("x"))


def test_the_search_ran(cli: Run) -> None:
    (found,) = spoken(cli, *BEAM, SHORT)
    assert found["decoder"] == "beam"
    with load(decoder="beam") as recogniser:
        assert found == in_python(recogniser)
    (greedy,) = spoken(cli, SHORT)
    assert greedy["decoder"] == "greedy"


SETTINGS: dict[str, tuple[list[object], DecoderOptions]] = {
    "width": (["--beam-width", 1], DecoderOptions(width=1)),
    "temperature": (["--temperature", 1], DecoderOptions(temperature=1.0)),
    "symbols": (["--max-symbols", 1], DecoderOptions(max_symbols=1)),
    "expansions": (["--max-expansions", 1], DecoderOptions(max_expansions=1)),
    "topk": (["--topk-threshold", 0.01], DecoderOptions(topk_threshold=0.01)),
    "score": (["--score_threshold", 0.001], DecoderOptions(score_threshold=0.001)),
    "final": (["--final-limit", 0.01], DecoderOptions(final_limit_s=0.01)),
    "penalty": (["--blank-penalty", 5], DecoderOptions(blank_penalty=5.0)),
    "ignore": (["--eos-strategy", "ignore"], DecoderOptions(eos=EosStrategy.IGNORE)),
    "predict": (
        ["--eos-strategy=predict", "--eos-alpha=0.1", "--eos-beta=0.01"],
        DecoderOptions(eos=EosStrategy.PREDICT, eos_alpha=0.1, eos_beta=0.01),
    ),
    "marks": (["--merge-lone-marks"], DecoderOptions(merge_lone_marks=True)),
}


CHANGES = ("width", "temperature", "topk", "penalty")
"""Those that are heard in the first recording with this model."""


@pytest.fixture(scope="module")
def usual(model: Path) -> dict[str, Any]:
    """What the model says with the usual settings."""
    with load(model, decoder="beam") as recogniser:
        return in_python(recogniser)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(cli: Run, model: Path, usual: dict[str, Any], name: str) -> None:
    words, options = SETTINGS[name]
    (found,) = spoken(cli, "--model", model, *BEAM, *words, SHORT)
    with load(model, decoder="beam", options=options) as recogniser:
        assert found == in_python(recogniser)
    assert found != usual or name not in CHANGES


def test_an_n_gram(cli: Run, tmp_path: Path) -> None:
    """Each file by itself: a file that is not marked is remarked upon once in a process."""
    path = ngram_files.copy(tmp_path)
    outcome = cli("transcribe", *BEAM, "--ngram", path, "--json", LONG)
    assert outcome.code == 0 and f"{path} is not marked" in outcome.err
    assert "the model states no scale for an n-gram: 0.05 is taken" in outcome.err
    append_mark(path, ngram_files.demo_pieces())
    (found,) = spoken(cli, *BEAM, "--ngram", path, "--ngram-scale", 0.5, LONG)
    with load(decoder="beam", options=DecoderOptions(ngram_scale=0.5), ngram=path) as recogniser:
        assert found == in_python(recogniser, LONG)
    (without,) = spoken(cli, *BEAM, "--ngram", "none", LONG)
    assert without == spoken(cli, *BEAM, LONG)[0] != found


def test_what_the_model_cannot_do_names_the_option(cli: Run, tmp_path: Path, model: Path) -> None:
    path = ngram_files.copy(tmp_path)
    append_mark(path, ngram_files.OTHER)
    cli("transcribe", *BEAM, "--ngram", path, *SCALE, SHORT).refused(f"--ngram {path}: ", "another SentencePiece model")
    append_mark(path, ngram_files.demo_pieces(), force=True)
    cli("transcribe", *BEAM, "--model", model, "--ngram", path, *SCALE, SHORT).refused(f"--ngram {path}: ", "another")
    cli("transcribe", *BEAM, "--eos-strategy", "blank", SHORT).refused("--eos-strategy: ", "no end-of-sequence token")
    cli("transcribe", *BEAM, *SCALE, SHORT).refused("--ngram-scale: there is no n-gram", "--ngram F")


def test_a_bad_file_among_good_ones(cli: Run) -> None:
    outcome = cli("transcribe", *BEAM, SHORT, "nothing.wav", SHORT)
    (line,) = cli("transcribe", *BEAM, SHORT).out.splitlines()
    outcome.refused("nothing.wav: no such file", out=f"{SHORT}: {line}\n" * 2)
