# SPDX-License-Identifier: Apache-2.0
"""Read side of the AXI4 master, against a memory that pauses, is late and fails."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiResp

from sim.common import bench
from sim.common.axi import PACES, WORD, AxiMemory
from sim.common.streams import Sink, Source

PAGE = 4096
MOST_BEATS = 64
SIZE = 1 << 62


class Everywhere:
    """A memory that is as large as an address, each of whose words tells where it lies."""

    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, place: slice) -> bytes:
        return b"".join(word(at).to_bytes(WORD, "little") for at in range(place.start, place.stop, WORD))


def word(address: int) -> int:
    """What lies there."""
    return (address // WORD * 0x9E3779B97F4A7C15 >> 29) & 0xFFFFFFFF


class Bench:
    """The reader between a source of requests and a sink of words."""

    def __init__(self, dut: Any, test: str) -> None:
        self.dut, self.rng = dut, bench.rng(test)
        self.errors: list[int] = []
        self.awaited: list[int] = []  # words
        self.bursts: list[tuple[int, int]] = []

    async def start(self, pace: str, held_back: float = 0.0, fails: bool = False) -> None:
        """Reset, then everything around the reader; a request that fails may take its last word back."""
        dut = self.dut
        await bench.start(dut)
        self.memory = AxiMemory(dut, self.rng, Everywhere())
        self.memory.pace(PACES[pace])
        request = {"addr": dut.req_addr_i, "words": dut.req_words_i}
        self.requests = Source(dut.clk_i, dut.req_valid_i, dut.req_ready_o, request)
        words = dut.data_valid_o, dut.data_ready_i, {"data": dut.data_o}
        self.sink = Sink(dut.clk_i, *words, lambda: self.rng.random() < held_back, fails)
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        edge = RisingEdge(self.dut.clk_i)
        while True:
            await edge
            if self.dut.error_o.value:
                self.errors.append(int(self.dut.error_addr_o.value))

    def draw(self) -> tuple[int, int]:
        """Address and words of a request, often at the borders of pages and of bursts."""
        rng = self.rng
        words = int(rng.choice([1, 2, 16, 63, 64, 65, 128, 1 + rng.integers(200), 1 + rng.integers(2000)]))
        page = int(rng.choice([0, int(rng.integers(1, 1 << 20)), int(rng.integers(1, 1 << 49))])) * PAGE
        offset = int(rng.choice([0, PAGE - WORD, PAGE - words * WORD, WORD * int(rng.integers(PAGE // WORD))]))
        return max(page + offset, 0), words

    def put(self, address: int, words: int) -> list[tuple[int, int]]:
        """Queue a request; the bursts that it is to become."""
        self.requests.put(addr=address, words=words)
        self.awaited += [word(address + WORD * n) for n in range(words)]
        bursts = []
        while words:
            beats = min(words, MOST_BEATS, (PAGE - address % PAGE) // WORD)
            bursts.append((address, beats))
            address, words = address + beats * WORD, words - beats
        self.bursts += bursts
        return bursts

    async def idle(self) -> None:
        """Wait until all requests have been taken and are over."""
        await self.requests.drain()
        await ClockCycles(self.dut.clk_i, 2)
        for _ in range(200_000):
            if self.dut.idle_o.value:
                break
            await RisingEdge(self.dut.clk_i)
        else:
            raise AssertionError("the reader does not come to rest")
        await ClockCycles(self.dut.clk_i, 3)

    def check(self) -> None:
        """Every word has come once, in order, by the bursts expected."""
        assert [beat.payload["data"] for beat in self.sink.beats] == self.awaited
        assert self.memory.record.bursts == self.bursts


@cocotb.test()
@cocotb.parametrize(pace=list(PACES), held_back=[0.0, 0.6])
async def requests(dut: Any, pace: str, held_back: float) -> None:
    """Whatever the memory and the taker do: each word once and in order, bursts as long as may be and none longer."""
    tb = Bench(dut, f"requests {pace} {held_back}")
    await tb.start(pace, held_back)
    for _ in range(4 if bench.short() else 60):
        tb.put(*tb.draw())
    await tb.idle()
    tb.check()
    assert not tb.errors


@cocotb.test()
@cocotb.parametrize(pace=["free", "busy"], response=[AxiResp.SLVERR, AxiResp.DECERR])
async def errors(dut: Any, pace: str, response: AxiResp) -> None:
    """A request that fails gives none of the words behind, tells its burst once and asks for no more."""
    tb = Bench(dut, f"errors {pace} {response}")
    await tb.start(pace, 0.3, fails=True)
    told = []
    for _ in range(12 if bench.short() else 150):
        address, words = tb.draw()
        bursts, fails = tb.put(address, words), bool(tb.rng.random() < 0.7)
        wanted, tb.awaited = tb.awaited, []
        if fails:
            bad = int(tb.rng.choice([0, words - 1, int(tb.rng.integers(words))]))
            tb.memory.fail(False, address + bad * WORD, response=response)
            last = max(n for n, (at, _) in enumerate(bursts) if at <= address + bad * WORD)
            told.append(bursts[last][0] & 0xFFFFFFFF)
            if tb.rng.random() < 0.3:  # another one in the same burst is not told again
                end = bursts[last][0] + bursts[last][1] * WORD
                tb.memory.fail(False, address + (bad + 1) * WORD, max(end - address - (bad + 1) * WORD, 0))
            del bursts[last + 1 :], wanted[bad:]
        await tb.idle()
        found = [beat.payload["data"] for beat in tb.sink.beats]
        assert found in ([wanted, wanted[:-1]] if fails else [wanted])
        assert tb.memory.record.bursts == bursts
        assert tb.errors == told
        tb.sink.beats.clear()
        tb.memory.record.bursts.clear()
        tb.memory.faults.clear()
    assert told


@cocotb.test()
@cocotb.parametrize(pace=["free", "late", "busy"])
async def aborts(dut: Any, pace: str) -> None:
    """An abort ends the request with its burst, which is taken whole, without another word, and the next is not hit."""
    tb = Bench(dut, f"aborts {pace}")
    await tb.start(pace)
    for _ in range(10 if bench.short() else 100):
        address, words = tb.draw()
        first, burst = len(tb.sink.beats), len(tb.memory.record.bursts)
        tb.put(address, words)
        await tb.requests.drain()
        await ClockCycles(dut.clk_i, int(tb.rng.choice([1, 2, 3, int(tb.rng.integers(1, 400))])))
        dut.abort_i.value = 1
        await ClockCycles(dut.clk_i, 1)
        dut.abort_i.value = 0
        await RisingEdge(dut.clk_i)
        seen = len(tb.sink.beats)
        await tb.idle()
        assert len(tb.sink.beats) == seen, "a word after the abort"
        data = [beat.payload["data"] for beat in tb.sink.beats[first:]]
        assert data == [word(address + WORD * n) for n in range(len(data))]
        asked = sum(beats for _, beats in tb.memory.record.bursts[burst:])
        assert len(data) <= asked < len(data) + 2 * MOST_BEATS
        assert not tb.errors
    tb.awaited, tb.bursts = [], []
    tb.sink.beats.clear()
    tb.memory.record.bursts.clear()
    tb.put(*tb.draw())
    await tb.idle()
    tb.check()
