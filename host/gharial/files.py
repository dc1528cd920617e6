# SPDX-License-Identifier: Apache-2.0
"""Files opened so that nothing but a plain file is read, and written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from gharial.errors import BadInput, GharialError
from gharial.partial import partial_file

LFS_POINTER = b"version https://git-lfs"
"""What a file begins with that Git LFS has left in another's place."""


ANNEX_REMEDY = "run 'git annex get' in the repository it came from, or download the file itself"
"""What to do about a file whose content git-annex has not fetched."""

_PATH_REMEDY = "check the name, and the folder it is counted from"
_READ_REMEDY = "check the name, and who may read it"
_LINK_REMEDY = "set the link right, or name the file itself"
_PLAIN_REMEDY = "write what comes out of it to a file, and name that"


_ANOTHER = "name another output file"

_HOLES = 64 << 20  # bytes of holes that any file may have
_HOLES_TIMES = 3  # and more, up to so many times what is there


def open_regular(path: str | os.PathLike[str], expected: str, remedy: str | None = None) -> BufferedReader:
    """A plain file, open for reading.

    Args:
        path: its name.
        expected: what it should be, for the error about a folder or a device ("an audio file").
        remedy: what to do about a file that is not there, or is no plain file.

    Raises:
        BadInput: there is none, it is a folder, device or pipe, or it may not be read.
    """
    name = os.fspath(path)
    try:
        # Not blocking, because opening a named pipe would wait for its other end.
        file = open(name, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))  # noqa: SIM115
    except FileNotFoundError:
        target = _target(name)
        if target is not None and "/annex/objects/" in target:
            found = "a link into git-annex whose content is not here"
            raise BadInput("no such file", name, found, expected, ANNEX_REMEDY) from None
        if target is not None:
            found = f"a link to {target}, which is not there"
            raise BadInput("no such file", name, found, expected, remedy or _LINK_REMEDY) from None
        raise BadInput("no such file", name, "nothing", expected, remedy or _PATH_REMEDY) from None
    except IsADirectoryError:
        raise BadInput("is a directory", name, "a folder", expected, remedy or _PATH_REMEDY) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(
            "cannot be opened", name.replace("\0", "\\0"), reason, expected, remedy or _READ_REMEDY
        ) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise BadInput("is not a plain file", name, "a device or pipe", expected, remedy or _PLAIN_REMEDY)
    return file


def hollow(file: BufferedReader, name: str, expected: str) -> BadInput | None:
    """Why an open file is not worth reading, or None: most of it is holes, which take no room on the disk.

    A few bytes can stand for any size this way, and whoever reads them all takes as long as for a real file. Files
    copied by programs that leave out zeros have holes too, but fewer.

    Args:
        file: open for reading, at its start, where it is left.
        name: how the message names it.
        expected: what it should be.
    """
    handle = file.fileno()
    size = os.fstat(handle).st_size
    there = _there(handle, size)
    if size - there <= max(_HOLES, _HOLES_TIMES * there):
        return None
    found = f"{there:,} of {size:,} bytes; the rest are holes"
    return BadInput("most of the file is not there", name, found, expected, "copy or download it again, to its end")


def _there(handle: int, size: int) -> int:
    """Bytes of a file that are not in holes; all of them where the system cannot tell."""
    if not hasattr(os, "SEEK_DATA"):
        return size
    at = there = 0
    try:
        while at < size:
            begin = os.lseek(handle, at, os.SEEK_DATA)
            at = os.lseek(handle, begin, os.SEEK_HOLE)
            there += at - begin
    except OSError as error:
        if error.errno != errno.ENXIO:  # which says: holes from here to the end
            return size
    finally:
        os.lseek(handle, 0, os.SEEK_SET)
    return there


def _target(name: str) -> str | None:
    """Where a symbolic link leads; None for anything else."""
    try:
        return os.fspath(Path(name).readlink())
    except (OSError, ValueError):
        return None


def output_path(path: str | os.PathLike[str]) -> Path:
    """Where an output file goes: absolute; a link stays, what it points to is replaced.

    Raises:
        BadInput: no file of this name can be, there is something else in its place, or its folder is missing.
    """
    name = os.fspath(path).replace("\0", "\\0")
    try:
        target = Path(path).resolve()
        found = _mode(target)
        there = target.parent.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, links in a circle, a NUL
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput("there can be no file of this name", name, reason, "a file to write", _ANOTHER) from None
    if found is None:
        found = _followed(path)  # /dev/stdout leads to what has no name of its own
    if found is not None and stat.S_ISDIR(found):
        raise BadInput("is a folder, not a file, so it is not overwritten", name, "a folder", "a file", _ANOTHER)
    if found is not None and not stat.S_ISREG(found):
        raise BadInput("not a file, so it is not overwritten", name, "a device or pipe", "a file", _ANOTHER)
    if name.endswith(("/", "/.")):
        raise BadInput("this names a folder, not a file", name, "a slash at its end", "a file to write", _ANOTHER)
    if not there:
        raise BadInput("the folder does not exist", target.parent, "nothing", "a folder", f"make it, or {_ANOTHER}")
    return target


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _followed(path: str | os.PathLike[str]) -> int | None:
    try:
        return Path(path).stat().st_mode
    except OSError:
        return None


def check_not_read(output: str | os.PathLike[str], *inputs: str | os.PathLike[str]) -> None:
    """Raise BadInput where a file to write is one of those that are read."""
    for name in inputs:
        try:
            same = Path(output).samefile(name)
        except (OSError, ValueError):  # one of them is not there
            continue
        if same:
            what = "would be written over what is read"
            raise BadInput(what, os.fspath(output), os.fspath(name), "another file", _ANOTHER)


def write_atomically(path: str | os.PathLike[str], pieces: Iterator[bytes | memoryview], cached: bool = True) -> None:
    """Write a file so that it is there as a whole or, after any failure, as it was before.

    Args:
        path: the file.
        pieces: its contents.
        cached: whether the system may keep it in memory. Where it is to be mapped it is better read anew: Linux then
            takes large pages, which it does not for what was written piece by piece.

    Raises:
        BadInput: as for `output_path`.
        GharialError: the file cannot be written (no space, no permission); nothing is left behind.
    """
    target = output_path(path)
    try:
        with partial_file(target) as (file, temporary):
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            if not cached:
                _let_go(file.fileno())
            temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        reason = error.strerror or error
        raise GharialError(f"{target}: cannot be written: {reason}\nnothing was left behind") from error


def _let_go(handle: int) -> None:
    """Have the system forget what it keeps of a file; where it cannot be told to, it does not."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def _sync_folder(folder: Path) -> None:
    """Make the rename last; file systems that cannot sync a folder do without."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
