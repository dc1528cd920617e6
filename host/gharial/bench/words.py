# SPDX-License-Identifier: Apache-2.0
"""Word errors."""

from __future__ import annotations

import jiwer


def word_count(text: str) -> int:
    """Words of a text, white space of any kind between them."""
    return len(text.split())


def word_errors(reference: str, hypothesis: str) -> int:
    """Substitutions, deletions and insertions of the best alignment of two texts.

    White space of any kind and amount separates words; case and punctuation count. Against an empty reference every
    word is an insertion, and an empty hypothesis is one deletion a word.
    """
    said, heard = reference.split(), hypothesis.split()
    if not said or not heard:
        # Not left to the library: its versions differ between refusing an empty side and ignoring it.
        return len(said) + len(heard)
    found = jiwer.process_words(" ".join(said), " ".join(heard))
    return int(found.substitutions + found.deletions + found.insertions)


def word_error_rate(errors: int, words: int) -> float | None:
    """Errors over reference words: a fraction, above 1 where there are more insertions than words heard right.

    None where there is no reference word but an error: no fraction can say that. 0 where there is neither.
    """
    if words == 0:
        return 0.0 if errors == 0 else None
    return errors / words
