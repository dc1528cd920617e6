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
from gharial.model import compile_model, demo_model
from gharial.ngram import append_mark
from gharial.recognise import EosMode, Recogniser, StateResets, StreamOptions, load

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


def spoken(cli: Run, *words: object, noted: str = "") -> list[dict[str, Any]]:
    outcome = cli("transcribe", "--json", *words)
    assert outcome.code == 0 and (noted in outcome.err if noted else outcome.err == ""), outcome
    return [facts(line) for line in outcome.out.splitlines()]


def in_python(recogniser: Recogniser, file: Path = SHORT, options: StreamOptions | None = None) -> dict[str, Any]:
    return facts(recogniser.transcribe(file, options).as_json("x"))


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


RESETS = StateResets()
STREAMS: dict[str, tuple[list[object], StreamOptions]] = {
    "prefix": (["--prefix", "<pnc>"], StreamOptions(prefix="<pnc>")),
    "shown": (["--eos-mode", "stream"], StreamOptions(eos_mode=EosMode.STREAM)),
    "terminal": (["--eos_mode=terminal"], StreamOptions(eos_mode=EosMode.TERMINAL)),
    "silence": (["--silence", 0.3], StreamOptions(silence_s=0.3)),
    "resets": (["--state-resets"], StreamOptions(state_resets=RESETS)),
    "alternatives": (["--alternatives", 4], StreamOptions(alternatives=4)),
    "keywords": (["--keywords", "KEYWORDS"], StreamOptions(keywords={"go": 3.0, "y": -2.0})),
    "together": (
        ["--keywords", "KEYWORDS", "--alternatives", 2, "--eos-mode=stream", "--prefix", "<nopnc>", "--state-resets"],
        StreamOptions("<nopnc>", {"go": 3.0, "y": -2.0}, EosMode.STREAM, RESETS, None, 2),
    ),
}
HEARD = ("prefix", "keywords", "alternatives", "together")


@pytest.mark.parametrize("name", STREAMS)
def test_options_of_a_stream(cli: Run, model: Path, usual: dict[str, Any], tmp_path: Path, name: str) -> None:
    words, options = STREAMS[name]
    path = tmp_path / "keywords.json"
    path.write_text('{"keywords": {"go": 3, "y": -2}}')
    words = [path if word == "KEYWORDS" else word for word in words]
    with load(model, decoder="beam") as recogniser:
        wanted = in_python(recogniser, SHORT, options)
    ended = "ended by" if "ended_by" in wanted else ""
    for more in ([], ["--stream"]):
        assert spoken(cli, "--model", model, *BEAM, *words, *more, SHORT, noted=ended)[-1] == wanted
    assert wanted != usual or name not in HEARD


def test_options_of_a_greedy_stream(cli: Run, model: Path) -> None:
    words = ["--prefix", "<pnc>", "--eos-mode", "stream", "--state-resets", "--alternatives", 1]
    with load(model) as recogniser:
        options = StreamOptions("<pnc>", eos_mode=EosMode.STREAM, state_resets=RESETS)
        assert spoken(cli, "--model", model, *words, SHORT) == [in_python(recogniser, SHORT, options)]


def test_json_lines_of_a_stream(cli: Run, model: Path) -> None:
    *parts, whole = spoken(cli, "--model", model, *BEAM, "--final-limit", -1, "--stream", LONG)
    assert all(part["partial"] is True for part in parts)
    assert [token for part in parts for token in part["tokens"]] == whole["tokens"]
    assert any(part["partial_text"] for part in parts)
    assert "".join(part["text"] for part in parts) == whole["text"]
    assert parts[-1]["partial_text"] == ""
    assert "partial" not in whole
    *parts, whole = spoken(cli, "--model", model, "--stream", LONG)
    assert not any(part["partial_text"] for part in parts)


def test_text_of_a_stream_is_the_transcript(cli: Run, model: Path) -> None:
    command = ("transcribe", "--model", model, *BEAM, SHORT, LONG)
    plain = cli(*command, "--alternatives", 3)
    assert cli(*command, "--alternatives", 3, "--stream").out == plain.out
    assert cli(*command).out.splitlines() == [line for line in plain.out.splitlines() if not line.startswith("   ")]
    objects = spoken(cli, *command[1:], "--alternatives", 3)
    listed = [line.split("  ")[-1].strip() for line in plain.out.splitlines() if line.startswith("   ")]
    assert listed == [one["text"] for found in objects for one in found["alternatives"]]
    for found in objects:
        first = found["alternatives"][0]
        assert list(first) == ["text", "score", "confidence", "tokens"]
        assert (first["text"], first["tokens"]) == (found["text"], found["tokens"])


@pytest.mark.parametrize("form", ["srt", "vtt", "ctm"])
def test_other_formats(cli: Run, form: str) -> None:
    outcome = cli("transcribe", *BEAM, "--format", form, SHORT)
    assert outcome.code == 0 and outcome.out.count("\n") > 1
    cli("transcribe", *BEAM, "--format", form, "--alternatives", 2, SHORT).refused("--alternatives: ", form)


def test_an_n_gram(cli: Run, tmp_path: Path) -> None:
    """Each file by itself: a file that is not marked is remarked upon once in a process."""
    path = ngram_files.copy(tmp_path)
    outcome = cli("transcribe", *BEAM, "--ngram", path, "--json", LONG)
    assert outcome.code == 0 and f"{path} is not marked" in outcome.err
    assert "the model states no scale for an n-gram: 0.05 is taken" in outcome.err
    assert json.loads(outcome.out)["decoder"] == "beam"
    append_mark(path, ngram_files.demo_pieces())
    (found,) = spoken(cli, *BEAM, "--ngram", path, "--ngram-scale", 0.5, LONG)
    with load(decoder="beam", options=DecoderOptions(ngram_scale=0.5), ngram=path) as recogniser:
        assert found == in_python(recogniser, LONG)
    (without,) = spoken(cli, *BEAM, "--ngram", "none", LONG)
    assert without == spoken(cli, *BEAM, LONG)[0] != found


def test_the_n_gram_beside_a_program_is_taken(cli: Run, tmp_path: Path) -> None:
    program, path = tmp_path / "demo.gprog", ngram_files.copy(tmp_path, name="demo.ngram")
    append_mark(path, ngram_files.demo_pieces())
    compile_model(demo_model(), "tiny").write(program)
    command = ("--model", program, *BEAM)
    (found,) = spoken(cli, *command, "--ngram-scale", 0.5, LONG)
    assert [found] == spoken(cli, *command, "--ngram", path, "--ngram-scale", 0.5, LONG)
    (without,) = spoken(cli, *command, "--ngram", "none", LONG)
    path.unlink()
    assert found != without == spoken(cli, *command, LONG)[0]


def test_what_the_model_cannot_do_names_the_option(cli: Run, tmp_path: Path, model: Path) -> None:
    path = ngram_files.copy(tmp_path)
    append_mark(path, ngram_files.OTHER)
    cli("transcribe", *BEAM, "--ngram", path, *SCALE, SHORT).refused(f"--ngram {path}: ", "another SentencePiece model")
    append_mark(path, ngram_files.demo_pieces(), force=True)
    cli("transcribe", *BEAM, "--model", model, "--ngram", path, *SCALE, SHORT).refused(f"--ngram {path}: ", "another")
    cli("transcribe", *BEAM, "--eos-strategy", "blank", SHORT).refused("--eos-strategy: ", "no end-of-sequence token")
    cli("transcribe", *BEAM, *SCALE, SHORT).refused("--ngram-scale: there is no n-gram", "--ngram F")
    for mode in ("stream", "terminal"):
        for words in (BEAM, ("--stream",)):
            cli("transcribe", *words, "--eos-mode", mode, SHORT).refused("--eos-mode: the model has no end-of-sequence")
    keywords = tmp_path / "keywords.json"
    keywords.write_text('{"keywords": {"stop": 1, "STOP": 1}}')
    named = f"--keywords {keywords}: 'STOP': "
    for words in ((), ("--stream",)):
        cli("transcribe", *BEAM, "--keywords", keywords, *words, SHORT).refused(named, "cannot spell")
    cli("transcribe", "--keywords", keywords, SHORT).refused("--keywords: this is a setting of the beam search")


def test_a_bad_file_among_good_ones(cli: Run) -> None:
    outcome = cli("transcribe", *BEAM, SHORT, "nothing.wav", SHORT)
    (line,) = cli("transcribe", *BEAM, SHORT).out.splitlines()
    outcome.refused("nothing.wav: no such file", out=f"{SHORT}: {line}\n" * 2)
