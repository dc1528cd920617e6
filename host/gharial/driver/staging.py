# SPDX-License-Identifier: Apache-2.0
"""Room for the commands in flight: a region handed out in order and taken back in the same order."""

from __future__ import annotations

from collections import deque

from gharial.driver.layout import Region, aligned


class Staging:
    """Allocates blocks round and round in a region. Commands end in order, so the oldest block is freed first."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self._blocks: deque[tuple[int, int]] = deque()

    def claim(self, size: int) -> int | None:
        """The aligned address of a block of that many bytes (> 0), or None if there is no room now."""
        size = aligned(size)
        start, end = self.region.address, self.region.end
        if not self._blocks:
            at = start if start + size <= end else None
        else:
            oldest, newest = self._blocks[0][0], self._blocks[-1][1]
            if newest > oldest:
                at = newest if newest + size <= end else start if start + size <= oldest else None
            else:  # wrapped around: only the gap before the oldest is left
                at = newest if newest + size <= oldest else None
        if at is not None:
            self._blocks.append((at, at + size))
        return at

    def free_oldest(self) -> None:
        """Take back the block that was claimed first."""
        self._blocks.popleft()

    def drop_newest(self) -> None:
        """Take back the block that was claimed last: it was not needed after all."""
        self._blocks.pop()

    def clear(self) -> None:
        """Take back all."""
        self._blocks.clear()

    @property
    def most(self) -> int:
        """Bytes of a block, at most, when nothing else is claimed."""
        return self.region.size
