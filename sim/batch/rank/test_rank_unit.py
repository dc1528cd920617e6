# SPDX-License-Identifier: Apache-2.0
"""Rank unit against the reference model: maxima of all seats, and every word of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, RisingEdge

from gharial.isa.commands import Mode
from sim.batch.rank.jobs import TABLES, Job, draw_job, draw_logits
from sim.common import bench
from sim.common.streams import Sink, Source
from sim.reference import ranking

FIRST_WORD = 2048  # exp and log follow sigmoid and tanh in the table space
LATE = 200  # clocks from the last chunk's read to the first word: terms, sums of the lanes, logarithm
WAIT = 100_000


class Bench:
    """Drives one unit. `logits` holds what each seat's last joint gave."""

    def __init__(self, dut: Any, rng: np.random.Generator) -> None:
        self.dut, self.rng, self.config = dut, rng, bench.config()
        self.word, self.seats = 4 * self.config.lanes, self.config.batch
        self.seat_bits = max(1, (self.seats - 1).bit_length())
        self.logits: dict[int, np.ndarray] = {}
        self.classes, self.bits = 1, 8

    async def start(self) -> None:
        """Clock, reset, tables, streams."""
        dut = self.dut
        await bench.start(dut)
        dut.load_valid_i.value = 1
        for index, word in enumerate(np.concatenate([TABLES["exp"], TABLES["log"]]).ravel()):
            dut.load_addr_i.value = FIRST_WORD + index
            dut.load_data_i.value = int(word) & 0xFFFFFFFF
            await RisingEdge(dut.clk_i)
        dut.load_valid_i.value = 0
        self.jobs = Source(dut.clk_i, dut.job_valid_i, dut.job_ready_o, {"job": dut.job_i})
        payload = {"address": dut.result_addr_o, "data": dut.result_data_o}
        self.results = Sink(dut.clk_i, dut.result_valid_o, dut.result_ready_i, payload)

    async def header(self, classes: int, bits: int) -> None:
        """Another program: what the seats have is void."""
        self.classes, self.bits = classes, bits
        self.dut.classes_i.value, self.dut.logit_bits_i.value = classes, bits
        self.logits.clear()
        await RisingEdge(self.dut.clk_i)

    async def joint(self, new: dict[int, np.ndarray], gaps: float = 0.0, slices: int = 2) -> None:
        """A joint of some seats: `slices` words of one, then of the next, and so on. Checks the maxima of all."""
        dut, rng = self.dut, self.rng
        words = -(-self.classes // self.word)
        group = range(0, words + int(rng.integers(3)) * slices, slices)
        rows = (group[-1] + slices) * self.word
        padded = {seat: np.concatenate([row, np.full(rows - len(row), 32767)]) for seat, row in new.items()}
        order = [(seat, first + i) for first in group for seat in sorted(new) for i in range(slices)]
        for place, (seat, index) in enumerate(order):
            while rng.random() < gaps:
                dut.logit_valid_i.value = 0
                await RisingEdge(dut.clk_i)
            dut.logit_valid_i.value = 1
            dut.logit_seat_i.value = seat
            dut.logit_slice_i.value = index
            dut.logit_last_i.value = int(place == len(order) - 1)
            for lane, logit in enumerate(padded[seat][index * self.word : (index + 1) * self.word]):
                dut.logit_data_i[lane].value = int(logit)
            await RisingEdge(dut.clk_i)
        dut.logit_valid_i.value = 0
        self.logits.update(new)
        await self._maximum()

    async def _maximum(self) -> None:
        dut = self.dut
        for _ in range(20):
            await RisingEdge(dut.clk_i)
            if dut.max_valid_o.value:
                break
        else:
            raise AssertionError("the maximum does not come")
        for seat, logits in self.logits.items():
            dut.max_seat_i.value = seat
            await RisingEdge(dut.clk_i)
            await RisingEdge(dut.clk_i)
            await ReadOnly()
            best = ranking.argmax(logits)
            found = int(dut.max_class_o.value), dut.max_logit_o.value.to_signed()
            assert found == (best, logits[best]), f"seat {seat}: maximum {found}, expected {(best, logits[best])}"
            await RisingEdge(dut.clk_i)
            assert not dut.max_valid_o.value, "one clock"

    async def results_of(self, jobs: Sequence[Job]) -> list[int]:
        """Run jobs one after another and check what they write; clocks from when each is taken to its first word."""
        clocks = []
        for job in jobs:
            done = len(self.results.beats)
            want = job.words(self.logits[job.seat], self.bits)
            self.jobs.put(job=job.pack(self.seat_bits))
            for _ in range(WAIT):
                await RisingEdge(self.dut.clk_i)
                if self.dut.job_done_o.value:
                    break
            beats = self.results.beats[done:]
            got = [(beat.payload["address"], beat.payload["data"]) for beat in beats]
            wrong = next((p for p, pair in enumerate(zip(got, want, strict=False)) if pair[0] != pair[1]), len(want))
            assert got == want, (
                f"{job}, {self.classes} classes: {len(got)} words, wrong from {wrong}: {got[wrong : wrong + 3]}"
            )
            clocks.append(beats[0].clock - self.jobs.taken[-1])
        return clocks

    def pause(self, share: float) -> None:
        """Let whoever takes the words pause for that share of clocks."""
        self.results.pause = lambda: bool(self.rng.random() < share)


async def begin(dut: Any, test: str) -> Bench:
    """A bench of its own random numbers, started."""
    found = Bench(dut, bench.rng(test))
    await found.start()
    return found


def some_seats(rng: np.random.Generator, seats: int) -> list[int]:
    """At least one."""
    return sorted(int(seat) for seat in rng.permutation(seats)[: rng.integers(1, seats + 1)])


@cocotb.test()
async def results_equal_the_reference(dut: Any) -> None:
    """Programs of any number of classes; joints of some seats; jobs of those and of seats that keep older logits."""
    unit = await begin(dut, "results")
    rng, wide = unit.rng, unit.config.rank_lanes > 4
    few = min(unit.config.max_classes, 1024)
    sizes = [1, 2, 5, 29, 255, 256, few, *rng.integers(1, few + 1, 2 if bench.short() else 6)]
    for classes in sizes[5:] if wide and bench.short() else sizes:
        await unit.header(int(classes), int(rng.integers(4, 13)))
        for _ in range(2 if bench.short() else 8):
            unit.pause(float(rng.choice([0, 0.3, 0.8])))
            new = {seat: draw_logits(rng, unit.classes) for seat in some_seats(rng, min(unit.seats, 5))}
            await unit.joint(new, float(rng.choice([0, 0.4])), int(rng.choice([1, 2, 4])))
            jobs = [draw_job(rng, int(seat), unit.classes) for seat in rng.permutation(list(unit.logits))]
            await unit.results_of(jobs[:6])


@cocotb.test()
async def every_k(dut: Any) -> None:
    """All lengths of the list, plain and fuzzy; logits with many ties, and ascending ones, which all come into it."""
    unit = await begin(dut, "every k")
    await unit.header(512, 9)
    ties = unit.rng.integers(-40, 40, 512)
    await unit.joint({0: ties, 1: np.sort(unit.rng.integers(-900, 900, 512))})
    for k in range(1, 34, 4 if bench.short() else 1):
        for mode in (Mode.TOP_K, Mode.FUZZY):
            await unit.results_of([Job(seat, False, mode, k, (511, k), 16384, 64 * k) for seat in (0, 1)])
    # All survivors of one block: the last of them is no greater than what the others' logits become.
    await unit.header(256, 9)
    await unit.joint({0: ties[:256], 1: draw_logits(unit.rng, 256)})
    await unit.results_of([Job(seat, False, Mode.FUZZY, 32, (0, 255), 16384, 0) for seat in (0, 1)])


@cocotb.test()
async def a_joint_may_come_during_a_job_of_another_seat(dut: Any) -> None:
    """Logits of the others come while a seat's are ranked."""
    unit = await begin(dut, "joint during job")
    rng = unit.rng
    await unit.header(512, 8)
    await unit.joint({seat: draw_logits(rng, 512) for seat in range(unit.seats)})
    for _ in range(4 if bench.short() else 20):
        ranked = int(rng.integers(unit.seats))
        others = {seat: draw_logits(rng, 512) for seat in range(unit.seats) if seat != ranked and rng.random() < 0.6}
        running = cocotb.start_soon(unit.results_of([draw_job(rng, ranked, 512) for _ in range(2)]))
        if others:
            await unit.joint(others, 0.1)
        await running


@cocotb.test()
async def a_scan_is_as_fast_as_its_lanes(dut: Any) -> None:
    """Scattered logits take about a clock a chunk, fuzzy two; ascending ones, the worst case, one a class."""
    unit = await begin(dut, "speed")
    classes, lanes = unit.config.max_classes, unit.config.rank_lanes
    await unit.header(classes, 8)
    scattered = unit.rng.permutation(np.arange(classes)) - classes // 2
    await unit.joint({0: scattered, 1: np.sort(scattered)})
    chunks = classes // lanes
    ways = {
        "log-sum-exp": (Job(0, True, Mode.TOP_K, 1, (), 16384, 0), chunks),
        "4 best": (Job(0, False, Mode.TOP_K, 4, (), 16384, 0), chunks + 40),
        "33 best": (Job(0, False, Mode.TOP_K, 33, (), 16384, 0), chunks + 300),
        "fuzzy": (Job(0, False, Mode.FUZZY, 33, (), 16384, 0), 2 * chunks + lanes + 300),
        "ascending": (Job(1, False, Mode.TOP_K, 33, (), 16384, 0), classes + chunks),
    }
    for name, (job, most) in ways.items():
        (clocks,) = await unit.results_of([job])
        dut._log.info("%s of %d classes, %d lanes: %d clocks", name, classes, lanes, clocks)
        assert clocks <= most + LATE, f"{name}: {clocks} clocks, expected at most {most + LATE}"
