# SPDX-License-Identifier: Apache-2.0
"""KenLM binaries of any size with random n-grams, written without KenLM: `write(path, seed, words, counts)`.

A second writing of what docs/ngram.md and gharial.ngram say about the format, for tests and benches: hash tables
("probing"), order 3 and more, words included.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_MAGIC = b"mmap lm http://kheafield.com/code format version 5\n"
_MULTIPLIER = 1.5
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
    """Keys of n-grams one word longer to the left; uint64."""
    with np.errstate(over="ignore"):
        longer = hashes * np.uint64(8978948897894561157)
        return longer ^ (words.astype(np.uint64) + np.uint64(1)) * np.uint64(17894857484156487943)


def write(path: Path, seed: int, words: Sequence[str], counts: Sequence[int]) -> None:
    """Write a binary.

    Where the counts of the lower orders are all n-grams that there can be, every lookup goes on to the longest ones.

    Args:
        path: file to write.
        seed: of the n-grams and their values.
        words: the vocabulary, without <unk>, <s> and </s>, which come first.
        counts: n-grams of each order from 2 on, two or more orders. A few less are in it.
    """
    random = np.random.default_rng(seed)
    every = ["<unk>", "<s>", "</s>", *words]
    sizes = (len(every), *counts)
    head = _MAGIC.ljust(56, b"\0") + struct.pack("<fffIIIQ", 0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 0, 1)
    head += struct.pack("<B3xfIB3xI", len(sizes), _MULTIPLIER, 0, 1, 0) + struct.pack(f"<{len(sizes)}Q", *sizes)
    lookup = np.zeros(len(every) - 1, [("key", "<u8"), ("value", "<u4")])
    lookup["key"] = [murmur(word.encode()) for word in every[1:]]
    lookup["value"] = np.arange(1, len(every))
    unigrams = np.zeros(len(every) + 1, [("prob", "<f4"), ("backoff", "<f4")])
    unigrams["prob"] = random.uniform(1, 4, len(unigrams))  # a sign not set: longer n-grams end in it
    unigrams["backoff"] = -random.uniform(0.1, 1, len(unigrams))
    with path.open("wb") as file:
        file.write(head.ljust(-(-len(head) // 8) * 8, b"\0"))
        file.write(struct.pack("<II", 0, len(every)))
        file.write(_table(lookup, sizes[0]).tobytes())
        file.write(unigrams.tobytes())
        # Keys of the n-grams so far; each longer one has a word put before one of them.
        shorter = np.arange(1, len(every), dtype=np.uint64)
        for order, count in enumerate(counts, 2):
            if count >= len(shorter) * (len(every) - 1):  # all there are
                before = np.arange(1, len(every)).repeat(len(shorter))
                keys = np.unique(combine(np.tile(shorter, len(every) - 1), before))
            else:
                chosen = random.integers(0, len(shorter), count)
                keys = np.unique(combine(shorter[chosen], random.integers(1, len(every), count)))
            longest = order == len(sizes)
            fields = [("key", "<u8"), ("prob", "<f4"), *([] if longest else [("backoff", "<f4")])]
            entries = np.zeros(len(keys), fields)
            entries["key"] = keys
            entries["prob"] = (-1 if longest else 1) * random.uniform(0.1, 3, len(keys))
            if not longest:
                entries["backoff"] = -random.uniform(0.1, 1, len(keys))
            table = _table(entries, count)
            file.write(table.tobytes())
            shorter = table["key"][table["key"] != 0]
        file.write(b"".join(word.encode() + b"\0" for word in every))


def _table(entries: np.ndarray, count: int) -> np.ndarray:
    """The hash table, each entry at or behind the place that its key asks for; those that would run over its end, gone.

    Args:
        entries: key, and values.
        count: entries that the header states.
    """
    places = max(count + 1, int(np.float32(_MULTIPLIER) * np.float32(count)))
    wanted = (entries["key"] % np.uint64(places)).astype(np.int64)
    order = np.argsort(wanted, kind="stable")
    index = np.arange(len(entries))
    place = index + np.maximum.accumulate(wanted[order] - index)
    kept = place < places
    table = np.zeros(places, entries.dtype)
    table[place[kept]] = entries[order[kept]]
    return table
