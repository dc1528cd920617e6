# SPDX-License-Identifier: Apache-2.0
"""Opening a model: programs as they are, checkpoints compiled and cached, everything else refused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from recordings import FOLDER, of_width

import gharial.model.opening as opening
from gharial.checkpoint import load_hardware
from gharial.errors import BadInput
from gharial.features import FeatureSpec
from gharial.isa.configs import config
from gharial.model import cache as model_cache
from gharial.model import compile_model, demo_model, front_end, is_program, open_model, vocabulary
from gharial.program import Program


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, not there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gharial" / "programs"


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_model(demo_model(), "ecp5-85f")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, program: Program) -> list[str]:
    """Names of the checkpoints that were compiled, in order; what comes of it is always the demo program."""
    found: list[str] = []

    def counted(model: str, *_: object, **__: object) -> Program:
        found.append(os.fspath(model))
        return program

    monkeypatch.setattr(opening, "compile_model", counted)
    return found


def of_other_weights(program: Program) -> Program:
    """The program as if it came of another checkpoint."""
    model = program.manifest["model"] | {"source_sha256": "0" * 64}
    return Program(program.manifest | {"model": model}, program.sections)


@pytest.fixture
def notes() -> Iterator[list[str]]:
    yield []


def entries(cache: Path) -> list[Path]:
    return sorted(cache.iterdir()) if cache.is_dir() else []


def test_the_demo_model_is_the_default_and_compiled_once(cache: Path, compiled: list, notes: list) -> None:
    first = open_model(note=notes.append)
    second = open_model(note=notes.append)
    assert compiled == [str(demo_model())]
    assert first.to_bytes() == second.to_bytes()
    assert (first.manifest["model"]["name"], first.config.name) == ("demo-small", "ecp5-85f")
    assert [entry.name.endswith(".gprog") for entry in entries(cache)] == [True]
    assert notes == []
    assert oct(cache.stat().st_mode)[-3:] == "700"


def test_what_a_program_depends_on_is_in_the_key(
    cache: Path, compiled: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_model()
    open_model(config=config("tiny"))
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    shutil.copy(FOLDER / "u084.flac", recordings)
    open_model(calibration=recordings)
    shutil.copy(FOLDER / "u288.flac", recordings)
    open_model(calibration=recordings)
    monkeypatch.setattr(opening, "_compiler_digest", lambda: "another state of the compiler")
    open_model()
    assert len(compiled) == 5
    assert len(entries(cache)) == 5
    changed = tmp_path / "changed.hw.pt"
    changed.write_bytes(demo_model().read_bytes() + b"\0")
    open_model(changed)
    assert len(compiled) == 6


def test_the_compilers_code_is_in_the_key() -> None:
    assert len(opening._compiler_digest()) == 64
    sources = [path for name in opening._COMPILER for path in (Path(opening.__file__).parents[1] / name).glob("*.py")]
    assert {"quantise.py", "unpickle.py", "spec.py", "container.py", "network.py", "file.py"} <= {
        p.name for p in sources
    }


def test_the_name_of_the_file_is_not_in_the_key(cache: Path, compiled: list, tmp_path: Path) -> None:
    copy = tmp_path / "copy.hw.pt"
    shutil.copy(demo_model(), copy)
    open_model()
    open_model(copy)
    assert len(compiled) == 1


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "text", "another"])
def test_a_damaged_entry_is_made_again(cache: Path, compiled: list, notes: list, program: Program, damage: str) -> None:
    good = open_model().to_bytes()
    (entry,) = entries(cache)
    data = entry.read_bytes()
    other = bytearray(data)
    other[len(data) // 2] ^= 1
    if damage == "another":
        of_other_weights(program).write(entry)
    else:
        entry.write_bytes(
            {"truncated": data[:-1], "flipped": bytes(other), "empty": b"", "text": b"nothing of the kind"}[damage]
        )
    assert open_model(note=notes.append).to_bytes() == good
    assert len(compiled) == 2
    assert len(notes) == 1 and "damaged" in notes[0]
    assert entry.read_bytes() == data
    open_model(note=notes.append)
    assert (len(compiled), len(notes)) == (2, 1)


@pytest.mark.parametrize("where", ["a file in the way", "no home"])
def test_a_cache_that_cannot_be_used_is_a_note(
    cache: Path, compiled: list, notes: list, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "no home":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", classmethod(lambda _: (_ for _ in ()).throw(RuntimeError("no home"))))
    else:
        cache.parent.parent.write_text("in the way")
    assert open_model(note=notes.append).config.name == "ecp5-85f"
    assert len(notes) == 1 and "not kept" in notes[0] and "\n" not in notes[0]
    open_model()
    assert len(compiled) == 2


def test_a_relative_cache_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert model_cache.cache_folder() == tmp_path / ".cache" / "gharial" / "programs"


def test_a_checkpoint_that_changes_meanwhile_is_not_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    other = of_other_weights(program)
    monkeypatch.setattr(opening, "compile_model", lambda *_, **__: other)
    open_model()
    assert entries(cache) == []


def test_old_entries_go_when_there_are_too_many(
    cache: Path, compiled: list, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir(parents=True)
    size = len(program.to_bytes())
    monkeypatch.setattr(model_cache, "LIMIT_BYTES", 3 * size)
    for age in range(5):
        entry = cache / f"{age:064x}.gprog"
        entry.write_bytes(bytes(size))
        os.utime(entry, (1000 - age, 1000 - age))
    kept = cache / "notes.txt"
    kept.write_text("not ours")
    open_model()
    left = [entry.name for entry in entries(cache)]
    assert kept.name in left
    assert {f"{age:064x}.gprog" for age in range(2)} <= set(left)
    assert len(left) == 4  # two of the old ones, the new one, and what is not ours


def test_nothing_half_written_is_left(
    cache: Path, compiled: list, monkeypatch: pytest.MonkeyPatch, notes: list
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gharial.files.os.fsync", full)
    open_model(note=notes.append)
    assert entries(cache) == []
    assert "No space left" in notes[0]


def test_what_killed_processes_left_goes(cache: Path, compiled: list, notes: list) -> None:
    cache.mkdir(parents=True)
    left = cache / f".{'0123456789abcdef' * 3}.{'a' * 12}.part"
    other = cache / ".somebody.else.part"
    for path in (left, other):
        path.write_bytes(b"half of it")
    open_model(note=notes.append)
    assert notes == []
    assert not left.exists() and other.exists()


def test_a_program_is_used_as_it_is(cache: Path, compiled: list, program: Program, tmp_path: Path) -> None:
    path = tmp_path / "named like nothing"
    program.write(path)
    assert is_program(path)
    assert open_model(path).to_bytes() == program.to_bytes()
    assert open_model(path, config("ecp5-85f")).to_bytes() == program.to_bytes()
    assert compiled == [] and entries(cache) == []
    with pytest.raises(BadInput, match="for another configuration than the device") as caught:
        open_model(path, config("u50"))
    assert "found ecp5-85f, expected u50" in str(caught.value)
    assert "--config u50; or give one that it is for, as --device emulator:ecp5-85f" in str(caught.value)
    with pytest.raises(BadInput, match="calibrated already"):
        open_model(path, calibration=FOLDER)

    with pytest.raises(BadInput, match="compiled already"):
        compile_model(path)


def test_too_big_is_found_before_the_work(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("calibrated a model that does not fit")

    monkeypatch.setattr("gharial.model.compiling.calibrate", never)
    path = of_width(tmp_path, 128)
    with pytest.raises(BadInput, match="does not fit configuration ecp5-85f") as caught:
        open_model(path, config("ecp5-85f"))
    assert "262144 there" in str(caught.value)


def test_progress_counts_the_recordings() -> None:
    seen: list[tuple[int, int]] = []
    compile_model(demo_model(), "tiny", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (12, 12)
    assert seen == sorted(seen)


def test_the_front_end_is_the_checkpoints(program: Program) -> None:
    assert front_end(program) == FeatureSpec.from_checkpoint(load_hardware(demo_model()))
    assert len(vocabulary(program)) == 255


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("melmeans", np.zeros(79).tobytes(), "melmeans is out of range"),
        ("melvars", np.zeros(80).tobytes(), "melvars is out of range"),
        ("melvars", b"123", "not a whole number"),
        ("sentencepiece", b"nothing", "SentencePiece"),
        ("sentencepiece", None, "section is missing"),
        ("melmeans", None, "section is missing"),
    ],
)
def test_programs_without_what_the_host_needs_are_refused(
    program: Program, name: str, data: bytes | None, message: str
) -> None:
    sections = {key: value for key, value in program.sections.items() if key != name}
    spoiled = Program(program.manifest, sections if data is None else sections | {name: data}, "spoiled.gprog")
    with pytest.raises(BadInput, match=message) as caught:
        front_end(spoiled)
        vocabulary(spoiled)
    assert "spoiled.gprog" in str(caught.value)
