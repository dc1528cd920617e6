# SPDX-License-Identifier: Apache-2.0
"""What is printed of a stream that is still heard: certain text once, what may change behind it."""

from __future__ import annotations

import json
import random
import re
from types import SimpleNamespace
from typing import Any

import pytest
from screen import Screen

from gharial.cli import transcripts
from gharial.cli.live import LiveLine
from gharial.cli.transcripts import Printer
from gharial.recognise import Token

PIECES = (" go", " stop", "s", " ", "", " on", "語", " <EOS>", "ing ")


def tokens(*texts: str) -> list[Token]:
    return [Token(1, text, step, 0.06 * step, 0.06 * step + 0.06, 0.5) for step, text in enumerate(texts)]


def joined(*texts: str) -> str:
    return "".join(texts).strip()


def steps(source: random.Random) -> list[tuple[list[str], list[str]]]:
    """New finals and the partial of some steps; the last has no partial."""
    made = [
        (
            [source.choice(PIECES) for _ in range(source.choice((0, 0, 1, 2)))],
            source.choices(PIECES, k=source.randint(0, 3)),
        )
        for _ in range(source.randint(1, 8))
    ]
    return [*made, ([source.choice(PIECES)], [])]


def told(printer: Printer, new: list[str], partial: list[str], file: str = "a.wav") -> None:
    stream: Any = SimpleNamespace(partial=tokens(*partial), audio_s=1.5)
    printer.progress(file, tokens(*new), stream)


def test_elsewhere_finals_alone_are_written(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    source = random.Random(seed)
    for named in (False, True):
        for _ in range(100):
            printer, said = Printer("text", True, named), list[str]()
            for new, partial in steps(source):
                said += new
                told(printer, new, partial)
            printer.end_line()
            assert capsys.readouterr().out == ("a.wav: " if named else "") + joined(*said) + "\n"


def test_a_terminal_shows_all_and_keeps_what_is_certain(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(seed)
    for _ in range(100):
        screen = Screen(200)
        monkeypatch.setattr(transcripts, "LiveLine", lambda s=screen: LiveLine(True, lambda: (200, 24), s.write))
        printer, said = Printer("text", True, True, live=True), list[str]()
        for new, partial in steps(source):
            said += new
            told(printer, new, partial)
            shown = "".join(screen.text)
            assert shown == f"a.wav: {joined(*said, *partial)}".rstrip()
        printer.end_line()
        told(printer, [" up"], [], "b.wav")
        assert "".join(screen.text) == f"a.wav: {joined(*said)}".rstrip() + "b.wav: up"


def test_json_lines_have_both(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    source = random.Random(seed)
    for _ in range(100):
        printer, said, before, sure = Printer("json", True, False), list[str](), ("", ""), ""
        for new, partial in steps(source):
            said += new
            told(printer, new, partial)
            out = capsys.readouterr().out
            text, behind = joined(*said), joined(*said, *partial)
            if not out:
                assert not new and before == (text, behind)
                continue
            found = json.loads(out)
            assert list(found) == ["file", "partial", "text", "partial_text", "tokens", "audio_s"]
            assert (found["file"], found["partial"], found["audio_s"]) == ("a.wav", True, 1.5)
            sure += found["text"]
            assert sure == text and (text + found["partial_text"]).strip() == behind
            assert [token["text"] for token in found["tokens"]] == new
            before = text, behind
        printer.end_line()
        assert capsys.readouterr().out == ""


def test_alternatives_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    readings = [
        SimpleNamespace(text=text, score=score, confidence=0.5) for text, score in (("on no", -0.4), ("", -12.0))
    ]
    transcript: Any = SimpleNamespace(text="on no", alternatives=readings)
    Printer("text", False, True, listed=True).result("a.wav", transcript)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a.wav: on no"
    assert [line.split() for line in lines[1:]] == [
        ["1", "-0.40", "50.0", "%", "on", "no"],
        ["2", "-12.00", "50.0", "%"],
    ]
    assert not any(re.search(r"\s$", line) for line in lines)
    Printer("text", False, False).result("a.wav", transcript)
    assert capsys.readouterr().out == "on no\n"
