# SPDX-License-Identifier: Apache-2.0
"""The device memory, which host and accelerator share."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[int, bytes], None]


class DeviceMemory:
    """Bytes that the host writes and reads at will, and the accelerator through its AXI4 port.

    Attributes:
        listeners: called with address and bytes of what the host writes.
    """

    def __init__(self, size: int) -> None:
        self.data = bytearray(size)
        self.listeners: list[Listener] = []

    def __len__(self) -> int:
        return len(self.data)

    def host_write(self, address: int, data: bytes) -> None:
        """The host puts bytes."""
        assert address >= 0 and address + len(data) <= len(self.data), f"host write beyond the memory: {address:#x}"
        self.data[address : address + len(data)] = data
        for listener in self.listeners:
            listener(address, data)

    def host_read(self, address: int, count: int) -> bytes:
        """The host gets bytes."""
        return bytes(self.data[address : address + count])

    def holds(self, address: int, words: int = 1) -> bool:
        """Whether words from there on are inside."""
        return address + 4 * words <= len(self.data)

    def word(self, address: int) -> int:
        """What the accelerator reads."""
        return int.from_bytes(self.data[address : address + 4], "little")

    def put_word(self, address: int, word: int) -> None:
        """What the accelerator writes."""
        self.data[address : address + 4] = word.to_bytes(4, "little")
