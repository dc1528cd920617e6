# SPDX-License-Identifier: Apache-2.0
"""The device memory at a wide AXI4 master: bursts, strobes, random latency and pauses, error responses where asked for.

One coroutine does all channels: wide designs run long enough as it is. It also checks what AXI asks of a master.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

SLVERR = 2
BORDER = 4096


@dataclass(frozen=True)
class Pace:
    """How willing the memory is: the share of clocks in which a channel pauses, and the most clocks of latency."""

    ar: float = 0.0
    r: float = 0.0
    aw: float = 0.0
    w: float = 0.0
    latency: int = 0


PACES = (
    Pace(),
    Pace(latency=40),
    Pace(0.3, 0.3, 0.3, 0.3, 5),
    Pace(0.8, 0.1, 0.1, 0.8, 20),
    Pace(0.0, 0.9, 0.9, 0.2, 10),
)


@dataclass
class _Burst:
    addr: int
    beats: int
    due: int
    done: int = 0
    failed: bool = False


@dataclass
class WideMemory:
    """Answers the master at `m_axi_*` from the bytes of `mem`.

    Attributes:
        bad_reads, bad_writes: byte addresses; a beat (a burst) that touches one has an error response, and a write
            does not happen.
        bursts: of reads, then of writes: address, beats; whether reading.
        beats: that were read and written.
    """

    dut: Any
    rng: np.random.Generator
    mem: bytearray
    pace: Pace = PACES[0]
    bad_reads: set[int] = field(default_factory=set)
    bad_writes: set[int] = field(default_factory=set)
    bursts: list[tuple[bool, int, int]] = field(default_factory=list)
    beats: int = 0

    def start(self) -> None:
        """Answer from now on."""
        self._clock = 0
        self._reads: deque[_Burst] = deque()
        self._writes: deque[_Burst] = deque()
        self._answers: deque[tuple[int, int]] = deque()
        self._chances: list[float] = []
        self._width = len(self.dut.m_axi_rdata_i) // 8
        cocotb.start_soon(self._run())

    def quiet(self) -> bool:
        """Whether nothing is under way."""
        return not (self._reads or self._writes or self._answers)

    def _chance(self) -> float:
        if not self._chances:
            self._chances = self.rng.random(4096).tolist()
        return self._chances.pop()

    def _due(self) -> int:
        return self._clock + int(self._chance() * (self.pace.latency + 1))

    def _burst(self, reading: bool, addr: int, beats: int) -> _Burst:
        assert addr % self._width == 0, f"burst at {addr:#x}"
        assert addr % BORDER + beats * self._width <= BORDER, f"{beats} beats at {addr:#x} cross 4 KiB"
        assert addr + beats * self._width <= len(self.mem), f"burst at {addr:#x} ends beyond the memory"
        self.bursts.append((reading, addr, beats))
        return _Burst(addr, beats, self._due())

    def _touches(self, bad: set[int], addr: int, count: int) -> bool:
        return bool(bad) and any(addr <= one < addr + count for one in bad)

    async def _run(self) -> None:
        dut, edge, width = self.dut, RisingEdge(self.dut.clk_i), self._width
        ar_ready = aw_ready = w_ready = r_valid = b_valid = False
        ar_held = aw_held = w_held = None
        dut.m_axi_bresp_i.value = 0
        while True:
            await edge
            self._clock += 1
            if dut.m_axi_arvalid_o.value:
                ar = int(dut.m_axi_araddr_o.value), int(dut.m_axi_arlen_o.value)
                assert ar_held in (None, ar), "a read burst changed before it was taken"
                ar_held = None if ar_ready else ar
                if ar_ready:
                    self._reads.append(self._burst(True, ar[0], ar[1] + 1))
            else:
                assert ar_held is None, "a read burst was withdrawn"
            if dut.m_axi_awvalid_o.value:
                aw = int(dut.m_axi_awaddr_o.value), int(dut.m_axi_awlen_o.value)
                assert aw_held in (None, aw), "a write burst changed before it was taken"
                aw_held = None if aw_ready else aw
                if aw_ready:
                    self._writes.append(self._burst(False, aw[0], aw[1] + 1))
            else:
                assert aw_held is None, "a write burst was withdrawn"
            if dut.m_axi_wvalid_o.value:
                w = tuple(int(h.value) for h in (dut.m_axi_wdata_o, dut.m_axi_wstrb_o, dut.m_axi_wlast_o))
                assert w_held in (None, w), "a written beat changed before it was taken"
                w_held = None if w_ready else w
                if w_ready:
                    self._write(*w)
            else:
                assert w_held is None, "a written beat was withdrawn"
            if r_valid and dut.m_axi_rready_o.value:
                burst, r_valid = self._reads[0], False
                burst.done += 1
                self.beats += 1
                if burst.done == burst.beats:
                    self._reads.popleft()
            if b_valid and dut.m_axi_bready_o.value:
                b_valid = False
                self._answers.popleft()

            pace = self.pace
            if not r_valid and self._reads and self._reads[0].due <= self._clock and self._chance() >= pace.r:
                burst, r_valid = self._reads[0], True
                addr = burst.addr + burst.done * width
                dut.m_axi_rdata_i.value = int.from_bytes(self.mem[addr : addr + width], "little")
                dut.m_axi_rresp_i.value = SLVERR if self._touches(self.bad_reads, addr, width) else 0
                dut.m_axi_rlast_i.value = int(burst.done == burst.beats - 1)
            if not b_valid and self._answers and self._answers[0][0] <= self._clock:
                b_valid = True
                dut.m_axi_bresp_i.value = self._answers[0][1]
            ar_ready, aw_ready = self._chance() >= pace.ar, self._chance() >= pace.aw
            w_ready = self._chance() >= pace.w
            dut.m_axi_rvalid_i.value, dut.m_axi_bvalid_i.value = int(r_valid), int(b_valid)
            dut.m_axi_arready_i.value, dut.m_axi_awready_i.value = int(ar_ready), int(aw_ready)
            dut.m_axi_wready_i.value = int(w_ready)

    def _write(self, data: int, strobe: int, last: int) -> None:
        assert self._writes, "a written beat without a burst"
        burst = self._writes[0]
        addr = burst.addr + burst.done * self._width
        burst.done += 1
        self.beats += 1
        assert bool(last) == (burst.done == burst.beats), "wlast"
        if self._touches(self.bad_writes, addr, self._width):
            burst.failed = True
        else:
            octets = data.to_bytes(self._width, "little")
            for n in range(self._width):
                if strobe >> n & 1:
                    self.mem[addr + n] = octets[n]
        if burst.done == burst.beats:
            self._writes.popleft()
            self._answers.append((self._due(), SLVERR if burst.failed else 0))
