# SPDX-License-Identifier: Apache-2.0
"""State mover: random jobs against what memory and seats hold, at any pace of memory and of the seats' other users."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from sim.common import bench
from sim.common.bench import clock
from sim.common.streams import Source
from sim.sequencer.packing import pack

from .places import CELL_ENC, ENC, FETCH, MOVE, SCRATCH, STORE, ZERO, Places
from .seat_ports import SeatPorts
from .wide_memory import PACES, Pace, WideMemory

SEATS_BASE = 1 << 16  # jobs lie behind it in memory
BYTES = 1 << 18


class Bench:
    """The mover with its memories, and a record of what has ended."""

    def __init__(self, dut: Any, test: str, pause: float = 0.0) -> None:
        self.dut, self.rng = dut, bench.rng(test)
        self.places = Places.of(bench.config())
        self.mem = bytearray(self.rng.bytes(BYTES))
        self.ends: list[tuple[str, int, bool, int, int]] = []  # kind, tag, failed, address, clock
        self._pause = pause

    async def start(self, pace: Pace) -> None:
        """Reset, then everything around it."""
        dut = self.dut
        await bench.start(dut)
        self.ports = SeatPorts(dut, self.places, self.rng, self._pause)
        self.memory = WideMemory(dut, self.rng, self.mem, pace)
        self.memory.start()
        self.jobs = Source(dut.clk_i, dut.direct_valid_i, dut.direct_ready_o, {"job": dut.direct_i})
        cocotb.start_soon(self._watch())

    def put(self, op: int, addr: int, act: int, acts: int, cell: int, cells: int, tag: int = 0) -> None:
        """Queue a job."""
        values = {"op": op, "addr": addr, "act": act, "act_units": acts, "cell_unit": cell, "cell_units": cells}
        self.jobs.put(job=pack(MOVE, values | {"tag": tag}))

    async def ended(self, count: int, limit: int = 200_000) -> None:
        """Wait until so many jobs have ended."""
        for _ in range(limit):
            if len(self.ends) >= count:
                return
            await RisingEdge(self.dut.clk_i)
        raise AssertionError(f"{len(self.ends)} of {count} jobs ended")

    def others(self) -> None:
        """Let array and finish unit read everywhere and write to scratch, now and then."""

        async def reads() -> None:
            places = self.places
            while True:
                side, seat, count = (int(self.rng.integers(0, most)) for most in (2, places.seats, 12))
                await self.ports.read_acts(places.act(ENC, side, seat), count + 1)
                await self.ports.read_cells(places.cell(CELL_ENC, side, seat), count + 1)
                await ClockCycles(self.dut.clk_i, count + 1)

        async def writes() -> None:
            while True:
                count = int(self.rng.integers(1, 12))
                await self.ports.write_acts(
                    self.places.act(SCRATCH, 0, 0), self.rng.bytes(count * self.places.unit_bytes)
                )
                await ClockCycles(self.dut.clk_i, count)

        cocotb.start_soon(reads())
        cocotb.start_soon(writes())

    async def _watch(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        while True:
            await edge
            for kind in ("fetch", "store"):
                if getattr(dut, f"{kind}_done_o").value:
                    tag, failed, address = (
                        int(getattr(dut, f"{kind}_{name}_o").value) for name in ("tag", "failed", "error_addr")
                    )
                    self.ends.append((kind, tag, bool(failed), address, clock()))


@cocotb.test()
@cocotb.parametrize(pace=range(len(PACES)))
async def round_trips(dut: Any, pace: int) -> None:
    """Fetches to seats, checked there; then stores of them elsewhere, at any offset, that leave their surroundings."""
    tb = Bench(dut, f"round_trips {pace}", pause=0.3)
    await tb.start(PACES[pace])
    tb.others()
    rng, places = tb.rng, tb.places
    grain = min(places.unit_bytes, places.cell_bytes)
    for _ in range(2 if bench.short() else 30):
        jobs, at = [], 4096 * int(rng.integers(1, 6)) - grain * int(rng.integers(0, 200))
        to = 2 * SEATS_BASE + 4096 * int(rng.integers(1, 6)) - grain * int(rng.integers(0, 200))
        for seat in range(places.seats):
            most = int(rng.choice([3, 12, 60]))
            acts, cells = (int(rng.integers(0, most)) for _ in range(2))
            acts, cells = acts * (rng.random() > 0.1), cells * (rng.random() > 0.4)
            side, zero = int(rng.integers(0, 2)), rng.random() < 0.2
            act = places.act(ENC, side, seat, int(rng.integers(0, places.act_units[ENC] - acts)))
            cell = places.cell(CELL_ENC, side, seat, int(rng.integers(0, places.cell_units[CELL_ENC] - cells)))
            size = acts * places.unit_bytes + cells * places.cell_bytes
            jobs.append((at, to, act, acts, cell, cells, bytes(size) if zero else bytes(tb.mem[at : at + size]), zero))
            at += size + grain * int(rng.integers(0, 5))
            to += size + grain * int(rng.integers(0, 5))
        tb.ends.clear()
        for tag, (at, _, act, acts, cell, cells, _, zero) in enumerate(jobs):
            tb.put(ZERO if zero else FETCH, at, act, acts, cell, cells, tag)
        await tb.ended(len(jobs))
        assert [end[:3] for end in tb.ends] == [("fetch", tag, False) for tag in range(len(jobs))]
        for _, _, act, acts, cell, cells, data, _ in jobs:
            border = acts * places.unit_bytes
            assert await tb.ports.read_acts(act, acts) == data[:border], "activations"
            assert await tb.ports.read_cells(cell, cells) == data[border:], "cells"
        wanted = bytearray(tb.mem)
        tb.ends.clear()
        for tag, (_, to, act, acts, cell, cells, data, _) in enumerate(jobs):
            tb.put(STORE, to, act, acts, cell, cells, tag)
            wanted[to : to + len(data)] = data
        await tb.ended(len(jobs))
        assert [end[:3] for end in tb.ends] == [("store", tag, False) for tag in range(len(jobs))]
        assert tb.mem == wanted
    assert dut.idle_o.value


@cocotb.test()
async def store_behind_fetch(dut: Any) -> None:
    """A store of what a fetch before it brings stores that."""
    tb = Bench(dut, "store_behind_fetch")
    await tb.start(Pace(latency=30))
    places = tb.places
    size = 5 * places.unit_bytes + 3 * places.cell_bytes
    for n in range(6 if bench.short() else 40):
        tb.put(FETCH, 1024 * n, 64, 5, 32, 3)
        tb.put(STORE, SEATS_BASE + 1024 * n, 64, 5, 32, 3)
        await tb.ended(2 * n + 2)
        assert tb.mem[SEATS_BASE + 1024 * n :][:size] == tb.mem[1024 * n :][:size]


@cocotb.test()
async def errors(dut: Any) -> None:
    """A job that an error response hits says so, with an address at the word or before it; the others do not."""
    tb = Bench(dut, "errors")
    await tb.start(Pace(latency=10))
    rng, places = tb.rng, tb.places
    acts, cells = 40, 9
    size = acts * places.unit_bytes + cells * places.cell_bytes
    for _ in range(3 if bench.short() else 40):
        bad = int(rng.integers(0, 6))
        word = 4 * int(rng.integers(0, size // 4))
        for kind, op, base in (("fetch", FETCH, 0), ("store", STORE, SEATS_BASE)):
            hit = base + 4096 * bad + 4000 + word
            (tb.memory.bad_reads if op == FETCH else tb.memory.bad_writes).add(hit)
            tb.ends.clear()
            for n in range(6):
                tb.put(op, base + 4096 * n + 4000, 0, acts, 0, cells, n)
            await tb.ended(6)
            assert [end[:3] for end in tb.ends] == [(kind, n, n == bad) for n in range(6)]
            address = tb.ends[bad][3]
            assert hit - 4096 < address <= hit, f"{address:#x} for {hit:#x}"
            tb.memory.bad_reads.clear()
            tb.memory.bad_writes.clear()


@cocotb.test()
async def beat_a_clock(dut: Any) -> None:
    """Fetches behind one another hide the memory's latency: near a granule a clock (docs/blocks/state_mover.md)."""
    tb = Bench(dut, "beat_a_clock")
    await tb.start(Pace(latency=0))
    jobs, acts, cells = 8, 100, 100
    grain = min(tb.places.unit_bytes, tb.places.cell_bytes, len(dut.m_axi_rdata_i) // 8)
    granules = (acts * tb.places.unit_bytes + cells * tb.places.cell_bytes) // grain
    for n in range(jobs):
        tb.put(FETCH, 4096 * n, tb.places.act(ENC, 0, 0), acts, 0, cells)
    await tb.ended(jobs)
    taken = tb.ends[-1][4] - tb.jobs.taken[0]
    assert taken <= jobs * granules * 1.05 + 40, f"{taken} clocks for {jobs * granules} granules"


@cocotb.test()
async def hold(dut: Any) -> None:
    """Held in the middle, the bus comes to rest, nothing is written any more, and after a reset jobs run as before."""
    tb = Bench(dut, "hold")
    await tb.start(Pace(0.2, 0.2, 0.2, 0.2, 20))
    tb.jobs.stop()
    size = 20 * (tb.places.unit_bytes + tb.places.cell_bytes)
    for _ in range(4 if bench.short() else 60):
        tb.jobs = Source(dut.clk_i, dut.direct_valid_i, dut.direct_ready_o, {"job": dut.direct_i})
        for at in range(4):
            tb.put(FETCH, 4096 * at, tb.places.act(ENC, 0, at), 50, tb.places.cell(CELL_ENC, 0, at), 50)
            tb.put(STORE, SEATS_BASE + 4096 * at, tb.places.act(ENC, 1, at), 50, tb.places.cell(CELL_ENC, 1, at), 50)
        await ClockCycles(dut.clk_i, int(tb.rng.integers(1, 600)))
        dut.hold_i.value = 1
        tb.jobs.stop()
        await ClockCycles(dut.clk_i, 3)
        for _ in range(3000):
            if dut.idle_o.value and tb.memory.quiet():
                break
            await RisingEdge(dut.clk_i)
        assert dut.idle_o.value and tb.memory.quiet()
        before = bytes(tb.mem)
        await ClockCycles(dut.clk_i, 50)
        assert tb.mem == before and tb.memory.quiet()
        dut.rst_i.value = 1
        await ClockCycles(dut.clk_i, 2)
        dut.rst_i.value = 0
        dut.hold_i.value = 0
        tb.ends.clear()
        tb.jobs = Source(dut.clk_i, dut.direct_valid_i, dut.direct_ready_o, {"job": dut.direct_i})
        tb.put(FETCH, 64, 9, 20, 9, 20)
        tb.put(STORE, SEATS_BASE, 9, 20, 9, 20)
        await tb.ended(2)
        assert tb.mem[SEATS_BASE : SEATS_BASE + size] == tb.mem[64 : 64 + size]
        tb.jobs.stop()
