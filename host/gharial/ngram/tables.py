# SPDX-License-Identifier: Apache-2.0
"""Sizes and places of the tables of a KenLM binary, as they follow from its header (docs/ngram.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gharial.errors import BadInput

_REST = 1
_QUANTISED = (3, 5)
_COMPRESSED = (4, 5)
_QUANTISER_VERSION = 2
_MOST_BITS = 25

_LOOKUP = np.dtype([("key", "<u8"), ("number", "<u4")])
_LONGEST = np.dtype([("key", "<u8"), ("prob", "<f4")])
_MIDDLE = np.dtype([("key", "<u8"), ("prob", "<f4"), ("backoff", "<f4")])
_MIDDLE_REST = np.dtype([*[(name, _MIDDLE[name].str) for name in _MIDDLE.names or ()], ("rest", "<f4")])
_UNIGRAM = np.dtype([("prob", "<f4"), ("backoff", "<f4"), ("next", "<u8")])

Read = Callable[[int, int], bytes]
"""Bytes behind the header: (offset, count)."""


@dataclass(frozen=True)
class Quantised:
    """Bits of a quantised trie's probabilities and back-offs."""

    prob_bits: int
    backoff_bits: int


@dataclass(frozen=True)
class Table:
    """A table whose entries are looked at before KenLM does.

    Attributes:
        name: for errors.
        at: offset behind the header.
        entries: how many it has.
        dtype: of an entry; `key` is 0 where a place is empty.
        numbers: whether the entries are words' numbers.
    """

    name: str
    at: int
    entries: int
    dtype: np.dtype
    numbers: bool = False


@dataclass(frozen=True)
class Packed:
    """Pointers of a trie from the n-grams of one order to those of the next, packed by the bit.

    A pointer's high bits are, where they are kept apart, the number of the last place in a rising list of n-grams that
    is not behind the n-gram.

    Attributes:
        name: for errors.
        at: offset behind the header.
        entries: pointers, one more than there are n-grams.
        stride: bits from one pointer to the next.
        first: bits before the first one.
        bits: of a pointer.
        most: largest that a pointer may be: n-grams of the next order.
        high: place of the list for the high bits, and its length; None where there is none. The offset is one behind
            the header that is to be rounded up to a multiple of 8 of the whole file.
    """

    name: str
    at: int
    entries: int
    stride: int
    first: int
    bits: int
    most: int
    high: tuple[int, int] | None

    def high_at(self, start: int) -> int:
        """Offset of the list for the high bits, in a file whose header has `start` bytes."""
        return 0 if self.high is None else -(-(start + self.high[0]) // 8) * 8 + 8


@dataclass(frozen=True)
class Layout:
    """All that lies between header and words.

    Attributes:
        bytes: in all.
        unigrams: offset behind the header.
        tables, pointers: to be looked at.
        quantised: bits, where values are numbers of tables.
        values: offset of these tables, order by order: of probabilities, then of back-offs but for the longest n-grams.
        longest: offset of a trie's longest n-grams, and bits from one to the next.
    """

    bytes: int
    unigrams: int
    tables: tuple[Table, ...]
    pointers: tuple[Packed, ...] = ()
    quantised: Quantised | None = None
    values: int = 0
    longest: tuple[int, int] = (0, 0)


def layout(kind: int, counts: Sequence[int], multiplier: float, read: Read, where: str) -> Layout:
    """What follows the header of a binary of that kind.

    Raises:
        BadInput: settings of a trie that cannot be.
    """
    return _probing(kind == _REST, counts, multiplier) if kind <= _REST else _trie(kind, counts, read, where)


def _probing(rest: bool, counts: Sequence[int], multiplier: float) -> Layout:
    middle = _MIDDLE_REST if rest else _MIDDLE
    at = 8
    tables = [Table("the vocabulary", at, _places(counts[0], multiplier), _LOOKUP, numbers=True)]
    at += tables[0].entries * _LOOKUP.itemsize
    first = at
    at += (counts[0] + 1) * (12 if rest else 8)
    for order, count in enumerate(counts[1:], 2):
        dtype = _LONGEST if order == len(counts) else middle
        tables.append(Table(f"{order}-grams", at, _places(count, multiplier), dtype))
        at += tables[-1].entries * dtype.itemsize
    return Layout(at, first, tuple(tables))


def _places(entries: int, multiplier: float) -> int:
    """Places of a hash table; the product is rounded as KenLM does it, in single precision."""
    return max(entries + 1, int(np.float32(multiplier) * np.float32(entries)))


_AGAIN = "build it again: gharial ngram build"


def _trie(kind: int, counts: Sequence[int], read: Read, where: str) -> Layout:
    order = len(counts)
    at = 8 + 8 * counts[0]
    quantised, values = None, 0
    middle_bits, longest_bits = 63, 31
    if kind in _QUANTISED:
        version, prob, backoff = read(at, 3)
        if version != _QUANTISER_VERSION:
            raise BadInput("the quantisation is of another version", where, version, _QUANTISER_VERSION, _AGAIN)
        if not (1 <= prob <= _MOST_BITS and 1 <= backoff <= _MOST_BITS):
            found = f"{prob} and {backoff}"
            raise BadInput("bits of the quantisation", where, found, f"1 to {_MOST_BITS}", _AGAIN)
        quantised = Quantised(prob, backoff)
        middle_bits, longest_bits = prob + backoff, prob
        values = at + 8
        at += (order - 2) * 4 * ((1 << prob) + (1 << backoff)) + 4 * (1 << prob) + 8
    unigrams = Table("unigrams", at, counts[0] + 1, _UNIGRAM)
    at += (counts[0] + 2) * _UNIGRAM.itemsize
    limit = None
    if kind in _COMPRESSED and order > 2:
        version, limit = read(at, 2)
        if version:
            raise BadInput("the compressed pointers are of another version", where, version, 0, _AGAIN)
    pointers = []
    for below, (entries, following) in enumerate(pairwise(counts[1:]), 2):
        inline, high = following.bit_length(), None
        if limit is not None:
            chopped = _chopped(entries + 1, following, limit)
            inline -= chopped
            high = at, (following >> inline) + 1
            at += 8 * (1 + high[1]) + 7
        before = counts[0].bit_length() + middle_bits
        pointers.append(Packed(f"{below}-grams", at, entries + 1, before + inline, before, inline, following, high))
        at += _packed(entries, counts[0], middle_bits + inline)
    longest = at, counts[0].bit_length() + longest_bits
    at += _packed(counts[-1], counts[0], longest_bits)
    return Layout(at, unigrams.at, (unigrams,), tuple(pointers), quantised, values, longest)


def _packed(entries: int, words: int, bits: int) -> int:
    """Bytes of an array packed by the bit: one entry more, and eight bytes that reads may run over into."""
    return ((1 + entries) * (words.bit_length() + bits) + 7) // 8 + 8


def _chopped(entries: int, following: int, limit: int) -> int:
    """High bits of the pointers that are kept in a table of their own: as many as save most."""
    required = following.bit_length()
    return min(
        range(min(required, limit) + 1),
        key=lambda chop: (following >> (required - chop)) * 64 - entries * chop,
    )
