# SPDX-License-Identifier: Apache-2.0
"""KenLM binaries written without KenLM: hash tables ("probing"), 3-grams and longer, words included.

A second writing of what docs/ngram.md and gharial.ngram say about the format, for benches and tests.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

MULTIPLIER = 1.5
SPECIAL = ("<unk>", "<s>", "</s>")
"""Words that come first."""
UNIGRAM = np.dtype([("prob", "<f4"), ("backoff", "<f4")])
MIDDLE = np.dtype([("key", "<u8"), ("prob", "<f4"), ("backoff", "<f4")])
LONGEST = np.dtype([("key", "<u8"), ("prob", "<f4")])
_MAGIC = b"mmap lm http://kheafield.com/code format version 5\n"
_MASK = (1 << 64) - 1


def murmur(data: bytes) -> int:
    """MurmurHash64A with seed 0, the hash of KenLM's vocabulary. Source: the algorithm's public description."""
    m = 0xC6A4A7935BD1E995
    value = len(data) * m & _MASK
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        k = int.from_bytes(data[at : at + 8], "little") * m & _MASK
        value = (value ^ (k ^ k >> 47) * m & _MASK) * m & _MASK
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * m & _MASK
    value = (value ^ value >> 47) * m & _MASK
    return value ^ value >> 47


def combine(hashes: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Keys of n-grams one word longer to the left; uint64. A word's own key is its number."""
    with np.errstate(over="ignore"):
        longer = hashes.astype(np.uint64) * np.uint64(8978948897894561157)
        return np.asarray(longer ^ (words.astype(np.uint64) + np.uint64(1)) * np.uint64(17894857484156487943))


def places(entries: int) -> int:
    """Places of a hash table."""
    return max(entries + 1, int(np.float32(MULTIPLIER) * np.float32(entries)))


def head(words: Sequence[str], counts: Sequence[int]) -> bytes:
    """All before the unigrams.

    Args:
        words: all, the special ones first.
        counts: n-grams of each order from 1 on.
    """
    data = _MAGIC.ljust(56, b"\0") + struct.pack("<fffIIIQ", 0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 0, 1)
    data += struct.pack("<B3xfIB3xI", len(counts), MULTIPLIER, 0, 1, 0) + struct.pack(f"<{len(counts)}Q", *counts)
    lookup = np.zeros(len(words) - 1, [("key", "<u8"), ("value", "<u4")])
    lookup["key"] = [murmur(word.encode()) for word in words[1:]]
    lookup["value"] = np.arange(1, len(words))
    return data.ljust(-(-len(data) // 8) * 8, b"\0") + struct.pack("<II", 0, len(words)) + table(lookup, counts[0])


def table(entries: np.ndarray, count: int) -> bytes:
    """A hash table, each entry at or behind the place that its key asks for; the first place follows the last.

    Args:
        entries: key, and values; each key once, none 0.
        count: entries that the header states.
    """
    room = places(count)
    wanted = (entries["key"] % np.uint64(room)).astype(np.int64)
    order = np.argsort(wanted, kind="stable")
    index = np.arange(len(entries))
    place = index + np.maximum.accumulate(wanted[order] - index)
    found = np.zeros(room, entries.dtype)
    kept = place < room
    found[place[kept]] = entries[order[kept]]
    beyond = order[~kept]
    found[np.flatnonzero(found["key"] == 0)[: len(beyond)]] = entries[beyond]
    return found.tobytes()


def tail(words: Sequence[str]) -> bytes:
    """The words themselves, behind all tables."""
    return b"".join(word.encode() + b"\0" for word in words)
