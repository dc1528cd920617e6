# SPDX-License-Identifier: Apache-2.0
"""Bit fields in 32-bit words: one table describes a record, and packs and unpacks it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Field:
    """A field of a record of words.

    Attributes:
        word: index of the word.
        lsb: lowest bit.
        width: bits.
    """

    word: int
    lsb: int = 0
    width: int = 32


class Record:
    """A fixed record of 32-bit words with named bit fields."""

    def __init__(self, name: str, words: int, fields: Mapping[str, Field]) -> None:
        self.name = name
        self.words = words
        self.fields = dict(fields)
        used = [0] * words
        for key, field in self.fields.items():
            mask = ((1 << field.width) - 1) << field.lsb
            if field.lsb + field.width > 32 or used[field.word] & mask:
                raise ValueError(f"{name}.{key} overlaps another field or leaves its word")
            used[field.word] |= mask
        self.used = tuple(used)

    @property
    def bytes(self) -> int:
        """Length in bytes."""
        return 4 * self.words

    def pack(self, **values: int) -> Words:
        """The record with these values, other fields zero; uint32 (words,).

        Raises:
            KeyError: no such field.
            ValueError: a value does not fit.
        """
        out = [0] * self.words
        for key, value in values.items():
            field = self.fields[key]
            if not 0 <= value < 1 << field.width:
                raise ValueError(f"{self.name}.{key} = {value} does not fit in {field.width} bits")
            out[field.word] |= int(value) << field.lsb
        return np.array(out, dtype="<u4")

    def unpack(self, words: Words) -> dict[str, int]:
        """All fields of one record, uint32 (words,)."""
        return {
            key: int(words[field.word]) >> field.lsb & ((1 << field.width) - 1) for key, field in self.fields.items()
        }

    def stray(self, words: Words) -> int | None:
        """Index of the first word with a bit set that no field owns, or None."""
        for index, used in enumerate(self.used):
            if int(words[index]) & ~used:
                return index
        return None
