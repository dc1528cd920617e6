# SPDX-License-Identifier: Apache-2.0
"""`gharial transcribe`: what it prints, in every format."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command import Run, process
from recordings import FILES, LONG, SHORT, samples

from gharial.model import compile_model, demo_model

SAID = {SHORT: "on no", LONG: "go stop on stop stop"}


def raw(path: Path) -> bytes:
    return samples(path).astype("<i2").tobytes()


def test_one_file_is_a_line_of_text(cli: Run) -> None:
    outcome = cli("transcribe", SHORT)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{SAID[SHORT]}\n", "")


def test_several_files_are_named_and_in_order(cli: Run) -> None:
    outcome = cli("transcribe", LONG, SHORT)
    assert outcome.out == f"{LONG}: {SAID[LONG]}\n{SHORT}: {SAID[SHORT]}\n"


def test_two_runs_give_the_same_bytes(cli: Run) -> None:
    outputs = {cli("transcribe", *FILES).out for _ in range(2)}
    outputs |= {cli("transcribe", *FILES, "--streams", 3).out}
    assert len(outputs) == 1


@pytest.mark.parametrize("flags", [["--json"], ["--format", "json"], ["--json", "--format=json"]])
def test_json_has_the_documented_keys(cli: Run, flags: list[str]) -> None:
    outcome = cli("transcribe", *flags, SHORT, LONG)
    objects = [json.loads(line) for line in outcome.out.splitlines()]
    assert [found["file"] for found in objects] == [str(SHORT), str(LONG)]
    for found, path in zip(objects, (SHORT, LONG), strict=True):
        assert list(found) == ["file", "text", "tokens", "audio_s", "compute_s", "device", "decoder", "cycles"]
        assert found["text"] == SAID[path] == "".join(token["text"] for token in found["tokens"]).strip()
        assert found["audio_s"] == pytest.approx(len(samples(path)) / 16000, abs=1e-6)
        assert 0 < found["compute_s"] < 60
        assert (found["device"], found["decoder"], found["cycles"]) == ("emulator:ecp5-85f", "greedy", None)
        for token in found["tokens"]:
            assert list(token) == ["text", "start", "end", "confidence"]
            assert 0 <= token["start"] < token["end"] <= found["audio_s"] + 0.3
            assert token["end"] - token["start"] == pytest.approx(0.06)
            assert 0 < token["confidence"] <= 1
            assert round(token["start"] / 0.06, 6) % 1 == 0


def test_json_but_for_times_is_the_same_twice(cli: Run) -> None:
    def once() -> list[dict[str, object]]:
        lines = cli("transcribe", "--json", *FILES).out.splitlines()
        return [json.loads(line) | {"compute_s": 0} for line in lines]

    assert once() == once()


def test_a_program_and_its_checkpoint_say_the_same(cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.gprog"
    compile_model(demo_model(), "tiny").write(path)
    expected = cli("transcribe", "--model", demo_model(), "--device", "emulator:tiny", *FILES[:4]).out
    assert cli("transcribe", "--model", path, *FILES[:4]).out == expected
    assert cli("transcribe", "--model", path, "--device=reference", *FILES[:4]).out == expected


def test_subtitles_and_ctm(cli: Run) -> None:
    text = cli("transcribe", "--format", "srt", SHORT).out
    assert text == "1\n00:00:01,020 --> 00:00:01,920\non no\n"
    assert cli("transcribe", "--format", "vtt", SHORT).out == f"WEBVTT\n\n{text[2:].replace(',', '.')}"
    lines = cli("transcribe", "--format", "ctm", SHORT, LONG).out.splitlines()
    assert [line.split()[0] for line in lines] == ["u084"] * 2 + ["u288"] * 5
    assert lines[0].startswith("u084 1 1.020 0.060 on 0.")


def test_stream_prints_the_same_text(cli: Run) -> None:
    assert cli("transcribe", "--stream", SHORT).out == f"{SAID[SHORT]}\n"
    assert cli("transcribe", "--stream", *FILES).out == cli("transcribe", *FILES).out


def test_stream_in_json_ends_with_the_whole(cli: Run) -> None:
    objects = [json.loads(line) for line in cli("transcribe", "--stream", "--json", LONG).out.splitlines()]
    whole = json.loads(cli("transcribe", "--json", LONG).out)
    assert len(objects) > 3
    assert all(found["partial"] is True and "file" in found for found in objects[:-1])
    assert objects[-1] | {"compute_s": 0} == whole | {"compute_s": 0}
    assert [token for found in objects[:-1] for token in found["tokens"]] == whole["tokens"]
    assert "".join(found["text"] for found in objects[:-1]) == whole["text"]


@pytest.mark.parametrize("flags", [[], ["--stream"]])
def test_standard_input(flags: list[str]) -> None:
    outcome = process("transcribe", *flags, "-", stdin=raw(SHORT))
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{SAID[SHORT]}\n", "")


def test_standard_input_that_breaks_off_in_a_sample() -> None:
    outcome = process("transcribe", "-", stdin=raw(SHORT) + b"\x55")
    assert (outcome.code, outcome.out) == (0, f"{SAID[SHORT]}\n")
    assert outcome.err.startswith("gharial: note: -: ") and "middle of a sample" in outcome.err


def test_standard_input_among_files() -> None:
    outcome = process("transcribe", str(LONG), "-", str(SHORT), stdin=raw(SHORT))
    assert outcome.out == f"{LONG}: {SAID[LONG]}\n-: {SAID[SHORT]}\n{SHORT}: {SAID[SHORT]}\n"


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\xfe caf\xe9.wav"
    with open(name, "wb") as file:  # noqa: PTH123 - a name in bytes
        soundfile.write(file, samples(SHORT), 16000, format="WAV")
    outcome = process("transcribe", name, name)
    assert os.fsencode(outcome.out) == 2 * (name + b": on no\n")
    found = json.loads(process("transcribe", "--json", name).out)
    assert os.fsencode(found["file"]) == name
    missing = process("transcribe", name + b"x", LC_ALL="C")
    missing.refused("no such file")
    assert name in os.fsencode(missing.err)


def test_remarks_about_the_audio_go_to_standard_error(cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.stack([samples(SHORT)] * 2, axis=1), 16000)
    outcome = cli("transcribe", path)
    assert outcome.out == "on no\n"
    assert outcome.err == f"gharial: note: {path}: 2 channels mixed to one\n"
