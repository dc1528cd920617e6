# SPDX-License-Identifier: Apache-2.0
"""Samples transfers on the AXI4 port."""

from __future__ import annotations

from sim.uvm.coverage.group import CoverGroup
from sim.uvm.memory.items import ReadBurst, WriteWord

BORDER = 4096
MOST_BEATS, MOST_WRITES = 64, 8


class BusCoverage:
    """Group on the bus."""

    def __init__(self, group: CoverGroup) -> None:
        self._group = group

    def read(self, burst: ReadBurst) -> None:
        """A burst."""
        if burst.waited:
            self._group.hit("read waits")
        if burst.gaps:
            self._group.hit("gap in a burst")
        sizes = {1: "one word", MOST_BEATS: "a full burst"}
        self._group.hit(sizes.get(burst.beats, "some words"))
        if (burst.address + 4 * burst.beats) % BORDER == 0:
            self._group.hit("up to a border of 4 KiB")

    def written(self, word: WriteWord) -> None:
        """A word."""
        self._group.hit("address and word together" if word.order == "together" else word.order)
        if word.outstanding == MOST_WRITES:
            self._group.hit("8 writes on their way")
