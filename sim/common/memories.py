# SPDX-License-Identifier: Apache-2.0
"""Memories as the RTL sees them (docs/blocks/memories.md): data two clocks after the address, which then stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge


class ReadPort:
    """Read port of a memory whose words `read(address)` gives, as unsigned integers. `reads` counts them."""

    def __init__(self, clk: Any, enable: Any, address: Any, data: Any, read: Callable[[int], int]) -> None:
        self.reads = 0
        self._clk, self._enable, self._address, self._data = clk, enable, address, data
        self._read = read
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        edge = RisingEdge(self._clk)
        fetched: int | None = None  # in the memory's own output register
        while True:
            await edge
            if fetched is not None:
                self._data.value = fetched
            fetched = None
            if self._enable.value:
                fetched = self._read(int(self._address.value))
                self.reads += 1
