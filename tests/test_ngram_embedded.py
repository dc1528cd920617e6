# SPDX-License-Identifier: Apache-2.0
"""N-grams that come inside checkpoints: written beside the program once, marked, and found there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import DEMO, saved
from command import Run
from ngram_files import OTHER, binary, demo_pieces, written
from recordings import FILES

from gharial.model import ngram_of, open_model
from gharial.model.ngram import beside
from gharial.ngram import append_mark, check_file
from gharial.program import Program

PIECES = demo_pieces()


def with_ngram(folder: Path, data: bytes | None, scale: float | None = 0.05) -> Path:
    def change(checkpoint: dict[str, Any]) -> None:
        checkpoint["ngram"] = {"binary": data, "scale_factor": scale}

    return saved(folder, change)


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    """One short recording: what the ranges are does not matter here."""
    folder = tmp_path / "calibration"
    folder.mkdir()
    (folder / FILES[0].name).write_bytes(FILES[0].read_bytes())
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gharial" / "programs"


def test_names() -> None:
    assert beside("a/m.gprog") == Path("a/m.ngram")
    assert beside("a/m.v1.bin") == Path("a/m.v1.bin.ngram")


def test_compile_writes_it_once(tmp_path: Path, calibration: Path, cli: Run) -> None:
    checkpoint = with_ngram(tmp_path, binary().read_bytes())
    words = ("compile", checkpoint, "-o", tmp_path / "m.gprog", "--calibrate", calibration)
    outcome = cli(*words)
    ngram = tmp_path / "m.ngram"
    assert outcome.code == 0 and str(ngram) in outcome.out
    file = check_file(ngram, PIECES)
    assert file.mark is not None
    assert ngram.read_bytes()[: file.header.end] == binary().read_bytes()
    program = Program.read(tmp_path / "m.gprog")
    assert ngram_of(program) == ngram
    assert program.manifest["decoding"]["ngram_scale"] == 0.05
    assert b"ngram.binary" not in (tmp_path / "m.gprog").read_bytes() and str(tmp_path) not in str(program.manifest)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calibration", "changed.hw.pt", "m.gprog", "m.ngram"]

    assert f"{ngram}, order 3, made for this model" in cli("inspect", tmp_path / "m.gprog").out
    assert f"{binary().stat().st_size:,} bytes, order 3, probing, scale 0.05" in cli("inspect", checkpoint).out

    before = written(ngram)
    assert cli(*words).code == 0
    assert written(ngram) == before, "it was written again"
    append_mark(ngram, OTHER, force=True)
    assert "made for ANOTHER model" in cli("inspect", tmp_path / "m.gprog").out
    ngram.write_bytes(b"a file of the user's")
    assert "BAD: this is no n-gram file" in cli("inspect", tmp_path / "m.gprog").out
    outcome = cli(*words)
    assert outcome.code == 0 and "is replaced" in outcome.err
    check_file(ngram, PIECES)


def test_none_or_a_bad_one(tmp_path: Path, calibration: Path, cli: Run) -> None:
    other = tmp_path / "other.binary"
    other.write_bytes(binary().read_bytes())
    append_mark(other, OTHER)
    for data, told in (
        (None, ""),
        (b"no n-gram at all", "left out: this is no n-gram file"),
        (binary().read_bytes()[:700], "left out: the file is truncated"),
        (other.read_bytes(), "left out: the file is marked for another"),
    ):
        checkpoint = with_ngram(tmp_path, data)
        outcome = cli("compile", checkpoint, "-o", tmp_path / "m.gprog", "--calibrate", calibration, "--json")
        assert outcome.code == 0 and told in outcome.err
        assert '"ngram": null' in outcome.out
        assert not (tmp_path / "m.ngram").exists() and ngram_of(Program.read(tmp_path / "m.gprog")) is None
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_one_that_was_there_before_is_told_of(tmp_path: Path, calibration: Path, cli: Run) -> None:
    """It may be an older program's; a user may have put it there for this one."""
    words = ("-o", tmp_path / "m.gprog", "--calibrate", calibration)
    assert "was there before" not in cli("compile", with_ngram(tmp_path, None), *words).err
    (tmp_path / "m.ngram").write_bytes(binary().read_bytes())
    for data in (None, b"no n-gram at all"):
        outcome = cli("compile", with_ngram(tmp_path, data), *words)
        assert outcome.code == 0 and "m.ngram was there before" in outcome.err
        assert (tmp_path / "m.ngram").read_bytes() == binary().read_bytes()


def test_compiled_on_the_fly(tmp_path: Path, calibration: Path, own_cache: Path) -> None:
    checkpoint = with_ngram(tmp_path, binary().read_bytes())
    notes: list[str] = []
    program = open_model(checkpoint, calibration=calibration, note=notes.append)
    ngram = ngram_of(program)
    assert ngram is not None and ngram.parent == own_cache
    assert len(notes) == 1 and "for the calibration recordings" in notes[0]  # one short one, and not a word of n-grams
    before = written(ngram)
    again = open_model(checkpoint, calibration=calibration, note=notes.append)
    assert ngram_of(again) == ngram and written(ngram) == before and len(notes) == 1
    # Lost or damaged it is made again, from the checkpoint.
    for damage in (lambda: ngram.unlink(), lambda: ngram.write_bytes(b"gone")):
        damage()
        assert ngram_of(open_model(checkpoint, calibration=calibration)) == ngram
        check_file(ngram, PIECES)


def test_what_cannot_be_replaced_is_not_said_to_be(tmp_path: Path, calibration: Path) -> None:
    checkpoint = with_ngram(tmp_path, binary().read_bytes())
    ngram = ngram_of(open_model(checkpoint, calibration=calibration))
    assert ngram is not None
    ngram.unlink()
    ngram.mkdir()
    notes: list[str] = []
    assert ngram_of(open_model(checkpoint, calibration=calibration, note=notes.append)) is None
    assert len(notes) == 1 and "left out" in notes[0] and "is not overwritten" in notes[0], notes


def test_without_a_cache(tmp_path: Path, calibration: Path, own_cache: Path) -> None:
    checkpoint = with_ngram(tmp_path, binary().read_bytes())
    own_cache.parent.mkdir(parents=True)
    own_cache.write_bytes(b"a file where the folder should be")
    notes: list[str] = []
    assert ngram_of(open_model(checkpoint, calibration=calibration, note=notes.append)) is None
    assert any("n-gram inside the checkpoint is left out" in note for note in notes)
    assert open_model(DEMO, calibration=calibration).path is None
