# SPDX-License-Identifier: Apache-2.0
"""What lies around the batch sequencer in its bench: seater, stream, array, finish, aux and rank unit, of any pace.

Every segment and every job is checked when it is taken: that it is the next of its thread, what it says, and that
nothing it waits for is outstanding.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from gharial.isa.configs import Config
from sim.batch.sequencer import packing
from sim.batch.sequencer.expected import Batch, Item, Joint, Script, Segment, items
from sim.common.bench import clock
from sim.common.streams import Sink, Source
from sim.sequencer.program import D, E


class Units:
    """All of them.

    Args:
        slow: clocks that each takes at most.
        ready: share of clocks in which each takes something.
    """

    def __init__(
        self, dut: Any, rng: np.random.Generator, config: Config, script: Script, slow: int, ready: float
    ) -> None:
        self.dut, self.rng, self.config, self.script, self.slow, self.ready = dut, rng, config, script, slow, ready
        self.seats = config.batch
        self.given: dict[Batch, int] = {}  # clock at which the state of each was there
        self.batches: dict[int, list[Batch]] = {E: [], D: []}
        self.waiting: dict[int, deque[Batch]] = {E: deque(), D: deque()}  # for a side
        self.fetched: dict[tuple[int, int], int] = {}  # thread, side: clock from which
        self.todo: dict[int, deque[Segment]] = {E: deque(), D: deque()}
        self.auxes: dict[int, deque[Item]] = {E: deque(), D: deque()}
        self.streamed: list[tuple[int, int, int]] = []  # tile, tiles, clock
        self.released: dict[str, list[int]] = {"array": [], "finish": []}
        self.order: list[Segment] = []
        self.maxima: deque[tuple[int, Joint]] = deque()
        self.jobs: deque[tuple[Joint, dict[str, int]]] = deque()
        self.words: dict[Joint, list[tuple[int, int]]] = {}  # address, data
        self.largest: list[int] = [0] * self.seats
        self.latest: Joint | None = None
        self.last_sign = self.turns = 0
        self.working: Item | None = None  # the aux unit's
        self.every = 0  # clocks for a segment in the array
        self.starved = 0  # clocks in which the array had nothing to do, between its first segment and its last

    def start(self) -> None:
        """All of them begin."""
        dut = self.dut
        self.sources = [
            Source(dut.clk_i, dut.batch_valid_i[t], dut.batch_ready_o[t], {"batch": dut.batch_i[t]}) for t in (E, D)
        ]
        done = [{"done": dut.done_o[t]} for t in (E, D)]
        self.ends = [Sink(dut.clk_i, dut.done_valid_o[t], dut.done_ready_i[t], done[t], self._pause) for t in (E, D)]
        word = {name: getattr(dut, f"result_{name}_o") for name in ("addr", "data", "work")}
        self.results = Sink(dut.clk_i, dut.result_valid_o, dut.result_ready_i, word, self._pause)
        for part in (self._stream, self._finish, self._aux, self._maximum, self._rank):
            cocotb.start_soon(part())
        for thread in (E, D):
            cocotb.start_soon(self._seater(thread))

    def _pause(self) -> bool:
        return bool(self.rng.random() > self.ready)

    def _later(self, times: int = 1) -> int:
        """A clock from now, for what takes so many times what others do."""
        return clock() + int(self.rng.integers(1, times * self.slow + 1))

    def put(self, b: Batch) -> None:
        """Queue a batch, for which all has been worked out."""
        self.batches[b.thread].append(b)
        self.waiting[b.thread].append(b)
        for item in items(b):
            self.turns += 1
            item.turn = self.turns
            self.todo[b.thread] += item.segments
            self.auxes[b.thread] += [item] if item.aux else []
        self.jobs += [(joint, job) for joint in b.joints for job in joint.jobs]

    # Seater

    async def _seater(self, thread: int) -> None:
        """Hands a batch over when its side is free, and tells when it has been fetched: before that or later."""
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        given = seen = 0
        coming: dict[int, int] = {}  # side: clock of the batch
        while True:
            for beat in self.ends[thread].beats[seen:]:
                seen += 1
                self.last_sign = clock()
                early = [item for item in items(self.batches[thread][seen - 1]) if not item.retired]
                assert not early, f"a batch ends before {_where(early[0])}"
                self.fetched[thread, packing.unpack(packing.DONE, beat.payload["done"])["side"]] = 0
            if self.waiting[thread] and given - seen < 2:
                b = self.waiting[thread][0]
                side = b.fields["side"]
                if side not in coming:
                    coming[side], self.fetched[thread, side] = self._later(2), self._later(6)
                    self.given[b] = self.fetched[thread, side]
                if coming[side] <= clock():
                    del coming[side]
                    given += 1
                    self.waiting[thread].popleft()
                    self.sources[thread].put(batch=packing.pack(packing.batch(self.seats), b.fields))
            levels = [0 < self.fetched.get((thread, side), 0) <= clock() for side in (0, 1)]
            dut.fetched_i[thread].value = levels[0] | levels[1] << 1
            await edge

    # Segments

    async def _stream(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        while True:
            dut.stream_ready_i.value = int(not self._pause())
            await edge
            if dut.stream_valid_o.value and dut.stream_ready_i.value:
                self.streamed.append((int(dut.stream_tile_o.value), int(dut.stream_tiles_o.value), clock()))

    async def _finish(self) -> None:
        """Array and finish unit take each segment when they like; what both have is finished in order."""
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        due: deque[tuple[int, Segment]] = deque()
        finished = last_due = free = starved = 0
        while True:
            dut.array_ready_i.value, dut.finish_ready_i.value = (int(not self._pause()) for _ in range(2))
            if clock() < free:
                dut.array_ready_i.value = 0
            dut.retire_valid_i.value = 0
            if due and due[0][0] <= clock():
                segment = due.popleft()[1]
                if segment.wanted["ends"]:
                    item = segment.item
                    item.retired = clock() + 1
                    dut.retire_valid_i.value, dut.retire_thread_i.value = 1, item.run.batch.thread
                    if item.logit:
                        self.maxima.append((self._later(), self._joint(item)[1]))
            await edge
            if dut.array_ready_i.value:
                starved += bool(self.order)
                if dut.array_valid_o.value:
                    starved, self.starved = 0, self.starved + starved - bool(self.order)
                    free = clock() + self.every
            for unit in ("array", "finish"):
                if getattr(dut, f"{unit}_valid_o").value and getattr(dut, f"{unit}_ready_i").value:
                    taken = self.released[unit]
                    taken.append(int(dut.segment_o.value))
                    if len(taken) > len(self.order):
                        self._release(taken[-1])
                    both = self.released["array"], self.released["finish"]
                    if min(map(len, both)) > finished:
                        assert both[0][finished] == both[1][finished], "array and finish unit have different segments"
                        last_due = max(self._later(), last_due + 1)
                        due.append((last_due, self.order[finished]))
                        self.order[finished].left = clock()
                        finished += 1

    def _release(self, word: int) -> None:
        """A segment is released: the next of its thread, in the stream's order, with what it waits for."""
        found, now = packing.unpack(packing.segment(self.seats), word), clock()
        thread = found["thread"]
        assert self.todo[thread], f"thread {thread}: a segment too many: {found}"
        segment = self.todo[thread].popleft()
        item, where = segment.item, _where(segment.item)
        for name, value in segment.wanted.items():
            assert found[name] == value, f"{where}: {name} = {found[name]}, expected {value}"
        assert len(self.order) < len(self.streamed), f"{where}: before the stream has it"
        tile, tiles, segment.streamed = self.streamed[len(self.order)]
        assert (tile, tiles) == (found["tile"], found["col_tiles"]), f"{where}: not in the stream's order"
        self.last_sign = now
        self.order.append(segment)
        self._is_fetched(item)
        auxes = [*list(self.auxes[thread])[:1], *([self.working] if self.working else [])]
        passed = [other for other in auxes if other.run.batch.thread == thread and other.turn < item.turn]
        assert not passed, f"{where}: passes {_where(passed[0])}"
        for other in item.needs():
            assert 0 < other.retired < now, f"{where}: needs {item.depends}, and {_where(other)} is outstanding"
        if item.logit:
            owed = [joint for joint, _ in self.jobs if joint in self._joint(item)[0]]
            assert not owed, f"{where}: logits are still to be ranked"

    def _joint(self, item: Item) -> tuple[list[Joint], Joint]:
        """The joints before that of a LOGIT, and its own; of a run that fails one that nobody will know of."""
        b = item.run.batch
        number = [run for run in b.runs if run.section == "joint"].index(item.run)
        before = [joint for other in self.batches[D][: self.batches[D].index(b)] for joint in other.joints]
        known = number < len(b.joints)
        return before + b.joints[:number], b.joints[number] if known else Joint([0] * self.seats)

    def _is_fetched(self, item: Item) -> None:
        b = item.run.batch
        at = self.fetched.get((b.thread, b.fields["side"]), 0)
        assert 0 < at < clock(), f"{_where(item)}: not fetched"

    # Aux unit

    async def _aux(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        due = 0
        while True:
            item = self.working
            dut.aux_ready_i.value = int(item is None and not self._pause())
            ends = item is not None and due <= clock()
            dut.aux_done_i.value, dut.aux_failed_i.value, dut.lost_i.value = int(ends), 0, 0
            if ends and item is not None:
                self._operands(item)
                item.retired = clock() + 1
                dut.aux_failed_i.value = int(item.fails)
                if item.fails:
                    dut.aux_error_addr_i.value = 1 << 33 | item.aux["embed_unit"]
                self.working = None
            await edge
            if dut.aux_valid_o.value and dut.aux_ready_i.value:
                found = packing.unpack(packing.aux_job(self.seats), int(dut.aux_job_o.value))
                assert self.auxes[found["thread"]], f"an aux job too many: {found}"
                self.working = item = self.auxes[found["thread"]].popleft()
                for name, value in item.aux.items():
                    assert found[name] == value, f"{_where(item)}: {name} = {found[name]}, expected {value}"
                self._is_fetched(item)
                for b in self.batches[item.run.batch.thread]:
                    for other in items(b):
                        if other is item:
                            break
                        assert 0 < other.retired < clock(), f"{_where(item)}: {_where(other)} is outstanding"
                    else:
                        continue
                    break
                self._operands(item)
                due = self._later()
                self.last_sign = clock()

    def _operands(self, item: Item) -> None:
        """Tokens stay until the job is done."""
        if not item.aux.get("row"):
            return
        tokens, zeros = int(self.dut.aux_tokens_o.value), int(self.dut.aux_zeros_o.value)
        for s in (s for s in range(self.seats) if item.aux["seats"] >> s & 1):
            assert zeros >> s & 1 == item.run.zeros >> s & 1, f"{_where(item)}: zeros of seat {s}"
            assert zeros >> s & 1 or tokens >> 16 * s & 0xFFFF == item.run.tokens[s], f"{_where(item)}: token {s}"

    # Rank unit

    async def _maximum(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        seat = 0
        while True:
            dut.max_valid_i.value = 0
            if self.maxima and self.maxima[0][0] <= clock():
                self.latest = self.maxima.popleft()[1]
                self.largest = self.latest.best
                dut.max_valid_i.value = 1
            dut.max_class_i.value = self.largest[seat % self.seats]
            await edge
            seat = int(dut.max_seat_o.value)

    async def _rank(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        word = {"addr": dut.word_addr_i, "data": dut.word_data_i}
        source = Source(dut.clk_i, dut.word_valid_i, dut.word_ready_o, word, lambda: self.rng.random() < 0.3)
        while True:
            dut.rank_done_i.value = 0
            dut.rank_ready_i.value = int(not self._pause())
            await edge
            if not (dut.rank_valid_o.value and dut.rank_ready_i.value):
                continue
            dut.rank_ready_i.value = 0
            found = packing.unpack(packing.rank_job(self.seats), int(dut.rank_job_o.value))
            assert self.jobs, f"a rank job too many: {found}"
            joint, wanted = self.jobs[0]
            assert joint is self.latest, "a rank job of another joint"
            for name, value in wanted.items():
                assert found[name] == value, f"rank job: {name} = {found[name]}, expected {value}"
            until = self._later(3)
            while clock() < until:
                await edge
            words = int(self.rng.integers(1, packing.RANK_DONE_WORDS + 1))
            for n in range(words):
                data = int(self.rng.integers(1 << 32))
                source.put(addr=wanted["address"] + 4 * n, data=data)
                self.words.setdefault(joint, []).append((wanted["address"] + 4 * n, data))
            await source.drain()
            self.jobs.popleft()
            self.last_sign = clock()
            dut.rank_done_i.value = 1
            await edge

    def expected_words(self) -> list[dict[str, int]]:
        """All that must have been written, in order."""
        return [
            {"addr": address, "data": data, "work": b.fields["work"]}
            for b in self.batches[D]
            for address, data in [word for joint in b.joints for word in self.words.get(joint, [])] + b.counts
        ]


def _where(item: Item) -> str:
    b = item.run.batch
    return f"thread {b.thread}, batch with index {b.fields['index']}, {item.run.section} {item.number}"
