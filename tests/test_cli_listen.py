# SPDX-License-Identifier: Apache-2.0
"""`gharial listen` against a server: files, samples from standard input, a microphone, and what may go wrong."""

from __future__ import annotations

import json
import signal
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from command import Run, process
from recordings import SHORT, samples
from screen import Screen
from serving import Running, serving

from gharial.cli import live
from gharial.cli.captions import TextLines
from gharial.client.protocol import Reading, Reply
from gharial.recognise import StateResets, StreamOptions, load


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def url(running: Running) -> str:
    return f"ws://localhost:{running.server.port}"


@pytest.fixture(scope="module")
def offline() -> str:
    with load(device="emulator:u50", decoder="beam") as recogniser:
        return recogniser.transcribe(SHORT, StreamOptions(state_resets=StateResets())).text


def test_a_recording_in_real_time(cli: Run, url: str, offline: str) -> None:
    outcome = cli("listen", "--url", url, SHORT)
    assert (outcome.code, outcome.out, outcome.err) == (0, offline + "\n", "")


def test_samples_from_standard_input_as_json(url: str, offline: str) -> None:
    outcome = process("listen", "--url", url, "--json", "-", stdin=samples(SHORT).tobytes())
    *lines, last = [json.loads(line) for line in outcome.out.splitlines()]
    assert last == {"text": offline, "audio_s": round(len(samples(SHORT)) / 16000, 6), "connections": 1}
    assert "".join(line["text"] for line in lines).strip() == offline
    assert all(line["partial"] and line["start"] <= line["end"] for line in lines)


def test_only_so_many_seconds(url: str) -> None:
    outcome = process("listen", "--url", url, "--json", "--seconds", "0.6", "-", stdin=samples(SHORT).tobytes())
    assert json.loads(outcome.out.splitlines()[-1])["audio_s"] == 0.6


class Microphone(types.ModuleType):
    """The module sounddevice, with an input that gives a recording as fast as it is taken, then nothing."""

    class PortAudioError(Exception):
        pass

    def __init__(self, rate: int, there: bool = True) -> None:
        super().__init__("sounddevice")
        self.rate, self.there = rate, there

    def query_devices(self, name: object = None, kind: str | None = None) -> Any:
        device = {"name": "fake", "max_input_channels": int(self.there), "default_samplerate": float(self.rate)}
        if kind == "input":
            if not self.there or name not in (None, "fake"):
                raise ValueError("No input device matching")
            return device
        return [device]

    def check_input_settings(self, *, samplerate: float, **_: object) -> None:
        if samplerate != self.rate:
            raise self.PortAudioError("Invalid sample rate")

    def InputStream(self, *, samplerate: int, blocksize: int, dtype: str, callback: Any, **_: object) -> Any:  # noqa: N802
        assert (samplerate, blocksize) == (self.rate, round(0.06 * self.rate))
        sound = np.repeat(samples(SHORT), samplerate // 16000)
        if dtype == "float32":
            sound = (sound / 32768).astype(np.float32)

        def play() -> None:
            for at in range(0, len(sound), blocksize):
                block = sound[at : at + blocksize, np.newaxis].copy()
                callback(block, len(block), None, None)
                block[:] = 0  # the buffer is used again

        class Open:
            def __enter__(self) -> None:
                threading.Thread(target=play).start()

            def __exit__(self, *_: object) -> None:
                pass

        return Open()


def test_a_microphone(cli: Run, url: str, offline: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", Microphone(16000))
    seconds = len(samples(SHORT)) // 960 * 0.06
    outcome = cli("listen", "--url", url, "--input", "fake", "--seconds", seconds)
    assert (outcome.code, outcome.out) == (0, offline + "\n")
    assert outcome.err.startswith("listening")


def test_ctrl_c_ends_a_microphone_and_waits_for_the_last_words(
    cli: Run, url: str, offline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", Microphone(16000))
    heard = threading.Event()
    take = TextLines.take

    def told(lines: TextLines, reply: Reply) -> None:
        take(lines, reply)
        if reply.end >= len(samples(SHORT)) // 960 * 0.06 and not heard.is_set():
            heard.set()
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TextLines, "take", told)
    # Whoever started the tests may have had Ctrl-C ignored, as a shell does for what it runs in the background.
    ignored_or_not = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        outcome = cli("listen", "--url", url, "--seconds", 60)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, ignored_or_not)
    assert (outcome.code, outcome.out) == (0, offline + "\n") and heard.is_set()


def test_a_microphone_of_another_rate(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", Microphone(48000))
    outcome = cli("listen", "--url", url, "--json", "--seconds", 1.2)
    assert outcome.code == 0 and json.loads(outcome.out.splitlines()[-1])["audio_s"] == 1.2
    assert "resampled from 48000 Hz" in outcome.err


def test_no_microphone(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    cli("listen").refused("a microphone needs sounddevice", "gharial[microphone]", "arecord")
    monkeypatch.setitem(sys.modules, "sounddevice", Microphone(16000, there=False))
    cli("listen").refused("no such microphone", "no input at all")
    monkeypatch.setitem(sys.modules, "sounddevice", Microphone(16000))
    cli("listen", "--input", "other").refused("no such microphone", "other", "fake")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--url", "ftp://x", SHORT], ["no address of a server", "ftp://x"]),
        (["--parameter", "lang", SHORT], ["--parameter", "NAME=VALUE"]),
        (["--model", "a", "--parameter", "model=b", SHORT], ["given twice", "model"]),
        (["--json", "--format", "text", SHORT], ["contradict"]),
        (["--alternatives", "2", SHORT], ["--alternatives", "--json"]),
        (["--seconds", "0", SHORT], ["--seconds", "above 0"]),
        (["--retry", "-1", SHORT], ["--retry"]),
        (["--input", "x", SHORT], ["--input", "leave one"]),
        (["nothing.wav"], ["nothing.wav", "no such file"]),
        (["--url", "wss://localhost:1", "--certificate", "nothing.pem", SHORT], ["--certificate", "nothing.pem"]),
    ],
    ids=range(10),
)
def test_bad_input(cli: Run, words: list[object], parts: list[str]) -> None:
    cli("listen", *words).refused(*parts)


def test_a_stream_that_the_server_refuses(cli: Run, url: str) -> None:
    cli("listen", "--url", url, "--model", "other", SHORT).refused("no such model other", "(400)")
    cli("listen", "--url", f"{url}/elsewhere", SHORT).refused("(404)")


def test_no_server(cli: Run) -> None:
    with serving() as ended:
        port = ended.server.port
    cli("listen", "--url", f"localhost:{port}", SHORT).refused("no server answers there", "gharial serve", code=1)


def test_a_server_that_goes_away(cli: Run) -> None:
    with serving() as server:
        port = server.server.port
        timer = threading.Timer(1.0, lambda: server.do(server.server.stop()))
        timer.start()
        outcome = cli("listen", "--url", f"localhost:{port}", "--retry", "0", SHORT)
        timer.join()
    assert outcome.code == 1 and "Traceback" not in outcome.err
    assert f"localhost:{port}" in outcome.err


def test_text_goes_on_in_a_new_line_after_a_pause(capsys: pytest.CaptureFixture[str]) -> None:
    lines = TextLines(2.0)
    said = [(0, " go"), (1, ""), (2, " on"), (3, ""), (5, ""), (6, " no")]
    for second, text in said:
        lines.take(Reply(second, second + 0.06, False, (Reading(text, 1.0),)))
    lines.end(7.0, 1)
    assert capsys.readouterr().out == "go on\nno\n"


def test_on_a_terminal_what_may_change_is_coloured_and_goes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "rewrites", lambda: True)
    monkeypatch.setattr(live, "colours", lambda: True)
    lines = TextLines(2.0)
    for text, provisional in ((" go", True), (" go on", True), (" go", False), (" no", True), (" no", False)):
        lines.take(Reply(0.0, 0.06, provisional, (Reading(text, 1.0),)))
    lines.end(1.0, 1)
    out = capsys.readouterr().out
    assert "\x1b[36m" in out
    screen = Screen(80)
    screen.write(out)
    assert screen.text == ["go no"]


def test_help_has_examples(cli: Run) -> None:
    outcome = cli("listen", "--help")
    assert outcome.code == 0 and "examples:" in outcome.out
