# SPDX-License-Identifier: Apache-2.0
"""Watches the AXI4-Lite port."""

from __future__ import annotations

from collections import deque

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, ValueChange
from pyuvm import uvm_analysis_port, uvm_monitor

from gharial.isa import _registers as reg
from sim.uvm.registers.item import RegisterSeen

AR, R, AW, W, B = (1 << 2 * channel for channel in range(5))
VALIDS = AR | R | AW | W | B
BY_OFFSET = {register.offset: register for register in reg.REGISTERS}


class RegisterMonitor(uvm_monitor):
    """Port `accesses`: a write when both its halves have been taken, a read when its data are taken; port `requests`:
    a read when its address is taken, from when on its data may be fixed."""

    def build_phase(self) -> None:
        self.requests = uvm_analysis_port("requests", self)
        self.accesses = uvm_analysis_port("accesses", self)
        self._addresses: deque[int] = deque()
        self._words: deque[int] = deque()
        self._reads: deque[int] = deque()
        self._answers = 0

    async def run_phase(self) -> None:
        dut = cocotb.top
        await FallingEdge(dut.rst_i)
        edge, channels = RisingEdge(dut.clk_i), dut.csr_channels_o
        while True:
            await edge
            bits = int(channels.value)
            passes = bits & bits >> 1
            if passes & VALIDS:
                self._clock(passes)
            if not bits & VALIDS:
                await ValueChange(channels)

    def _clock(self, passes: int) -> None:
        dut = cocotb.top
        if passes & B:
            self._answers -= 1
            assert self._answers >= 0, "AXI4-Lite: a response to a write that is not whole"
        if passes & R:
            assert self._reads, "AXI4-Lite: data that nobody asked for"
            register = BY_OFFSET[self._reads.popleft()]
            self.accesses.write(RegisterSeen(register, False, int(dut.csr_rdata_o.value)))
        if passes & AR:
            self._reads.append(int(dut.csr_araddr_i.value))
            self.requests.write(BY_OFFSET[self._reads[-1]])
        if passes & AW:
            self._addresses.append(int(dut.csr_awaddr_i.value))
        if passes & W:
            self._words.append(int(dut.csr_wdata_i.value))
        while self._addresses and self._words:
            register = BY_OFFSET[self._addresses.popleft()]
            self._answers += 1
            self.accesses.write(RegisterSeen(register, True, self._words.popleft()))
