# SPDX-License-Identifier: Apache-2.0
"""The page that `gharial bench rtl --report` writes: its sums are the device's counters, and it needs no other file."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from command import Run
from compiled import program, random_dims
from recordings import SHORT
from rtl_device import needed

from gharial.bench import report, rtl_streams
from gharial.bench.observed import Observed, check_sums
from gharial.bench.report.told import CAUSE_WORDS
from gharial.bench.rtl import bench_rtl
from gharial.bench.rtl_streams import bench_streams
from gharial.devices.verilator.profile import CAUSES, NO_LAYER, Profile, Rows
from gharial.errors import BadInput, GharialError
from gharial.isa.configs import config

BATCH = config("tiny-batch")


@pytest.fixture
def streams(seed: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A run of many streams, looked at."""
    needed()
    dims = random_dims(np.random.default_rng(seed))
    print(f"model: {dims}")
    model = program(seed & 0xFFFF, BATCH.name, dims)
    monkeypatch.setattr(rtl_streams, "open_model", lambda *_, **__: model)
    seen: list[Observed] = []
    found = bench_streams(BATCH, "random", workload="mix", batches=10, seed=seed & 0xFFFF, observe=seen.append)
    (observed,) = seen
    yield SimpleNamespace(found=found, observed=observed, profile=observed.profile, program=model)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A second of speech decoded with weights on chip, looked at."""
    needed()
    samples, rate = soundfile.read(SHORT)
    path = tmp_path_factory.mktemp("audio") / "second.wav"
    soundfile.write(path, samples[:rate], rate)
    seen: list[Observed] = []
    told: list[tuple[int, int]] = []
    found = bench_rtl("tiny", recording=path, clocks=lambda *now: told.append(now), observe=seen.append)
    (observed,) = seen
    return SimpleNamespace(found=found, observed=observed, profile=observed.profile, told=told)


def _check_profile(profile: Profile, found: dict[str, Any]) -> None:
    counted = [found["active"], *(found["stalls"][cause] for cause in CAUSES[1:])]
    assert profile.clocks.sum(axis=0).tolist() == counted
    assert sum(counted) == found["cycles"]
    assert profile.causes.sum(axis=0).tolist() == counted
    assert profile.layers.sum(axis=0).tolist() == profile.clocks.sum(axis=1).tolist()
    width = profile.causes.sum(axis=1)
    assert (width[:-1] == profile.width).all() and 0 < width[-1] <= profile.width
    assert (profile.layers.sum(axis=1) == width).all()
    assert (profile.at_work <= width[:, None]).all()


def _check_steps(profile: Profile, found: dict[str, Any]) -> None:
    """The array's steps for a layer are known beforehand, from the instructions."""
    steps = dict(zip(profile.rows, profile.clocks[:, 0].tolist(), strict=True))
    for layer in found["layers"]:
        assert steps.pop(layer["name"]) == layer["array_cycles"], layer["name"]
    assert not any(steps.values())


def _check_page(text: str, parts: set[str]) -> ElementTree.Element:
    root = ElementTree.fromstring(text)  # XML as well: every element is closed
    names = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(names) == len(set(names))
    assert {name for name in names if name in ("figures", "roofline", "timeline", "stalls")} == parts
    assert not [element for element in root.iter() if element.tag.rpartition("}")[2] in ("script", "link", "iframe")]
    for element in root.iter():
        for key, value in element.attrib.items():
            if key.rpartition("}")[2] in ("href", "src"):
                assert value.startswith(("#", "data:image/png;base64,")), value
                assert not value.startswith("#") or value[1:] in names
    addresses = set(re.findall(r"\w+://[^\"'\s)<>]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, not places
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    return root


def _rows(root: ElementTree.Element, head: str) -> list[list[str]]:
    """The cells of the table whose first heading is `head`, its sums last."""
    for table in root.iter("table"):
        lines = [["".join(cell.itertext()) for cell in line] for line in table.iter("tr")]
        if lines[0][0] == head:
            return lines[1:]
    raise AssertionError(f"no table of {head}")


def test_every_clock_of_many_streams_has_a_layer_and_a_cause(streams: SimpleNamespace) -> None:
    _check_profile(streams.profile, streams.found)
    _check_steps(streams.profile, streams.found)
    work = dict(zip(streams.profile.units, streams.profile.at_work.sum(axis=0).tolist(), strict=True))
    assert all(work[unit] > 0 for unit in streams.profile.units), work
    moved = streams.profile.weight_bytes.sum() + streams.profile.state_bytes.sum()
    assert 0.5 < moved / streams.found["bytes_read"] <= 1  # entries, features and results come by another port


def test_every_clock_on_chip_has_a_layer_and_a_cause(recording: SimpleNamespace) -> None:
    _check_profile(recording.profile, recording.found)
    _check_steps(recording.profile, recording.found)
    assert not recording.profile.weight_bytes.any()


def test_progress_is_told_in_clocks(recording: SimpleNamespace) -> None:
    done = [now for now, _ in recording.told]
    assert done == sorted(done) and len(set(done)) > 3
    assert all(now <= total for now, total in recording.told)
    assert done[-1] >= recording.found["cycles"] + recording.found["encode_cycles"]


def test_page_of_many_streams(streams: SimpleNamespace, tmp_path: Path) -> None:
    report.check(tmp_path / "new" / "page")
    page = report.write(tmp_path / "new" / "page", streams.found, streams.observed)
    assert [path.name for path in page.parent.iterdir()] == ["index.html"]
    root = _check_page(page.read_text(), {"figures", "roofline", "timeline", "stalls"})
    svg = "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter(svg))) == 4  # the timeline twice
    words = " ".join("".join(element.itertext()) for element in root.iter(svg))
    assert "this run" in words and "encoder alone" in words and "finish unit" in words and "weights" in words
    figures = {row[0]: row[1] for row in _rows(root, "figure")}
    assert figures["cycles"] == f"{streams.found['cycles']:,}"
    *layers, total = _rows(root, "layer")
    assert total[-2] == f"{streams.found['cycles']:,}" and layers[-1][0] == NO_LAYER
    for column in range(1, len(total) - 1):
        assert sum(int(row[column].replace(",", "")) for row in layers) == int(total[column].replace(",", ""))


def test_page_on_chip_leaves_out_what_has_no_meaning(recording: SimpleNamespace, tmp_path: Path) -> None:
    page = report.write(tmp_path, recording.found, recording.observed)
    root = _check_page(page.read_text(), {"figures", "timeline", "stalls"})
    text = "".join(root.itertext())
    assert recording.found["text"] in text
    assert "linear read" not in text and CAUSE_WORDS["weights"][0] not in text and "bytes_read" not in text


def test_a_clock_too_many_is_noticed(recording: SimpleNamespace) -> None:
    counted = {"active": recording.found["active"], **recording.found["stalls"]}
    check_sums(recording.profile, counted)
    with pytest.raises(GharialError, match="in the profile by layer"):
        check_sums(recording.profile, counted | {"dependency": counted["dependency"] + 1})


def test_layers_in_the_order_of_the_program() -> None:
    layers = {
        "encoder.0": {"kind": "lstm", "parts": [{"tile": 8}, {"tile": 0}]},
        "prediction.0": {"kind": "lstm", "parts": [{"tile": 4}]},
        "joint": {"kind": "joint"},
    }
    rows = Rows.of(layers)
    assert rows.names == ("encoder.0", "encoder constant", "prediction embedding", "prediction.0", "joint", NO_LAYER)
    assert rows.tiles.tolist() == [0, 4, 8] and rows.of_tiles.tolist() == [0, 3, 0]
    assert rows.others.tolist() == [5, 1, 2, 4]


@pytest.mark.parametrize("case", ["file", "below a file", "page is a folder"])
def test_bad_folder_is_refused_before_anything_runs(cli: Run, tmp_path: Path, case: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "index.html").mkdir(parents=True)
    place = {"file": "file", "below a file": "file/page", "page is a folder": "taken"}[case]
    outcome = cli("bench", "rtl", "--config", "tiny", "--model", "nowhere.hw.pt", "--report", str(tmp_path / place))
    assert outcome.code == 2 and "--report" in outcome.err and place in outcome.err
    assert outcome.out == "" and len(outcome.err.splitlines()) <= 3


def test_folder_that_may_not_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report.os, "access", lambda *_: False)  # whoever runs the tests may write everywhere
    with pytest.raises(BadInput, match="may not be written"):
        report.check(tmp_path)


def test_without_matplotlib_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(BadInput, match=r"found none, expected matplotlib\npip install gharial\[plots\]"):
        report.check(tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_command_writes_page_and_json(cli: Run, tmp_path: Path, recording: SimpleNamespace) -> None:
    samples, rate = soundfile.read(SHORT)
    soundfile.write(tmp_path / "short.wav", samples[: rate // 2], rate)
    words = ["bench", "rtl", "--config", "tiny", "--audio", str(tmp_path / "short.wav"), "--json"]
    outcome = cli(*words, "--report", str(tmp_path / "page"))
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert set(found) == set(recording.found) and "report: " in outcome.err
    assert f"{found['cycles']:,}" in (tmp_path / "page" / "index.html").read_text()
