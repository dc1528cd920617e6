# SPDX-License-Identifier: Apache-2.0
"""Files while they are written: beside the file that they will become, under a hidden name, `.NAME.HEX.part`.

A writer holds a lock on its file as long as it lives, and the system lets go of it however the writer ends. So a file
of such a name that nobody holds is what a killed process left, and may go; one that is held is another's work.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

_SUFFIX = ".part"
_KEPT = 48  # characters of the name, so that this one is not too long where that one is not
_NAME = re.compile(r"\.(?P<of>.+)\.[0-9a-f]{12}" + re.escape(_SUFFIX), re.DOTALL)


@contextmanager
def partial_file(target: Path) -> Iterator[tuple[BufferedWriter, Path]]:
    """A new file beside `target`, open for writing and held; and its name, by which it can be renamed.

    What is not renamed when the block is left is removed.

    Raises:
        OSError: it cannot be made.
    """
    handle, path = _made(target)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, path
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def clear_leftovers(folder: Path, of: str | re.Pattern[str]) -> None:
    """Remove what killed processes left in a folder; what another is writing, and all else, stays. Never raises.

    Args:
        folder: where to look.
        of: name of the file that was to be written, or a pattern of the first characters of such names.
    """
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            match = _NAME.fullmatch(entry.name)
            if match is not None and _is_of(match["of"], of):
                _clear(Path(entry.path))


def _is_of(kept: str, of: str | re.Pattern[str]) -> bool:
    return kept == of[:_KEPT] if isinstance(of, str) else of.fullmatch(kept) is not None


def _made(target: Path) -> tuple[int, Path]:
    while True:
        path = target.with_name(f".{target.name[:_KEPT]}.{secrets.token_hex(6)}{_SUFFIX}")
        # Not tempfile: its files are private to the user whatever the umask says.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with suppress(OSError):  # a file system without locks, where none is held and none is cleared away
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_nlink:
                return handle, path
        except BaseException:
            os.close(handle)
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise
        os.close(handle)  # cleared away by another before it was held: once more


def _clear(path: Path) -> None:
    with suppress(OSError):
        # For writing, as some network file systems lock nothing else; a link is not followed, a pipe not waited for.
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(handle)
