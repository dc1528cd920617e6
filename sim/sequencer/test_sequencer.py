# SPDX-License-Identifier: Apache-2.0
"""The sequencer between units that take their time: jobs, their order and what they wait for, results, ends, faults.

Programs and entries are random; what must come of them is in expected.py. Every job is checked when it is taken.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from gharial.isa.instructions import Opcode, Post
from sim.common import bench
from sim.common.bench import clock
from sim.common.memories import ReadPort
from sim.common.streams import Sink, Source
from sim.sequencer import packing
from sim.sequencer.expected import Expected, Joint, Scan, Script, draw
from sim.sequencer.program import D, E, Job, Program, Run

IN_FLIGHT = 4  # MATVECs of a thread
PATIENCE = 20_000  # clocks without a sign of life
LOGITS_LATE = 5  # clocks from class_re_o
STATE_POSTS = [(Opcode.MATVEC, post) for post in (Post.CELL, Post.I16, Post.I8)]
KINDS: dict[str, list[tuple[Any, ...]]] = {
    "predict": [*STATE_POSTS, (Opcode.LOOKUP,)],
    "encode": [*STATE_POSTS, (Opcode.LOOKUP,)],
    "joint": [(Opcode.MATVEC, Post.I8), (Opcode.LOOKUP,), (Opcode.JOINT,)],
}
"""Kinds of instructions that a section may begin with."""


class Bench:
    """Sequencer, code memory, units, top-k unit, state port, results; each with a pace drawn for the test.

    Args:
        slow: clocks that units take at most.
        ready: share of clocks in which they take something.
    """

    def __init__(self, dut: Any, test: str, slow: int, ready: float) -> None:
        config = bench.config()
        self.dut, self.rng, self.slow, self.ready = dut, bench.rng(test), slow, ready
        self.program = Program(self.rng, config.rows, config.cols, config.scratch_units)
        self.script = Script(self.rng, self.program)
        self.entries: list[Expected] = []
        self.runs: dict[int, list[Run]] = {E: [], D: []}
        self.todo: dict[int, deque[Job]] = {E: deque(), D: deque()}
        self.out: deque[Job] = deque()  # in matrix and vector unit
        self.aux: Job | None = None
        self.zeros: dict[int, deque[tuple[Expected, int, int]]] = {E: deque(), D: deque()}
        self.joints: deque[Joint] = deque()
        self.scans: deque[Scan] = deque()
        self.last_sign = 0
        self.max_at: deque[tuple[int, Joint]] = deque()
        self.scanned: Joint | None = None
        self.asked: deque[tuple[int, int]] = deque()  # clock, class

    async def start(self) -> None:
        """Reset, then everything around the sequencer."""
        dut = self.dut
        await bench.start(dut)
        dut.header_i.value = packing.pack(packing.HEADER, self.program.header)
        ReadPort(dut.clk_i, dut.code_en_o, dut.code_addr_o, dut.code_data_i, self.program.code)
        entry = {"entry": dut.entry_i}
        self.source = Source(dut.clk_i, dut.entry_valid_i, dut.entry_ready_o, entry, lambda: self.rng.random() < 0.2)
        word = {"addr": dut.result_addr_o, "data": dut.result_data_o}
        self.results = Sink(dut.clk_i, dut.result_valid_o, dut.result_ready_i, word, self._pause)
        self.ends = Sink(dut.clk_i, dut.done_valid_o, dut.done_ready_i, {"done": dut.done_o}, self._pause)
        for part in (self._units, self._aux, self._top_k, self._zero):
            cocotb.start_soon(part())

    def _pause(self) -> bool:
        return bool(self.rng.random() > self.ready)

    def _later(self, times: int = 1) -> int:
        """A clock from now, for what takes so many times what others do."""
        return clock() + int(self.rng.integers(1, times * self.slow + 1))

    def put(self, fields: dict[str, int]) -> None:
        """Queue an entry, and note all that it must come to."""
        e = self.script.expect(len(self.entries), fields)
        self.entries.append(e)
        for run in e.runs:
            self.runs[run.thread].append(run)
            self.todo[run.thread] += run.jobs
        for thread, act, cell in e.zeros:
            self.zeros[thread].append((e, act, cell))
        self.joints += e.joints
        self.scans += e.scans
        self.source.put(entry=packing.pack(packing.ENTRY, fields))

    async def finish(self) -> None:
        """Wait until all entries have ended, and compare what is left to compare."""
        self.last_sign = clock()
        while len(self.ends.beats) < len(self.entries):
            await RisingEdge(self.dut.clk_i)
            assert clock() - self.last_sign < PATIENCE, f"stuck after {len(self.ends.beats)} entries"
        for _ in range(20):
            await RisingEdge(self.dut.clk_i)
        assert self.dut.idle_o.value and not self.dut.waits_o.value
        assert not (self.todo[E] or self.todo[D] or self.zeros[E] or self.zeros[D]), "work that was not done"
        found = {n: list[tuple[int, int]]() for n in range(len(self.entries))}
        for beat in self.results.beats:
            address, data = beat.payload["addr"], beat.payload["data"]
            n = (address - self.entries[0].fields["result"]) // 4096
            found[n].append((address, data))
            assert beat.clock < self.ends.beats[n].clock, f"entry {n}: a word behind its end"
        for n, (e, beat) in enumerate(zip(self.entries, self.ends.beats, strict=True)):
            done = packing.unpack(packing.DONE, beat.payload["done"])
            wanted = e.done if not e.done["fault"] else e.done | {k: done[k] for k in ("predictions", "joints")}
            assert done == wanted, f"entry {n}: {done}, expected {wanted}"
            assert done["fault"] or found[n] == e.results, f"entry {n}: {found[n]}, expected {e.results}"

    # Units

    async def _units(self) -> None:
        """Matrix and vector unit, which take a job together and end them in order."""
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        due: deque[int] = deque()
        held = False  # a job of D has been offered and not taken
        while True:
            dut.mat_ready_i.value, dut.vec_ready_i.value = (int(not self._pause()) for _ in range(2))
            dut.retire_valid_i.value = 0
            if due and due[0] <= clock():
                due.popleft()
                job = self.out.popleft()
                job.retired = clock() + 1
                dut.retire_valid_i.value, dut.retire_thread_i.value = 1, job.run.thread
            await edge
            if dut.vec_valid_o.value:
                first = packing.unpack(packing.VECTOR, int(dut.vec_job_o.value))["thread"]
                assert not (held and first == E), "a job of E goes before one of D"
                held = first == D and not dut.vec_ready_i.value
            taken = [bool(v.value and r.value) for v, r in ((dut.mat_valid_o, dut.mat_ready_i),
                                                            (dut.vec_valid_o, dut.vec_ready_i))]  # fmt: skip
            assert taken[0] == taken[1], "a job to one of two units"
            if taken[0]:
                mat = packing.unpack(packing.MATRIX, int(dut.mat_job_o.value))
                vec = packing.unpack(packing.VECTOR, int(dut.vec_job_o.value))
                job = self._take(vec["thread"], {"mat": mat, "vec": vec})
                self.out.append(job)
                due.append(max(self._later(), due[-1] + 1 if due else 0))
                assert sum(other.run.thread == job.run.thread for other in self.out) <= IN_FLIGHT
                if vec["post"] == 4:
                    self.max_at.append((self._later(), self.joints.popleft() if self.joints else self._any()))

    def _any(self) -> Joint:
        """Of an entry that fails."""
        return Joint(0, 0, 0, [(0, 0)], [0])

    async def _aux(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        due = 0
        while True:
            dut.aux_ready_i.value = int(self.aux is None and not self._pause())
            ends = self.aux is not None and due <= clock()
            dut.aux_done_i.value = int(ends)
            if ends and self.aux is not None:
                self.aux.retired, self.aux = clock() + 1, None
            await edge
            if dut.aux_valid_o.value and dut.aux_ready_i.value:
                fields = packing.unpack(packing.AUX, int(dut.aux_job_o.value))
                fits = [bool(todo) and _differs(todo[0], {"aux": fields}) is None for todo in self.todo.values()]
                encodes = fits[E] or (not fits[D] and bool(self.todo[E]) and self.todo[E][0].aux)
                self.aux = self._take(E if encodes and not fits[D] else D, {"aux": fields})
                due = self._later()

    def _take(self, thread: int, found: dict[str, dict[str, int]]) -> Job:
        """A job comes: the next of its thread, as it must be, and nothing that it waits for is outstanding."""
        assert self.todo[thread], f"thread {thread}: a job too many: {found}"
        job = self.todo[thread].popleft()
        problem = _differs(job, found)
        where = f"thread {thread}, entry {job.run.entry}, {job.run.section} {job.number}"
        assert problem is None, f"{where}: {problem}"
        now = self.last_sign = job.accepted = clock()
        runs = self.runs[thread]
        place = runs.index(job.run)
        out = [other for run in runs[: place + 1] for other in run.jobs if other.accepted and other is not job]
        out = [other for other in out if not other.retired or other.retired >= now]
        assert all(not other.aux for other in out), f"{where}: the aux unit's job before is not done"
        assert not (job.aux and out), f"{where}: {len(out)} outstanding"
        waits = [other for other in out if other.run is job.run and other.number <= job.depends]
        assert not waits, f"{where}: needs {job.depends}, and {waits[0].number} is outstanding"
        older = [other for other in out if other.run is not job.run]
        assert not (older and job.reads_state), f"{where}: reads state that an older run writes"
        if job.number == self.program.header[f"{job.run.section}_count"] and place:
            assert all(j.retired and j.retired < now for j in runs[place - 1].jobs), (
                f"{where}: the run before is not over"
            )
        if thread == E and job is job.run.jobs[0]:
            self._bank_is_free(job)
        return job

    def _slot_is_free(self, thread: int, e: Expected) -> None:
        """Older runs of the thread are over when a slot is zeroed, and nothing reads an encoder slot's banks."""
        for older in self.entries[: self.entries.index(e)]:
            reads = thread == E and older.reads_bank and older.fields["enc_cell"] == e.fields["enc_cell"]
            for run in older.runs:
                assert run.over() or not (run.thread == thread or reads), f"zeroes a slot in use by a {run.section}"

    def _bank_is_free(self, job: Job) -> None:
        """Nothing that decodes an older entry reads the bank that this one writes."""
        own = self.entries[job.run.entry].fields
        for older in self.entries[: job.run.entry]:
            same = all(older.fields[name] == own[name] for name in ("enc_cell", "bank"))
            if older.reads_bank and same:
                assert all(j.retired for run in older.runs if run.thread == D for j in run.jobs), "a bank in use"

    # Top-k unit

    async def _top_k(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        due, scan, place = 0, None, 0
        latest: Joint | None = None
        while True:
            dut.max_valid_i.value = 0
            if self.max_at and self.max_at[0][0] <= clock():
                _, latest = self.max_at.popleft()
                dut.max_valid_i.value, dut.max_class_i.value = 1, latest.best
                dut.max_logit_i.value = latest.logit
            dut.scan_ready_i.value = int(scan is None and not self._pause())
            dut.scan_done_i.value = int(scan is not None and due <= clock())
            if scan is not None and due <= clock():
                dut.lse_i.value = scan.joint.lse
                self.scanned, scan, place = scan.joint, None, 0
                self._show(place)
            if self.asked and self.asked[0][0] + LOGITS_LATE - 1 <= clock() and self.scanned is not None:
                dut.class_logit_i.value = self.scanned.logits[self.asked.popleft()[1] % len(self.scanned.logits)]
            await edge
            if dut.scan_valid_o.value and dut.scan_ready_i.value:
                dut.lse_i.value = int(self.rng.integers(1 << 31))  # no longer the one before
                scan = self._asked_for(latest)
                due = self._later(10)
            if dut.rank_pop_o.value:
                place += 1
                self._show(place)
            if dut.class_re_o.value:
                self.asked.append((clock(), int(dut.class_o.value)))

    def _show(self, place: int) -> None:
        ranks = self.scanned.ranks if self.scanned is not None else []
        if place < len(ranks):
            self.dut.rank_class_i.value, self.dut.rank_logit_i.value = ranks[place][0] & 0xFFFF, ranks[place][1]

    def _asked_for(self, latest: Joint | None) -> Scan:
        """A scan is taken: of the joint whose maximum came last, which is the one that it is wanted of."""
        dut = self.dut
        found = tuple(int(p.value) for p in (dut.scan_rank_o, dut.scan_fuzzy_o, dut.scan_temperature_o))
        while self.scans and self.scans[0].joint is not latest and self._failed(self.scans[0]):
            self.scans.popleft()  # an entry that failed meanwhile
        assert self.scans, "a scan too many"
        scan = self.scans.popleft()
        assert scan.joint is latest, "a scan of another joint"
        assert found == (scan.rank, scan.fuzzy, scan.temperature)
        return scan

    def _failed(self, scan: Scan) -> bool:
        return any(scan is other and e.done["fault"] for e in self.entries for other in e.scans)

    async def _zero(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        due: dict[int, int | None] = {E: None, D: None}
        while True:
            for thread in (E, D):
                at = due[thread]
                ends = at is not None and at <= clock()
                dut.zero_done_i[thread].value = int(ends)
                if ends:
                    due[thread] = -1
            await edge
            for thread in (E, D):
                if due[thread] == -1:
                    due[thread] = None
                elif dut.zero_valid_o[thread].value and due[thread] is None:
                    found = int(dut.zero_act_o[thread].value), int(dut.zero_cell_o[thread].value)
                    assert self.zeros[thread], "zeroes too much"
                    e, *wanted = self.zeros[thread].popleft()
                    assert list(found) == wanted
                    self._slot_is_free(thread, e)
                    due[thread] = self._later()
                    self.last_sign = clock()


def _differs(job: Job, found: dict[str, dict[str, int]]) -> str | None:
    if job.wanted.keys() != found.keys():
        return f"{sorted(found)}, expected {sorted(job.wanted)}"
    for unit, wanted in job.wanted.items():
        for name, value in wanted.items():
            if found[unit][name] != value:
                return f"{unit}.{name} = {found[unit][name]}, expected {value}"
    return None


@cocotb.test()
@cocotb.parametrize(slow=[1, 12, 150], ready=[1.0, 0.3], number=[0] if bench.short() else list(range(12)))
async def random_entries(dut: Any, slow: int, ready: float, number: int) -> None:
    """Units of any pace: jobs in order and not before what they wait for, results and ends in order."""
    tb = Bench(dut, f"random_entries {slow} {ready} {number}", slow, ready)
    tb.program.stretch(0.5)
    await tb.start()
    for n in range(15 if bench.short() else 80):
        tb.put(draw(tb.rng, n))
    await tb.finish()
    assert not tb.scans and not tb.joints


@cocotb.test()
@cocotb.parametrize(section=["predict", "encode", "joint"], number=[0, 1] if bench.short() else list(range(12)))
async def bad_instructions(dut: Any, section: str, number: int) -> None:
    """An entry whose run reaches one ends with the fault and its number, after what was issued; others go on."""
    tb = Bench(dut, f"bad_instructions {section} {number}", *((8, 0.7) if number % 2 else (60, 0.4)))
    tb.program.spoil(section, int(tb.rng.integers(tb.program.header[f"{section}_count"])))
    await tb.start()
    for n in range(12):
        tb.put(draw(tb.rng, n))
    await tb.finish()
    assert any(e.done["fault"] and not e.fields["fault"] for e in tb.entries), "no entry reached it"


@cocotb.test()
async def operands_at_the_end_of_their_space(dut: Any) -> None:
    """Each operand of each kind of instruction: the last place is in the space, the next one is a fault."""
    tb = Bench(dut, "operands_at_the_end_of_their_space", 2, 1.0)
    while tb.program.header["joint_count"] == 1:
        tb.program = tb.script.program = Program(tb.rng, tb.program.rows, tb.program.cols, tb.program.scratch)
    await tb.start()
    plain = {"fault": 0, "unit": 0, "detail": 0, "enc_reset": 0, "start": 0, "no_joint": 0, "vectors": 4, "k": 1}
    for section, kinds in KINDS.items():
        own = {"operation": 16} if section == "encode" else {"operation": 17, "token_valid": 1, "mode": 0}
        for kind in kinds:
            for _ in tb.program.edges(section, *kind):
                tb.put(draw(tb.rng, len(tb.entries)) | plain | own)
                await tb.finish()
    assert sum(bool(e.done["fault"]) for e in tb.entries) * 2 == len(tb.entries)


@cocotb.test()
@cocotb.parametrize(slow=[40, 400], number=[0, 1] if bench.short() else list(range(12)))
async def encoders_follow_each_other(dut: Any, slow: int, number: int) -> None:
    """Runs overlap, and wait where they must; features_free_o tells that at most one entry's are still to be read."""
    tb = Bench(dut, f"encoders_follow_each_other {slow} {number}", slow, 0.9)
    await tb.start()
    for n in range(12):
        tb.put(draw(tb.rng, n) | {"operation": 16, "fault": 0, "enc_reset": 0, "start": 0})
    free = [0, 0]
    tb.last_sign = clock()
    while len(tb.ends.beats) < len(tb.entries):
        await RisingEdge(dut.clk_i)
        assert clock() - tb.last_sign < PATIENCE, f"stuck after {len(tb.ends.beats)} entries"
        unread = [e for e in tb.entries[: len(tb.source.taken)] if not all(j.accepted for j in e.runs[0].jobs)]
        free[int(dut.features_free_o.value)] += 1
        assert len(unread) <= 1 or not dut.features_free_o.value
    assert all(free)
    await tb.finish()
