# SPDX-License-Identifier: Apache-2.0
"""Watches the AXI4 port: bursts and words that pass, and whether both ends keep to the protocol."""

from __future__ import annotations

from collections import deque

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, ValueChange
from pyuvm import uvm_analysis_port, uvm_monitor

from sim.uvm.memory.items import OKAY, ReadBurst, WriteWord
from sim.uvm.memory.sample import Sample

AR, R, AW, W, B = (1 << 2 * channel for channel in range(5))  # valid; ready is the next bit
VALIDS = AR | R | AW | W | B
MOST_BEATS = 64  # docs/blocks/host_block.md
MOST_WRITES = 8
BORDER = 4096


class MemoryMonitor(uvm_monitor):
    """Samples the port in every clock in which something is offered or on its way.

    Ports: `samples` (each such clock, for the responder), `reads`, `writes` (whole transfers, when they end).
    """

    def build_phase(self) -> None:
        self.samples = uvm_analysis_port("samples", self)
        self.reads = uvm_analysis_port("reads", self)
        self.writes = uvm_analysis_port("writes", self)
        self.clocks = 0
        self._burst: ReadBurst | None = None
        self._addresses: deque[int] = deque()  # taken, without an answer
        self._words: deque[int] = deque()
        self._orders: deque[str] = deque()
        self._taken = {"address": 0, "word": 0}
        self._waited = 0
        self._held: dict[str, tuple[int, ...]] = {}  # offered and not taken in the clock before

    @property
    def busy(self) -> bool:
        """Whether something is on its way."""
        return self._burst is not None or bool(self._addresses) or bool(self._words)

    async def run_phase(self) -> None:
        dut = cocotb.top
        await FallingEdge(dut.rst_i)
        edge, channels = RisingEdge(dut.clk_i), dut.axi_channels_o
        while True:
            await edge
            self.clocks += 1
            bits = int(channels.value)
            if bits & VALIDS or self.busy:
                self._clock(bits)
            if not bits & VALIDS and not self.busy:
                self._held.clear()
                await ValueChange(channels)

    def _clock(self, bits: int) -> None:
        dut = cocotb.top
        passes = bits & bits >> 1
        sample = Sample(bool(passes & AR), bool(passes & R), bool(passes & AW), bool(passes & W), bool(passes & B))
        if bits & AR:
            sample.read_address, sample.read_beats = int(dut.axi_araddr_o.value), int(dut.axi_arlen_o.value) + 1
        if bits & AW:
            sample.write_address = int(dut.axi_awaddr_o.value)
        if bits & W:
            sample.write_word = int(dut.axi_wdata_o.value)
        self._keeps("AR", bits, AR, (sample.read_address, sample.read_beats))
        self._keeps("AW", bits, AW, (sample.write_address,))
        self._keeps("W", bits, W, (sample.write_word,))
        self._read_channel(bits, sample)
        self._write_channel(sample)
        self.samples.write(sample)

    def _keeps(self, name: str, bits: int, valid: int, offered: tuple[int, ...]) -> None:
        """What is offered stays until it is taken."""
        held = self._held.pop(name, None)
        if held is not None:
            assert bits & valid, f"AXI: {name}VALID fell before the transfer"
            assert held == offered, f"AXI: {name} changed before the transfer: {held} became {offered}"
        if bits & valid and not bits & valid << 1:
            self._held[name] = offered

    def _read_channel(self, bits: int, sample: Sample) -> None:
        if bits & AR:
            assert self._burst is None, "AXI: a second read before the end of the first"
            if sample.ar:
                self._begin(sample)
                return
            self._waited += 1
        burst = self._burst
        if burst is None:
            assert not bits & R, "AXI: a word that nobody asked for"
        elif sample.r:
            self._word(burst)
        elif bits & R:
            burst.stalled += 1
        elif bits & R << 1:
            burst.gaps += 1

    def _begin(self, sample: Sample) -> None:
        address, beats = sample.read_address, sample.read_beats
        assert address % 4 == 0, f"AXI: read from {address:#x}, not a word"
        assert beats <= MOST_BEATS, f"AXI: a burst of {beats}"
        assert address % BORDER + 4 * beats <= BORDER, f"AXI: {beats} words from {address:#x} cross a border of 4 KiB"
        self._burst = ReadBurst(address, beats, waited=self._waited)
        self._waited = 0

    def _word(self, burst: ReadBurst) -> None:
        dut = cocotb.top
        burst.words.append(int(dut.axi_rdata_i.value))
        burst.failed |= int(dut.axi_rresp_i.value) != OKAY
        is_last = len(burst.words) == burst.beats
        assert bool(dut.axi_rlast_i.value) == is_last, "AXI: RLAST is not with the last word"
        if is_last:
            self._burst = None
            self.reads.write(burst)

    def _write_channel(self, sample: Sample) -> None:
        if sample.b:
            assert self._orders, "AXI: a response to a write that is not whole"
            failed = int(cocotb.top.axi_bresp_i.value) != OKAY
            outstanding = max(len(self._addresses), len(self._words))
            address, word, order = self._addresses.popleft(), self._words.popleft(), self._orders.popleft()
            self.writes.write(WriteWord(address, word, failed, order, outstanding))
        taken = self._taken
        before = taken["address"] - taken["word"]
        if sample.aw:
            assert sample.write_address % 4 == 0, f"AXI: write to {sample.write_address:#x}, not a word"
            self._addresses.append(sample.write_address)
            taken["address"] += 1
        if sample.w:
            self._words.append(sample.write_word)
            taken["word"] += 1
        if taken["address"] == taken["word"] and (sample.aw or sample.w):
            self._orders.append("together" if not before else "address first" if before > 0 else "word first")
        assert abs(taken["address"] - taken["word"]) <= 1, "AXI: addresses and words of writes have lost each other"
        assert len(self._addresses) <= MOST_WRITES, f"AXI: {len(self._addresses)} writes on their way"

    def check_phase(self) -> None:
        assert not self.busy, "AXI: the test ended in the middle of a transfer"
