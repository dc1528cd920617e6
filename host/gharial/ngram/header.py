# SPDX-License-Identifier: Apache-2.0
"""KenLM's binary format from outside: the header, the sizes that follow from it, and whether a file agrees with them.

KenLM maps a file and follows what is in it, so a damaged one can take the process with it. What is looked at here
keeps that from happening (docs/ngram.md, "What is trusted"). Format 5, little-endian, 64 bits. Source: KenLM's own
reader (lm/binary_format.cc, search_hashed.hh, search_trie.hh, vocab.cc), release 0.3.0.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from gharial.errors import BadInput
from gharial.files import LFS_POINTER
from gharial.ngram.tables import Layout, Packed, Quantised, layout

MAX_ORDER = 6
"""Of KenLM's packages as they are built by default."""

MAX_COUNT = 1 << 40
"""N-grams of one order, at most: terabytes. Keeps every size far from overflow."""

MAGIC = b"mmap lm http://kheafield.com/code format version 5\n"
_MAGIC_START = b"mmap lm http://kheafield.com/code"
_SANITY = MAGIC.ljust(56, b"\0") + struct.pack("<fffIIIQ", 0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 0, 1)
_FIXED = struct.Struct("<B3xfIB3xI")
_ARPA = b"\\data\\"
_UNKNOWN = b"<unk>\0"
_CHUNK = 1 << 16
_POINTERS = 1 << 16  # looked at together
_MAX_MULTIPLIER = 1000.0
_DAMAGED = "copy the file again: it is damaged"

KINDS = (
    "probing",
    "probing with rest costs",
    "trie",
    "quantised trie",
    "trie with compressed pointers",
    "quantised trie with compressed pointers",
)
"""By KenLM's number."""


@dataclass(frozen=True)
class BinaryHeader:
    """What a KenLM binary is.

    Attributes:
        order: length of its longest n-grams.
        counts: n-grams of each order, from 1 on.
        kind: one of `KINDS`.
        multiplier: places of a hash table for each entry (kinds "probing").
        quantised: bits of probabilities and back-offs (kinds "quantised"), else None.
        words: words of the vocabulary, the unknown word among them.
        has_words: whether the file holds the words themselves.
        words_at: where they begin, or would.
        end: bytes of the KenLM data; what lies behind is not KenLM's.
        start: bytes of the header.
        layout: where the tables are.
    """

    order: int
    counts: tuple[int, ...]
    kind: str
    multiplier: float
    quantised: Quantised | None
    words: int
    has_words: bool
    words_at: int
    end: int
    start: int
    layout: Layout


def read_header(file: BinaryIO, where: str) -> BinaryHeader:
    """The header of a KenLM binary, held against the file.

    Args:
        file: open for reading, or its bytes as io.BytesIO; its position is changed.
        where: its name, for errors.

    Raises:
        BadInput: no KenLM binary (an ARPA file, an LFS pointer and an unfinished binary are told apart), one of
            another version, or one whose parts do not fit each other or the file.
    """
    return _Reader(file, where).header()


class _Reader:
    """One file; every read is within its size."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        self._file = file
        self._where = where
        self._size = file.seek(0, os.SEEK_END)

    def header(self) -> BinaryHeader:
        self._check_magic()
        order, multiplier, kind, has_words, version = _FIXED.unpack(self._read(len(_SANITY), _FIXED.size))
        if not 2 <= order <= MAX_ORDER:
            raise self._bad("the order is not supported", order, f"2 to {MAX_ORDER}")
        if kind >= len(KINDS) or has_words > 1:
            raise self._bad("the header is damaged", f"kind {kind}, vocabulary {has_words}", None)
        probing = kind < 2
        if version != (0 if probing else 1):
            raise self._bad("the tables are of another version", version, 0 if probing else 1)
        if not 1.0 <= multiplier <= _MAX_MULTIPLIER:  # not a number is neither
            raise self._bad("the header is damaged", f"a probing multiplier of {multiplier}", "1 or more")
        counts = struct.unpack(f"<{order}Q", self._read(len(_SANITY) + _FIXED.size, 8 * order))
        if not all(count <= MAX_COUNT for count in counts) or not counts[0]:
            raise self._bad("the header is damaged", f"counts {', '.join(map(str, counts))}", f"up to {MAX_COUNT}")
        start = -(-(len(_SANITY) + _FIXED.size + 8 * order) // 8) * 8
        tables = layout(kind, counts, multiplier, lambda at, count: self._read(start + at, count), self._where)
        words_at = start + tables.bytes
        if words_at > self._size:
            raise self._truncated(words_at)
        words = self._check_probing(start, tables, counts) if probing else self._check_trie(start, tables, counts)
        return BinaryHeader(
            order=order,
            counts=counts,
            kind=KINDS[kind],
            multiplier=multiplier,
            quantised=tables.quantised,
            words=words,
            has_words=bool(has_words),
            words_at=words_at,
            end=self._end_of_words(words_at, words) if has_words else words_at,
            start=start,
            layout=tables,
        )

    def _check_magic(self) -> None:
        self._file.seek(0)
        head = self._file.read(len(_SANITY))
        if head == _SANITY:
            return
        if not self._size:
            raise self._bad("the file is empty", "0 bytes", "a KenLM binary", "copy or build it again")
        if head.startswith(LFS_POINTER):
            raise self._bad("this is a Git LFS pointer", f"{self._size} bytes", "a KenLM binary", "git lfs pull")
        if head.lstrip().startswith(_ARPA):
            remedy = "make a binary of it: gharial ngram build FILE.arpa --model M -o FILE.binary"
            raise self._bad("this is an ARPA file", "text", "a KenLM binary", remedy)
        if head.startswith(_MAGIC_START + b" incomplete"):
            raise self._bad("the binary was never finished", None, None, "build it again")
        if head.startswith(_MAGIC_START) and not head.startswith(MAGIC[: len(head)]):
            found = head[len(_MAGIC_START) :].split(b"\n")[0].decode("ascii", "replace")[:40].strip()
            raise self._bad("a KenLM binary of another format", found, "format version 5", "build it again")
        if MAGIC.startswith(head):
            raise self._truncated(len(_SANITY))
        if head.startswith(MAGIC):
            raise self._bad("the header is damaged, or made by another kind of machine", None, None, _DAMAGED)
        raise self._bad("this is no n-gram file", f"bytes {head[:8].hex(' ')}", "a KenLM binary")

    def _check_probing(self, start: int, tables: Layout, counts: tuple[int, ...]) -> int:
        """Number of words; the vocabulary's numbers and an empty place in each table are seen to."""
        version, words = struct.unpack("<II", self._read(start, 8))
        if version:
            raise self._bad("the vocabulary is of another version", version, 0)
        if not 1 <= words <= counts[0] + 1:
            raise self._bad("the header is damaged", f"{words} words", f"1 to {counts[0] + 1}")
        for table in tables.tables:
            empty = False
            for chunk in self._entries(start + table.at, table.entries, table.dtype):
                free = chunk["key"] == 0
                empty = empty or bool(free.any())
                if table.numbers and not bool((free | (chunk["number"] < words)).all()):
                    raise self._bad("the vocabulary table is damaged", "a word's number beyond the words")
                if empty and not table.numbers:
                    break
            if not empty:
                raise self._bad(f"the table of {table.name} is damaged", "no empty place")
        return int(words)

    def _check_trie(self, start: int, tables: Layout, counts: tuple[int, ...]) -> int:
        """Number of words; all pointers are seen to."""
        (known,) = struct.unpack("<Q", self._read(start, 8))
        if known >= counts[0]:
            raise self._bad("the header is damaged", f"{known + 1} words", f"up to {counts[0]}")
        (table,) = tables.tables
        unigrams = self._entries(start + table.at, table.entries, table.dtype)
        self._check_rising((chunk["next"] for chunk in unigrams), counts[1], table.name)
        for packed in tables.pointers:
            self._check_rising(self._pointers(start, packed), packed.most, packed.name)
        return int(known) + 1

    def _check_rising(self, pieces: Iterator[np.ndarray], most: int, name: str) -> None:
        """That pointers never fall and stay within the next table: what KenLM's search needs to stay inside it."""
        last = 0
        for values in pieces:
            rising = bool((values[1:] >= values[:-1]).all()) and int(values[0]) >= last
            last = int(values[-1])
            if not rising or last > most:
                raise self._bad(f"the table of {name} is damaged", "pointers out of order")

    def _pointers(self, start: int, packed: Packed) -> Iterator[np.ndarray]:
        """A trie's pointers of one order, piece by piece, uint64."""
        places = self._high_bits(start, packed)
        for first in range(0, packed.entries, _POINTERS):
            count = min(_POINTERS, packed.entries - first)
            bit = packed.first + packed.stride * first
            begin = bit // 8
            bits = (bit - 8 * begin) + packed.stride * np.arange(count)
            # Eight bytes from each pointer's first one on; a pointer has fewer than 57 bits.
            data = self._read(start + packed.at + begin, int(bits[-1]) // 8 + 8)
            windows = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
            values = windows[bits >> 3] >> (bits & 7).astype(np.uint64) & np.uint64((1 << packed.bits) - 1)
            if places is not None:
                high = np.searchsorted(places, np.arange(first, first + count, dtype=np.uint64), "right") - 1
                values |= high.astype(np.uint64) << np.uint64(packed.bits)
            yield values

    def _high_bits(self, start: int, packed: Packed) -> np.ndarray | None:
        """The list that holds high bits of the pointers; a first place that is not 0 would be before the list."""
        if packed.high is None:
            return None
        places = np.frombuffer(self._read(packed.high_at(start), 8 * packed.high[1]), "<u8")
        if places[0] or not bool((places[1:] >= places[:-1]).all()):
            raise self._bad(f"the table of {packed.name} is damaged", "high bits of pointers out of order")
        return places

    def _entries(self, at: int, count: int, dtype: np.dtype) -> Iterator[np.ndarray]:
        step = max(1, _CHUNK // dtype.itemsize)
        for first in range(0, count, step):
            some = min(step, count - first)
            yield np.frombuffer(self._read(at + first * dtype.itemsize, some * dtype.itemsize), dtype)

    def _end_of_words(self, at: int, words: int) -> int:
        """Where the list of words ends: behind as many zero bytes as there are words."""
        if self._read(at, len(_UNKNOWN)) != _UNKNOWN:
            raise self._bad("the list of words is damaged", "another first word", "<unk>")
        while words:
            if at >= self._size:
                raise self._truncated(at + words)
            chunk = self._read(at, min(_CHUNK, self._size - at))
            ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == 0)
            if len(ends) >= words:
                return at + int(ends[words - 1]) + 1
            words -= len(ends)
            at += len(chunk)
        return at

    def _read(self, at: int, count: int) -> bytes:
        if at + count > self._size:
            raise self._truncated(at + count)
        self._file.seek(at)
        data = self._file.read(count)
        if len(data) != count:  # it shrank while it was read
            raise self._truncated(at + count)
        return data

    def _truncated(self, expected: int) -> BadInput:
        found = f"{self._size} bytes"
        return self._bad("the file is truncated", found, f"at least {expected}", "copy or build it again")

    def _bad(self, what: str, found: object = None, expected: object = None, remedy: str | None = _DAMAGED) -> BadInput:
        return BadInput(what, self._where, found, expected, remedy)
