# SPDX-License-Identifier: Apache-2.0
"""A server of its own for a measurement, and what CPU time a server takes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from gharial.errors import BadInput, GharialError

_PATIENCE_S = 300.0  # a checkpoint may have to be compiled
_LOOK_S = 0.05
_END_S = 30.0
_LISTENING = re.compile(r"^listening on (ws\S+)", re.MULTILINE)
_METRIC = re.compile(r"^process_cpu_seconds_total (\S+)", re.MULTILINE)

CpuSeconds = Callable[[], float | None]
"""CPU time that a server has taken so far; None where it cannot be told."""


@contextmanager
def own_server(options: Sequence[str]) -> Iterator[tuple[str, CpuSeconds]]:
    """Run `gharial serve` on a free port; gives its address, and what tells its CPU time.

    Args:
        options: more of its command line.

    Raises:
        BadInput: the server refuses its options.
        GharialError: it does not start.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GHARIAL_SERVE_")}
    command = [sys.executable, "-m", "gharial", "serve", "--host", "127.0.0.1", "--port", "0", *options]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
        try:
            yield _address(process, out.fileno(), err.fileno()), lambda: process_seconds(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(process: subprocess.Popen[bytes], out: int, err: int) -> str:
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        found = _LISTENING.search(_text(out))
        if found:
            return found[1]
        if process.poll() is not None:
            said = [line.removeprefix("gharial: ") for line in _text(err).splitlines() if line.strip()][-3:]
            if process.returncode == BadInput.exit_code and said:
                raise BadInput(said[0], "gharial serve", remedy=" ".join(said[1:]) or None)
            raise GharialError("the server did not start: " + ("\n".join(said) or f"exit code {process.returncode}"))
        time.sleep(_LOOK_S)
    raise GharialError(f"the server did not listen within {_PATIENCE_S:g} s")


def _text(handle: int) -> str:
    return os.pread(handle, 1 << 20, 0).decode("utf-8", "replace")


def process_seconds(pid: int) -> float | None:
    """CPU time of a process and those that it has waited for, in seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def served_seconds(url: str, key: str | None) -> float | None:
    """CPU time of the server at an address, as its /metrics tells; None where it does not."""
    parts = urlsplit(url)
    scheme = "https" if parts.scheme in ("wss", "https") else "http"
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    try:
        request = urllib.request.Request(f"{scheme}://{parts.netloc}/metrics", headers=headers)
        with urllib.request.urlopen(request, timeout=5) as answer:
            found = _METRIC.search(answer.read().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None
    return None if found is None else float(found[1])
