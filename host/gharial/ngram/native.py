# SPDX-License-Identifier: Apache-2.0
"""The tables of a KenLM binary for the search's core, which scores from the mapped file by itself (docs/ngram.md)."""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress

from gharial.decoding._search import Ngram
from gharial.errors import BadInput
from gharial.files import open_regular
from gharial.ngram.checking import NgramFile
from gharial.ngram.header import BinaryHeader

_MOST_WORDS = 1 << 31


def native_ngram(file: NgramFile) -> Ngram | None:
    """What the core scores from: the file, mapped; None where the core does not read such a file.

    Args:
        file: one that has been looked at.

    Raises:
        BadInput: it is not the file any more that was looked at.
    """
    if sys.byteorder != "little" or file.header.words > _MOST_WORDS:
        return None
    with open_regular(file.path, "an n-gram file") as source:
        status = os.fstat(source.fileno())
        if (status.st_dev, status.st_ino) != file.identity or status.st_size < file.header.end:
            raise BadInput(
                "the file was replaced while it was opened",
                file.path,
                "another file",
                "the one that was checked",
                "open it again",
            )
        # The mapping lives as long as what reads it.
        data = mmap.mmap(source.fileno(), file.header.end, access=mmap.ACCESS_READ)
        # An n-gram is looked up all over the file: with pages of 4 KiB each look begins with one at the pages.
        with suppress(AttributeError, OSError):  # not every system has large ones for files
            data.madvise(mmap.MADV_HUGEPAGE)
        return described(file.header, data)


def described(header: BinaryHeader, data: mmap.mmap | bytes) -> Ngram:
    """Tables of a binary in memory, as its header says.

    Raises:
        ValueError: they do not fit into it.
    """
    if header.kind.startswith("probing"):
        return _probing(header, data)
    return _trie(header, data)


def _probing(header: BinaryHeader, data: mmap.mmap | bytes) -> Ngram:
    start, layout = header.start, header.layout
    vocabulary, *grams = layout.tables
    return Ngram(
        data,
        False,
        header.words,
        *(start + vocabulary.at, vocabulary.entries),
        *(start + layout.unigrams, 12 if header.kind == "probing with rest costs" else 8),
        (0, 0, 0),
        tuple((start + one.at, one.entries, one.dtype.itemsize, 0, 0, 0, 0, 0, 0) for one in grams),
    )


def _trie(header: BinaryHeader, data: mmap.mmap | bytes) -> Ngram:
    start, layout, quantised = header.start, header.layout, header.quantised
    prob_bits, backoff_bits = (quantised.prob_bits, quantised.backoff_bits) if quantised else (0, 0)
    probs = 4 * (1 << prob_bits)
    both = probs + 4 * (1 << backoff_bits)
    values = [start + layout.values + both * at if quantised else 0 for at in range(header.order - 1)]
    tables = [
        (
            *(start + one.at, one.entries - 1, one.stride, one.first, one.bits),
            *(one.high_at(start), one.high[1] if one.high else 0),
            *(values[at], values[at] + probs if quantised else 0),
        )
        for at, one in enumerate(layout.pointers)
    ]
    at, stride = layout.longest
    tables.append((start + at, header.counts[-1], stride, stride, 0, 0, 0, values[-1], 0))
    return Ngram(
        data,
        True,
        header.words,
        *(start + 8, header.words - 1),
        *(start + layout.unigrams, 16),
        (header.counts[0].bit_length(), prob_bits, backoff_bits),
        tuple(tables),
    )
