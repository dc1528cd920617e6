# SPDX-License-Identifier: Apache-2.0
"""Words of a KenLM binary that keeps them."""

from __future__ import annotations

from collections.abc import Iterator

from gharial.files import open_regular
from gharial.ngram.checking import NgramFile

_CHUNK = 1 << 20


def words(file: NgramFile) -> Iterator[bytes]:
    """The words in the order of their numbers, the unknown word first; none where the file does not hold them."""
    if not file.header.has_words:
        return
    left = file.header.end - file.header.words_at
    rest = b""
    with open_regular(file.path, "an n-gram file") as source:
        source.seek(file.header.words_at)
        while left:
            data = source.read(min(_CHUNK, left))
            if not data:
                return  # it shrank meanwhile
            left -= len(data)
            *whole, rest = (rest + data).split(b"\0")
            yield from whole
