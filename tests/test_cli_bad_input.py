# SPDX-License-Identifier: Apache-2.0
"""Everything that people hand over by mistake: one to three lines, exit code 2, nothing half-written."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from checkpoint_files import STOP, archive, demo, group, named, saved, text
from command import Run, process
from recordings import SHORT, of_width

from gharial.model import compile_model, demo_model
from gharial.program import Program

LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 1337502\n".encode()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "tiny.gprog"
    compile_model(demo_model(), "tiny").write(path)
    return path


def audio(folder: Path, name: str) -> Path:
    path = folder / name
    good = SHORT.read_bytes()
    if name == "no-samples.wav":
        soundfile.write(path, np.zeros(0, np.int16), 16000)
    elif name == "nan.wav":
        soundfile.write(path, np.full(9000, np.nan, np.float32), 16000, subtype="FLOAT")
    elif name != "missing.wav":
        path.write_bytes(
            {
                "empty.wav": b"",
                "text.wav": b"This is no recording at all.\n" * 10,
                "pointer.flac": LFS,
                "header.flac": good[:40],
                "noise.mp3": bytes(range(256)) * 8,
            }[name]
        )
    return path


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("missing.wav", "no such file"),
        ("empty.wav", "the file is empty"),
        ("no-samples.wav", "no samples"),
        ("text.wav", "text ('This is no"),
        ("pointer.flac", "Git LFS pointer"),
        ("header.flac", "header.flac"),
        ("noise.mp3", "noise.mp3"),
        ("nan.wav", "not a number"),
    ],
)
def test_bad_audio(cli: Run, tmp_path: Path, name: str, part: str) -> None:
    path = audio(tmp_path, name)
    cli("transcribe", path).refused(str(path), part)
    cli("transcribe", "--stream", path).refused(str(path), part, out=None)
    cli("trace", demo_model(), path, "-o", tmp_path / "t.npz").refused(str(path), part)
    assert not (tmp_path / "t.npz").exists()
    # Among good ones it is reported in its turn, and they are transcribed.
    outcome = cli("transcribe", path, SHORT)
    outcome.refused(part, out=f"{SHORT}: on no\n")


def test_a_folder_and_a_pipe_are_no_audio(cli: Run, tmp_path: Path) -> None:
    cli("transcribe", tmp_path).refused("is a directory")
    os.mkfifo(tmp_path / "pipe")
    cli("transcribe", tmp_path / "pipe").refused("not a plain file")


def test_raw_audio_that_is_none() -> None:
    process("transcribe", "-").refused("no audio came in")
    process("transcribe", "-", stdin=b"x").refused("one byte")
    process("transcribe", "-", stdin=b"RIFF" + bytes(100)).refused("header of a WAV file")
    process("transcribe", "--stream", "-", stdin=SHORT.read_bytes()).refused("header of a FLAC file", out=None)


# Models


def exploit(folder: Path) -> Path:
    """A checkpoint whose pickle would make a file."""
    path = folder / "exploit.hw.pt"
    victim = folder / "made-by-the-pickle"
    path.write_bytes(archive(b"\x80\x02" + named("os", "system") + group(text(f"touch {victim}")) + b"R" + STOP))
    return path


def edited(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], Path]:
    return lambda folder: saved(folder, change)


def without_tensor(top: dict[str, Any]) -> None:
    del top["state_dict"]["joint_enc.bias"]


def with_tensor(top: dict[str, Any]) -> None:
    top["state_dict"]["encoder.extra.weight"] = torch.zeros(3)


def misshapen(top: dict[str, Any]) -> None:
    top["state_dict"]["joint_pred.weight"] = torch.zeros(64, 63)


def infinite(top: dict[str, Any]) -> None:
    top["state_dict"]["joint_pred.bias"][3] = float("inf")


def without_vocabulary(top: dict[str, Any]) -> None:
    top["sentpiece_model"] = top["sentpiece_model"][:5000]


def written(data: Callable[[], bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "model.hw.pt"
        path.write_bytes(data())
        return path

    return make


def training(folder: Path) -> Path:
    path = folder / "training.pt"
    top = demo()
    torch.save({"ema_state_dict": top["state_dict"], "state_dict": top["state_dict"], "optimizer": {}}, path)
    return path


def bare(folder: Path) -> Path:
    path = folder / "bare.pt"
    torch.save(demo()["state_dict"], path)
    return path


CHECKPOINTS = {
    "missing": (lambda folder: folder / "missing.hw.pt", "no such file"),
    "empty": (written(lambda: b""), "empty"),
    "pointer": (written(lambda: LFS), "git lfs pull"),
    "truncated": (written(lambda: demo_model().read_bytes()[:200000]), "model.hw.pt"),
    "text": (written(lambda: b"not a model\n"), "text file"),
    "a recording": (written(SHORT.read_bytes), "no torch checkpoint"),
    "exploit": (exploit, "os.system"),
    "missing tensor": (edited(without_tensor), "joint_enc.bias"),
    "extra tensor": (edited(with_tensor), "encoder.extra.weight"),
    "misshapen tensor": (edited(misshapen), "joint_pred.weight"),
    "infinite weight": (edited(infinite), "joint_pred.bias"),
    "half a vocabulary": (edited(without_vocabulary), "sentpiece_model"),
    "training checkpoint": (training, "training checkpoint"),
    "bare state dict": (bare, "bare state dict"),
}


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_bad_checkpoints(cli: Run, tmp_path: Path, kind: str) -> None:
    make, part = CHECKPOINTS[kind]
    path = make(tmp_path)
    output = tmp_path / "out" / "m.gprog"
    output.parent.mkdir()
    for outcome in (
        cli("compile", path, "-o", output, "--config", "tiny"),
        cli("transcribe", "--model", path, SHORT),
        cli("trace", path, SHORT, "-o", output),
        cli("bench", "wer", "--model", path, "--set", SHORT.parent),
    ):
        outcome.refused(part)
    assert list(output.parent.iterdir()) == []
    assert not (tmp_path / "made-by-the-pickle").exists()
    if kind in ("a recording", "training checkpoint"):
        return  # that is what inspect calls it, and nothing is wrong with it
    inspected = cli("inspect", path)
    assert (inspected.code, inspected.err) == (2, "")
    assert "BAD" in inspected.out and part in inspected.out


def resealed(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A program file whose manifest was changed, its digest made anew."""
    length = struct.unpack_from("<I", data, 12)[0]
    manifest = json.loads(data[48 : 48 + length])
    change(manifest)
    path_free = Program(manifest, _sections(data, manifest))
    return path_free.to_bytes()


def _sections(data: bytes, manifest: dict[str, Any]) -> dict[str, bytes]:
    return {
        name: data[entry["offset"] : entry["offset"] + entry["bytes"]] for name, entry in manifest["sections"].items()
    }


def newer(manifest: dict[str, Any]) -> None:
    manifest["interface_version"] = "2.0"


def minor(manifest: dict[str, Any]) -> None:
    manifest["interface_version"] = "1.9"


def elsewhere(manifest: dict[str, Any]) -> None:
    manifest["config"]["name"] = "stratix"


def changed_config(manifest: dict[str, Any]) -> None:
    manifest["config"]["id"] ^= 1


PROGRAMS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "empty"),
    "truncated": (lambda data: data[:-1000], "truncated"),
    "only a head": (lambda data: data[:30], "truncated"),
    "flipped bit": (lambda data: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:], "digest"),
    "pointer": (lambda data: LFS, "git lfs pull"),
    "other version": (lambda data: resealed(data, newer), "interface version"),
    "newer minor version": (lambda data: resealed(data, minor), "interface version"),
    "other configuration": (lambda data: resealed(data, elsewhere), "unknown configuration"),
    "configuration of another version": (lambda data: resealed(data, changed_config), "configuration id"),
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_bad_programs(cli: Run, tmp_path: Path, program: Path, kind: str) -> None:
    change, part = PROGRAMS[kind]
    path = tmp_path / "m.gprog"
    path.write_bytes(change(program.read_bytes()))
    cli("transcribe", "--model", path, SHORT).refused(str(path), part)
    cli("trace", path, SHORT, "-o", tmp_path / "t.npz").refused(str(path), part)
    assert not (tmp_path / "t.npz").exists()
    assert cli("inspect", path).code == 2


def test_a_program_for_another_device(cli: Run, program: Path) -> None:
    cli("transcribe", "--model", program, "--device", "emulator:u50", SHORT).refused(
        "another configuration than the device", "found tiny, expected u50", "--config u50"
    )


def test_a_model_that_is_too_big(cli: Run, tmp_path: Path) -> None:
    path = of_width(tmp_path, 128)
    output = tmp_path / "m.gprog"
    parts = ("does not fit configuration ecp5-85f", "262144 there", "larger configuration")
    cli("compile", path, "-o", output, "--config", "ecp5-85f").refused(*parts)
    cli("transcribe", "--model", path, "--device", "emulator:ecp5-85f", SHORT).refused(*parts)
    assert not output.exists()


def test_the_medium_model_is_too_big_for_the_small_board(cli: Run, data_dir: Path, tmp_path: Path) -> None:
    path = data_dir / "models" / "demo-medium.hw.pt"
    output = tmp_path / "m.gprog"
    outcome = cli("compile", path, "-o", output, "--config", "ecp5-85f")
    outcome.refused("does not fit configuration ecp5-85f", str(path))
    assert not output.exists()


def test_weights_that_overflow(tmp_path: Path) -> None:
    """One error, and no warnings of NumPy's in front of it."""

    def edit(top: dict[str, Any]) -> None:
        top["state_dict"]["joint_enc.bias"].fill_(3e38)

    path = saved(tmp_path, edit)
    process("compile", str(path), "-o", str(tmp_path / "m.gprog")).refused("not finite")


# Outputs and options


def test_outputs_that_cannot_be(cli: Run, tmp_path: Path, program: Path) -> None:
    (tmp_path / "file").write_text("kept")
    cases: list[tuple[Path, str]] = [
        (tmp_path / "missing" / "m", "folder does not exist"),
        (tmp_path / "file" / "m", "folder does not exist"),
        (tmp_path, "is a folder"),
    ]
    for output, part in cases:
        cli("compile", demo_model(), "-o", output).refused(part)
        cli("trace", program, SHORT, "-o", output).refused(part)
    copy = tmp_path / "copy.hw.pt"
    copy.write_bytes(demo_model().read_bytes())
    cli("compile", copy, "-o", copy).refused("written over what is read")
    assert copy.read_bytes() == demo_model().read_bytes()
    assert (tmp_path / "file").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.hw.pt", "file"]


def test_folders_that_may_not_be_written_to(
    cli: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Root may write anywhere, so the answer is given for it.
    monkeypatch.setattr("gharial.cli.paths.os.access", lambda *_: False)
    cli("compile", demo_model(), "-o", tmp_path / "m.gprog").refused("may not be written to")


def test_a_full_disk_leaves_nothing(
    cli: Run,
    tmp_path: Path,
    program: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "out"
    output.write_text("as it was")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gharial.files.os.fsync", full)
    cli("trace", program, SHORT, "-o", output).refused("No space left", code=1)
    cli("compile", demo_model(), "-o", output, "--config", "tiny").refused("No space left", code=1)
    assert output.read_text() == "as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["transcribe", "--json", "--format", "srt", SHORT], ["contradict"]),
        (["transcribe", "--format", "srt", SHORT, SHORT], ["one recording"]),
        (["transcribe", "--format", "vtt", "--stream", SHORT], ["leave out --stream"]),
        (["transcribe", "--streams", "0", SHORT], ["number of streams"]),
        (["transcribe", "-", "-"], ["read once"]),
        (["compile", demo_model(), "-o", "m.gprog", "--config", "u51"], ["u51", "u50"]),
        (["compile", demo_model(), "-o", "m.gprog", "--calibrate", "nowhere"], ["calibration folder not found"]),
        (["bench", "wer", "--set", "nowhere"], ["no such folder"]),
        (["bench", "wer", "--set", SHORT.parent, "--limit", "0"], ["--limit"]),
    ],
)
def test_options_that_do_not_go(
    cli: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[object],
    parts: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    cli(*words).refused(*parts)
    assert list(tmp_path.iterdir()) == []


def test_calibration_with_bad_recordings(cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "calibration"
    folder.mkdir()
    output = tmp_path / "m.gprog"
    command = ("compile", demo_model(), "-o", output, "--calibrate", folder)
    cli(*command).refused("no recordings")
    (folder / "a.wav").write_bytes(b"no audio")
    cli(*command).refused("a.wav", "not an audio file")
    assert not output.exists()


def test_a_program_is_no_yardstick(cli: Run, program: Path) -> None:
    cli("bench", "wer", "--set", SHORT.parent, "--model", program).refused("holds no float model")


def test_sets_that_are_none(cli: Run, tmp_path: Path) -> None:
    cli("bench", "wer", "--set", tmp_path).refused("manifest")
    (tmp_path / "manifest.json").write_text('[{"transcript": "on", "files": [{"fname": "../x.wav"}]}]')
    cli("bench", "wer", "--set", tmp_path).refused("leads out of")
