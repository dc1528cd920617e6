# SPDX-License-Identifier: Apache-2.0
"""KenLM binaries of any size with random n-grams, written without KenLM: `write(path, seed, words, counts)`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gharial.bench.ngram_file import LONGEST, MIDDLE, SPECIAL, UNIGRAM, combine, head, table, tail


def write(path: Path, seed: int, words: Sequence[str], counts: Sequence[int]) -> None:
    """Write a binary.

    Where the counts of the lower orders are all n-grams that there can be, every lookup goes on to the longest ones.

    Args:
        path: file to write.
        seed: of the n-grams and their values.
        words: the vocabulary, without <unk>, <s> and </s>, which come first.
        counts: n-grams of each order from 2 on.
    """
    random = np.random.default_rng(seed)
    every = [*SPECIAL, *words]
    sizes = (len(every), *counts)
    unigrams = np.zeros(len(every) + 1, UNIGRAM)
    unigrams["prob"] = random.uniform(1, 4, len(unigrams))  # a sign not set: longer n-grams end in it
    unigrams["backoff"] = -random.uniform(0.1, 1, len(unigrams))
    with path.open("wb") as file:
        file.write(head(every, sizes))
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
            entries = np.zeros(len(keys), LONGEST if longest else MIDDLE)
            entries["key"] = keys
            entries["prob"] = (-1 if longest else 1) * random.uniform(0.1, 3, len(keys))
            if not longest:
                entries["backoff"] = -random.uniform(0.1, 1, len(keys))
            file.write(table(entries, count))
            shorter = keys
        file.write(tail(every))
