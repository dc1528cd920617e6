# SPDX-License-Identifier: Apache-2.0
"""Write side of the AXI4 master, against a memory that pauses, is late and fails."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiResp

from sim.common import bench
from sim.common.axi import PACES, WORD, AxiMemory
from sim.common.bench import clock
from sim.common.streams import Source

SIZE = 1 << 16
OUTSTANDING = 8  # words, at most


class Bench:
    """The writer between a source of words and a memory; what it says of itself in each clock is checked."""

    def __init__(self, dut: Any, test: str) -> None:
        self.dut, self.rng = dut, bench.rng(test)
        self.errors: list[int] = []
        self.words: list[tuple[int, int]] = []
        self.most = self.taken = self.answered = 0

    async def start(self, pace: str, offered: float = 1.0) -> None:
        """Reset, then everything around the writer."""
        dut = self.dut
        await bench.start(dut)
        self.memory = AxiMemory(dut, self.rng, bytearray(SIZE))
        self.memory.pace(PACES[pace])
        word = {"addr": dut.addr_i, "data": dut.data_i}
        self.source = Source(dut.clk_i, dut.valid_i, dut.ready_o, word, lambda: self.rng.random() > offered)
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        edge, dut = RisingEdge(self.dut.clk_i), self.dut
        while True:
            await edge
            if dut.error_o.value:
                self.errors.append(int(dut.error_addr_o.value))
            left = self.taken - self.answered
            assert bool(dut.idle_o.value) == (left == 0), f"idle_o, with {left} words on their way"
            self.taken += bool(dut.valid_i.value and dut.ready_o.value)
            self.answered += bool(dut.m_axi_bvalid_i.value and dut.m_axi_bready_o.value)
            self.most = max(self.most, self.taken - self.answered)

    def put(self, count: int) -> None:
        """Queue so many words, some at one address."""
        for _ in range(count):
            place = int(self.rng.choice([int(self.rng.integers(SIZE // WORD)), int(self.rng.integers(4))])) * WORD
            self.words.append((place, int(self.rng.integers(1 << 32))))
            self.source.put(addr=self.words[-1][0], data=self.words[-1][1])

    async def idle(self) -> None:
        """Wait until every word has been answered."""
        await self.source.drain()
        await ClockCycles(self.dut.clk_i, 1)
        for _ in range(100_000):
            if self.dut.idle_o.value:
                break
            await RisingEdge(self.dut.clk_i)
        else:
            raise AssertionError("the writer does not come to rest")
        await ClockCycles(self.dut.clk_i, 3)

    def check(self) -> None:
        """Each word has been written once, in order, where it belongs."""
        assert self.memory.record.writes == self.words
        assert self.taken == self.answered == len(self.words)


@cocotb.test()
@cocotb.parametrize(pace=list(PACES), offered=[1.0, 0.3])
async def words(dut: Any, pace: str, offered: float) -> None:
    """Whatever the memory does: each word once and in order, and no more on their way than there may be."""
    tb = Bench(dut, f"words {pace} {offered}")
    await tb.start(pace, offered)
    tb.put(40 if bench.short() else 600)
    await tb.idle()
    tb.check()
    assert not tb.errors
    assert tb.most <= OUTSTANDING
    found = dict(tb.words)
    assert {address: tb.memory.words(address, 1)[0] for address in found} == found


@cocotb.test()
async def as_many_as_there_may_be(dut: Any) -> None:
    """With no answers, OUTSTANDING words leave and no more; then all answers count, as fast as they come."""
    tb = Bench(dut, "as_many_as_there_may_be")
    await tb.start("free")
    for _, channel in tb.memory._channels:
        channel.queue_occupancy_limit = 2 * OUTSTANDING
    answers = dict(tb.memory._channels)[2]
    answers.pause = True
    tb.put(3 * OUTSTANDING)
    await ClockCycles(dut.clk_i, 100)
    assert (tb.taken, tb.answered) == (OUTSTANDING, 0)
    answers.pause = False
    await tb.idle()
    tb.check()


@cocotb.test()
async def two_clocks_a_word(dut: Any) -> None:
    """A memory that takes everything at once gets a word every other clock."""
    tb = Bench(dut, "two_clocks_a_word")
    await tb.start("free")
    for _, channel in tb.memory._channels:
        channel.queue_occupancy_limit = 2 * OUTSTANDING
    before = clock()
    tb.put(50)
    await tb.source.drain()
    assert tb.source.taken[-1] - tb.source.taken[9] == 2 * 40, tb.source.taken
    assert clock() - before < 130
    await tb.idle()
    tb.check()


@cocotb.test()
@cocotb.parametrize(pace=["free", "uneven", "busy", "answers"], response=[AxiResp.SLVERR, AxiResp.DECERR])
async def errors(dut: Any, pace: str, response: AxiResp) -> None:
    """Each word that is not written is told once, with its address, in order."""
    tb = Bench(dut, f"errors {pace} {response}")
    await tb.start(pace)
    bad = {WORD * int(n) for n in tb.rng.choice(SIZE // WORD, SIZE // WORD // 3, replace=False)} | {0, WORD}
    for address in bad:
        tb.memory.fail(True, address, response=response, times=1 << 30)
    tb.put(40 if bench.short() else 400)
    await tb.idle()
    tb.check()
    assert tb.errors == [address for address, _ in tb.words if address in bad]
    assert tb.errors
    assert not any(any(tb.memory.words(address, 1)) for address in bad), "a word that failed was kept"
