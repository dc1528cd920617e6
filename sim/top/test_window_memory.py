# SPDX-License-Identifier: Apache-2.0
"""The device memory on chip: core by AXI4, host by AXI4-Lite, at once, at any pace, and beyond its end."""

from __future__ import annotations

import logging
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiBus, AxiMaster, AxiResp

from sim.common import bench
from sim.common.axi import WORD, AxiLiteHost, Port, channels, pauses

SIZE = 4096  # bytes
HALF = SIZE // 2  # the core's, then the host's
MOST_BEATS = 64  # of the core's bursts
HOST_CLOCKS = 16  # within which a host's access is answered, masters of cocotbext-axi included


class Bench:
    """Both masters, and what each has written to its half."""

    def __init__(self, dut: Any, test: str) -> None:
        self.dut, self.rng = dut, bench.rng(test)
        self.bytes = bytearray(SIZE)

    async def start(self, pause: float = 0.0) -> None:
        """Reset, masters, and known contents."""
        dut = self.dut
        await bench.start(dut)
        self.host = AxiLiteHost(dut, "s_axil", self.rng, pause)
        self.core = AxiMaster(AxiBus.from_entity(Port(dut, "s_axi")), dut.clk_i)
        for half in (self.core.write_if, self.core.read_if):
            half.log.setLevel(logging.ERROR)
        for address in range(0, SIZE, WORD):
            await self.put_host(address, int(self.rng.integers(1 << 32)))
        if pause:
            for channel in channels(self.core):
                pauses(channel, self.rng, pause, 3.0)

    async def put_host(self, address: int, value: int, count: int = WORD) -> None:
        """Bytes from the host."""
        response = await self.host.write(address, value & (1 << 8 * count) - 1, count)
        assert response == (AxiResp.OKAY if address < SIZE else AxiResp.SLVERR), f"{address:#x}: {response!r}"
        if address < SIZE:
            self.bytes[address : address + count] = (value & (1 << 8 * count) - 1).to_bytes(count, "little")

    async def get_host(self, address: int) -> None:
        """A word to the host."""
        found, response = await self.host.read(address)
        if address >= SIZE:
            assert response == AxiResp.SLVERR
            return
        wanted = int.from_bytes(self.bytes[address : address + WORD], "little")
        assert (found, response) == (wanted, AxiResp.OKAY), f"{address:#x}: {found:#x}, expected {wanted:#x}"

    async def put_core(self, address: int, value: int) -> None:
        """A word from the core."""
        done = await self.core.write(address, value.to_bytes(WORD, "little"), awid=0)
        assert done.resp == (AxiResp.OKAY if address < SIZE else AxiResp.SLVERR), f"{address:#x}: {done.resp!r}"
        if address < SIZE:
            self.bytes[address : address + WORD] = value.to_bytes(WORD, "little")

    async def get_core(self, address: int, words: int) -> None:
        """A burst to the core, of one half."""
        words = min(words, (HALF - address % HALF) // WORD)
        done = await self.core.read(address, words * WORD, arid=0)
        assert done.resp == (AxiResp.OKAY if address < SIZE else AxiResp.SLVERR), f"{address:#x}: {done.resp!r}"
        assert address >= SIZE or bytes(done.data) == bytes(self.bytes[address : address + words * WORD]), hex(address)

    def place(self, first: int) -> int:
        """A word in a half, or beyond the end, where it would alias with that half if the upper bits were lost."""
        address = first + WORD * int(self.rng.integers(HALF // WORD))
        beyond = int(self.rng.choice([0, 0, 0, 0, SIZE, 2 * SIZE, 1 << 30]))
        return address + beyond


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.3, 0.7])
async def both_at_once(dut: Any, pause: float) -> None:
    """Each keeps what it has written, whatever the other does; accesses beyond the end are errors without effect."""
    tb = Bench(dut, f"both_at_once {pause}")
    await tb.start(pause)
    count = 100 if bench.short() else 3000

    async def host() -> None:
        for _ in range(count):
            address = tb.place(HALF)
            if tb.rng.random() < 0.5:
                first = int(tb.rng.integers(WORD))
                await tb.put_host(address + first, int(tb.rng.integers(1 << 32)), int(tb.rng.integers(1, 5 - first)))
            else:
                await tb.get_host(address)

    async def core() -> None:
        for _ in range(count):
            address = tb.place(0)
            if tb.rng.random() < 0.4:
                await tb.put_core(address, int(tb.rng.integers(1 << 32)))
            else:
                await tb.get_core(address, int(tb.rng.integers(1, MOST_BEATS + 1)))

    for task in [cocotb.start_soon(host()), cocotb.start_soon(core())]:
        await task
    for address in range(0, SIZE, WORD):  # each sees the other's
        if address < HALF:
            await tb.get_host(address)
        elif address % (MOST_BEATS * WORD) == 0:
            await tb.get_core(address, MOST_BEATS)


@cocotb.test()
async def the_host_goes_first(dut: Any) -> None:
    """The host does not wait for bursts, and the core's go on."""
    tb = Bench(dut, "the_host_goes_first")
    await tb.start()
    bursts = [cocotb.start_soon(tb.get_core(0, MOST_BEATS)) for _ in range(20)]
    while not all(task.done() for task in bursts):
        for access in (tb.get_host(HALF), tb.put_host(HALF, int(tb.rng.integers(1 << 32)))):
            before = bench.clock()
            await access
            assert bench.clock() - before <= HOST_CLOCKS
        await ClockCycles(dut.clk_i, int(tb.rng.integers(0, 4)))
    for task in bursts:
        await task
