# SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation, as they stand there, run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import FILES, LONG, SHORT, samples

import gharial

DOCS = Path(__file__).resolve().parent.parent / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def example(name: str, heading: str) -> str:
    """The Python code of a page's section."""
    section = page(name).split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return code


def test_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SHORT, tmp_path / "talk.wav")
    monkeypatch.chdir(tmp_path)
    exec(example("api.md", "A recording"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "on no"
    assert [line.split()[-1] for line in lines[1:]] == ["on", "no"]
    assert lines[1].split()[:2] == ["1.02", "1.08"]


def test_bringing_an_lstm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = np.random.default_rng(seed)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(example("bring_your_lstm.md", "Your own"), names)
    layer = tuple(random.standard_normal(shape) / 3 for shape in ((20, 3), (20, 5), (20,)))
    head = tuple(random.standard_normal(shape) for shape in ((2, 5), (2,)))
    vectors = random.standard_normal((50, 3))
    folder = names["bring"]([layer], head, [vectors])
    assert folder.name == "mine.calibration"
    gharial.compile_model("mine.hw.pt", None, folder).write("mine.gprog")
    (found,) = names["run"]([vectors])
    wanted = names["Dense"](*head).run(names["Lstm"](*layer).run(vectors))
    assert np.abs(found - wanted).max() < 0.5


def test_calling_it_from_a_server(seed: int) -> None:
    """Twenty clients, at most eight at a time, with chunks of any length, in any order."""
    random = np.random.default_rng(seed)
    names: dict[str, Any] = {}
    exec(example("driver.md", "Calling it from a server"), names)
    clients = {number: FILES[number % len(FILES)] for number in range(20)}
    audio = {number: samples(path).astype("<i2").tobytes() for number, path in clients.items()}
    heard = dict.fromkeys(clients, "")
    ended = set()

    def send(client: int, text: str, last: bool) -> None:
        assert client not in ended
        heard[client] += text
        if last:
            ended.add(client)

    def arrivals() -> Any:
        at = dict.fromkeys(clients, 0)
        while len(ended) < len(clients):
            here = [number for number in clients if number not in ended][:8]
            some = [number for number in here if random.random() < 0.7]
            round_ = []
            for number in some:
                size = int(random.integers(1, 20000))
                chunk = audio[number][at[number] : at[number] + size]
                at[number] += size
                round_.append((number, chunk or None))
            yield round_

    with gharial.load() as recogniser:
        names["serve"](recogniser, arrivals(), send)
        assert recogniser.free_streams == 8
        expected = {path: recogniser.transcribe(path).text for path in {*clients.values()}}
    assert {number: text.strip() for number, text in heard.items()} == {
        number: expected[path] for number, path in clients.items()
    }
    assert expected[LONG]


def test_the_public_names_are_documented_and_there() -> None:
    for name in gharial.__all__:
        assert getattr(gharial, name) is not None
        assert name in dir(gharial)
    assert not hasattr(gharial, "nothing_of_the_kind")
    for name in ("load", "compile_model", "Recogniser", "Stream", "Transcript", "BadInput", "DeviceError"):
        assert name in page("api.md")
