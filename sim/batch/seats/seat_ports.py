# SPDX-License-Identifier: Apache-2.0
"""The seat memories as the array and the finish unit use them: whole runs of units read and written, one a clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import cocotb
from cocotb.triggers import Event, RisingEdge

from .places import Places


class SeatPorts:
    """Reads and writes of both memories. Each port works off its runs in order, with pauses.

    Args:
        dut: the bench's top.
        places: where units lie.
        pause: the share of clocks in which a port is left alone.
        rng: of pauses.
    """

    def __init__(self, dut: Any, places: Places, rng: Any, pause: float = 0.0) -> None:
        self.places, self.pause = places, pause
        self._dut, self._rng = dut, rng
        self._queues: tuple[deque[tuple[int, int, list[Any], Event]], ...] = tuple(deque() for _ in range(4))
        ports = (
            (dut.array_en_i, dut.array_addr_i, dut.array_data_o, None),
            (dut.finish_we_i, dut.finish_addr_i, dut.finish_data_i, dut.finish_mask_i),
            (dut.cell_re_i, dut.cell_raddr_i, dut.cell_rdata_o, None),
            (dut.cell_we_i, dut.cell_waddr_i, dut.cell_wdata_i, dut.cell_wmask_i),
        )
        for queue, port in zip(self._queues, ports, strict=True):
            cocotb.start_soon(self._serve(queue, *port))

    async def read_acts(self, first: int, count: int) -> bytes:
        """The bytes of activation units."""
        return await self._read(0, first, count, self.places.unit_bytes)

    async def write_acts(self, first: int, data: bytes) -> None:
        """Write activation units."""
        await self._write(1, first, data, self.places.unit_bytes)

    async def read_cells(self, first: int, count: int) -> bytes:
        """The bytes of cell units."""
        return await self._read(2, first, count, self.places.cell_bytes)

    async def write_cells(self, first: int, data: bytes) -> None:
        """Write cell units."""
        await self._write(3, first, data, self.places.cell_bytes)

    async def _read(self, port: int, first: int, count: int, size: int) -> bytes:
        words: list[int] = []
        if count:
            done = Event()
            self._queues[port].append((first, count, words, done))
            await done.wait()
        return b"".join(word.to_bytes(size, "little") for word in words)

    async def _write(self, port: int, first: int, data: bytes, size: int) -> None:
        words = [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
        if words:
            done = Event()
            self._queues[port].append((first, len(words), words, done))
            await done.wait()

    async def _serve(self, queue: Any, enable: Any, address: Any, data: Any, mask: Any) -> None:
        edge = RisingEdge(self._dut.clk_i)
        coming: deque[tuple[int, list[Any] | None, Event | None]] = deque()
        run, at, clock = None, 0, 0
        while True:
            await edge
            clock += 1
            # What was asked for in an earlier clock came out two clocks later.
            while coming and coming[0][0] == clock:
                _, words, done = coming.popleft()
                if words is not None:
                    words.append(int(data.value))
                if done is not None:
                    done.set()
            if run is None and queue:
                run, at = queue.popleft(), 0
            if run is None or (self.pause and self._rng.random() < self.pause):
                enable.value = 0
                continue
            first, count, words, done = run
            enable.value, address.value = 1, first + at
            if mask is not None:
                data.value, mask.value = words[at], (1 << len(mask)) - 1
            at += 1
            last = at == count
            # Driven now, taken at the next edge; data are there at the third.
            coming.append((clock + 3, words if mask is None else None, done if last else None))
            if last:
                run = None


def runs(data: bytes, size: int) -> Sequence[bytes]:
    """Pieces of that size."""
    return [data[at : at + size] for at in range(0, len(data), size)]
