# SPDX-License-Identifier: Apache-2.0
"""What a bridge to a board's bus offers, whatever the wire: words of 32 bits at byte addresses."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

WORD = 4


class Bridge(ABC):
    """A board's bus, reached over a link.

    Addresses and counts are in bytes and multiples of 4; data is little-endian, as the host has it. Implementations
    raise LinkError where the link fails, and never wait without a limit. Not for several threads at once.

    Attributes:
        where: the link, for messages.
        retries: how often something had to be sent again.
    """

    where: str
    retries: int = 0

    @abstractmethod
    def read(self, address: int, count: int) -> bytes:
        """What is at the address."""

    @abstractmethod
    def write(self, address: int, data: bytes, kept: bool = True) -> None:
        """Put words there; `kept` says that they read back as written.

        It may be carried out more than once, until the next read or ring; never after it.
        """

    @abstractmethod
    def ring(self, address: int, value: int) -> None:
        """Write a free-running index; sent again only where a read shows that it has not been taken."""

    @abstractmethod
    def confirm(self) -> None:
        """See that the last index rung has arrived, with all that was written before it: for what may get lost."""

    @abstractmethod
    def forget(self) -> None:
        """Nothing that was sent is to be sent again: the device begins anew."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the link; it opens again at the next call."""


def swapped(data: bytes | bytearray) -> bytes:
    """Words in the other byte order: bridges send the most significant byte first."""
    return np.frombuffer(data, "<u4").byteswap().tobytes()
