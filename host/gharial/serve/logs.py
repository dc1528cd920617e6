# SPDX-License-Identifier: Apache-2.0
"""The server's log: a line of JSON an event, written by a thread of its own.

Whoever logs never waits. Where the lines cannot be written (a full disk, a pipe that nobody reads) they are dropped and
counted, and standard error is told once; the server goes on.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gharial.errors import BadInput

LEVELS = ("debug", "info", "warning", "error")
CAPACITY = 10_000
"""Lines that wait for the disk at most."""

_BATCH = 500
_LOOK_S = 1.0  # between two looks at whether the file has been moved away
_CLOSING_S = 2.0


class Log:
    """Events to a file, or to standard error.

    Args:
        path: file to add to; it is opened anew when it was moved or removed (logrotate). None for standard error.
        level: the least of `LEVELS` that is written.
        transcripts: whether `text` fields are written; else they are left out of every line.
        tell: called with a sentence when lines are first lost, and when they can be written again.
        capacity: lines that may wait.

    Raises:
        BadInput: the file cannot be opened, or there is no such level.
    """

    def __init__(
        self,
        path: str | None = None,
        level: str = "info",
        transcripts: bool = False,
        tell: Callable[[str], object] = lambda sentence: None,
        capacity: int = CAPACITY,
    ) -> None:
        if level not in LEVELS:
            raise BadInput("no such level", "log_level", level, ", ".join(LEVELS))
        self._path, self._transcripts, self._tell = path, transcripts, tell
        self._least = LEVELS.index(level)
        self._capacity = capacity
        self._waiting: deque[tuple[float, str, str, dict[str, Any]]] = deque()
        self._change = threading.Condition()
        self._closing = False
        self._written = self._lost = 0
        self._broken: str | None = None  # why the last write failed
        self._torn = False  # a line was written in part
        self._missed = 0  # lines lost since then
        self._looked = time.monotonic()
        self._identity: tuple[int, int] | None = None
        self._handle = self._opened()
        self._thread = threading.Thread(target=self._work, name="log", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Lines that could not be written."""
        return self._lost

    @property
    def written(self) -> int:
        """Lines that were written."""
        return self._written

    def event(self, level: str, name: str, /, **fields: Any) -> None:
        """Log an event; returns at once, whatever the disk does. None among the fields are left out."""
        if LEVELS.index(level) < self._least:
            return
        with self._change:
            if len(self._waiting) >= self._capacity:
                self._lost += 1
                self._missed += 1
                return
            self._waiting.append((time.time(), level, name, fields))
            self._change.notify()

    def close(self, timeout_s: float = _CLOSING_S) -> None:
        """Write what waits, as far as that can be done in time; may be called twice."""
        with self._change:
            self._closing = True
            self._change.notify()
        self._thread.join(timeout_s)
        if not self._thread.is_alive() and self._path is not None and self._handle >= 0:
            with suppress(OSError):
                os.close(self._handle)
            self._handle = -1

    def _opened(self) -> int:
        if self._path is None:
            try:
                return sys.stderr.fileno()
            except (AttributeError, OSError, ValueError):  # closed
                return -1
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            what = "the log cannot be opened"
            raise BadInput(what, self._path, reason, "a file to add to", "name another file, or none") from None
        found = os.fstat(handle)
        self._identity = found.st_dev, found.st_ino
        return handle

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._waiting and not self._closing:
                    self._change.wait()
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            if not batch:
                return
            self._follow()
            self._write(b"".join(self._line(*entry) for entry in batch), len(batch))

    def _line(self, when: float, level: str, name: str, fields: dict[str, Any]) -> bytes:
        stamp = datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {"time": stamp, "level": level, "event": name}
        line.update((key, value) for key, value in fields.items() if value is not None)
        if not self._transcripts:
            line.pop("text", None)
        try:
            text = json.dumps(line, default=str, allow_nan=False)
        except ValueError:  # a number that JSON does not have
            text = json.dumps({key: str(value) for key, value in line.items()})
        return text.encode() + b"\n"

    def _write(self, data: bytes, lines: int) -> None:
        if self._torn:
            data = b"\n" + data
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._handle, view) :]
        except OSError as error:
            done = data[: len(data) - len(view)]
            whole = max(0, done.count(b"\n") - self._torn)
            self._torn = not done.endswith(b"\n") if done else self._torn
            self._fail(error.strerror or str(error), whole, lines - whole)
            return
        self._torn = False
        self._written += lines
        if self._broken is not None:
            with self._change:
                missed, self._missed = self._missed, 0
            self._tell(f"the log is written again; {missed} lines are missing")
            self._broken = None

    def _fail(self, reason: str, written: int, lost: int) -> None:
        with self._change:
            self._written += written
            self._lost += lost
            self._missed += lost
        if self._broken is None:
            self._tell(f"the log cannot be written: {reason}: {self._path or 'standard error'}; the server goes on")
        self._broken = reason

    def _follow(self) -> None:
        """Open the file anew where its name has come to mean another one, or nothing."""
        if self._path is None or (now := time.monotonic()) - self._looked < _LOOK_S:
            return
        self._looked = now
        try:
            found = Path(self._path).stat()
            if (found.st_dev, found.st_ino) == self._identity:
                return
        except OSError:
            pass
        before = self._handle
        try:
            self._handle = self._opened()
        except BadInput:
            return  # the old file takes the lines
        self._torn = False
        with suppress(OSError):
            os.close(before)


class Bridge(logging.Handler):
    """What libraries log, as events.

    Args:
        event: takes them, as `Log.event`.
        name: the event's name.
        levels: of messages that are of another level here than the library thinks.
    """

    def __init__(
        self, event: Callable[..., object], name: str, levels: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__(logging.WARNING)
        self._event, self._name, self._levels = event, name, levels

    def emit(self, record: logging.LogRecord) -> None:
        """Log a library's record; of an exception its type and text, not its way."""
        error = record.exc_info[1] if record.exc_info else None
        message = record.getMessage()
        level = self._levels.get(message, "error" if record.levelno >= logging.ERROR else "warning")
        reason = None if error is None else f"{type(error).__name__}: {error}"
        self._event(level, self._name, message=message, reason=reason)
