# SPDX-License-Identifier: Apache-2.0
"""Matrix unit against plain sums of products; its clocks against docs/blocks/matrix_unit.md."""

from __future__ import annotations

import itertools
import math
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from sim.common import bench
from sim.common.bench import clock
from sim.common.memories import ReadPort
from sim.common.streams import Beat, Pause, Sink, Source, never, signed
from sim.matrix.jobs import MIN_CLOCKS, SPACING, Contents, Job, draw_job

RESULT_FIELDS = ("sums", "group", "vector", "quad", "last")


class Bench:
    """The unit with its memories, a source of jobs, a sink of results, and a record of what it did in each clock."""

    def __init__(self, dut: Any, test: str, ready_pause: Pause = never, job_pause: Pause = never, kind: str = "random"):
        config = bench.config()
        self.dut = dut
        self.rng = bench.rng(test)
        self.rows, self.cols, self.quads = config.rows, config.cols, config.rows // 4
        self.contents = Contents(self.rows, self.cols, int(self.rng.integers(2**32)), kind)
        self.jobs: list[Job] = []
        self.active: list[int] = []  # clocks
        self.blocked: list[int] = []
        self.ready: list[int] = []
        self._pauses = ready_pause, job_pause

    async def start(self) -> None:
        """Reset, then everything around the unit."""
        dut = self.dut
        await bench.start(dut)
        clk = dut.clk_i
        self.weights = ReadPort(clk, dut.weight_en_o, dut.weight_addr_o, dut.weight_data_i, self._weights, latency=3)
        self.acts = ReadPort(clk, dut.act_en_o, dut.act_addr_o, dut.act_data_i, self._acts)
        results = {name: getattr(dut, f"res_{name}_o") for name in RESULT_FIELDS}
        self.sink = Sink(clk, dut.res_valid_o, dut.res_ready_i, results, self._pauses[0])
        self.source = Source(clk, dut.job_valid_i, dut.job_ready_o, {"job": dut.job_i}, self._pauses[1])
        cocotb.start_soon(self._watch())

    def _weights(self, address: int) -> int:
        return int.from_bytes(self.contents.tile(address).tobytes(), "little")

    def _acts(self, address: int) -> int:
        return int.from_bytes(self.contents.unit(address).tobytes(), "little")

    async def _watch(self) -> None:
        edge = RisingEdge(self.dut.clk_i)
        while True:
            await edge
            for record, signal in (
                (self.active, self.dut.active_o),
                (self.blocked, self.dut.blocked_o),
                (self.ready, self.dut.res_ready_i),
            ):
                if signal.value:
                    record.append(clock())
            assert not (self.dut.active_o.value and self.dut.blocked_o.value)

    def put(self, *jobs: Job) -> None:
        """Queue jobs."""
        for job in jobs:
            self.jobs.append(job)
            self.source.put(job=job.pack())

    async def check(self) -> list[list[Beat]]:
        """Wait for all results and compare them; the results of each job."""
        counts = [job.row_groups * job.vectors * self.quads for job in self.jobs]
        limit = 1000 + 60 * sum(max(count, job.clocks) for count, job in zip(counts, self.jobs, strict=True))
        beats = await self.sink.until(sum(counts), limit)
        by_job = []
        for job, count, end in zip(self.jobs, counts, np.cumsum(counts), strict=True):
            own = beats[end - count : end]
            by_job.append(own)
            self._compare(job, own)
        for _ in range(4 * MIN_CLOCKS):
            await RisingEdge(self.dut.clk_i)
        assert len(self.sink.beats) == sum(counts), "results that no job asked for"
        assert len(self.active) == sum(job.steps for job in self.jobs)
        assert self.acts.reads == len(self.active)
        assert self.weights.reads == sum(job.row_groups * job.col_tiles for job in self.jobs)
        return by_job

    def _compare(self, job: Job, beats: list[Beat]) -> None:
        expected = self.contents.sums(job).reshape(-1, 4)
        sums = [[signed(value, 32) for value in beat.payload["sums"]] for beat in beats]
        wrong = np.nonzero((np.array(sums) != expected).any(axis=1))[0]
        assert not wrong.size, f"{job}: result {wrong[0]}: {sums[wrong[0]]}, expected {expected[wrong[0]]}"
        place = 0
        for group in range(job.row_groups):
            for vector in range(job.vectors):
                for quad in range(self.quads):
                    payload = beats[place].payload
                    place += 1
                    found = tuple(payload[name] for name in ("group", "vector", "quad", "last"))
                    assert found == (group, vector, quad, int(place == len(beats))), f"{job}: {found}"


def shapes(rng: np.random.Generator, count: int, largest: int) -> list[tuple[int, int, int]]:
    """Row groups, column tiles, vectors: all the smallest first, then random ones of at most `largest` steps."""
    out = [(groups, tiles, vectors) for groups in (1, 2) for tiles in (1, 2, 3) for vectors in (1, 2, 3, 4)]
    while len(out) < count:
        shape = tuple(int(2 ** rng.uniform(0, top)) for top in (4.5, 6, 2.3))
        if math.prod(shape) <= largest and shape[2] <= 4:
            out.append((shape[0], shape[1], shape[2]))
    order = rng.permutation(len(out[:count]))
    return [out[index] for index in order]


def amount(short: int, full: int) -> int:
    """How many of something, by the form of the bench."""
    return short if bench.short() else full


async def random_jobs(tb: Bench, count: int, largest: int) -> list[list[Beat]]:
    """Run jobs of random shapes at random addresses."""
    await tb.start()
    tb.put(*(draw_job(tb.rng, *shape) for shape in shapes(tb.rng, count, largest)))
    return await tb.check()


@cocotb.test()
async def smallest_to_large(dut: Any) -> None:
    """Sums, order and places of the results; nothing holds the unit back."""
    await random_jobs(Bench(dut, "smallest_to_large"), amount(36, 150), amount(300, 2000))


@cocotb.test()
@cocotb.parametrize(kind=["extreme", "opposed"])
async def extreme_values(dut: Any, kind: str) -> None:
    """All weights and activations at their limits; in the full form a row of 65536 columns, the largest sum."""
    tb = Bench(dut, "extreme_values", kind=kind)
    await tb.start()
    tiles = 65536 // tb.cols // amount(32, 1)
    tb.put(draw_job(tb.rng, 1, tiles, 1), *(draw_job(tb.rng, 2, 9, vectors) for vectors in (1, 2, 3, 4)))
    by_job = await tb.check()
    if kind == "opposed":
        assert signed(by_job[0][0].payload["sums"][0], 32) == 127 * -128 * tb.cols * tiles


@cocotb.test()
async def without_gaps(dut: Any) -> None:
    """Jobs follow without a lost clock, and take their steps or MIN_CLOCKS; only the stretch counts as blocked."""
    tb = Bench(dut, "without_gaps")
    await tb.start()
    # Results are drained four rows a clock: shapes that this keeps up with.
    for _ in range(amount(25, 120)):
        groups, vectors = int(tb.rng.integers(1, 4)), int(tb.rng.integers(1, 5))
        tb.put(draw_job(tb.rng, groups, int(tb.rng.integers(2 * tb.quads, 4 * tb.quads)), vectors))
        tb.put(draw_job(tb.rng, 1, int(tb.rng.integers(1, 20)), 1))
    await tb.check()
    total = sum(job.clocks for job in tb.jobs)
    stretched = sum(job.clocks - job.steps for job in tb.jobs)
    assert stretched > 0
    assert len(tb.blocked) == stretched
    spent = sorted(tb.active + tb.blocked)
    assert spent == list(range(spent[0], spent[0] + total)), "a clock was lost between jobs"


@cocotb.test()
async def start_of_each_job(dut: Any) -> None:
    """A job's first step comes when the one before has had its clocks; its first result so long after its last step."""
    tb = Bench(dut, "start_of_each_job")
    await tb.start()
    depth = 12 + int(math.log2(tb.cols))
    for tiles in (1, 15, 16, 17, 40):
        tb.put(draw_job(tb.rng, 1, tiles, 1))
    by_job = await tb.check()
    assert tb.active[0] - tb.source.taken[0] == 2
    starts, position = [], 0
    for job, beats in zip(tb.jobs, by_job, strict=True):
        starts.append(tb.active[position])
        position += job.steps
        assert beats[0].clock - tb.active[position - 1] == depth, f"{job}"
        assert beats[-1].clock - beats[0].clock == tb.quads - 1
    assert list(np.diff(starts)) == [job.clocks for job in tb.jobs[:-1]]


@cocotb.test()
@cocotb.parametrize(often=[0.1, 0.5, 0.95])
async def back_pressure(dut: Any, often: float) -> None:
    """Results are taken and jobs come at random clocks; nothing is lost and nothing changes while it waits."""
    pace = bench.rng(f"pace{often}")
    tb = Bench(dut, f"back_pressure{often}", lambda: bool(pace.random() < often), lambda: bool(pace.random() < 0.3))
    await random_jobs(tb, amount(30, 80), 200)


@cocotb.test()
async def spacing(dut: Any) -> None:
    """Who reads a sum for a result has SPACING clocks with res_ready_i to write it back, whatever else there is."""
    pace = bench.rng("spacing pace")
    state = {"paused": False}

    def bursts() -> bool:
        if pace.random() < 0.03:
            state["paused"] = not state["paused"]
        return state["paused"]

    tb = Bench(dut, "spacing", ready_pause=bursts)
    by_job = await random_jobs(tb, amount(60, 300), 40)
    passed = {at: number for number, at in enumerate(tb.ready)}
    least = min(
        passed[later.clock] - passed[earlier.clock]
        for one, other in itertools.pairwise(by_job)
        for earlier in one[-tb.quads :]
        for later in other[: tb.quads]
        if earlier.payload["quad"] == later.payload["quad"]
    )
    assert least == max(SPACING, tb.quads), least


@cocotb.test()
async def full_memory_blocks(dut: Any) -> None:
    """With no result taken the unit stops by itself, counts it, and goes on where it stopped."""
    held = {"back": True}
    tb = Bench(dut, "full_memory_blocks", ready_pause=lambda: held["back"])
    await tb.start()
    tb.put(draw_job(tb.rng, 30, 2, 4))
    for _ in range(400):
        await RisingEdge(dut.clk_i)
    groups_done, rest = divmod(len(tb.active), 2 * 4)
    assert rest == 0 and 2 <= groups_done < 30
    assert tb.blocked[-1] >= clock() - 1 and len(tb.blocked) > 200
    held["back"] = False
    await tb.check()


@cocotb.test()
async def reset_forgets(dut: Any) -> None:
    """A reset in the middle of jobs leaves nothing of them."""
    tb = Bench(dut, "reset_forgets", ready_pause=lambda: False)
    await tb.start()
    tb.put(*(draw_job(tb.rng, 6, 5, 3) for _ in range(2)))
    for _ in range(60):
        await RisingEdge(dut.clk_i)
    dut.rst_i.value = 1
    for _ in range(2):
        await RisingEdge(dut.clk_i)
    dut.rst_i.value = 0
    await RisingEdge(dut.clk_i)
    tb.active.clear()
    tb.sink.beats.clear()
    tb.jobs.clear()
    tb.acts.reads = tb.weights.reads = 0
    tb.put(draw_job(tb.rng, 3, 4, 2))
    await tb.check()
