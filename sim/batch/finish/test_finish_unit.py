# SPDX-License-Identifier: Apache-2.0
"""Finish unit against the integer reference: what slices write, where and when, and in which order instructions end."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from gharial.compiler.tables import default_tables
from gharial.isa.instructions import Post
from sim.batch.finish.instructions import ADDRESS_BITS, C_UNITS, Instruction, SeatMachine, Segment
from sim.common import bench
from sim.common.bench import clock
from sim.common.streams import Pause, Source, never, signed

POSTS = list(Post)
# docs/blocks/finish_unit.md
RETIRE = 32  # clocks from an instruction's last result to its report, and the words of a slice's I8
GUARD_CLOCKS = 13  # two CELL segments on the same cells are at least so far apart
SUM_CLOCKS = 4  # a sum comes again after so many


class Writes:
    """What must be written to each place of a memory, in order, and by which instruction."""

    def __init__(self, name: str, lanes: int, bits: int, left: Counter[int]) -> None:
        self.name, self.lanes, self.bits, self.left = name, lanes, bits, left
        self.due: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def expect(self, number: int, wanted: dict[tuple[int, int], int]) -> None:
        """Instruction `number` writes these next."""
        for at, value in wanted.items():
            self.due.setdefault(at, []).append((value, number))
        self.left[number] += len(wanted)

    def write(self, word: int) -> None:
        """A record of the bench's port: valid, address, mask, data."""
        lanes, bits = self.lanes, self.bits
        if not word >> ADDRESS_BITS + lanes * (bits + 1):
            return
        mask, unit = word >> lanes * bits & (1 << lanes) - 1, word >> lanes * (bits + 1) & (1 << ADDRESS_BITS) - 1
        assert mask
        for n in range(lanes):
            if mask >> n & 1:
                value, queue = signed(word >> bits * n, bits), self.due.get((unit, n))
                assert queue, f"{self.name} {unit}, {n} written without need"
                wanted, number = queue.pop(0)
                if not queue:
                    del self.due[unit, n]
                assert value == wanted, f"{self.name} {unit}, {n}: {value}, expected {wanted} of instruction {number}"
                self.left[number] -= 1


class Bench:
    """The unit with its memories, sources of segments and results, and checks of what it writes."""

    def __init__(
        self, dut: Any, test: str, res_pause: Pause = never, seg_pause: Pause = never, tables: str = "default"
    ):
        self.config = bench.config()
        self.dut, self.rng = dut, bench.rng(test)
        self.slice_rows = 4 * self.config.lanes
        self.slices = self.config.rows // self.slice_rows
        cell_writes, act_writes = 4 * self.slice_rows // self.config.rows, self.slice_rows // self.config.cols
        self.writes = {Post.I16: max(1, cell_writes), Post.I8: max(1, act_writes)}  # of a slice
        self.retire = RETIRE + self.writes[Post.I8]
        if tables == "default":
            shipped = default_tables()
            self.tables = [np.asarray(shipped[name], np.int64) for name in ("sigmoid", "tanh")]
        else:
            self.tables = [random_table(self.rng) for _ in range(2)]
        self.machine = SeatMachine(self.rng, self.config, *self.tables)
        self._pauses = res_pause, seg_pause
        self.left: Counter[int] = Counter()  # writes that each instruction still has to do
        self.acts = Writes("activation", self.config.cols, 8, self.left)
        self.cells = Writes("cell", self.config.rows // 4, 16, self.left)
        self.logits: deque[tuple[int, int, int, list[int], int]] = deque()  # last, slice, seat, values, instruction
        self.count = 0  # instructions
        self.ends: deque[tuple[int, int]] = deque()  # instructions to be reported: number, thread
        self.retired: list[int] = []  # clocks
        self.last_result: list[int] = []  # place of each instruction's last result among all
        self.pauses: list[int] = [0]  # clocks that must be left out before each result

    async def start(self) -> None:
        """Reset, fill the memories, and begin to watch."""
        dut = self.dut
        await bench.start(dut)
        dut.load_valid_i.value = 1
        for space, words in self.machine.loads(self.tables).items():
            dut.load_space_i.value = space
            for n, word in enumerate(words):
                dut.load_addr_i.value, dut.load_data_i.value = n, word
                await RisingEdge(dut.clk_i)
        dut.load_valid_i.value = 0
        await self._poke_cells()
        results = dut.res_valid_i, dut.res_ready_o, {"res": dut.res_i}
        self.results = Source(dut.clk_i, *results, self._pauses[0])
        self.segments = Source(dut.clk_i, dut.seg_valid_i, dut.seg_ready_o, {"seg": dut.seg_i}, self._pauses[1])
        cocotb.start_soon(self._watch())

    def put(self, *instructions: Instruction, results: int | None = None) -> None:
        """Queue instructions, their segments in turn at random, and their results, or the first few of them."""
        queues = []
        for n, instruction in enumerate(instructions):
            queues.append(deque(instruction.segments(self.config, self.count + n, self.rng)))
        self.count += len(instructions)
        while queues:
            queue = queues[int(self.rng.integers(0, len(queues)))]
            segment = queue.popleft()
            self._put(segment, ends=not queue, results=results)
            queues = [queue for queue in queues if queue]

    def _put(self, segment: Segment, ends: bool, results: int | None) -> None:
        job = next(iter(segment.jobs.values()))
        for seat, expected in self.machine.segment(segment):
            self.acts.expect(segment.number, expected.acts)
            self.cells.expect(segment.number, expected.cells)
            values = [value for _, quad in expected.logits for value in quad]
            for n in range(len(values) // self.slice_rows):
                last = ends and seat == max(segment.jobs) and n == self.slices - 1
                place = segment.group * self.slices + n % self.slices
                data = values[self.slice_rows * n :][: self.slice_rows]
                self.logits.append((int(last), place, seat, data, segment.number))
                self.left[segment.number] += 1
        self.segments.put(seg=segment.word)
        seat_bits = max(1, (self.config.batch - 1).bit_length())
        for n, (seat, vector, number, last, sums) in enumerate(segment.results(self.slices)):
            if results is not None and n >= results:
                return
            place = ((last << (self.slices - 1).bit_length() | number) << 2 | vector) << seat_bits | seat
            self.results.put(res=place << 32 * self.slice_rows | int.from_bytes(sums, "little"))
            pause = self.writes.get(Post(job.post), 1) - 1 if job.last >> vector & 1 else 0
            self.pauses.append(max(pause, SUM_CLOCKS - self.slices) if last else pause)
        if ends:
            self.ends.append((segment.number, job.thread))
            self.last_result.append(len(self.pauses) - 2)

    async def room(self) -> None:
        """Wait while so many results are queued that what they must do takes too much memory."""
        while len(self.pauses) - len(self.results.taken) > 4000:
            await RisingEdge(self.dut.clk_i)

    async def finish(self) -> None:
        """Wait for all instructions, and for whatever else may come."""
        limit = 2000 + 30 * len(self.pauses)
        for _ in range(limit):
            if not self.ends:
                break
            await RisingEdge(self.dut.clk_i)
        assert not self.ends, f"{len(self.ends)} instructions not reported after {limit} clocks"
        for _ in range(50):
            await RisingEdge(self.dut.clk_i)
        assert len(self.retired) == len(self.last_result)

    def delays(self) -> list[int]:
        """Clocks from each instruction's last result to its report."""
        return [at - self.results.taken[n] for at, n in zip(self.retired, self.last_result, strict=True)]

    async def reset(self) -> None:
        """Reset the unit, and forget the instructions that it has not reported, and all that they have left behind."""
        self.dut.rst_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.rst_i.value = 0
        await RisingEdge(self.dut.clk_i)
        self.ends.clear()
        self.logits.clear()
        self.acts.due.clear()
        self.cells.due.clear()
        self.left.clear()
        del self.last_result[len(self.retired) :]
        self.machine.forget_sums()
        await self._poke_cells()

    async def _poke_cells(self) -> None:
        self.dut.poke_cell_i.value = 1
        for unit, word in self.machine.c_words():
            self.dut.poke_addr_i.value, self.dut.poke_data_i.value = unit, word
            await RisingEdge(self.dut.clk_i)
        self.dut.poke_cell_i.value = 0

    async def _watch(self) -> None:
        edge, dut = RisingEdge(self.dut.clk_i), self.dut
        acts, cells, logits, retire = dut.act_o, dut.cell_o, dut.logit_o, dut.retire_o
        seat_bits = max(1, (self.config.batch - 1).bit_length())
        data_bits = 16 * self.slice_rows
        while True:
            await edge
            if not dut.event_o.value:
                continue
            word = int(retire.value)  # first, since what it tells of was written before this clock
            if word >> 1:
                self.retired.append(clock())
                number, thread = self.ends.popleft()
                assert word & 1 == thread
                assert not self.left.pop(number, 0), f"instruction {number} is reported before all is written"
            self.acts.write(int(acts.value))
            self.cells.write(int(cells.value))
            word = int(logits.value)
            if word >> 17 + seat_bits + data_bits:
                place = word >> data_bits + seat_bits
                values = [signed(word >> 16 * n, 16) for n in range(self.slice_rows)]
                found = place >> 16 & 1, place & 0xFFFF, word >> data_bits & (1 << seat_bits) - 1, values
                assert self.logits, "logits without need"
                *wanted, number = self.logits.popleft()
                assert found == tuple(wanted)
                self.left[number] -= 1


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


async def random_instructions(tb: Bench, count: int) -> None:
    """Instructions of all kinds, small ones for the most part; some of two threads in turn."""
    rng = tb.rng

    def draw(n: int, half: int | None = None) -> Instruction:
        post = POSTS[int(rng.integers(0, len(POSTS)))] if n % 3 else Post.CELL
        if half is not None and post == Post.LOGIT:
            post = Post.CELL
        vectors = int(rng.choice([1, 1, 2, 3, 4])) if post != Post.LOGIT else 1
        return tb.machine.instruction(int(2 ** rng.uniform(0, 2.6)), vectors, post, half=half)

    for n in range(count):
        await tb.room()
        if rng.random() < 0.2:
            tb.put(draw(n, 0), draw(n + 1, 1))
        else:
            tb.put(draw(n))


def amount(short: int, full: int, least: int = 8) -> int:
    """How many of something, by the form of the bench and the slices of a full batch."""
    config = bench.config()
    slices = config.batch * config.rows // (4 * config.lanes)
    return max(least, (short if bench.short() else full) * 8 // slices)


@cocotb.test()
@cocotb.parametrize(paused=[False, True], tables=["default", "random"])
async def every_kind_of_instruction(dut: Any, paused: bool, tables: str) -> None:
    """Random instructions, seats, values, masks and tables; all shifts are met, and both ends of every range."""
    name = f"every_kind_of_instruction {paused} {tables}"
    rng = bench.rng(name + " pauses")
    tb = Bench(dut, name, pauses(rng) if paused else never, pauses(rng) if paused else never, tables)
    await tb.start()
    seen = tb.machine.seen
    wanted = {f"{value} {end}" for value in ("a", "y", "c", "h") for end in ("low", "high")}
    await random_instructions(tb, amount(150, 2000))
    for _ in range(50):  # so few that one case may be missing
        if seen.k == set(range(-8, 24)) and seen.limits >= wanted:
            break
        await random_instructions(tb, 8)
    await tb.finish()
    assert seen.k == set(range(-8, 24))
    assert seen.limits >= wanted, f"not met: {wanted - seen.limits}"


@cocotb.test()
async def a_slice_a_clock(dut: Any) -> None:
    """Results are taken in every clock but documented ones, through all changes of seat, vector, segment and so on."""
    tb = Bench(dut, "a_slice_a_clock")
    await tb.start()
    everybody, cell = list(range(tb.config.batch)), 0
    for n in range(amount(25, 200)):
        post = POSTS[n % len(POSTS)] if n < 10 else tb.rng.choice(np.array(POSTS))
        groups, vectors = int(tb.rng.integers(1, 5)), int(tb.rng.integers(1, 5)) if post != Post.LOGIT else 1
        # CELL on cells of its own, and so many slices that only the latest segment's matter.
        fixed = {"cell_unit": cell} if post == Post.CELL else {}
        tb.put(tb.machine.instruction(groups, vectors, post, seats=everybody if post == Post.CELL else None, **fixed))
        cell = (cell + groups) % (C_UNITS - 8)
    await tb.finish()
    gaps = np.diff(np.array(tb.results.taken)) - 1
    different = np.flatnonzero(gaps != tb.pauses[1:-1])
    assert not different.size, f"gaps {gaps[different[:8]]} after results {different[:8]}"


@cocotb.test()
async def clocks_to_the_report(dut: Any) -> None:
    """An instruction is reported as many clocks after its last result as the documentation says."""
    tb = Bench(dut, "clocks_to_the_report")
    await tb.start()
    for post in POSTS * 2:
        tb.put(tb.machine.instruction(2, 1, post))
    await tb.finish()
    assert set(tb.delays()) == {tb.retire}


@cocotb.test()
async def cells_in_order(dut: Any) -> None:
    """Segments on the same or other cells, one right after the other, see each other's c."""
    tb = Bench(dut, "cells_in_order")
    await tb.start()
    for _ in range(60 if bench.short() else 400):
        groups, at, count = (int(value) for value in tb.rng.integers((1, 0, 1), (4, 3, 3)))
        seats = sorted(tb.rng.choice(3, count, replace=False).tolist())
        last = int(tb.rng.random() < 0.9)
        tb.put(tb.machine.instruction(groups, 1, Post.CELL, seats, last=last, cell_unit=at))
        if tb.rng.random() < 0.3:
            tb.put(tb.machine.instruction(1, 1, Post(int(tb.rng.choice([Post.NONE, Post.I8]))), seats[:1]))
    await tb.finish()


@cocotb.test()
async def sums_in_order(dut: Any) -> None:
    """Parts of a product, one right after the other, see each other's sums."""
    tb = Bench(dut, "sums_in_order")
    await tb.start()
    seats = [0]
    for n in range(80 if bench.short() else 400):
        post = Post.NONE if n % 4 < 3 else Post(int(tb.rng.choice([Post.I16, Post.I8, Post.CELL, Post.LOGIT])))
        first, last = int(n % 4 == 0), int(n % 4 == 3)
        if first:
            seats = [int(tb.rng.integers(0, tb.config.batch))]
        tb.put(tb.machine.instruction(1, 1, post, seats, sum_group=tb.config.sum_groups - 1, first=first, last=last))
    await tb.finish()


@cocotb.test()
async def reset_while_busy(dut: Any) -> None:
    """A reset ends what is on its way; nothing of it comes after, and later instructions are not disturbed."""
    tb = Bench(dut, "reset_while_busy")
    await tb.start()
    for _ in range(amount(6, 30, least=3)):
        await random_instructions(tb, 2)
        cut = tb.machine.instruction(1, 1, POSTS[int(tb.rng.integers(0, len(POSTS)))], seats=[0, 1])
        tb.put(cut, results=int(tb.rng.integers(1, 2 * tb.slices)))
        await tb.results.drain()
        for _ in range(int(tb.rng.integers(0, 40))):
            await RisingEdge(dut.clk_i)
        await tb.reset()
        await random_instructions(tb, 2)
        await tb.finish()
