# SPDX-License-Identifier: Apache-2.0
"""N-grams as text (ARPA): told from other text, and what is wrong with one, by its line.

KenLM reads such files without doubt of their counts, and tells what it does not take by a place in its own source. So
the counts are looked at before KenLM gets a file, and the rest where KenLM refused it.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from math import isfinite
from pathlib import Path

from gharial.checkpoint.text import shown
from gharial.errors import BadInput
from gharial.files import open_regular
from gharial.ngram.header import MAX_ORDER

GZIP = b"\x1f\x8b"
_BEGIN, _END = b"\\data\\", b"\\end\\"
_MARK = b"\xef\xbb\xbf"  # byte order mark
_CHUNK = 1 << 20
_LONGEST = 1 << 20  # bytes of a line
_MOST_UNPACKED = 1032  # bytes out of one of a packed file, at most
_COUNT = re.compile(rb"ngram[\t ]+(\d{1,2})=[\t ]*(\d{1,20})[\t ]*")
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-inf(?:inity)?", re.IGNORECASE)
_WORD, _BETWEEN = rb"[^\t\r ]+", rb"[\t\r ]+"
_UNKNOWN = (b"<unk>", b"<UNK>")
_EXPECTED = "an n-gram as text (ARPA)"
_AGAIN = "write the ARPA file again, or take it from a whole copy"


def is_arpa(path: Path) -> bool:
    """Whether a file is an n-gram as text; it may be packed (gzip), and begin with comments.

    Raises:
        BadInput: it cannot be read.
    """
    with _opened(path) as file:
        for line in file.read(_CHUNK).removeprefix(_MARK).split(b"\n"):
            if line.strip() and not line.startswith(b"#"):
                return line.lstrip().startswith(_BEGIN)
    return False


def is_plain(path: Path) -> bool:
    """Whether a file's bytes are the text itself, which KenLM reads from the file; else it is given `blocks`."""
    with open_regular(path, _EXPECTED) as file:
        return not file.read(len(_MARK)).startswith((GZIP, _MARK))


def blocks(path: Path) -> Iterator[bytes]:
    """The text, unpacked and without byte order mark.

    Raises:
        BadInput: the packed file is damaged.
    """
    with _opened(path) as file:
        data = file.read(_CHUNK).removeprefix(_MARK)
        while data:
            yield data
            data = file.read(_CHUNK)


def check_counts(path: Path) -> None:
    """Look at what an ARPA file says about itself: orders, and counts of n-grams that the file has room for.

    Raises:
        BadInput: KenLM should not be given this file.
    """
    with _opened(path) as file:
        _Reader(file, path).counts()


def check(path: Path) -> None:
    """Look at every line of an ARPA file, which takes a second or two for a million of them.

    Raises:
        BadInput: the first fault: its line, what was found and what was expected.
    """
    with _opened(path) as file:
        _Reader(file, path).whole()


@contextmanager
def _opened(path: Path) -> Iterator[BufferedIOBase]:
    with open_regular(path, _EXPECTED) as raw:
        packed = raw.read(len(GZIP)) == GZIP
        raw.seek(0)
        try:
            yield gzip.GzipFile(fileobj=raw) if packed else raw
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise BadInput("the packed file is damaged", path, error, "a whole gzip file", "copy it again") from None


class _Reader:
    """Goes through one file line by line."""

    def __init__(self, file: BufferedIOBase, path: Path) -> None:
        self._file = file
        self._path = path
        self._number = 0
        self._words: set[bytes] = set()

    def counts(self) -> list[int]:
        """Of each order from 1 on."""
        line = self._next()
        while line is not None and line.startswith(b"#"):
            line = self._next()
        if line != _BEGIN:
            raise self._bad("an ARPA file begins otherwise", line, f"{_BEGIN.decode()} alone on its line")
        counts: list[int] = []
        while (line := self._line()) is not None and line.strip():
            match, order = _COUNT.fullmatch(line), len(counts) + 1
            if match is None or int(match[1]) != order:
                raise self._bad("this is no count of n-grams", line, f"ngram {order}=COUNT, or an empty line")
            counts.append(int(match[2]))
            # An n-gram has a number, and each of its words a separator and a character at least.
            most = self._room() // (2 + 2 * order)
            if counts[-1] > most:
                raise self._bad("the file has no room for so many n-grams", line, f"{most} at most")
        if not 2 <= len(counts) <= MAX_ORDER:
            what, expected = "the order is not supported", f"2 to {MAX_ORDER}"
            raise BadInput(what, self._path, len(counts), expected, "give an n-gram of such an order")
        return counts

    def whole(self) -> None:
        """All lines."""
        counts = self.counts()
        for order, count in enumerate(counts, 1):
            before = f", after {counts[order - 2]} {order - 1}-grams as counted above" if order > 1 else ""
            self._title(b"\\%d-grams:" % order, before)
            self._section(order, count, order == len(counts))
            if order == 1:
                self._check_sentence_marks()
        self._title(_END, f", after {counts[-1]} {len(counts)}-grams as counted above")
        line = self._next()
        if line is not None:
            raise self._bad("the file goes on behind its end", line, "nothing")

    def _title(self, wanted: bytes, before: str) -> None:
        line = self._next()
        if line != wanted:
            raise self._bad("a part of the file is missing, or of another length", line, wanted.decode() + before)

    def _section(self, order: int, count: int, last: bool) -> None:
        separator = rb"\t" if order == 1 else _BETWEEN
        words = _BETWEEN.join([_WORD] * order)
        entry = re.compile(rb"[\t\r ]*([^\t\r ]+)" + separator + rb"(" + words + rb")(?:\t([^\t\r ]+))?")
        for number in range(count):
            line = self._next()
            if line is None or line.startswith(b"\\"):
                found = f"{number} of them, then {'the end of the file' if line is None else shown(line)}"
                where = f"{self._path}, line {self._number}"
                raise BadInput(f"{order}-grams are missing", where, found, f"{count} as counted above", _AGAIN)
            match = entry.fullmatch(line)
            if match is None or b"\0" in line:
                parts = "log10 of its probability, a tab, its words with spaces between, perhaps a tab and a back-off"
                raise self._bad(f"this is no {order}-gram", line, parts)
            self._check_values(match[1], match[3], last)
            if order == 1:
                self._words.add(match[2])
            else:
                self._check_words(re.split(_BETWEEN, match[2]))

    def _check_values(self, probability: bytes, backoff: bytes | None, last: bool) -> None:
        if not _NUMBER.fullmatch(probability) or float(probability) > 0:
            raise self._bad("this is no log10 of a probability", probability, "a number up to 0")
        if backoff is None:
            return
        if not _NUMBER.fullmatch(backoff) or not isfinite(float(backoff)):
            raise self._bad("this is no back-off", backoff, "a number")
        if last and float(backoff):
            raise self._bad("an n-gram of the highest order has a back-off", backoff, "none")

    def _check_words(self, words: list[bytes]) -> None:
        for word in words:
            if word not in self._words and word not in _UNKNOWN:
                raise self._bad("a word is not among the 1-grams", word, "one of them")

    def _check_sentence_marks(self) -> None:
        for word in (b"<s>", b"</s>"):
            if word not in self._words:
                raise BadInput("a 1-gram is missing", self._path, "none", word.decode(), _AGAIN)

    def _next(self) -> bytes | None:
        """The next line with something on it, None at the end."""
        while (line := self._line()) is not None:
            if line.strip():
                return line
        return None

    def _line(self) -> bytes | None:
        line = self._file.readline(_LONGEST + 1)
        if not line:
            return None
        self._number += 1
        if len(line) > _LONGEST:
            raise self._bad("a line is too long", line, "1 MiB at most")
        if self._number == 1:
            line = line.removeprefix(_MARK)
        return line.removesuffix(b"\n").removesuffix(b"\r")

    def _room(self) -> int:
        """Bytes that the text can have."""
        size = self._path.stat().st_size
        return size * _MOST_UNPACKED if isinstance(self._file, gzip.GzipFile) else size

    def _bad(self, what: str, found: bytes | None, expected: str) -> BadInput:
        where = f"{self._path}, line {self._number}"
        text = "the end of the file" if found is None else shown(found[:400].decode("utf-8", "replace"))
        return BadInput(what, where, text, expected, _AGAIN)
