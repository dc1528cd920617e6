# SPDX-License-Identifier: Apache-2.0
"""Aux unit: LOOKUP and JOINT against what they are, whatever the other users of the memories leave it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from sim.common import bench
from sim.common.bench import clock
from sim.common.memories import ReadPort
from sim.common.streams import Pause, Source, never, signed
from sim.reference import numerics

FIELDS = (
    ("joint", 1),
    ("zero", 1),
    ("embed_unit", 32),
    ("units", 16),
    ("joint_enc", 16),
    ("joint_pred", 16),
    ("shift", 4),
    ("destination", 16),
)
ADDRESSES = 1 << 16
EMBED_UNITS = 1 << 12
# Clocks from taking a job to its end where the memories are free, and those of each unit: docs/blocks/aux_unit.md.
CLOCKS = {0: 3, 1: 6}
UNIT_CLOCKS = {0: 1, 1: 2}


class Bench:
    """The unit, its memories with random contents, and a record of what it wrote.

    `cell_busy` and `act_busy` are asked once a clock: True keeps the unit from the memory's port.
    """

    def __init__(self, dut: Any, test: str, cell_busy: Pause = never, act_busy: Pause = never) -> None:
        config = bench.config()
        self.dut, self.rng = dut, bench.rng(test)
        self.cols, self.halves = config.cols, config.rows // 4
        self.embedding = self.rng.integers(-127, 128, (EMBED_UNITS, self.cols)).astype(np.int8)
        cells = (ADDRESSES, self.halves)
        self.cells = (self.rng.integers(-(1 << 15), 1 << 15, cells) >> self.rng.integers(0, 14, cells)).astype(np.int16)
        self.cells[self.rng.random(cells) < 0.05] = (1 << 15) - 1
        self.acts: dict[tuple[int, int], int] = {}
        self.writes = 0
        self.expected: list[dict[tuple[int, int], int]] = []
        self.clocks: list[int] = []
        self.found: list[dict[tuple[int, int], int]] = []  # of each job
        self._busy = cell_busy, act_busy

    async def start(self) -> None:
        """Reset, then everything around the unit."""
        dut = self.dut
        await bench.start(dut)
        ReadPort(dut.clk_i, dut.embed_en_o, dut.embed_addr_o, dut.embed_data_i, self._embedding)
        self.jobs = Source(dut.clk_i, dut.job_valid_i, dut.job_ready_o, {"job": dut.job_i})
        cocotb.start_soon(self._cell_port())
        cocotb.start_soon(self._act_port())

    def _embedding(self, unit: int) -> int:
        return int.from_bytes(self.embedding[unit % EMBED_UNITS].tobytes(), "little")

    async def _cell_port(self) -> None:
        """Cell memory whose port others use too: what they read comes out in between."""
        edge, dut = RisingEdge(self.dut.clk_i), self.dut
        coming = 0
        while True:
            ready = not self._busy[0]()
            dut.cell_ready_i.value = int(ready)
            await edge
            dut.cell_rdata_i.value = coming
            mine = ready and bool(dut.cell_re_o.value)
            unit = int(dut.cell_raddr_o.value) if mine else int(self.rng.integers(0, ADDRESSES))
            coming = int.from_bytes(self.cells[unit].tobytes(), "little")

    async def _act_port(self) -> None:
        edge, dut = RisingEdge(self.dut.clk_i), self.dut
        while True:
            ready = not self._busy[1]()
            dut.act_ready_i.value = int(ready)
            await edge
            if ready and dut.act_we_o.value:
                self.writes += 1
                data, mask = int(dut.act_wdata_o.value), int(dut.act_wmask_o.value)
                for n in range(self.cols):
                    if mask >> n & 1:
                        self.acts[int(dut.act_waddr_o.value), n] = signed(data >> 8 * n, 8)
            if dut.done_o.value:
                self.clocks.append(clock())
                found, self.acts = self.acts, {}
                self.found.append(found)
                assert found == self.expected[len(self.clocks) - 1], f"job {len(self.clocks) - 1}"

    def put(self, **fixed: int) -> None:
        """Queue a job, at random but for what is fixed."""
        values = {name: int(self.rng.integers(0, 1 << bits)) for name, bits in FIELDS}
        values |= {"units": int(2 ** self.rng.uniform(0, 6)), "shift": int(self.rng.integers(0, 9))} | fixed
        self.jobs.put(job=packed(values))
        units = values["units"]
        count = np.arange(units)
        if values["joint"]:
            enc, pred = (self.cells[(values[name] + count) % ADDRESSES] for name in ("joint_enc", "joint_pred"))
            row = numerics.joint(enc, pred, values["shift"]).ravel()
        else:
            row = self.embedding[(values["embed_unit"] + count) % EMBED_UNITS].ravel().astype(np.int64)
            row *= 1 - values["zero"]
        self.expected.append({self._place(values["destination"], n): int(value) for n, value in enumerate(row)})

    def _place(self, unit: int, n: int) -> tuple[int, int]:
        return (unit + n // self.cols) % ADDRESSES, n % self.cols

    async def finish(self) -> None:
        """Wait for all jobs."""
        limit = 1000 + 40 * sum(len(wanted) for wanted in self.expected)
        for _ in range(limit):
            if len(self.clocks) == len(self.expected):
                break
            await RisingEdge(self.dut.clk_i)
        for _ in range(20):
            await RisingEdge(self.dut.clk_i)
        assert len(self.clocks) == len(self.expected), f"{len(self.clocks)} of {len(self.expected)} jobs ended"
        assert not self.acts, "written after the end"


def packed(values: dict[str, int]) -> int:
    """`aux_job_t`, as sequencer_pkg has it."""
    word = 0
    for name, bits in FIELDS:
        word = word << bits | values[name]
    return word


def busy(rng: np.random.Generator) -> Callable[[], bool]:
    """Runs of clocks in which others use a port more or less."""
    state = {"left": 0, "chance": 0.0}

    def ask() -> bool:
        if state["left"] == 0:
            state["left"], state["chance"] = int(rng.integers(1, 100)), float(rng.choice([0.0, 0.2, 0.7, 0.97]))
        state["left"] -= 1
        return rng.random() < state["chance"]

    return ask


@cocotb.test()
@cocotb.parametrize(shared=[False, True])
async def random_jobs(dut: Any, shared: bool) -> None:
    """Jobs of both kinds and all shifts, alone with the memories or not."""
    name = f"random_jobs {shared}"
    rng = bench.rng(name + " busy")
    tb = Bench(dut, name, busy(rng) if shared else never, busy(rng) if shared else never)
    await tb.start()
    for _ in range(30 if bench.short() else 400):
        tb.put()
    for shift in range(9):
        tb.put(joint=1, shift=shift)
    await tb.finish()


@cocotb.test()
async def close_to_float(dut: Any) -> None:
    """JOINT against the sum and ReLU in double precision: half a unit at most, and that half only upwards."""
    tb = Bench(dut, "close_to_float")
    await tb.start()
    exact = []
    for n in range(18 if bench.short() else 180):
        at = [int(value) for value in tb.rng.integers(0, ADDRESSES - 64, 2)]
        tb.put(joint=1, shift=n % 9, units=16, joint_enc=at[0], joint_pred=at[1], destination=0)
        enc, pred = (tb.cells[first : first + 16].astype(np.float64).ravel() for first in at)
        exact.append(np.clip((enc + pred) / 2 ** (n % 9), 0, 127))
    await tb.finish()
    for found, wanted in zip(tb.found, exact, strict=True):
        values = np.array([found[tb._place(0, n)] for n in range(len(wanted))])
        assert (values - wanted <= 0.5).all() and (wanted - values < 0.5).all()


@cocotb.test()
async def clocks(dut: Any) -> None:
    """A job alone takes as long as the documentation says: one clock a unit of LOOKUP, two a unit of JOINT."""
    tb = Bench(dut, "clocks")
    await tb.start()
    wanted = []
    for joint in (0, 1, 0, 1):
        for units in (1, 2, 7, 32):
            tb.put(joint=joint, units=units, zero=0)
            await tb.finish()
            wanted.append(units * UNIT_CLOCKS[joint] + CLOCKS[joint])
    assert [end - taken for end, taken in zip(tb.clocks, tb.jobs.taken, strict=True)] == wanted
