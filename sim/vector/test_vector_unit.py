# SPDX-License-Identifier: Apache-2.0
"""Vector unit against the integer reference: what every job writes, where and when, and in which order jobs end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from gharial.compiler.tables import default_tables
from gharial.isa.instructions import Post
from sim.common import bench
from sim.common.bench import clock
from sim.common.streams import Pause, Source, never, signed
from sim.vector.jobs import Expected, Job, Machine

POSTS = list(Post)
CELL_UNITS = 1024
# Clocks from a job's last result to its report: docs/blocks/vector_unit.md.
LEAD = 4  # activations are written so many clocks after the report of their job
RETIRE = {Post.NONE: 10, Post.LOGIT: 10, Post.I16: 11, Post.CELL: 31 - LEAD, Post.I8: 32 - LEAD}
SECOND_RETIRE = 32 - LEAD
GUARD_CLOCKS = 12  # two CELL jobs on the same cells are at least so far apart


class Written:
    """What was written to each place of a memory, in order, less what was checked; and what is there now."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[tuple[int, int], deque[int]] = {}
        self.now: dict[tuple[int, int], int] = {}

    def write(self, word: int, count: int, bits: int) -> None:
        """A record of the bench's port: address, mask of `count` lanes, lanes of so many bits."""
        mask, unit = word >> count * bits & (1 << count) - 1, word >> count * (bits + 1) & 0xFFFF
        assert mask
        for n, value in enumerate(lanes(word, count, bits)):
            if mask >> n & 1:
                self.values.setdefault((unit, n), deque()).append(value)
                self.now[unit, n] = value

    def check(self, at: tuple[int, int], value: int, job: Job) -> None:
        """The next value written there. A later job may have written there too meanwhile."""
        values = self.values.get(at)
        assert values, f"{self.name} {at} not written: {job.values}"
        found = values.popleft()
        assert found == value, f"{self.name} {at}: {found}, expected {value}: {job.values}"

    def nothing_else(self) -> None:
        """All that was written has been checked."""
        left = [at for at, values in self.values.items() if values]
        assert not left, f"{self.name} {left[0]} written without need"


class Bench:
    """The unit with its memories, sources of jobs and results, and what it wrote, checked when a job is reported."""

    def __init__(
        self, dut: Any, test: str, res_pause: Pause = never, job_pause: Pause = never, tables: str = "default"
    ):
        config = bench.config()
        self.dut, self.rng = dut, bench.rng(test)
        self.rows, self.cols, self.quads = config.rows, config.cols, config.rows // 4
        if tables == "default":
            shipped = default_tables()
            self.tables = [np.asarray(shipped[name], np.int64) for name in ("sigmoid", "tanh")]
        else:
            self.tables = [random_table(self.rng) for _ in range(2)]
        groups = min(64, config.scale_bytes // 4 // config.rows), min(64, config.bias_bytes // 4 // config.rows)
        self.machine = Machine(self.rng, config.rows, config.cols, config.sum_groups, *groups, CELL_UNITS, *self.tables)
        self._pauses = res_pause, job_pause
        self.waiting: deque[tuple[Job, Expected]] = deque()
        self.due: deque[tuple[int, Job, Expected]] = deque()  # reported, to be there at a clock
        self.acts, self.cells = Written("activation"), Written("cell")
        self.logits: list[tuple[int, list[int], int]] = []
        self.act_clocks: list[int] = []
        self.posts: list[int] = []  # of all jobs
        self.retired: list[int] = []  # clocks
        self.last_result: list[int] = []  # place of each job's last result among all

    async def start(self) -> None:
        """Reset, fill the memories, and begin to watch."""
        dut = self.dut
        await bench.start(dut)
        for n, word in enumerate(np.concatenate(self.tables).ravel().tolist()):
            dut.load_valid_i.value, dut.load_addr_i.value, dut.load_data_i.value = 1, n, word & 0xFFFFFFFF
            await RisingEdge(dut.clk_i)
        dut.load_valid_i.value = 0
        for enable, words in zip(
            (dut.poke_scale_i, dut.poke_bias_i, dut.poke_cell_i), self.machine.images(), strict=True
        ):
            await self._poke(enable, words)
        results = dut.res_valid_i, dut.res_ready_o, {"res": dut.res_i}
        self.results = Source(dut.clk_i, *results, self._pauses[0])
        self.jobs = Source(dut.clk_i, dut.job_valid_i, dut.job_ready_o, {"job": dut.job_i}, self._pauses[1])
        cocotb.start_soon(self._watch())

    def put(self, job: Job, results: int | None = None) -> None:
        """Queue a job and its results, or the first few of them."""
        self.waiting.append((job, self.machine.run(job)))
        self.posts.append(job.post)
        self.jobs.put(job=job.pack())
        words = job.results()[:results]
        self.last_result.append((self.last_result[-1] if self.last_result else -1) + len(words))
        for word in words:
            self.results.put(res=word)

    async def finish(self) -> None:
        """Wait for all jobs, and for whatever else may come."""
        limit = 2000 + 20 * (self.last_result[-1] + 1)
        for _ in range(limit):
            if not self.waiting:
                break
            await RisingEdge(self.dut.clk_i)
        assert not self.waiting, f"{len(self.waiting)} jobs not reported after {limit} clocks"
        for _ in range(50):
            await RisingEdge(self.dut.clk_i)
        assert len(self.retired) == len(self.last_result)
        for memory in (self.acts, self.cells):
            memory.nothing_else()
        assert not self.logits

    def delays(self) -> list[int]:
        """Clocks from each job's last result to its report."""
        return [at - self.results.taken[n] for at, n in zip(self.retired, self.last_result, strict=True)]

    async def reset(self) -> None:
        """Reset the unit, and forget the jobs that it has not reported, as all that they may have left behind."""
        self.dut.rst_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.rst_i.value = 0
        await RisingEdge(self.dut.clk_i)
        self.waiting.clear()
        self.logits.clear()
        self.acts.values.clear()
        self.cells.values.clear()
        self.due.clear()
        del self.last_result[len(self.retired) :]
        self.machine.forget_sums()
        await self._poke(self.dut.poke_cell_i, self.machine.images()[2])

    async def _poke(self, enable: Any, words: Sequence[int]) -> None:
        enable.value = 1
        for n, word in enumerate(words):
            self.dut.poke_addr_i.value, self.dut.poke_data_i.value = n, word
            await RisingEdge(self.dut.clk_i)
        enable.value = 0

    async def _watch(self) -> None:
        edge, dut = RisingEdge(self.dut.clk_i), self.dut
        acts, cells, logits, retire = dut.act_o, dut.cell_o, dut.logit_o, dut.retire_o
        while True:
            await edge
            while self.due and clock() > self.due[0][0]:
                self._check(*self.due.popleft()[1:])
            if not dut.event_o.value:
                continue
            if int(acts.value) >> (16 + 9 * self.cols) & 1:
                self.act_clocks.append(clock())
                self.acts.write(int(acts.value), self.cols, 8)
            if int(cells.value) >> (16 + 17 * self.quads) & 1:
                self.cells.write(int(cells.value), self.quads, 16)
            word = int(logits.value)
            if word >> 81:
                self.logits.append((word >> 64 & 0xFFFF, lanes(word, 4, 16), word >> 80 & 1))
            if int(retire.value) >> 1:
                self.retired.append(clock())
                job, expected = self.waiting.popleft()
                assert int(retire.value) & 1 == job.thread
                self.due.append((clock() + LEAD * (job.post in (Post.CELL, Post.I8)), job, expected))

    def _check(self, job: Job, expected: Expected) -> None:
        """All that the job writes is there when it is due."""
        for memory, wanted in ((self.acts, expected.acts), (self.cells, expected.cells)):
            for at, value in wanted.items():
                memory.check(at, value, job)
        found = self.logits[: len(expected.logits)]
        del self.logits[: len(expected.logits)]
        ends = [int(n == len(expected.logits) - 1) for n in range(len(expected.logits))]
        assert found == [(*quad, end) for quad, end in zip(expected.logits, ends, strict=True)], job.values


def lanes(word: int, count: int, bits: int) -> list[int]:
    """Signed numbers in the lower end of a word."""
    return [signed(word >> bits * n, bits) for n in range(count)]


def random_table(rng: np.random.Generator) -> np.ndarray:
    """A table that no function has: values beyond both ends, slopes of both signs."""
    base = rng.integers(0, 1 << 18, 512) >> rng.choice([0, 1, 17], 512)
    slope = rng.integers(-(1 << 17), 1 << 17, 512) >> rng.integers(0, 18, 512)
    base[-1], slope[-1] = 4 * 32600, 600  # so that gates get close to their ends, and c to its own
    return np.stack([base, slope], 1)


def pauses(rng: np.random.Generator) -> Pause:
    """Runs of clocks with pauses of varying likelihood."""
    state = {"left": 0, "chance": 0.0}

    def pause() -> bool:
        if state["left"] == 0:
            state["left"], state["chance"] = int(rng.integers(1, 200)), float(rng.choice([0.0, 0.1, 0.6, 0.95]))
        state["left"] -= 1
        return rng.random() < state["chance"]

    return pause


def random_jobs(tb: Bench, count: int) -> None:
    """Jobs of all kinds, small ones for the most part."""
    for n in range(count):
        groups, vectors = int(2 ** tb.rng.uniform(0, 3.2)), int(tb.rng.choice([1, 1, 2, 3, 4]))
        tb.put(tb.machine.draw(groups, vectors, tb.rng.choice(np.array(POSTS)) if n % 4 else Post.CELL))


def amount(short: int, full: int) -> int:
    """How many of something, by the form of the bench and the size of the rows."""
    return (short if bench.short() else full) * 32 // max(32, bench.config().rows)


@cocotb.test()
@cocotb.parametrize(paused=[False, True], tables=["default", "random"])
async def every_kind_of_job(dut: Any, paused: bool, tables: str) -> None:
    """Random jobs, values, masks and tables; all shifts and units are met, and both ends of every range."""
    name = f"every_kind_of_job {paused} {tables}"
    rng = bench.rng(name + " pauses")
    tb = Bench(dut, name, pauses(rng) if paused else never, pauses(rng) if paused else never, tables)
    await tb.start()
    random_jobs(tb, amount(200, 2000))
    await tb.finish()
    seen = tb.machine.seen
    assert seen.k == set(range(-8, 24))
    assert {qc for qc, _ in seen.units} == set(range(8, 16))
    assert {qh for _, qh in seen.units} == set(range(5, 15))
    wanted = {f"{value} {end}" for value in ("a", "y", "c", "h") for end in ("low", "high")}
    assert seen.limits >= wanted, f"not met: {wanted - seen.limits}"


@cocotb.test()
async def one_unit_a_clock(dut: Any) -> None:
    """Results are taken in every clock, through all changes of group, vector, job and post-operation."""
    tb = Bench(dut, "one_unit_a_clock")
    await tb.start()
    first_cell = 0
    for _ in range(amount(60, 400)):
        post = tb.rng.choice(np.array(POSTS))
        groups, vectors = int(tb.rng.integers(1, 6)), int(tb.rng.integers(1, 5))
        if post == Post.CELL:
            groups = max(groups, -(-GUARD_CLOCKS // tb.quads))  # of two that are shorter, a third one waits
        # CELL on cells of its own: those of an earlier job would be waited for.
        cells = {} if post == Post.I16 else {"cell_source": first_cell, "cell_destination": first_cell}
        tb.put(tb.machine.draw(groups, vectors, post, **cells))
        first_cell = (first_cell + groups) % (CELL_UNITS // 2 - 16)
    await tb.finish()
    taken = np.array(tb.results.taken)
    gaps = np.nonzero(np.diff(taken) != 1)[0]
    assert not gaps.size, f"gaps after results {gaps[:8]}"


@cocotb.test()
async def clocks_to_the_report(dut: Any) -> None:
    """A job alone is reported as many clocks after its last result as the documentation says."""
    tb = Bench(dut, "clocks_to_the_report")
    await tb.start()
    wanted = []
    for post in POSTS * 2:
        for second in (0, 1):
            last = 0 if post == Post.NONE else 1
            tb.put(tb.machine.draw(2, 1, post, last=last, second_valid=second))
            wanted.append(SECOND_RETIRE if post == Post.CELL and second else RETIRE[post])
            await tb.finish()
    assert tb.delays() == wanted


@cocotb.test()
async def reports_in_order(dut: Any) -> None:
    """A job that is through sooner than one before it is reported after it, and no later than need be."""
    tb = Bench(dut, "reports_in_order")
    await tb.start()
    for post in (Post.CELL, Post.NONE, Post.I16, Post.LOGIT, Post.I8, Post.LOGIT, Post.NONE) * 4:
        tb.put(tb.machine.draw(1, 1, post, last=int(post != Post.NONE), second_valid=0))
    await tb.finish()
    own = [
        n + RETIRE[Post(job)] for n, job in zip((tb.results.taken[n] for n in tb.last_result), tb.posts, strict=True)
    ]
    soonest = np.maximum.accumulate(own)
    # One report a clock: those that others kept waiting come one after the other.
    for n in range(1, len(soonest)):
        soonest[n] = max(soonest[n], soonest[n - 1] + 1)
    assert tb.retired == soonest.tolist()


@cocotb.test()
async def cells_in_order(dut: Any) -> None:
    """Jobs on the same or overlapping cells, one right after the other, see each other's c."""
    tb = Bench(dut, "cells_in_order")
    await tb.start()
    for _ in range(amount(60, 300)):
        groups, at, apart = (int(value) for value in tb.rng.integers((1, 0, 0), (5, 4, 4)))
        # In place, or from the cells of one slot to another's.
        slot = {0: 8, 1: -8}.get(apart, 0)
        at += 8 * (apart == 1)
        last = int(tb.rng.random() < 0.9)
        tb.put(tb.machine.draw(groups, 1, Post.CELL, last=last, cell_source=at, cell_destination=at + slot))
        if tb.rng.random() < 0.3:
            tb.put(tb.machine.draw(1, 1, tb.rng.choice(np.array([Post.NONE, Post.I8]))))
    await tb.finish()


@cocotb.test()
async def reset_while_busy(dut: Any) -> None:
    """A reset ends what is on its way; nothing of it comes after, and later jobs are not disturbed."""
    tb = Bench(dut, "reset_while_busy")
    await tb.start()
    for _ in range(amount(8, 40)):
        random_jobs(tb, 3)
        job = tb.machine.draw(3, 2, tb.rng.choice(np.array(POSTS)))
        tb.put(job, results=int(tb.rng.integers(1, 6 * tb.quads)))
        await tb.results.drain()
        for _ in range(int(tb.rng.integers(0, 32))):
            await RisingEdge(dut.clk_i)
        await tb.reset()
        random_jobs(tb, 3)
        await tb.finish()


@cocotb.test()
async def outputs_close_to_float(dut: Any) -> None:
    """An output of one part against double precision, where nothing saturates: 1.0005 units at most.

    Half of one for the rounding of a, where that is shifted at all, 2^-11 for t, half of one for the output.
    """
    tb = Bench(dut, "outputs_close_to_float")
    await tb.start()
    worst = 0.0
    for _ in range(amount(20, 200)):
        job = tb.machine.draw(4, 1, Post.I16, first=1, last=1)
        groups = slice(job.scale_group, job.scale_group + 4)
        a = job.acc[:, 0] * 2.0 ** -tb.machine.k[groups]
        start = tb.machine.bias[job.bias_group : job.bias_group + 4]
        exact = start * 2.0**-10 + a * tb.machine.m[groups] * 2.0**-17
        tb.put(job)
        await tb.finish()
        units = range(job.cell_destination, job.cell_destination + 16)
        found = np.array([tb.cells.now[unit, n] for unit in units for n in range(tb.quads)]).reshape(exact.shape)
        inside = (np.abs(a) < (1 << 17) - 1) & (np.abs(exact) < (1 << 15) - 2)
        worst = max(worst, np.abs(found - exact)[inside].max(initial=0.0))
    assert 0.5 < worst <= 1.0005, worst
    dut._log.info("largest error: %.4f units", worst)


@cocotb.test(skip=bench.short() and bench.config().name != "tiny")  # loading PyTorch takes longer than all the rest
async def close_to_float(dut: Any) -> None:
    """A cell against PyTorch in double precision, from the same pre-activations: c' and h' within their bounds.

    A gate is off by 0.75 (sigmoid) or 1.1 (tanh) units of 2^-15. So c' is off by 0.75 |c| of them for the forget gate,
    1.85 for the product of the other two, and half a unit of its own for rounding; h' by 1.85, by what the error of c'
    moves tanh, and half a unit of its own.
    """
    import torch

    tb = Bench(dut, "close_to_float")
    await tb.start()
    reference = torch.nn.LSTMCell(4, 1).double()
    with torch.no_grad():
        reference.weight_ih.copy_(torch.eye(4))
        for parameter in (reference.weight_hh, reference.bias_ih, reference.bias_hh):
            parameter.zero_()
    worst = np.zeros(2)
    for _ in range(amount(20, 120)):
        job = tb.machine.draw(4, 1, Post.CELL, first=1, last=1)
        job.acc >>= 6  # gates that are not all saturated
        c = tb.machine.cells[job.cell_source : job.cell_source + 4].astype(np.float64).ravel() * 2.0**-job.shift
        y = tb.machine.outputs(job).reshape(-1, 4) * 2.0**-12
        tb.put(job)
        await tb.finish()
        with torch.no_grad():
            zero = torch.zeros(len(c), 1, dtype=torch.double)
            h_true, c_true = (t.numpy().ravel() for t in reference(torch.tensor(y), (zero, torch.tensor(c)[:, None])))
        unit = 2.0 ** -np.array([job.shift, job.qh])
        c_end, h_end = 32767 * unit[0], 127 * unit[1]
        c_found = tb.machine.cells[job.cell_destination : job.cell_destination + 4].astype(np.float64).ravel() * unit[0]
        h_found = (
            np.array([tb.acts.now[(job.destination + n // tb.cols) % (1 << 16), n % tb.cols] for n in range(len(c))])
            * unit[1]
        )
        c_bound = 0.75 * np.abs(c) / 2**15 + 1.85 * 2.0**-15 + 0.5 * unit[0]
        h_bound = 1.85 * 2.0**-15 + c_bound + 0.5 * unit[1]
        c_error = np.abs(c_found - np.clip(c_true, -c_end - unit[0], c_end))
        h_error = np.abs(h_found - np.clip(h_true, -h_end, h_end))
        inside = np.abs(c_true) < c_end
        assert (c_error <= c_bound).all(), f"c' off by {(c_error / unit[0]).max()} units"
        assert (h_error <= h_bound)[inside].all(), f"h' off by {(h_error / unit[1]).max()} units"
        worst = np.maximum(worst, [(c_error / c_bound).max(), (h_error / h_bound)[inside].max()])
    dut._log.info("largest errors, of the bounds: c' %.2f, h' %.2f", *worst)
