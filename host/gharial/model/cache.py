# SPDX-License-Identifier: Apache-2.0
"""Programs compiled on the fly, kept in the user's cache folder.

An entry's name is a digest over everything its content depends on, so an entry is never out of date: it is there and
right, or it is not there. Entries are written whole or not at all, verified when read, and thrown away if they do not
hold; what killed processes left half-written goes when the next entry is written. The cache is a convenience: where it
cannot be used, that is a note and no error.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gharial.errors import BadInput, GharialError
from gharial.model.ngram import beside
from gharial.partial import clear_leftovers
from gharial.program import Program

LIMIT_BYTES = 4 << 30
"""Entries beyond this many bytes in all go, least recently used first."""

_ENTRY = re.compile(r"[0-9a-f]{64}\.gprog")
_BEGINNING = re.compile(r"[0-9a-f]{48}")  # of an entry's name, as files that are being written have it


def cache_folder() -> Path | None:
    """Where compiled programs are kept: `gharial/programs` in $XDG_CACHE_HOME or ~/.cache; None without a home."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    # A relative path is to be ignored, says the XDG base directory specification.
    if named and Path(named).is_absolute():
        return Path(named) / "gharial" / "programs"
    try:
        return Path.home() / ".cache" / "gharial" / "programs"
    except RuntimeError:
        return None


def digest(parts: Iterable[tuple[str, bytes]]) -> str:
    """SHA-256 over named parts, as hexadecimal digits; each part's length is part of it."""
    total = hashlib.sha256()
    for name, data in parts:
        for item in (name.encode(), data):
            total.update(len(item).to_bytes(8, "little"))
            total.update(item)
    return total.hexdigest()


def cached(key: str, source_sha256: str, build: Callable[[], Program], note: Callable[[str], object]) -> Program:
    """The program of that key, out of the cache or built and put there; its `path` is None where it could not be.

    Args:
        key: digest of everything the program depends on.
        source_sha256: digest of the checkpoint, as the program's manifest repeats it.
        build: makes the program.
        note: called with a sentence about a cache that could not be used.

    Raises:
        Whatever `build` raises; never for the cache.
    """
    folder = cache_folder()
    if folder is None:
        note("compiled programs are not kept: there is no home folder (set XDG_CACHE_HOME)")
        return build()
    path = folder / f"{key}.gprog"
    found = _read(path, source_sha256, note)
    if found is not None:
        return found
    program = build()
    # The checkpoint may have been replaced while it was compiled; its program then belongs to another key.
    if program.manifest["model"]["source_sha256"] == source_sha256 and _store(program, path, note):
        return replace(program, path=str(path))
    return program


def _read(path: Path, source_sha256: str, note: Callable[[str], object]) -> Program | None:
    try:
        if not path.is_file():
            return None
    except OSError:
        return None  # the folder is somebody else's; storing says so
    try:
        program = Program.read(path)
        problem = "it is of another model" if program.manifest["model"]["source_sha256"] != source_sha256 else None
    except (GharialError, OSError) as error:
        problem = error.what if isinstance(error, BadInput) else str(error)
    if problem is not None:
        note(f"a damaged entry of the cache is made again: {path} ({problem})")
        with suppress(OSError):
            path.unlink()
        return None
    with suppress(OSError):
        os.utime(path)  # the time of last use, by which entries go when there are too many
    return program


def _store(program: Program, path: Path, note: Callable[[str], object]) -> bool:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        clear_leftovers(path.parent, _BEGINNING)
        program.write(path)
        _trim(path.parent, keep=path)
    except (GharialError, OSError) as error:
        reason = f"{path.parent}: {error.strerror}" if isinstance(error, OSError) else str(error).split("\n")[0]
        note(f"the compiled program is not kept for the next time: {reason}")
        return False
    return True


def _trim(folder: Path, keep: Path) -> None:
    """Remove the entries least recently used, with what lies beside them, until the rest is within the limit."""
    entries = []
    for entry in folder.iterdir():
        if _ENTRY.fullmatch(entry.name) and entry != keep:
            with suppress(OSError):  # another process may have removed it
                status = entry.stat()
                size = status.st_size + sum(path.stat().st_size for path in _beside(entry))
                entries.append((status.st_mtime, size, entry))
    total = keep.stat().st_size
    for _, size, entry in sorted(entries, reverse=True):
        total += size
        if total > LIMIT_BYTES:
            for path in (entry, *_beside(entry)):
                with suppress(OSError):
                    path.unlink()


def _beside(entry: Path) -> list[Path]:
    """The other files of an entry."""
    return [path for path in (beside(entry),) if path.is_file()]
