# SPDX-License-Identifier: Apache-2.0
"""`gharial serve` as a process, as an operator runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import websocket
from command import environment
from serving import AUDIO

_PLAIN = {"GHARIAL_SERVE_DECODER": "greedy", "GHARIAL_SERVE_STATE_RESETS": "no"}


class Process:
    """A server that was started.

    Attributes:
        process: itself.
        port: that it listens on.
        errors: file of its standard error.
    """

    def __init__(self, words: tuple[str, ...], errors: Path, changes: dict[str, str], stderr: str | None) -> None:
        self.errors = errors
        command = [sys.executable, "-m", "gharial", "serve", "--port", "0", *words]
        with Path(stderr or errors).open("wb") as file:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=file, env=environment(**{**_PLAIN, **changes})
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        found = re.fullmatch(r"listening on (wss?)://localhost:(\d+)\n", line)
        assert found is not None, (line, self.stderr)
        self.port, self.tls = int(found[2]), found[1] == "wss"

    @property
    def stderr(self) -> str:
        """What it has said so far."""
        return self.errors.read_text() if self.errors.exists() else ""

    @property
    def events(self) -> list[dict[str, Any]]:
        """What it has logged to standard error so far."""
        return [json.loads(line) for line in self.stderr.splitlines() if line.startswith("{")]

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Status and text of a page."""
        request = urllib.request.Request(f"http{'s' * self.tls}://localhost:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60, context=trusting() if self.tls else None) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def connect(self, more: str = "", **options: Any) -> websocket.WebSocket:
        """A client's connection."""
        url = f"ws{'s' * self.tls}://localhost:{self.port}/asr/v0.1/stream?{AUDIO}{more}"
        if self.tls:
            options["sslopt"] = {"cert_reqs": ssl.CERT_NONE, "check_hostname": False}
        return websocket.create_connection(url, timeout=60, **options)

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def code(self) -> int:
        """Its exit code, when it has ended."""
        return self.process.wait(60)

    def stopped(self) -> int:
        """The exit code after a SIGTERM."""
        self.signal()
        return self.code()


def trusting() -> ssl.SSLContext:
    """A context that takes any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextmanager
def served(folder: Path, *words: str, stderr: str | None = None, **changes: str) -> Iterator[Process]:
    """A server that listens, with these options and environment; it is killed at the end if it runs still."""
    process = Process(words, folder / "stderr", changes, stderr)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.process.pid, signal.SIGKILL)
        process.process.wait()
        assert process.process.stdout is not None
        process.process.stdout.close()
