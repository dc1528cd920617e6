# SPDX-License-Identifier: Apache-2.0
"""Names of files and pieces of models are other people's: they command no terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from command import environment

from gharial.cli.terminal import harmless
from gharial.model import demo_model

NAME = "a\x1b]0;title\x07\x1b[2J\x9b1m\r\u202eb.hw.pt"


def on_terminal(*words: object) -> tuple[bytes, bytes]:
    """What a command writes to standard output, which is a terminal, and to standard error, which is none."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gharial", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
        os.close(theirs)
        written = b""
        try:
            while piece := os.read(ours, 65536):
                written += piece
        except OSError:  # so a terminal says that nobody has its other end any more
            pass
        return written.replace(b"\r\n", b"\n"), done.stderr
    finally:
        os.close(ours)


def controls(text: str) -> list[str]:
    return [c for c in text if (c < " " and c not in "\n\t") or "\x7f" <= c < "\xa0" or "\u202a" <= c <= "\u202e"]


@pytest.mark.parametrize("there", [True, False])
def test_the_name_of_a_file(tmp_path: Path, there: bool) -> None:
    path = tmp_path / NAME
    if there:
        path.write_bytes(demo_model().read_bytes())
    written, _ = on_terminal("inspect", path)
    assert controls(written.decode()) == []
    assert rb"a\x1b]0;title\x07\x1b[2J\x9b1m\r\u202eb.hw.pt" in written
    _, said = on_terminal("compile", path, "-o", tmp_path / "no" / "folder")
    assert controls(said.decode()) == []


def test_elsewhere_results_are_as_they_are(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gharial", "inspect", str(tmp_path / NAME)]
    done = subprocess.run(words, capture_output=True, env=environment(), check=False)
    assert os.fsencode(str(tmp_path / NAME)) in done.stdout


def test_text_that_commands_nothing_stays() -> None:
    for text in ("plain", "two\nlines\tand a tab", "Grüße, 世界 😀", "\udcff"):
        assert harmless(text) == text
    assert harmless("\x00\x7f\x85\u2066") == r"\x00\x7f\x85\u2066"
