# SPDX-License-Identifier: Apache-2.0
"""State port: whole slots zeroed, copied, saved and restored, for users in their order, with memories that are busy."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from sim.common import bench
from sim.common.streams import Sink, Source
from sim.sequencer import packing

ZERO, COPY, SAVE, RESTORE = range(4)
E, D = 0, 1
UNITS = 256  # of either memory
JOB: packing.Fields = (
    ("op", 2),
    *((name, 16) for name in ("act", "act_units", "cell_unit", "cell_units", "to_act", "to_cell")),
    ("addr", 64),
)
WRITE: packing.Fields = (("addr", 64), ("data", 32))
SLOT = {"enc_a_units": 5, "enc_c_units": 3, "pred_a_units": 2, "pred_c_units": 6}
PATIENCE = 5000


class Memory:
    """One of the two memories: units of so many words, a port that is busy now and then, data two clocks late."""

    def __init__(self, dut: Any, rng: np.random.Generator, name: str, words: int, busy: float) -> None:
        self.rng, self.words, self.busy = rng, words, busy
        self.units = [self.draw() for _ in range(UNITS)]
        self._clk = dut.clk_i
        self._read = getattr(dut, f"{name}_re_o"), getattr(dut, f"{name}_re_ready_i"), getattr(dut, f"{name}_raddr_o")
        self._write = getattr(dut, f"{name}_we_o"), getattr(dut, f"{name}_ready_i"), getattr(dut, f"{name}_waddr_o")
        self._rdata, self._wdata = getattr(dut, f"{name}_rdata_i"), getattr(dut, f"{name}_wdata_o")
        cocotb.start_soon(self._run())

    def draw(self) -> int:
        """Contents of a unit."""
        return int.from_bytes(self.rng.bytes(4 * self.words), "little")

    async def _run(self) -> None:
        edge, coming = RisingEdge(self._clk), self.draw()
        while True:
            for ready in (self._read[1], self._write[1]):
                ready.value = int(self.rng.random() > self.busy)
            await edge
            self._rdata.value, coming = coming, self.draw()  # what others read, unless it is ours
            if self._read[0].value and self._read[1].value:
                coming = self.units[int(self._read[2].value)]
            if self._write[0].value and self._write[1].value:
                self.units[int(self._write[2].value)] = int(self._wdata.value)


class Bench:
    """The port, its users, and what the memories must hold after each job."""

    def __init__(self, dut: Any, test: str, busy: float) -> None:
        self.dut, self.rng, self.busy = dut, bench.rng(test), busy
        self.zeros: dict[int, tuple[int, int] | None] = {E: None, D: None}
        self.jobs: dict[str, deque[dict[str, int]]] = {"send": deque(), "move": deque()}
        self.words: dict[int, list[int]] = {}  # of a restore, by the job's address
        self.saved: list[tuple[int, int]] = []
        self.done = 0

    async def start(self, resets: bool = False) -> None:
        """Reset, then memories and users; whether there will be more resets."""
        dut, rng, config = self.dut, self.rng, bench.config()
        await bench.start(dut)
        dut.header_i.value = packing.pack(packing.HEADER, SLOT)
        self.acts = Memory(dut, rng, "act", config.cols // 4, self.busy)
        self.cells = Memory(dut, rng, "cell", config.rows // 8, self.busy)
        self.expected = [list(self.acts.units), list(self.cells.units)]
        pause = lambda: rng.random() < self.busy  # noqa: E731
        self.users = {
            user: Source(dut.clk_i, getattr(dut, f"{user}_valid_i"), getattr(dut, f"{user}_ready_o"),
                         {"job": getattr(dut, f"{user}_i")}, pause)
            for user in self.jobs
        }  # fmt: skip
        self.listen()
        self.saves = Sink(dut.clk_i, dut.save_valid_o, dut.save_ready_i, {"save": dut.save_o}, pause, resets)
        cocotb.start_soon(self._watch())

    def listen(self) -> None:
        """Whom words of restores come from."""
        dut, rng = self.dut, self.rng
        words = dut.data_valid_i, dut.data_ready_o, {"data": dut.data_i}
        self.data = Source(dut.clk_i, *words, lambda: rng.random() < self.busy)

    def zero(self, thread: int) -> None:
        """A slot of that thread's kind, somewhere."""
        act, cell = (int(n) for n in self.rng.integers(0, UNITS - 8, 2))
        self.zeros[thread] = act, cell
        self.dut.zero_act_i[thread].value, self.dut.zero_cell_i[thread].value = act, cell
        self.dut.zero_valid_i[thread].value = 1

    def put(self, user: str, op: int) -> None:
        """A job of random place and size; a copy does not overlap."""
        rng = self.rng
        counts = [int(n) for n in rng.integers(0, 8, 2)]
        if user == "send":
            counts[1] = 0  # features
        near, far = (int(n) for n in rng.integers(0, UNITS // 2 - 8, 2))
        job = {"op": op, "act": near, "act_units": counts[0], "cell_unit": far, "cell_units": counts[1]}
        job |= {"to_act": UNITS // 2 + far, "to_cell": UNITS // 2 + near, "addr": int(rng.integers(1 << 40)) * 4}
        count = counts[0] * self.acts.words + counts[1] * self.cells.words
        self.words[job["addr"]] = [int(n) for n in rng.integers(0, 1 << 32, count)]
        self.jobs[user].append(job)
        self.users[user].put(job=packing.pack(JOB, job))

    async def _watch(self) -> None:
        """Who is served, and that the memories hold what they must when it is told that a job is done."""
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        while True:
            await edge
            asks = [bool(dut.zero_valid_i[t].value) for t in (E, D)]
            for user, valid, ready, before in (
                ("send", dut.send_valid_i, dut.send_ready_o, asks),
                ("move", dut.move_valid_i, dut.move_ready_o, [*asks, bool(dut.send_valid_i.value)]),
            ):
                if valid.value and ready.value:
                    assert not any(before), f"{user} goes before others"
                    job = self.jobs[user][0]
                    if job["op"] == RESTORE:
                        for word in self.words[job["addr"]]:
                            self.data.put(data=word)
            for thread, kind in ((E, "enc"), (D, "pred")):
                if dut.zero_done_o[thread].value:
                    act, cell = self.zeros[thread] or (0, 0)
                    self._end({"op": ZERO, "act": act, "act_units": SLOT[f"{kind}_a_units"], "cell_unit": cell,
                               "cell_units": SLOT[f"{kind}_c_units"]})  # fmt: skip
                    self.zeros[thread] = None
                    dut.zero_valid_i[thread].value = 0
            for user, done in (("send", dut.send_done_o), ("move", dut.move_done_o)):
                if done.value:
                    self._end(self.jobs[user].popleft())

    def _end(self, job: dict[str, int]) -> None:
        """What the job makes of the memories; and that is what they hold."""
        words, sizes = list(self.words.get(job.get("addr", 0), [])), (self.acts.words, self.cells.words)
        for memory, size, (at, count, to) in zip(self.expected, sizes, _parts(job), strict=True):
            for n in range(count):
                unit = sum(words.pop(0) << 32 * w for w in range(size)) if job["op"] == RESTORE else 0
                if job["op"] == SAVE:
                    self.saved += [(0, memory[at + n] >> 32 * w & 0xFFFFFFFF) for w in range(size)]
                else:
                    memory[to + n] = memory[at + n] if job["op"] == COPY else unit
        if job["op"] == SAVE:
            count = len(self.words[job["addr"]])
            own = [(job["addr"] + 4 * n, word) for n, (_, word) in enumerate(self.saved[-count:] if count else [])]
            self.saved[len(self.saved) - count :] = own
        assert self.acts.units == self.expected[0], f"activations after {job}"
        assert self.cells.units == self.expected[1], f"cells after {job}"
        self.done += 1

    async def finish(self, count: int) -> None:
        """Wait until so many jobs are done, and compare what was saved."""
        for _ in range(PATIENCE * count):
            if self.done == count:
                break
            await RisingEdge(self.dut.clk_i)
        assert self.done == count, f"{self.done} of {count} jobs"
        await ClockCycles(self.dut.clk_i, 10)
        found = [packing.unpack(WRITE, beat.payload["save"]) for beat in self.saves.beats]
        assert [(w["addr"], w["data"]) for w in found] == self.saved


def _parts(job: dict[str, int]) -> list[tuple[int, int, int]]:
    """First unit, units, first unit of the destination: of activations and of cells."""
    copies = job["op"] == COPY
    return [
        (job["act"], job["act_units"], job["to_act"] if copies else job["act"]),
        (job["cell_unit"], job["cell_units"], job["to_cell"] if copies else job["cell_unit"]),
    ]


@cocotb.test()
@cocotb.parametrize(busy=[0.0, 0.3, 0.8])
async def jobs(dut: Any, busy: float) -> None:
    """All users at once: each job whole and by itself, the sequencer's zeroing first, then features, then commands."""
    tb = Bench(dut, f"jobs {busy}", busy)
    await tb.start()
    count, asked = (40, 0) if bench.short() else (600, 0)
    for _ in range(count):
        asked += 2
        tb.put("send", int(tb.rng.choice([ZERO, RESTORE])))
        tb.put("move", int(tb.rng.integers(4)))
    while tb.done < asked:
        await RisingEdge(dut.clk_i)
        for thread in (E, D):
            if tb.zeros[thread] is None and tb.rng.random() < 0.02 and tb.done < asked - 4:
                tb.zero(thread)
                asked += 1
    await tb.finish(asked)


@cocotb.test()
async def clocks(dut: Any) -> None:
    """A unit takes 2 clocks to zero, 5 to copy, 4 and its words to save, 2 and its words to restore."""
    tb = Bench(dut, "clocks", 0.0)
    await tb.start()
    for op, own, per_word in ((ZERO, 2, 0), (COPY, 5, 0), (SAVE, 4, 1), (RESTORE, 2, 1)):
        spent = []
        for _ in range(6):
            tb.put("move", op)
            job, before = tb.jobs["move"][0], tb.done
            await RisingEdge(dut.clk_i)
            while not (dut.move_valid_i.value and dut.move_ready_o.value):
                await RisingEdge(dut.clk_i)
            at = bench.clock()
            while tb.done == before:
                await RisingEdge(dut.clk_i)
            words = len(tb.words[job["addr"]])
            spent.append(bench.clock() - at - own * (job["act_units"] + job["cell_units"]) - per_word * words)
        assert len(set(spent)) == 1 and spent[0] < 6, f"operation {op}: {spent} clocks besides"


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    """A job whose words will not come is given up; what follows is not disturbed."""
    tb = Bench(dut, "reset_in_the_middle", 0.3)
    await tb.start(resets=True)
    for _ in range(15 if bench.short() else 200):
        tb.put("move", int(tb.rng.integers(4)))
        await tb.users["move"].drain()
        await ClockCycles(dut.clk_i, int(tb.rng.integers(1, 60)))
        dut.rst_i.value = 1
        await ClockCycles(dut.clk_i, 2)
        dut.rst_i.value = 0
        tb.data.stop()
        await ClockCycles(dut.clk_i, 4)
        tb.listen()
        tb.jobs["move"].clear()
        tb.saves.beats.clear()
        tb.saved.clear()
        tb.expected[:] = [list(tb.acts.units), list(tb.cells.units)]
        tb.done = 0
        tb.put("move", int(tb.rng.choice([ZERO, COPY, SAVE])))
        await tb.finish(1)
