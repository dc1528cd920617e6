# SPDX-License-Identifier: Apache-2.0
"""Marks put on n-gram files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

from gharial.errors import BadInput
from gharial.files import open_regular, write_atomically
from gharial.ngram import trailer
from gharial.ngram.checking import NgramFile, read_file, read_open

_CHUNK = 1 << 20


def append_mark(path: str | os.PathLike[str], sentencepiece: bytes, *, force: bool = False) -> bool:
    """Mark a file as made for a SentencePiece model; a new file takes the old one's place by a rename.

    Args:
        path: the n-gram file.
        sentencepiece: bytes of the `.model` file.
        force: replace whatever stands behind the KenLM data.

    Returns:
        Whether it was written; False where it has this very mark already.

    Raises:
        BadInput: no usable KenLM binary; without `force` also another model's mark, a damaged one, or bytes behind
            the KenLM data that are no known mark.
        GharialError: it cannot be written; the file is as it was.
    """
    file = read_file(path, any_mark=force)
    if file.mark is not None and file.mark.fits(sentencepiece) and not file.foreign:
        return False
    if not force:
        _check_unmarked(file, sentencepiece)
    mode = Path(path).stat().st_mode
    write_atomically(path, _pieces(file, trailer.encode(sentencepiece)), cached=False)
    Path(path).chmod(mode & 0o7777)
    return True


def marked(binary: bytes, sentencepiece: bytes, name: str) -> Iterator[bytes | memoryview]:
    """What `append_mark` makes of a file, of bytes in memory: the KenLM data and the mark, as pieces to write.

    Args:
        binary: a KenLM binary.
        sentencepiece: bytes of the `.model` file that it was made for.
        name: how messages call it.

    Raises:
        BadInput: as for `append_mark`.
    """
    file = read_open(io.BytesIO(binary), len(binary), name)
    if file.mark is None or not file.mark.fits(sentencepiece) or file.foreign:
        _check_unmarked(file, sentencepiece)
    return iter((memoryview(binary)[: file.header.end], trailer.encode(sentencepiece)))


def _check_unmarked(file: NgramFile, sentencepiece: bytes) -> None:
    if file.mark is not None:
        raise BadInput(
            "the file is marked for another SentencePiece model",
            file.path,
            file.mark,
            trailer.digest_text(sentencepiece, file.mark.algorithm),
            "if it was made for this model all the same, replace the mark with --force",
        )
    if file.foreign:
        raise BadInput(
            "there are bytes behind the KenLM data that are no mark known here",
            file.path,
            f"{file.foreign} bytes",
            "none",
            "they may be another program's mark; --force puts this one in their place",
        )


def _pieces(file: NgramFile, mark: bytes) -> Iterator[bytes]:
    """The KenLM data, and the mark."""
    left = file.header.end
    with open_regular(file.path, "an n-gram file") as source:
        while left:
            data = source.read(min(_CHUNK, left))
            if not data:
                raise BadInput(
                    "the file shrank while it was read",
                    file.path,
                    f"{file.header.end - left} bytes",
                    f"{file.header.end} bytes",
                    "try again once nothing writes to it",
                )
            left -= len(data)
            yield data
    yield mark
