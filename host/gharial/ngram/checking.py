# SPDX-License-Identifier: Apache-2.0
"""Whether an n-gram file is good, and for whom."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from gharial.errors import BadInput
from gharial.files import open_regular
from gharial.ngram import trailer
from gharial.ngram.header import BinaryHeader, read_header

_warned: set[tuple[int, int]] = set()  # device and inode of the unmarked files that were warned about


@dataclass(frozen=True)
class NgramFile:
    """A file that has been looked at.

    Attributes:
        path: its name.
        bytes: its size, mark included.
        header: what the KenLM binary is.
        mark: whom it was made for, None where it does not say.
        foreign: bytes behind the KenLM data that are no known mark.
        identity: device and inode.
    """

    path: str
    bytes: int
    header: BinaryHeader
    mark: trailer.Mark | None
    foreign: int
    identity: tuple[int, int]


def read_file(path: str | os.PathLike[str], *, any_mark: bool = False) -> NgramFile:
    """Look at an n-gram file: header, sizes, mark.

    Args:
        path: the file.
        any_mark: take a mark that is damaged or not known for foreign bytes, in place of raising.

    Raises:
        BadInput: it is no usable KenLM binary, or its mark is damaged or of a version that is not known.
    """
    name = os.fspath(path)
    with open_regular(name, "an n-gram file") as file:
        status = os.fstat(file.fileno())
        return read_open(file, status.st_size, name, (status.st_dev, status.st_ino), any_mark=any_mark)


def read_open(
    file: BinaryIO, size: int, name: str, identity: tuple[int, int] = (0, 0), *, any_mark: bool = False
) -> NgramFile:
    """`read_file` of one that is open already, or in memory: `size` bytes, called `name`."""
    header = read_header(file, name)
    extra = size - header.end
    mark = None
    if extra:
        tail = min(extra, trailer.LONGEST)
        file.seek(size - tail)
        try:
            mark = trailer.decode(file.read(tail), name)
        except BadInput:
            if not any_mark:
                raise
    foreign = extra - (mark.length if mark is not None else 0)
    return NgramFile(name, size, header, mark, foreign, identity)


def check_file(
    path: str | os.PathLike[str], sentencepiece: bytes, note: Callable[[str], object] | None = None
) -> NgramFile:
    """Look at an n-gram file that is to be used with a model.

    Args:
        path: the file.
        sentencepiece: bytes of the model's SentencePiece `.model` file.
        note: called with a warning about a file that does not say whom it is for, once for each file in the life of
            the process; None for Python's `warnings.warn`.

    Raises:
        BadInput: all that `read_file` raises; or the file was made for another SentencePiece model (both digests).
    """
    file = read_file(path)
    if file.mark is None:
        if file.identity not in _warned:
            _warned.add(file.identity)
            (note or _warn)(unmarked(file))
    elif not file.mark.fits(sentencepiece):
        raise BadInput(
            "the n-gram was made for another SentencePiece model",
            file.path,
            file.mark,
            trailer.digest_text(sentencepiece, file.mark.algorithm),
            "use the n-gram that was made with this model, or build one: gharial ngram build",
        )
    return file


def unmarked(file: NgramFile) -> str:
    """What is said about a file without a known mark."""
    ends = f"ends in {file.foreign} bytes that are no mark known here" if file.foreign else "is not marked"
    return (
        f"{file.path} {ends}: whether it was made with this model's SentencePiece model is not known; "
        "mark it with: gharial ngram append FILE --model M"
    )


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)
