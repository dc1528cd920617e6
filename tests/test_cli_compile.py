# SPDX-License-Identifier: Apache-2.0
"""`gharial compile` and `gharial inspect`: what they make, and what they say of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command import Run
from recordings import SHORT, samples

from gharial.model import demo_model
from gharial.program import Program


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    folder = tmp_path / "calibration"
    folder.mkdir()
    shutil.copy(SHORT, folder)
    return folder


def test_compile_writes_a_program_and_says_what_it_is(cli: Run, tmp_path: Path, calibration: Path) -> None:
    path = tmp_path / "m.gprog"
    outcome = cli("compile", demo_model(), "-o", path, "--config", "tiny", "--calibrate", calibration)
    program = Program.read(path)
    assert outcome.code == 0
    # One word is little to calibrate with, and nothing else is remarked.
    assert outcome.err.startswith("gharial: note: the model writes ") and outcome.err.count("\n") == 1
    assert program.config.name == "tiny"
    assert outcome.out.startswith(f"{path}: {path.stat().st_size:,} bytes\n")
    for space in ("code", "weights", "scales", "biases", "tables", "embedding"):
        (line,) = (line for line in outcome.out.splitlines() if line.split()[:1] == [space])
        assert line.split()[1] == f"{len(program.section(space)):,}"
        assert line.endswith(" %")
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_the_smallest_configuration_is_the_default(cli: Run, tmp_path: Path, calibration: Path) -> None:
    path = tmp_path / "m.gprog"
    found = json.loads(cli("compile", demo_model(), "-o", path, "--calibrate", calibration, "--json").out)
    assert found["config"]["name"] == "ecp5-85f"
    weights = found["sections"]["weights"]
    assert (weights["capacity"], weights["percent"]) == (262144, round(100 * weights["bytes"] / 262144, 1))


def test_compiling_twice_gives_the_same_bytes(cli: Run, tmp_path: Path, calibration: Path) -> None:
    for name in ("a", "b"):
        assert cli("compile", demo_model(), "-o", tmp_path / name, "--calibrate", calibration).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_calibration_makes_a_difference(cli: Run, tmp_path: Path, calibration: Path) -> None:
    cli("compile", demo_model(), "-o", tmp_path / "shipped")
    quiet = samples(SHORT)[:1600] // 8
    soundfile.write(calibration / SHORT.name, quiet, 16000, subtype="PCM_16", format="FLAC")
    cli("compile", demo_model(), "-o", tmp_path / "own", "--calibrate", calibration)
    assert (tmp_path / "own").read_bytes() != (tmp_path / "shipped").read_bytes()


def test_an_existing_program_is_replaced(cli: Run, tmp_path: Path, calibration: Path) -> None:
    path = tmp_path / "m.gprog"
    path.write_text("old")
    assert cli("compile", demo_model(), "-o", path, "--calibrate", calibration).code == 0
    assert Program.read(path).config.name == "ecp5-85f"


def test_inspect_tells_what_files_are(cli: Run, tmp_path: Path, calibration: Path) -> None:
    program, text, stereo = tmp_path / "m.gprog", tmp_path / "notes.txt", tmp_path / "stereo.wav"
    cli("compile", demo_model(), "-o", program, "--calibrate", calibration)
    text.write_text("Some notes.\n")
    soundfile.write(stereo, np.zeros((800, 2), np.int16), 8000)
    files = [demo_model(), program, stereo, text, tmp_path / "missing", tmp_path]
    outcome = cli("inspect", "--json", *files)
    found = [json.loads(line) for line in outcome.out.splitlines()]
    assert (outcome.code, outcome.err) == (2, "")
    assert [facts["file"] for facts in found] == [str(path) for path in files]
    assert [facts["kind"] for facts in found] == [
        *("hardware checkpoint", "program", "recording", "unknown", "unknown", "unknown")
    ]
    assert [facts["good"] for facts in found] == [True, True, True, False, False, False]
    assert (found[2]["sample_rate"], found[2]["channels"], found[2]["duration_s"]) == (8000, 2, 0.1)
    assert [facts["problem"] is None for facts in found] == [facts["good"] for facts in found]
    assert "no such file" in found[4]["problem"]["what"]
    as_text = cli("inspect", *files).out
    for path, state in zip(files, ["good", "good", "good", "BAD", "BAD", "BAD"], strict=True):
        (line,) = (line for line in as_text.splitlines() if line.startswith(f"{path}: "))
        assert line.endswith(state)
    assert cli("inspect", demo_model(), program).code == 0


def test_inspect_lists_instructions(cli: Run, tmp_path: Path, calibration: Path) -> None:
    path = tmp_path / "m.gprog"
    cli("compile", demo_model(), "-o", path, "--calibrate", calibration)
    program = Program.read(path)
    lines = cli("inspect", "--instructions", path).out.splitlines()
    count = sum(program.header[f"{section}_count"] for section in ("predict", "encode", "joint"))
    assert sum("MATVEC" in line or "LOOKUP" in line or "JOINT" in line for line in lines) == count
