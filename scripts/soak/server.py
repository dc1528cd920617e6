# SPDX-License-Identifier: Apache-2.0
"""The server under test as a process, and what it takes of the machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SETTLING_S = 60.0


@dataclass(frozen=True)
class Taken:
    """What a server takes when nobody is connected.

    Attributes:
        private_bytes: memory that it shares with no other process.
        descriptors: open files and sockets.
        threads: threads.
        streams: that it believes to have.
    """

    private_bytes: int
    descriptors: int
    threads: int
    streams: int


class Server:
    """The process.

    Args:
        words: options of `gharial serve`.
        log: file for its standard error.
    """

    def __init__(self, words: list[str], log: Path) -> None:
        command = [sys.executable, "-m", "scripts.soak.child", "serve", "--port", "0", *words]
        path = os.pathsep.join([str(ROOT / "host"), str(ROOT)])
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=file, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
            )
        assert self.process.stdout is not None
        found = re.search(rb":(\d+)$", self.process.stdout.readline().strip())
        if found is None:
            raise RuntimeError(f"the server did not start: {log.read_text()}")
        self.port = int(found[1])

    def fail(self) -> None:
        """Have a device fail at its next command."""
        self.process.send_signal(signal.SIGUSR1)

    def load(self) -> dict[str, Any]:
        """Its page `/load`."""
        with urllib.request.urlopen(f"http://localhost:{self.port}/load", timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def counted(self, name: str) -> int:
        """A counter of its page `/metrics`, over all labels."""
        with urllib.request.urlopen(f"http://localhost:{self.port}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return int(sum(float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{name}[ {{]", line)))

    def cpu_s(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def settled(self, descriptors: int | None = None) -> Taken:
        """What it takes when all clients have gone; waits for it to notice.

        Args:
            descriptors: those that it should come down to.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + _SETTLING_S
        while True:
            streams = (await asyncio.to_thread(self.load))["connections"]
            folder = Path(f"/proc/{self.process.pid}")
            open_ = len(list((folder / "fd").iterdir()))
            good = not streams and (descriptors is None or open_ <= descriptors)
            if good or loop.time() > until:
                break
            await asyncio.sleep(0.2)
        self.process.send_signal(signal.SIGUSR2)
        await asyncio.sleep(0.5)
        lines = (folder / "smaps_rollup").read_text().splitlines()
        private = sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_"))
        return Taken(private, open_, len(list((folder / "task").iterdir())), streams)

    def stop(self) -> int:
        """Its exit code after a SIGTERM."""
        self.process.terminate()
        try:
            return self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def as_json(taken: Taken) -> dict[str, int]:
    """For a report."""
    return asdict(taken)
