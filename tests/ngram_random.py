# SPDX-License-Identifier: Apache-2.0
"""Random n-grams as KenLM binaries and ARPA files, with all that KenLM tells apart in their values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gharial.bench.ngram_file import LONGEST, MIDDLE, SPECIAL, UNIGRAM, combine, head, table, tail

WORDS = ["a", "b", "▁", "▁a", "ab", "word", "▁longer-than-eight-bytes", "ä"]


def grams(rng: np.random.Generator, order: int, words: int, most: int) -> list[np.ndarray]:
    """Numbers of words, (n, length) by length: what an n-gram begins with is one, and so is what it ends in."""
    found = [np.arange(1, words)[:, None]]
    for length in range(2, order + 1):
        shorter = {tuple(row) for row in found[-1].tolist()}
        first = sorted(row for row in shorter if row[-1] != 2)  # nothing follows </s>
        picked = {(*first[i], int(rng.integers(2, words))) for i in rng.integers(0, len(first), most)}
        found.append(np.array(sorted(one for one in picked if one[1:] in shorter) or [(*first[0], 3)])[:, :length])
    return found


def backoffs(rng: np.random.Generator, count: int) -> np.ndarray:
    """Negative ones, a few positive, and both zeros: of what nothing follows, and of what something does."""
    values = rng.choice([-0.0, 0.0, -1.0, 0.25], count, p=[0.3, 0.1, 0.5, 0.1])
    return np.where(values == -1.0, -rng.random(count), values).astype(np.float32)


def write_binary(
    path: Path, rng: np.random.Generator, order: int, words: Sequence[str] = WORDS, most: int = 400
) -> None:
    """Hash tables in which nothing but the format holds: also n-grams whose shorter ones are not there."""
    every = [*SPECIAL, *words]
    counts, parts = [len(every)], list[bytes]()
    unigrams = np.zeros(len(every) + 1, UNIGRAM)
    unigrams["prob"] = 3 * rng.random(len(unigrams)) * rng.choice([-1, 1, 1], len(unigrams))
    unigrams["backoff"] = backoffs(rng, len(unigrams))
    for length, some in enumerate(grams(rng, order, len(every), most)[1:], 2):
        key = some[:, -1].astype(np.uint64)
        for at in range(length - 2, -1, -1):
            key = combine(key, some[:, at])
        entries = np.zeros(len(some), MIDDLE if length < order else LONGEST)
        entries["key"] = key
        entries["prob"] = 3 * rng.random(len(some)) * rng.choice([-1, 1, 1], len(some))
        if length < order:
            entries["backoff"] = backoffs(rng, len(some))
        counts.append(len(some))
        parts.append(table(entries, len(some)))
    path.write_bytes(head(every, counts) + unigrams.tobytes() + b"".join(parts) + tail(every))


def write_arpa(path: Path, rng: np.random.Generator, order: int, words: Sequence[str] = WORDS, most: int = 400) -> None:
    """An ARPA file."""
    every = [*SPECIAL, *words]
    found = grams(rng, order, len(every), most)
    found[0] = np.arange(len(every))[:, None]
    lines = ["\\data\\", *(f"ngram {length}={len(some)}" for length, some in enumerate(found, 1))]
    for length, some in enumerate(found, 1):
        lines += ["", f"\\{length}-grams:"]
        for row, backoff in zip(some.tolist(), backoffs(rng, len(some)).tolist(), strict=True):
            text = f"{-3 * rng.random():.6f}\t{' '.join(every[word] for word in row)}"
            lines.append(text if length == order else f"{text}\t{backoff:.6f}")
    path.write_text("\n".join([*lines, "", "\\end\\", ""]), encoding="utf-8")
