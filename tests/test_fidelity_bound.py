# SPDX-License-Identifier: Apache-2.0
"""Programs that are too far from their checkpoint are refused, unless told otherwise; int4 weights; the report."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from checkpoint_files import saved
from command import Run
from recordings import LONG, SHORT

from gharial.compiler.quantise import INT8
from gharial.errors import BadInput
from gharial.fidelity.bound import FEWEST, LEAST_AGREEMENT, LEAST_SQNR, Verdict, require, sample
from gharial.fidelity.compare import Comparison
from gharial.fidelity.noise import TensorNoise
from gharial.fidelity.report.figures import figures
from gharial.fidelity.report.page import page
from gharial.model import compile_model, demo_model, open_model
from gharial.program import Program

Change = Callable[[dict[str, Any]], object]


def outliers(top: dict[str, Any]) -> None:
    """One column a thousand times as large as all others: nothing is left of the rest of a row."""
    top["state_dict"]["joint_enc.weight"][:, 0] = 1000.0


def blown_up(top: dict[str, Any]) -> None:
    """A recurrent matrix that makes a layer chaotic."""
    top["state_dict"]["encoder.pre_rnn.lstm.weight_hh_l1"] *= 30.0


def noise(top: dict[str, Any]) -> None:
    torch.manual_seed(3)
    for tensor in top["state_dict"].values():
        tensor.copy_(torch.randn(tensor.shape))


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    """Two of the shipped recordings, as a folder."""
    folder = tmp_path / "audio"
    folder.mkdir()
    for path in (SHORT, LONG):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("change", [outliers, blown_up, noise])
def test_a_damaged_checkpoint_is_refused(cli: Run, tmp_path: Path, calibration: Path, change: Change) -> None:
    path, output, folder = saved(tmp_path, change), tmp_path / "m.gprog", tmp_path / "report"
    outcome = cli("compile", path, "-o", output, "--calibrate", calibration, "--report", folder)
    assert outcome.code == 2 and outcome.out == ""
    assert not output.exists()
    message = outcome.err.splitlines()[-3:]
    assert f"{path}: the compiled program is too far from the float model" in message[0]
    assert "expected at least 20 dB and 80 %" in message[1] and " dB in logits" in message[1]
    assert "--allow-error" in message[2]
    # What is wrong with it is what the report is for.
    told = json.loads((folder / "report.json").read_text())
    assert told["bound"]["holds"] is False
    assert sorted(entry.name for entry in folder.iterdir()) == ["index.html", "report.json"]


def test_the_report_shows_the_damage(tmp_path: Path, calibration: Path) -> None:
    path, folder = saved(tmp_path, outliers), tmp_path / "report"
    program = compile_model(path, calibration=calibration, allow_error=True, report=folder)
    assert program.config.name == "ecp5-85f"
    told = json.loads((folder / "report.json").read_text())
    tensors = {entry["name"]: entry["sqnr_db"] for entry in told["tensors"]}
    assert tensors["encoder.post_rnn.1.h"] > 30 > 15 > tensors["logits"]


def test_a_model_compiled_on_the_fly_is_held_to_the_bound(tmp_path: Path, calibration: Path) -> None:
    path = saved(tmp_path, outliers)
    for _ in range(2):  # nothing is kept of the first
        with pytest.raises(BadInput, match="too far from the float model"):
            open_model(path, calibration=calibration)


def test_the_bound() -> None:
    for good in (
        Verdict("logits", LEAST_SQNR, LEAST_AGREEMENT, FEWEST),
        Verdict("logits", None, 1.0, 0),
        Verdict("logits", 30.0, 0.1, FEWEST - 1),
    ):
        require(good, "here")
    for bad in (Verdict("logits", LEAST_SQNR - 0.1, 1.0, 5), Verdict("logits", 60.0, LEAST_AGREEMENT - 0.01, FEWEST)):
        with pytest.raises(BadInput):
            require(bad, "here")
    with pytest.raises(BadInput):
        require(Verdict("logits", float("-inf"), 1.0, 5), "here")


def test_samples_are_spread() -> None:
    assert sample(list(range(12))) == [0, 4, 7, 11]
    assert sample(["one"]) == ["one"] and sample([]) == []


def test_int4(cli: Run, tmp_path: Path) -> None:
    whole, half = tmp_path / "int8.gprog", tmp_path / "int4.gprog"
    found = []
    for path, kind in ((whole, "int8"), (half, "int4")):
        outcome = cli("compile", demo_model(), "-o", path, "--weights", kind, "--json")
        assert outcome.code == 0
        found.append(json.loads(outcome.out)["fidelity"])
    assert found[0]["sqnr_db"] > 40 > found[1]["sqnr_db"] > 25
    assert found[1]["agreement"] > 0.93 and found[0]["good"] and found[1]["good"]
    programs = Program.read(whole), Program.read(half)
    # int8 is what a program without a word about it has: the ones of every earlier version.
    assert [program.manifest["numerics"].get("weights") for program in programs] == [None, "int4"]
    steps = [np.frombuffer(program.section("weights"), np.int8) for program in programs]
    assert [int(np.abs(part).max()) for part in steps] == [127, 7]
    assert len(steps[0]) == len(steps[1])
    told = f"against float: {found[0]['sqnr_db']:.1f} dB"
    assert told in cli("compile", demo_model(), "-o", whole, "--config", "tiny").out


def test_no_such_type_of_weights() -> None:
    with pytest.raises(BadInput, match="int3"):
        compile_model(demo_model(), weights="int3")


class Page(HTMLParser):
    """Elements that are open, pictures, and whatever the page would have to fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.fetched: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_is_whole(cli: Run, tmp_path: Path, calibration: Path) -> None:
    folder = tmp_path / "new" / "report"
    model = tmp_path / "<b>.hw.pt"  # a name that would be markup
    model.write_bytes(demo_model().read_bytes())
    words = ["compile", model, "-o", tmp_path / "m.gprog", "--calibrate", calibration, "--report", folder]
    assert cli(*words).code == 0
    first = (folder / "index.html").read_bytes(), (folder / "report.json").read_bytes()
    told = json.loads(first[1])
    text = first[0].decode()
    page = Page(text)
    assert "<b>" not in text and "&lt;b&gt;" in text
    assert page.fetched == [] and "http" not in text
    layers = [f"{name}.{kind}" for name in ("encoder.pre_rnn.0", "encoder.pre_rnn.1", "encoder.post_rnn.0",
              "encoder.post_rnn.1", "prediction.0") for kind in ("pre", "c", "h")]  # fmt: skip
    names = [entry["name"] for entry in told["tensors"]]
    assert set(names) == {"features", *layers, "joint_enc", "joint_pred", "joint", "logits"}
    for entry in told["tensors"]:
        assert sum(entry["histogram"]) == entry["elements"] > 0
        assert 0 <= entry["beyond"] <= entry["elements"]
        assert entry["name"] in text and len(entry["worst"]) == 8
        named = entry["worst"][0]["row"]
        assert re.fullmatch(r"unit \d+, gate [ifgo]" if entry["name"].endswith(".pre") else r"row \d+", named)
    weights = {entry["name"]: entry for entry in told["weight_tensors"]}
    assert weights["encoder.post_rnn.0 x 64.."]["columns"] == 64 and weights["embedding"]["rows"] == 255
    for name, entry in weights.items():
        assert 30 < entry["sqnr_db"] < 60, name
        assert sum(entry["histogram"]) == entry["rows"] * entry["columns"] and entry["clipped"] == 0
    # A page has a histogram for each.
    assert page.count["svg"] == len(names) + len(weights)
    assert (told["recordings"], told["weights"], told["bound"]["holds"]) == (2, "int8", True)
    # Made again, it is the same.
    assert cli(*words).code == 0
    assert first == ((folder / "index.html").read_bytes(), (folder / "report.json").read_bytes())


def test_the_report_tells_of_babble_and_of_noise_alone() -> None:
    program = compile_model(demo_model())
    found = Comparison({"logits": TensorNoise(1.0, -127, 127)}, recordings=3, babble=2)
    found.logits.add(np.zeros((2, 4)), np.ones((2, 4), np.int16))
    told = figures(program, INT8, [], found, 8)
    assert (told["babble"], told["sqnr_db"], told["bound"]["holds"]) == (2, None, False)
    text = page(told)
    assert "drawn through 2 of them" in text and "<td>–</td>" in text and "no noise</td>" not in text
    assert "drawn" not in page(told | {"babble": 0})


def test_recordings_that_tell_little_are_noted(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # on the fly, only what is compiled is noted
    folder = tmp_path / "audio"
    folder.mkdir()
    soundfile.write(folder / "silence.wav", np.zeros(32000, np.int16), 16000)
    outcome = cli("compile", demo_model(), "-o", tmp_path / "m.gprog", "--calibrate", folder)
    assert outcome.code == 0 and "tokens in all for the calibration recordings" in outcome.err
    assert "--calibrate DIR" in outcome.err
    told: list[str] = []
    compile_model(demo_model(), note=told.append)
    assert told == []
    open_model(demo_model(), calibration=folder, note=told.append)
    assert len(told) == 1 and "tokens in all" in told[0]


def test_a_report_that_cannot_be_written(cli: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    (tmp_path / "taken" / "report.json").mkdir(parents=True)
    for folder in (file, file / "below", tmp_path / "taken"):
        outcome = cli("compile", demo_model(), "-o", tmp_path / "m.gprog", "--report", folder)
        assert outcome.code == 2 and f"--report {folder}" in outcome.err
        assert not (tmp_path / "m.gprog").exists()
    assert file.read_text() == "mine"
