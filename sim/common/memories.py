# SPDX-License-Identifier: Apache-2.0
"""Memories as the RTL sees them (docs/blocks/memories.md): data some clocks after the address, which then stay."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge


class ReadPort:
    """Read port of a memory whose words `read(address)` gives, as unsigned integers, `latency` clocks late.

    `reads` counts them.
    """

    def __init__(
        self, clk: Any, enable: Any, address: Any, data: Any, read: Callable[[int], int], latency: int = 2
    ) -> None:
        self.reads = 0
        self._clk, self._enable, self._address, self._data = clk, enable, address, data
        self._read, self._latency = read, latency
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        edge = RisingEdge(self._clk)
        under_way: deque[int | None] = deque([None] * (self._latency - 1))  # in the memory's own registers
        while True:
            await edge
            fetched = under_way.popleft()
            if fetched is not None:
                self._data.value = fetched
            under_way.append(self._read(int(self._address.value)) if self._enable.value else None)
            self.reads += under_way[-1] is not None
