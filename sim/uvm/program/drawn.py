# SPDX-License-Identifier: Apache-2.0
"""A program that the environment runs."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gharial.isa.header import HEADER
from gharial.isa.instructions import MATVEC, Opcode, Predicate

SECTIONS = ("predict", "encode", "joint")
SPACES = ("code", "weights", "scales", "biases", "tables", "embedding")
Fields = dict[str, int]


@dataclass(frozen=True)
class DrawnProgram:
    """Images of the spaces, and the manifest for who computes without instructions.

    Attributes:
        images: bytes by section name, SPACES.
        manifest: docs/program.md.
    """

    images: Mapping[str, bytes]
    manifest: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """What tells this program from all others: digest of its code, the header with the program id included."""
        return hashlib.sha256(self.images["code"]).hexdigest()

    @cached_property
    def header(self) -> Fields:
        """Fields of the header."""
        return HEADER.unpack(np.frombuffer(self.images["code"], "<u4", HEADER.words))

    def instructions(self, section: str) -> np.ndarray:
        """Words of a section's instructions, uint32 (instructions, 8)."""
        words = np.frombuffer(self.images["code"], "<u4")[HEADER.words :].reshape(-1, 8)
        first = self.header[f"{section}_first"]
        return words[first : first + self.header[f"{section}_count"]]

    def steps(self, section: str, vectors: int = 0) -> int:
        """Clocks in which the matrix unit multiplies when a section runs for so many feature vectors."""
        total = 0
        for row in self.instructions(section):
            fields = MATVEC.unpack(row)
            more, at_most = vectors > fields["threshold"], vectors <= fields["threshold"]
            holds = {Predicate.ALWAYS: True, Predicate.MORE: more, Predicate.AT_MOST: at_most}
            if fields["opcode"] == Opcode.MATVEC and holds[Predicate(fields["predicate"])]:
                total += fields["row_groups"] * fields["col_tiles"] * (fields["vectors_less_1"] + 1)
        return total

    def with_image(self, name: str, image: bytes) -> DrawnProgram:
        """The same program with another image, of the same size, of a space that is not the code."""
        images = {**self.images, name: image}
        sections = {**self.manifest["sections"], name: {"sha256": hashlib.sha256(image).hexdigest()}}
        changed = DrawnProgram(images, {**self.manifest, "sections": sections})
        words = np.frombuffer(self.images["code"], "<u4").copy()
        crc = zlib.crc32(b"".join(images[space] for space in SPACES[1:]))
        words[: HEADER.words] = HEADER.pack(**{**self.header, "program_id": crc})
        return changed.with_code(words)

    def with_code(self, words: np.ndarray) -> DrawnProgram:
        """The same program with other code, whose header's CRC is made right."""
        words = words.astype("<u4").copy()
        words[HEADER.words - 1] = zlib.crc32(words[: HEADER.words - 1].tobytes())
        code = words.tobytes()
        sections = {**self.manifest["sections"], "code": {"sha256": hashlib.sha256(code).hexdigest()}}
        return DrawnProgram({**self.images, "code": code}, {**self.manifest, "sections": sections})
