# SPDX-License-Identifier: Apache-2.0
"""The batch sequencer between units that take their time: segments and their order, jobs, results, ends, faults.

Programs and batches are random; what must come of them is in expected.py, and is checked when it comes by units.py.
"""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from gharial.isa.instructions import Opcode
from sim.batch.sequencer import packing
from sim.batch.sequencer.expected import Run, Script, Segment
from sim.batch.sequencer.units import Units
from sim.common import bench
from sim.common.bench import clock
from sim.sequencer.program import HEADER_WORDS, D, E, Program

PATIENCE = 20_000  # clocks without a sign of life
DEPTH = 16  # segments in order, and two on their way in and out
SPARE = 4  # tiles in order, besides those that the stream reads ahead
FETCH = 80  # clocks that a thread takes at most to fetch, check and cut an instruction


class Code(Program):
    """A random program, instructions of which may be changed."""

    def matvec(self, section: str) -> dict[str, int]:
        """A random MATVEC."""
        while True:
            fields = self._draw(section, 0, False)
            if fields["opcode"] == Opcode.MATVEC:
                return fields

    def change(self, section: str, index: int, fields: dict[str, int]) -> None:
        """Other values for fields of an instruction (-1: the last), or with an opcode another instruction."""
        number = self.header[f"{section}_first"] + index % self.header[f"{section}_count"]
        common = {"depends": 0, "predicate": 0, "threshold": 0}
        self.instructions[number] = (common if "opcode" in fields else self.instructions[number]) | fields
        self.words[number] = self._words(self.instructions[number])


class Bench(Units):
    """Sequencer and units; `slow`, `ready` as `Units` has them.

    Args:
        failing: share of aux jobs that cannot be done.
    """

    def __init__(self, dut: Any, test: str, slow: int, ready: float, failing: float = 0.0) -> None:
        config, rng = bench.config(), bench.rng(test)
        self.program = Code(rng, config.rows, config.cols, config.scratch_units)
        super().__init__(dut, rng, config, Script(rng, config, self.program, failing), slow, ready)
        self.sides = {E: 0, D: 0}

    async def run(self, encodes: int, decodes: int) -> None:
        """Load the program, and run so many random batches to their end."""
        dut = self.dut
        await bench.start(dut)
        dut.header_i.value = packing.pack(packing.HEADER, self.program.header)
        dut.load_valid_i.value = 1
        for n in range(HEADER_WORDS + 8 * len(self.program.words)):
            dut.load_addr_i.value, dut.load_data_i.value = n, self.program.code(n) if n >= HEADER_WORDS else 0
            await RisingEdge(dut.clk_i)
        dut.load_valid_i.value = 0
        for thread, count in ((E, encodes), (D, decodes)):
            for n in range(count):
                b = self.script.draw(thread, self.sides[thread], whole=n == 0)
                self.sides[thread] ^= 1
                self.script.expect(b)
                self.put(b)
        self.start()
        self.last_sign = clock()
        while any(len(self.ends[t].beats) < len(self.batches[t]) for t in (E, D)):
            await RisingEdge(dut.clk_i)
            done = [len(self.ends[t].beats) for t in (E, D)]
            assert clock() - self.last_sign < PATIENCE, f"stuck after {done} batches"
        for _ in range(20):
            await RisingEdge(dut.clk_i)
        self._compare()

    def _compare(self) -> None:
        """What is left to compare at the end."""
        assert self.dut.idle_o.value and not self.dut.waits_o.value
        left = [*self.todo.values(), *self.auxes.values(), self.jobs, self.maxima]
        assert not any(left) and len(self.streamed) == len(self.order), "work that was not done"
        for thread in (E, D):
            for n, (b, beat) in enumerate(zip(self.batches[thread], self.ends[thread].beats, strict=True)):
                done = packing.unpack(packing.DONE, beat.payload["done"])
                failed = b.done["fault"] and {name: done[name] for name in ("predictions", "joints")}
                assert done == b.done | (failed or {}), f"thread {thread}, batch {n}: {done}, expected {b.done}"
        written, expected = [beat.payload for beat in self.results.beats], self.expected_words()
        assert written == expected, f"{written}, expected {expected}"
        self._compare_order()
        ends = {b.fields["work"]: beat for b, beat in zip(self.batches[D], self.ends[D].beats, strict=True)}
        last = {beat.payload["work"]: beat.clock for beat in self.results.beats}
        assert all(at < ends[work].clock for work, at in last.items()), "a word behind its batch's end"

    def _compare_order(self) -> None:
        """Who went before whom, and how many were in order."""
        latest: dict[Run, Segment] = {}
        for n, segment in enumerate(self.order):
            recent = self.order[max(0, n - 40) : n]
            ordered = [other for other in recent if other.left >= segment.streamed]
            tiles = sum(other.wanted["col_tiles"] for other in ordered)
            assert len(ordered) <= DEPTH + 2 and tiles < self.script.config.ahead + SPARE, (
                f"{tiles} tiles in {len(ordered)}"
            )
            item = segment.item
            older, latest[item.run] = latest.get(item.run), segment
            if segment.wanted["thread"] == E or item.logit:
                continue
            needed = max((other.retired for other in item.needs()), default=0)
            if older:  # decode first, in turns with encode
                free = max(needed, older.streamed, self.given[item.run.batch]) + FETCH
                passed = [other for other in recent if other.streamed > free and other.wanted["thread"] == E]
                assert len(passed) <= 2, f"{len(passed)} segments of encode before one of decode"
            before = next((o for o in self.order[n::-1] if o.wanted["thread"] == E), None)
            behind = next((o for o in self.order[n:] if o.wanted["thread"] == E), None)
            if not (before and behind) or before.item is not behind.item:
                continue
            if self.given[before.item.run.batch] < before.streamed:  # encode had a segment too
                assert needed < segment.streamed, "a segment of decode that waits, before one of encode"
                between = self.order.index(behind) - self.order.index(before) - 1
                assert between <= 2, f"{between} segments of decode before one of encode"


@cocotb.test()
@cocotb.parametrize(slow=[1, 12, 150], ready=[1.0, 0.3], number=[0] if bench.short() else list(range(12)))
async def random_batches(dut: Any, slow: int, ready: float, number: int) -> None:
    """Units of any pace: segments in order and not before what they wait for, results and ends in order."""
    tb = Bench(dut, f"random_batches {slow} {ready} {number}", slow, ready)
    tb.program.stretch(0.2)
    await tb.run(*((6, 6) if bench.short() else (25, 25)))


@cocotb.test()
@cocotb.parametrize(section=["predict", "encode", "joint"], number=[0, 1] if bench.short() else list(range(12)))
async def bad_instructions(dut: Any, section: str, number: int) -> None:
    """A batch whose run reaches one ends with the fault and its number, after what was issued; others go on."""
    tb = Bench(dut, f"bad_instructions {section} {number}", *((8, 0.7) if number % 2 else (60, 0.4)))
    tb.program.spoil(section, int(tb.rng.integers(tb.program.header[f"{section}_count"])))
    await tb.run(5, 5)
    assert any(b.done["fault"] for b in tb.batches[E if section == "encode" else D]), "no batch reached it"


@cocotb.test()
@cocotb.parametrize(number=[0, 1] if bench.short() else list(range(12)))
async def rows_that_cannot_be_read(dut: Any, number: int) -> None:
    """A batch with an aux job that fails ends with BUS_READ and the address, after all of its run; others go on."""
    tb = Bench(dut, f"rows_that_cannot_be_read {number}", 12, 0.7, failing=0.2)
    await tb.run(10, 10)


@cocotb.test()
@cocotb.parametrize(number=[0] if bench.short() else list(range(6)))
async def runs_that_end_with_an_aux_job(dut: Any, number: int) -> None:
    """The next run waits for the job, as it would for one of its own."""
    tb = Bench(dut, f"runs_that_end_with_an_aux_job {number}", 60, 1.0)
    for section in ("encode", "predict"):
        tb.program.change(
            section, -1, {"opcode": Opcode.LOOKUP, "constant": 1, "units": 2, "unit": 7, "destination": 9}
        )
    await tb.run(8, 8)


@cocotb.test()
@cocotb.parametrize(every=[16, 100])
async def array_is_never_left_waiting(dut: Any, every: int) -> None:
    """Segments of 16 clocks follow each other without a gap, from run to run; where there is time the order is full."""
    tb = Bench(dut, f"array_is_never_left_waiting {every}", 1, 1.0)
    tb.every = every
    for index in range(tb.program.header["encode_count"]):
        if tb.program.instructions[tb.program.header["encode_first"] + index]["opcode"] == Opcode.LOOKUP:
            tb.program.change("encode", index, tb.program.matvec("encode"))
        tb.program.change("encode", index, {"row_groups": 4, "depends": 0, "predicate": 0})
    await tb.run(6 if every == 16 else 2, 0)
    assert tb.order and not tb.starved, f"{tb.starved} clocks without a segment"
    for n, segment in enumerate(tb.order):
        behind = tb.order[n:]
        tiles = [other.wanted["col_tiles"] for other in behind if other.streamed <= segment.left]
        full = sum(tiles) >= tb.script.config.ahead + SPARE or len(tiles) == len(behind)
        assert every == 16 or full or n < 2, f"{sum(tiles)} tiles in order"
