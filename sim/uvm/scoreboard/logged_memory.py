# SPDX-License-Identifier: Apache-2.0
"""The reference device's memory, which notes what the device writes."""

from __future__ import annotations

from sim.reference.machine import Memory


class LoggedMemory(Memory):
    """`written`: words by address, since the log was last taken. The host's own writes go to `data`."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.written: dict[int, int] = {}

    def write(self, address: int, data: bytes) -> None:
        """What the device writes: whole words."""
        super().write(address, data)
        for at in range(0, len(data), 4):
            self.written[address + at] = int.from_bytes(data[at : at + 4], "little")

    def taken(self) -> dict[int, int]:
        """The log, which begins anew."""
        found, self.written = self.written, {}
        return found
