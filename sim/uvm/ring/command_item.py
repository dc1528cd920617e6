# SPDX-License-Identifier: Apache-2.0
"""A command for the ring."""

from __future__ import annotations

from pyuvm import uvm_sequence_item


class CommandItem(uvm_sequence_item):
    """A descriptor that is to be posted; what it points to lies in the memory already.

    Attributes:
        descriptor: 64 bytes.
        ring: whether the bell is rung for it, and for those posted before.
        places: where what it points to lies: (address, end) of "entries", "features", "results", "chunk", "image".
    """

    def __init__(self, descriptor: bytes, ring: bool, places: dict[str, tuple[int, int]]) -> None:
        super().__init__("command")
        self.descriptor, self.ring, self.places = descriptor, ring, places
