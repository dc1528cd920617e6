# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: help, usage errors, exit codes, pipes and interrupts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile
from command import Run, environment, process
from recordings import FILES, SHORT, samples

import gharial
from gharial.cli import main
from gharial.cli.commands import hyphenated
from gharial.devices.open import list_devices
from gharial.isa.configs import configs

COMMANDS = ("transcribe", "compile", "inspect", "trace", "trace diff", "bench", "bench wer", "devices", "serve")
NGRAM_COMMANDS = ("ngram", "ngram append", "ngram check", "ngram info", "ngram build")


@pytest.mark.parametrize("command", ["", *COMMANDS, *NGRAM_COMMANDS])
def test_help_has_examples(cli: Run, command: str) -> None:
    outcome = cli(*command.split(), "--help")
    assert outcome.code == 0
    assert "examples:\n  gharial " in outcome.out
    assert outcome.err == ""


def test_help_imports_nothing_heavy() -> None:
    script = """
import sys
import gharial
from gharial.cli import main
main(["--help"]); main(["transcribe", "--help"])
heavy = {"numpy", "torch", "sentencepiece", "soundfile", "yaml", "jiwer", "websockets", "asyncio"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_version(cli: Run) -> None:
    assert cli("--version").out == f"gharial {gharial.__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["transcribe"],
        ["transcribe", "--nonsense", "a.wav"],
        ["transcribe", "--mod", "m", "a.wav"],
        ["transcribe", "--streams", "many", "a.wav"],
        ["transcribe", "--format", "docx", "a.wav"],
        ["compile", "a.hw.pt"],
        ["trace", "a.hw.pt"],
        ["trace", "diff", "a.npz"],
        ["bench"],
        ["bench", "wer"],
        ["devices", "extra"],
    ],
)
def test_wrong_usage_is_two_lines(cli: Run, words: list[str]) -> None:
    outcome = cli(*words)
    outcome.refused()
    assert "--help" in outcome.err.splitlines()[-1]


def test_underscores_and_hyphens_are_the_same() -> None:
    given = ["a_b", "--beam_width=x_y", "--no_thing", "-o_k", "c_d", "--", "--e_f"]
    assert hyphenated(given) == ["a_b", "--beam-width=x_y", "--no-thing", "-o_k", "c_d", "--", "--e_f"]


def test_devices(cli: Run) -> None:
    found = json.loads(cli("devices", "--json").out)
    assert all(list(entry) == ["name", "kind", "config", "interface_version", "state"] for entry in found)
    names = {entry["name"] for entry in found}
    assert {"emulator", "reference", *(f"emulator:{name}" for name in configs())} <= names
    assert {entry["state"] for entry in found if entry["kind"] in ("emulator", "reference")} == {"ready"}
    assert {entry["kind"] for entry in found} == {"emulator", "reference", "verilator", "litex", "xdma", "pynq"}
    rtl = {entry["name"]: entry["config"] for entry in found if entry["kind"] == "verilator"}
    assert rtl == {"verilator": "ecp5-85f"} | {f"verilator:{name}": name for name in configs()}
    lines = cli("devices").out.splitlines()
    assert [line.split()[0] for line in lines] == [entry["name"] for entry in found]


@pytest.mark.parametrize("kind", ["reference", "verilator"])
def test_some_devices_need_a_checkout(monkeypatch: pytest.MonkeyPatch, cli: Run, kind: str) -> None:
    monkeypatch.setattr("gharial.devices.checkout.has", lambda *names: False)
    cli("transcribe", "--device", kind, SHORT).refused(f"device {kind}", "checkout")
    assert all("needs a source checkout" in d.state for d in list_devices() if d.kind == kind)


def test_the_simulated_rtl_needs_its_tools(monkeypatch: pytest.MonkeyPatch, cli: Run) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    cli("transcribe", "--device", "verilator:tiny", SHORT).refused(
        "device verilator:tiny", "no-such-compiler", "get it"
    )
    assert any("no-such-compiler" in d.state for d in list_devices() if d.kind == "verilator")


@pytest.mark.parametrize(
    ("device", "parts"),
    [
        ("verilator:u51", ["unknown hardware configuration", "u51", "ecp5-85f"]),
        ("litex", ["does not say where the board is", "litex:uart:PORT@BAUD", "litex:eth:HOST"]),
        ("litex:uart:", ["does not say where the board is"]),
        ("litex:uart:/dev/ttyUSB0@fast", ["found fast", "PORT@BAUD"]),
        ("litex:uart:@9600", ["baud"]),
        ("litex:eth:board:0", ["found 0", "HOST:PORT"]),
        ("litex:eth:no-such-board.invalid", ["cannot be resolved"]),
        ("xdma", ["number must follow", "xdma:0"]),
        ("xdma:x", ["found x"]),
        ("pynq:-1", ["found -1", "pynq:0"]),
        ("toaster", ["unknown device", "toaster", "gharial devices"]),
        ("emulator:", ["configuration must follow"]),
        ("emulator:u51", ["unknown hardware configuration", "u51", "u50"]),
        ("", ["unknown device"]),
    ],
)
def test_devices_that_are_not_there(cli: Run, device: str, parts: list[str]) -> None:
    cli("transcribe", "--device", device, SHORT).refused(*parts)


def test_a_reader_that_goes_away_is_no_news() -> None:
    command = [sys.executable, "-m", "gharial", "transcribe", *map(str, FILES * 20)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert running.stdout is not None and running.stderr is not None
    assert running.stdout.readline().endswith(b"on no\n")
    running.stdout.close()
    assert running.wait(60) == 1
    assert running.stderr.read() == b""
    running.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_it_quietly(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "gharial", "transcribe", "--stream", "-"]
    running = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    assert running.stdin is not None and running.stdout is not None
    running.stdin.write(samples(SHORT)[:30000].astype("<i2").tobytes())
    running.stdin.flush()
    assert running.stdout.read(2) == b"on"  # known while the audio still comes
    running.send_signal(number)
    _, error = running.communicate(timeout=60)
    assert (running.returncode, error) == (128 + number, b"")


def test_closed_standard_streams() -> None:
    process("transcribe", "-", stdin=None).refused("standard input is closed")
    run = f"exec {sys.executable} -m gharial"
    for script, code, error in (
        (f"{run} transcribe nothing.wav 2>&-", 2, ""),
        (f"{run} devices >&-", 1, "gharial: standard output is closed\n"),
        (f"{run} transcribe nothing.wav >&-", 2, "gharial: nothing.wav: no such file\n"),
    ):
        done = subprocess.run(["sh", "-c", script], env=environment(), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr[: len(error)]) == (code, "", error)
        assert bool(done.stderr) == bool(error)


def test_no_file_takes_the_place_of_a_closed_stream() -> None:
    """Else what a library prints would end up in a file that gharial opens."""
    script = (
        "import os; from gharial.cli import main; main(['devices']); os.write(9, b'%d' % os.open('/', os.O_RDONLY))"
    )
    run = ["sh", "-c", 'exec 9>&1; exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", script]
    assert int(subprocess.run(run, env=environment(), capture_output=True, check=True).stdout) > 2


def test_libraries_print_nothing(tmp_path: Path) -> None:
    """libmpg123 writes to standard error itself when an MP3 is damaged."""
    path = tmp_path / "cut.mp3"
    soundfile.write(path, samples(SHORT), 16000, format="MP3")
    data = path.read_bytes()
    for size in (len(data) * 2 // 3, 300):
        path.write_bytes(data[:size])
        done = process("transcribe", str(path))
        assert 1 <= len(done.err.splitlines()) <= 3
        assert done.err.startswith("gharial: ")
        loud = process("transcribe", str(path), GHARIAL_DEBUG="1")
        assert "Xing" in loud.err


def test_a_bug_is_one_line_too(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("gharial.recognise.load", broken)
    cli("transcribe", SHORT).refused("internal error", "ZeroDivisionError: by nothing", code=1)
    monkeypatch.setenv("GHARIAL_DEBUG", "1")
    assert "Traceback" in cli("transcribe", SHORT).err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, ""),
        (OSError(28, "No space left on device", "out"), 1, "gharial: No space left on device: out\n"),
        (MemoryError(), 1, "gharial: out of memory\n"),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, text: str
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr("gharial.devices.open.list_devices", failing)
    assert main(["devices"]) == code
    assert capsys.readouterr() == ("", text)


def test_output_that_cannot_be_written_is_an_error() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    script = f"exec {sys.executable} -m gharial devices > /dev/full"
    done = subprocess.run(["sh", "-c", script], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "gharial: No space left on device\n"


def test_a_terminal_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, cli: Run) -> None:
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda _: True})())
    cli("transcribe", "-").refused("standard input is a terminal")
