# SPDX-License-Identifier: Apache-2.0
"""Memory at the weight stream's AXI read ports: each port at a pace of its own, late, with gaps, errors, or silent."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from sim.common.bench import clock

PERIOD = 1_048_573  # of the contents, in bytes: a prime, so that no two places that a mistake could swap are alike
PAGE = 4096


@dataclass(frozen=True)
class Pace:
    """How willing a port is: share of clocks without arready, share without a beat, clocks of latency from and to."""

    deaf: float = 0.0
    gaps: float = 0.0
    latency: tuple[int, int] = (4, 4)


@dataclass
class _Burst:
    address: int
    beats: int
    due: int
    sent: int = 0


@dataclass
class PortState:
    """What one port has seen."""

    bursts: list[tuple[int, int]] = field(default_factory=list)  # address, beats; in the order of the requests
    clocks: list[int] = field(default_factory=list)  # of each request
    waiting: deque[_Burst] = field(default_factory=deque)
    silent: bool = False
    held: int | None = None  # address offered and not taken


class ReadPorts:
    """The memory. Checks AXI's rules at each port.

    Args:
        dut: the weight stream, out of reset.
        rng: of pauses, latencies and contents.
        paces: of each port, in turn.
    """

    def __init__(self, dut: Any, rng: np.random.Generator, paces: list[Pace]) -> None:
        self.count = len(dut.m_axi_rdata_i)
        self.width = len(dut.m_axi_rdata_i[0].value) // 8  # bytes of a beat
        self.ports = [PortState() for _ in range(self.count)]
        self.errors: set[tuple[int, int]] = set()  # port, address of a beat
        self.beats = 0
        self._dut, self._rng = dut, rng
        self._paces = [paces[port % len(paces)] for port in range(self.count)]
        self._contents = rng.bytes(PERIOD) * 2
        cocotb.start_soon(self._run())

    def read(self, address: int, count: int) -> bytes:
        """Contents of at most PERIOD bytes."""
        start = address % PERIOD
        return self._contents[start : start + count]

    @property
    def outstanding(self) -> int:
        """Bursts asked for and not answered to the end."""
        return sum(len(port.waiting) for port in self.ports)

    async def _run(self) -> None:
        dut, rng, edge = self._dut, self._rng, RisingEdge(self._dut.clk_i)
        while True:
            deaf = rng.random(self.count)
            ready = sum(1 << p for p, pace in enumerate(self._paces) if deaf[p] >= pace.deaf)
            dut.m_axi_arready_i.value = ready
            valid, last = self._offer()
            dut.m_axi_rvalid_i.value, dut.m_axi_rlast_i.value = valid, last
            await edge
            self.beats += valid.bit_count()
            assert int(dut.m_axi_rready_o.value) == (1 << self.count) - 1, "a beat that was asked for is held up"
            asked = int(dut.m_axi_arvalid_o.value)
            for number, port in enumerate(self.ports):
                self._request(number, port, bool(asked >> number & 1), bool(ready >> number & 1))

    def _offer(self) -> tuple[int, int]:
        """Put beats on the ports for a clock, which always takes them; which ports have one, and have their last."""
        valid = last = 0
        gaps = self._rng.random(self.count)
        for number, port in enumerate(self.ports):
            burst = port.waiting[0] if port.waiting else None
            if burst is None or port.silent or clock() < burst.due or gaps[number] < self._paces[number].gaps:
                continue
            address = burst.address + burst.sent * self.width
            data = int.from_bytes(self.read(address, self.width), "little")
            bad = (number, address) in self.errors
            self._dut.m_axi_rdata_i[number].value = data
            self._dut.m_axi_rresp_i[number].value = 2 if bad else 0
            burst.sent += 1
            valid |= 1 << number
            if burst.sent == burst.beats:
                last |= 1 << number
                port.waiting.popleft()
        return valid, last

    def _request(self, number: int, port: PortState, asked: bool, ready: bool) -> None:
        if not asked:
            assert port.held is None, f"port {number}: a request was withdrawn"
            return
        address = int(self._dut.m_axi_araddr_o[number].value)
        assert port.held in (None, address), f"port {number}: a request changed before it was taken"
        port.held = None if ready else address
        if ready:
            beats = int(self._dut.m_axi_arlen_o[number].value) + 1
            assert address // PAGE == (address + beats * self.width - 1) // PAGE, f"port {number}: across 4 KiB"
            port.bursts.append((address, beats))
            port.clocks.append(clock())
            least, most = self._paces[number].latency
            port.waiting.append(_Burst(address, beats, clock() + int(self._rng.integers(least, most + 1))))
