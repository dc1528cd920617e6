# SPDX-License-Identifier: Apache-2.0
"""`make demo` shows what it promises."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import ModuleType

import pytest
from recordings import FOLDER
from rtl_device import needed

from gharial.bench.words import word_errors
from gharial.errors import GharialError
from gharial.recognise import load


@pytest.fixture
def demo(load_script: Callable[..., ModuleType]) -> ModuleType:
    return load_script("scripts/demo.py")


@pytest.mark.parametrize(
    ("said", "heard", "text"),
    [
        ("on no", "on no", "on no"),
        ("on no", "on go", "on [go]"),
        ("on no up", "on up", "on [-no] up"),
        ("on up", "on no up", "on [no] up"),
        ("on", "", "[-on]"),
        ("", "on", "[on]"),
        ("", "", ""),
    ],
)
def test_wrong_words_are_marked(demo: ModuleType, said: str, heard: str, text: str) -> None:
    assert demo.marked(said, heard, colour=False) == text


def test_the_table_is_what_the_device_says(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    needed()
    assert demo.main() == 0
    out = capsys.readouterr().out
    entries = json.loads((FOLDER / "manifest.json").read_text())
    errors = words = 0
    with load() as recogniser:
        for entry in entries:
            name, said = entry["files"][0]["fname"], entry["transcript"]
            text = recogniser.transcribe(FOLDER / name).text
            errors += word_errors(said, text)
            words += len(said.split())
            (line,) = (line for line in out.splitlines() if line.split()[:1] == [name])
            assert said in line
            assert line.endswith(demo.marked(said, text, colour=False))
    assert f"{100 * errors / words:.1f} % ({errors} of {words} words" in out
    assert 0 < errors < words / 2
    assert "times real time" in out
    assert "emulated" in out and "emulator:ecp5-85f" in out
    with load() as recogniser:
        text = recogniser.transcribe(FOLDER / entries[0]["files"][0]["fname"]).text
    assert re.search(rf"transcript +{text}$", out, re.MULTILINE) and text
    assert re.search(r"clocks +\d+,\d+ for \d+ encoder steps", out)
    assert re.search(r"utilisation +9\d\.\d %", out)
    assert "equal to the emulator's" in out


def test_an_rtl_that_differs_fails_the_demo(demo: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(*_: object, **__: object) -> None:
        raise GharialError("encoder step 3: tokens [1] of the RTL, [2] of the emulator")

    monkeypatch.setattr(demo, "bench_rtl", differs)
    with pytest.raises(GharialError, match="encoder step 3"):
        demo.main()
