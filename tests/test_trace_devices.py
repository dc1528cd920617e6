# SPDX-License-Identifier: Apache-2.0
"""`gharial trace` on the emulator and on the reference model: equal files; one weight changed shows in its layer."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from command import Run
from recordings import FILES, SHORT

from gharial.bench.manifest import read_set
from gharial.isa.header import HEADER
from gharial.model import compile_model, demo_model
from gharial.program import Program
from gharial.trace import read_trace, trace_recording, write_trace

LAYERS = [f"encoder.{net}_rnn.{layer}" for net in ("pre", "post") for layer in (0, 1)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "demo.gprog"
    compile_model(demo_model()).write(path)
    return path


def same_files(cli: Run, model: Path, recordings: list[Path], folder: Path) -> None:
    steps = tokens = 0
    for recording in recordings:
        files = [folder / f"{device}.npz" for device in ("emulator", "reference")]
        for file in files:
            assert cli("trace", model, recording, "-o", file, "--device", file.stem).code == 0
        assert files[0].read_bytes() == files[1].read_bytes(), recording
        assert cli("trace", "diff", *files).code == 0
        trace = read_trace(files[0])
        steps, tokens = steps + len(trace["joint_enc"]), tokens + len(trace["tokens"])
    assert steps > 20 * len(recordings) and tokens > len(recordings)  # there was speech in what was compared


def test_equal_files_for_shipped_recordings(cli: Run, model: Path, tmp_path: Path) -> None:
    same_files(cli, model, FILES[:3], tmp_path)


def test_equal_files_for_twenty_utterances(cli: Run, model: Path, tmp_path: Path, data_dir: Path) -> None:
    utterances = read_set(data_dir / "sets" / "sc_speakers")
    same_files(cli, model, [utterance.path for utterance in utterances[:: len(utterances) // 20][:20]], tmp_path)


def with_byte_changed(program: Program, section: str, at: int) -> Program:
    """The program with one int8 number moved by one towards zero (away from it if it is zero), sealed anew."""
    data = np.frombuffer(program.sections[section], np.int8).copy()
    data[at] -= np.sign(data[at]) or -1
    sections = program.sections | {section: data.tobytes()}
    program_id = 0
    for name in ("weights", "scales", "biases", "tables", "embedding"):
        program_id = zlib.crc32(sections[name], program_id)
    code = np.frombuffer(sections["code"], "<u4").copy()
    code[3] = program_id
    code[HEADER.words - 1] = zlib.crc32(code[: HEADER.words - 1].tobytes())
    return Program(program.manifest | {"program_id": program_id}, sections | {"code": code.tobytes()})


def weight_at(program: Program, layer: str, part: int, row: int, column: int) -> int:
    """Where the weight of that row and stored column lies in the weights' space (docs/isa.md, section 2)."""
    config, entry = program.config, program.layer(layer)["parts"][part]
    tile = entry["tile"] + row // config.rows * (entry["padded"] // config.cols) + column // config.cols
    return (tile * config.rows + row % config.rows) * config.cols + column % config.cols


def inputs(trace: dict[str, np.ndarray], layer: str, kind: str) -> np.ndarray:
    """What a layer's product multiplied: int8 (steps, columns)."""
    before = {
        "encoder.pre_rnn.0": "features",
        "encoder.pre_rnn.1": "encoder.pre_rnn.0.h",
        "encoder.post_rnn.1": "encoder.post_rnn.0.h",
        "joint_enc": "encoder.post_rnn.1.h",
        "joint_pred": "prediction.0.h",
        "logits": "joint",
    }
    if kind == "h":
        return trace[f"{layer}.h"]
    if layer == "encoder.post_rnn.0":
        h = trace["encoder.pre_rnn.1.h"]
        return h[: len(h) // 2 * 2].reshape(len(h) // 2, -1)
    return trace[before[layer]]


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trace of the unchanged program on the reference model."""
    path = tmp_path_factory.mktemp("trace") / "whole.npz"
    write_trace(path, trace_recording(Program.read(model), SHORT, "reference"))
    return path


@pytest.mark.parametrize(
    ("layer", "kind"),
    [
        *((layer, kind) for layer in LAYERS for kind in "xh"),
        ("joint_enc", "x"),
        ("prediction.0", "h"),
        ("joint_pred", "x"),
        ("logits", "x"),
    ],
)
def test_a_weight_changed_by_one_is_found(
    cli: Run, model: Path, whole: Path, tmp_path: Path, layer: str, kind: str
) -> None:
    program = Program.read(model)
    parts = program.layer(layer)["parts"]
    part = next(index for index, entry in enumerate(parts) if entry["input"] == kind)
    given = np.abs(inputs(read_trace(whole), layer, kind).astype(int)).sum(axis=0)
    entry = parts[part]
    column = int(given[entry["column"] : entry["column"] + entry["columns"]].argmax())
    assert given[entry["column"] + column] > 0
    changed(cli, with_byte_changed(program, "weights", weight_at(program, layer, part, 5, column)), whole, tmp_path)
    found = json.loads(cli("trace", "diff", whole, tmp_path / "changed.npz", "--json").out)
    tensor = f"{layer}.pre" if program.layer(layer)["kind"] == "lstm" else layer
    assert (found["same"], found["tensor"]) == (False, tensor)
    # Row 5 is gate f of unit 1, or output 5.
    assert found["element"] == ([1, 1] if tensor.endswith(".pre") else [5])


def test_an_embedding_changed_by_one_is_found(cli: Run, model: Path, whole: Path, tmp_path: Path) -> None:
    program, token = Program.read(model), int(read_trace(whole)["tokens"][0])
    width = next(entry["padded"] for entry in program.layer("prediction.0")["parts"] if entry["input"] == "x")
    values = np.frombuffer(program.sections["embedding"], np.int8)[token * width : (token + 1) * width]
    at = token * width + int(np.abs(values.astype(int)).argmax())
    changed(cli, with_byte_changed(program, "embedding", at), whole, tmp_path)
    found = json.loads(cli("trace", "diff", whole, tmp_path / "changed.npz", "--json").out)
    assert (found["tensor"], found["index"]) == ("prediction.0.pre", 1)  # 0 is the start, which has no token


def changed(cli: Run, program: Program, whole: Path, folder: Path) -> None:
    """Trace a changed program on the emulator into changed.npz; `trace diff` must see that it differs."""
    program.write(folder / "changed.gprog")
    assert cli("trace", folder / "changed.gprog", SHORT, "-o", folder / "changed.npz").code == 0
    assert cli("trace", "diff", whole, folder / "changed.npz").code == 1
