# SPDX-License-Identifier: Apache-2.0
"""Standard output and error of the command line: results go to one, all that is said about them to the other."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_PREFIX = "gharial: "
_STDERR = 2
_MINUTE = 60.0
_QUIET = _MINUTE  # seconds between two lines about progress where there is no terminal
_MANY = 100_000  # shown as 0.1M
# Control characters but tab and line feed, and those that turn the direction of text.
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def prepare() -> None:
    """Let file names that are not valid text through as the bytes they are, and no character stop the output.

    Standard streams that are closed get their numbers taken, or the next file opened would be one of them.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(number)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8"
            stream.reconfigure(errors="surrogateescape" if utf8 else "backslashreplace")


@contextmanager
def only_ours() -> Iterator[None]:
    """Keep what C libraries print on their own (libmpg123 of a damaged MP3, say) off standard error.

    What they have to say that matters comes back as an error or a note. GHARIAL_DEBUG=1 shows it all.
    """
    ours = sys.stderr
    try:
        shown = bool(os.environ.get("GHARIAL_DEBUG")) or ours.fileno() != _STDERR
    except (AttributeError, OSError, ValueError):  # closed, or not the process's own
        shown = True
    if shown:
        yield
        return
    kept = os.dup(_STDERR)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDERR)
    os.close(nowhere)
    sys.stderr = os.fdopen(kept, "w", encoding=ours.encoding, errors=ours.errors, buffering=1, closefd=False)
    try:
        yield
    finally:
        sys.stderr = ours
        os.dup2(kept, _STDERR)
        os.close(kept)


def harmless(text: str) -> str:
    """Text that commands no terminal: names of files and pieces of models are other people's, escapes in them too."""
    return _HARMFUL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def emit(text: str, end: str = "\n", *, controls: bool = False) -> None:
    """A result, at once, to standard output; as it is but on a terminal, which sees no controls in it.

    Args:
        text: the result.
        end: what stands behind it.
        controls: what is in it is for the terminal.

    Raises:
        OSError: it cannot be written there.
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    sys.stdout.write((text if controls or not sys.stdout.isatty() else harmless(text)) + end)
    sys.stdout.flush()


def emit_json(value: Any) -> None:
    """A result as one line of JSON. ASCII alone, so that it is valid whatever a file's name holds."""
    emit(json.dumps(value, allow_nan=False))


def say(text: str) -> None:
    """A remark on standard error; nothing where that is closed."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(harmless(text) + "\n")
            sys.stderr.flush()


def note(text: str) -> None:
    """A remark that the user need not act on."""
    say(f"{_PREFIX}note: {text}")


def error(problem: object) -> None:
    """An error of one to three lines."""
    say(f"{_PREFIX}{problem}")


def silence_stdout() -> None:
    """Send whatever is still buffered nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Progress:
    """Tells how far something is, and how long it will take still: a line on a terminal, else one now and then.

    Args:
        what: what is being done.
        enabled: False for one that says nothing.
    """

    def __init__(self, what: str, enabled: bool = True) -> None:
        self._what = what
        self._enabled = enabled and sys.stderr is not None
        self._bar: Any = None
        self._begun = self._told = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        if self._enabled and sys.stderr.isatty():
            self._draw(done, total)
        elif self._enabled and time.monotonic() - self._told >= _QUIET:
            self._told = time.monotonic()
            say(f"{_PREFIX}{self._what}: {done:,} of {total:,}, {self._left(done, total)}")

    def close(self) -> None:
        """Take the line away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _draw(self, done: int, total: int) -> None:
        if self._bar is not None and done < self._bar.n:
            self.close()  # it has begun anew
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                desc=self._what,
                total=total,
                file=sys.stderr,
                leave=False,
                unit_scale=total > _MANY,
                smoothing=0.05,
                bar_format="{desc}: {n_fmt}/{total_fmt}, {remaining} left",
            )
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def _left(self, done: int, total: int) -> str:
        if not done:
            return "time left not known"
        seconds = (self._told - self._begun) * max(total - done, 0) / done
        return f"{seconds:.0f} s left" if seconds < 2 * _MINUTE else f"{seconds / _MINUTE:.0f} min left"
