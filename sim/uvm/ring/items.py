# SPDX-License-Identifier: Apache-2.0
"""What passes through the rings, as it is seen."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from gharial.isa.commands import COMPLETION, DESCRIPTOR

Fields = dict[str, int]


@dataclass(frozen=True)
class Fetched:
    """A descriptor that the accelerator has read: free-running index, and the 64 bytes."""

    index: int
    raw: bytes

    @property
    def fields(self) -> Fields:
        """Its fields."""
        return DESCRIPTOR.unpack(np.frombuffer(self.raw, "<u4"))

    @property
    def whole(self) -> bool:
        """Whether its CRC is right."""
        return zlib.crc32(self.raw[:-4]) == self.fields["crc"]


@dataclass(frozen=True)
class Completed:
    """A completion that the accelerator has published: free-running index, and the 32 bytes."""

    index: int
    raw: bytes

    @property
    def fields(self) -> Fields:
        """Its fields."""
        return COMPLETION.unpack(np.frombuffer(self.raw, "<u4"))
