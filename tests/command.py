# SPDX-License-Identifier: Apache-2.0
"""The command line from outside: as a call, or as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gharial.cli import main

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Outcome:
    """Exit code and what was written."""

    code: int
    out: str
    err: str

    def refused(self, *parts: str, code: int = 2, out: str | None = "") -> None:
        """Asserts one error of one to three lines that holds all parts, and no other output."""
        assert self.code == code, self
        assert 1 <= len(self.err.splitlines()) <= 3, self.err
        assert self.err.startswith("gharial"), self.err
        assert "Traceback" not in self.err
        for part in parts:
            assert part in self.err, self.err
        if out is not None:
            assert self.out == out


Run = Callable[..., Outcome]


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs a command line in this process."""

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


def environment(**changes: str) -> dict[str, str]:
    """The environment with the checkout's package."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "host"), **changes}


def process(*words: str | bytes, stdin: bytes | None = b"", cwd: Path | None = None, **changes: str) -> Outcome:
    """Run a command line as a process; `stdin` None closes its standard input."""
    command: list[str | bytes] = [sys.executable, "-m", "gharial", *words]
    if stdin is None:
        command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    done = subprocess.run(
        command, input=stdin or b"", capture_output=True, env=environment(**changes), cwd=cwd, timeout=120, check=False
    )
    out, err = (text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
    return Outcome(done.returncode, out, err)
