# SPDX-License-Identifier: Apache-2.0
"""`gharial transcribe --stream` on a terminal: what may still change is there, dimmed, and gone at the end."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

import prefix_models
import pytest
from command import environment
from recordings import LONG, SHORT, samples
from screen import Screen

from gharial.audio import open_audio
from gharial.decoding import DecoderOptions
from gharial.model import compile_model
from gharial.recognise import load

BEAM = ("--decoder", "beam", "--beam-width", "8", "--final-limit", "-1")
DIM = "\x1b[2m"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with random weights: its hypotheses are close, so much of its text stays open for long."""
    folder = tmp_path_factory.mktemp("model")
    shutil.copy(SHORT, folder / "talk.flac")
    compile_model(prefix_models.checkpoint(folder, 1, None, blank=3.0), "tiny", folder).write(folder / "model.gprog")
    return folder / "model.gprog"


@pytest.fixture(scope="module")
def heard(model: Path) -> tuple[str, bool]:
    """The text of LONG, and whether there is anything that may still change between two blocks of it."""
    options = DecoderOptions(width=8, final_limit_s=-1)
    changes = False
    with (
        load(model, decoder="beam", options=options) as recogniser,
        open_audio(LONG, 16000) as source,
        recogniser.stream() as stream,
    ):
        for block in source.blocks():
            stream.push(block)
            changes = changes or bool("".join(token.text for token in stream.partial).strip())
        return stream.finish().text, changes


class OnTerminal:
    """A command whose output is a terminal of so many columns."""

    def __init__(self, *words: object, columns: int = 80, stdin: int | None = None, **changes: str) -> None:
        self.columns = columns
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        given = environment(**{"TERM": "xterm-256color", "NO_COLOR": ""} | changes)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gharial", "transcribe", *map(str, words)],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env={name: value for name, value in given.items() if name != "TERM" or value != "unset"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(theirs)
        self.written = b""

    def read(self) -> bool:
        """Read some of the output; False at its end."""
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # the other end is closed
            data = b""
        self.written += data
        return bool(data)

    def end(self) -> str:
        """All that was written, once the command has ended."""
        while self.read():
            pass
        self.code = self.process.wait(60)
        assert self.process.stderr is not None
        self.error = self.process.stderr.read().decode()
        self.process.stderr.close()
        os.close(self._ours)
        return self.written.decode()

    def screen(self) -> list[str]:
        """What is left on the screen."""
        screen = Screen(self.columns)
        screen.write(self.written.decode())
        assert not screen.dimmed & {(row, column) for row, columns in screen.rows.items() for column in columns}
        return screen.text


def rows(text: str, columns: int) -> list[str]:
    screen = Screen(columns)
    screen.write(text)
    return screen.text


@pytest.mark.parametrize("columns", [80, 11])
def test_what_may_change_is_dimmed(model: Path, heard: tuple[str, bool], columns: int) -> None:
    text, changes = heard
    command = OnTerminal("--model", model, *BEAM, "--stream", LONG, columns=columns)
    assert (DIM in command.end()) == changes
    assert (command.code, command.error) == (0, "")
    assert changes and text  # else nothing was tested
    assert [row for row in command.screen() if row] == [row for row in rows(text, columns) if row]


def test_several_files_and_alternatives(model: Path, heard: tuple[str, bool]) -> None:
    command = OnTerminal("--model", model, *BEAM, "--alternatives", 2, "--stream", LONG, "no.wav", LONG, columns=300)
    command.end()
    assert command.code == 2 and command.error.startswith("gharial: no.wav: no such file")
    lines = command.screen()
    named = [line for line in lines if not line.startswith("   ")]
    assert named == [f"{LONG}: {heard[0]}"] * 2
    assert len(lines) in (4, 6)


@pytest.mark.parametrize(
    ("changes", "steers"), [({"NO_COLOR": "1"}, True), ({"TERM": "dumb"}, False), ({"TERM": "unset"}, False)]
)
def test_terminals_that_want_it_plain(
    model: Path, heard: tuple[str, bool], changes: dict[str, str], steers: bool
) -> None:
    command = OnTerminal("--model", model, *BEAM, "--stream", LONG, **changes)
    written = command.end()
    assert DIM not in written
    assert ("\x1b" in written) == steers
    assert command.screen() == rows(heard[0], 80)


def test_json_and_subtitles_are_not_steered(model: Path) -> None:
    for words in (["--stream", "--json"], ["--format", "srt"], []):
        assert "\x1b" not in OnTerminal("--model", model, *BEAM, *words, LONG).end()


def test_an_interrupt_leaves_what_is_certain(model: Path, heard: tuple[str, bool]) -> None:
    assert heard[1]
    ours, theirs = os.pipe()
    command = OnTerminal("--model", model, *BEAM, "--stream", "-", columns=1000, stdin=ours)
    os.close(ours)
    audio = samples(LONG).astype("<i2").tobytes()
    speaker = threading.Thread(target=lambda: os.write(theirs, audio))  # it goes on, so more may be said at any time
    speaker.start()
    while DIM not in command.written.decode(errors="replace"):
        assert command.read()
    speaker.join()
    command.process.send_signal(signal.SIGINT)
    written = command.end()
    os.close(theirs)
    assert (command.code, command.error) == (128 + signal.SIGINT, "")
    assert written.endswith("\n") and heard[0].startswith("".join(command.screen()))
