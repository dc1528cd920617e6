# SPDX-License-Identifier: Apache-2.0
"""Batches for the batch sequencer, and all that each must come to: segments, jobs, results, its end (docs/batch.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gharial.isa.configs import Config
from gharial.isa.faults import Fault, Unit
from gharial.isa.instructions import NO_SECOND, Opcode, Post, Predicate, Space
from sim.sequencer.program import D, E, Program

ENCODE, DECODE, GREEDY = 16, 17, 18


@dataclass(eq=False)
class Segment:
    """What a segment must say: the fields that its units look at. Clocks as they come."""

    item: Item
    wanted: dict[str, int]
    streamed: int = 0
    left: int = 0  # taken by array and finish unit


@dataclass(eq=False)
class Item:
    """An instruction for the seats of a run.

    Attributes:
        number: in its section, from 1.
        depends: number of the instruction whose results it needs, 0 none.
        segments: of a MATVEC; none of an aux job.
        aux: fields of the aux job.
        fails: the aux unit cannot read the row.
        turn: its place in its thread.
        retired: clock from which its results may be read.
    """

    run: Run
    number: int
    depends: int
    logit: bool
    segments: list[Segment] = field(default_factory=list)
    aux: dict[str, int] = field(default_factory=dict)
    fails: bool = False
    turn: int = 0
    retired: int = 0

    def needs(self) -> list[Item]:
        """Instructions of its batch that must have retired before a segment of it is released."""
        found = []
        for other in items(self.run.batch):
            if other is self:
                break
            same = other.run is self.run
            named = same and other.number <= self.depends
            if named or other.aux or (self.run.section == "joint" and not same):
                found.append(other)
        return found


@dataclass(eq=False)
class Run:
    """A section for seats of a batch."""

    batch: Batch
    section: str
    seats: int
    tokens: list[int] = field(default_factory=list)
    zeros: int = 0
    items: list[Item] = field(default_factory=list)
    fault: Fault = Fault.NONE
    detail: int = 0


@dataclass(eq=False)
class Joint:
    """A joint evaluation: each seat's largest class, and the rank jobs that must follow."""

    best: list[int]
    jobs: list[dict[str, int]] = field(default_factory=list)


@dataclass(eq=False)
class Batch:
    """A batch, and what must come of it."""

    thread: int
    fields: dict[str, int]
    vectors: list[int]
    runs: list[Run] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)  # GREEDY: words that are written last
    done: dict[str, int] = field(default_factory=dict)


class Script:
    """Draws batches and works out what they come to.

    Args:
        failing: share of aux jobs that cannot be done.
    """

    def __init__(self, rng: np.random.Generator, config: Config, program: Program, failing: float) -> None:
        self.rng, self.config, self.program, self.failing = rng, config, program, failing
        self.seats = config.batch
        seat_bits = max(1, (self.seats - 1).bit_length())
        acts = [config.scratch_units, config.enc_a_units, config.pred_a_units]
        cells = [config.enc_c_units, config.pred_c_units, config.pred_c_units]
        self.act_bits = [n.bit_length() - 1 for n in acts]
        self.cell_bits = [n.bit_length() - 1 for n in cells]
        self.act_region, self.cell_region = (seat_bits + 1 + max(bits) for bits in (self.act_bits, self.cell_bits))

    def place(self, kind: str, region: int, side: int, unit: int) -> tuple[int, int]:
        """Address of a seat memory's unit for seat 0, and the shift of a seat's number."""
        bits, above = (self.act_bits, self.act_region) if kind == "act" else (self.cell_bits, self.cell_region)
        return ((region << above) + (side << bits[region]) + unit) % (1 << 20), bits[region] + 1

    def draw(self, thread: int, side: int, whole: bool = False) -> Batch:
        """A random batch, not yet run; `whole`: all sections run."""
        rng, seats = self.rng, self.seats
        count = seats if rng.random() < 0.5 else int(rng.integers(1, seats + 1))
        taken = (1 << count) - 1
        f = {"side": side, "seats": taken, "index": int(rng.integers(1 << 15)), "work": int(rng.integers(8))}
        f |= {"result": 0x1_2000_0000 + 4 * int(rng.integers(1 << 20)), "result_stride": 4 * int(rng.integers(1 << 12))}
        f |= {"mode": int(rng.integers(3)), "named": int(rng.integers(5)), "temperature": int(rng.integers(1 << 16))}
        f |= {"named_class": int.from_bytes(rng.bytes(8)), "tokens": int.from_bytes(rng.bytes(2 * seats))}
        vectors = [int(n) if taken >> s & 1 else 0 for s, n in enumerate(rng.integers(1, 5, seats))]
        f["vectors"] = sum(n << 3 * s for s, n in enumerate(vectors))
        if thread == E:
            return Batch(E, f | {"operation": int(rng.choice([ENCODE, GREEDY]))}, vectors)
        masks = [int(rng.integers(1 << seats)) if rng.random() < 0.5 else taken for _ in range(3)]
        masks = [mask | int(whole) for mask in masks]
        f |= {"operation": int(rng.choice([DECODE, GREEDY])), "predicts": masks[0] & taken, "joints": masks[1] & taken}
        f |= {"k": int(rng.integers(1, 34)), "starts": masks[0] & taken & masks[2]}
        if f["operation"] == GREEDY:
            f |= {"joints": taken, "starts": f["predicts"], "k": int(rng.integers(1, 5))}
        return Batch(D, f, vectors)

    def expect(self, b: Batch) -> None:
        """Work out what it comes to."""
        f, seats = b.fields, range(self.seats)
        b.done = {"side": f["side"], "predictions": 0, "joints": 0, **_NO_FAULT}
        if b.thread == E:
            self._run(b, "encode", f["seats"], [0] * self.seats, 0)
            self._end(b)
            return
        tokens = [f["tokens"] >> 16 * s & 0xFFFF for s in seats]
        counts = [0] * self.seats
        predicts, joints, zeros = f["predicts"], f["joints"], f["starts"]
        while predicts or joints:
            if predicts:
                self._run(b, "predict", predicts, list(tokens), zeros)
            if not joints:
                break
            self._run(b, "joint", joints, list(tokens), zeros)
            if any(run.fault for run in b.runs):
                break
            best = [self._best() for _ in seats]
            joint = Joint(best)
            b.joints.append(joint)
            if f["operation"] == DECODE:
                joint.jobs = [self._job(f, s, 0) for s in seats if joints >> s & 1]
                break
            emitted = [s for s in seats if joints >> s & 1 and best[s] != self.program.header["blank"]]
            for s in emitted:
                counts[s], tokens[s] = counts[s] + 1, best[s]
            joint.jobs = [self._job(f, s, 8 * counts[s]) for s in emitted]
            predicts, zeros = sum(1 << s for s in emitted), 0
            joints = sum(1 << s for s in emitted if counts[s] < f["k"])
        self._end(b)
        if f["operation"] == GREEDY and not b.done["fault"]:
            for s in (s for s in seats if f["joints"] >> s & 1):
                capped, at = counts[s] == f["k"], f["result"] + s * f["result_stride"]
                b.counts += [(at, counts[s] | capped << 16), (at + 4, counts[s] + (not capped))]

    def _best(self) -> int:
        header = self.program.header
        return header["blank"] if self.rng.random() < 0.4 else int(self.rng.integers(header["classes"]))

    def _job(self, f: dict[str, int], seat: int, offset: int) -> dict[str, int]:
        job = {"seat": seat, "greedy": int(f["operation"] == GREEDY), "temperature": f["temperature"]}
        job["address"] = f["result"] + seat * f["result_stride"] + offset
        return job if job["greedy"] else job | {name: f[name] for name in ("mode", "k", "named", "named_class")}

    def _end(self, b: Batch) -> None:
        for run in b.runs:
            if run.section != "encode":
                b.done["predictions" if run.section == "predict" else "joints"] += run.seats.bit_count()
        failed = next((run for run in b.runs if run.fault), None)
        if failed is not None:
            unit = Unit.MEMORY if failed.fault == Fault.BUS_READ else Unit.SEQUENCER
            lowest = (failed.seats & -failed.seats).bit_length() - 1
            b.done |= {"fault": failed.fault, "unit": unit, "detail": failed.detail, "entry": lowest}

    # Instructions

    def _run(self, b: Batch, section: str, seats: int, tokens: list[int], zeros: int) -> None:
        run = Run(b, section, seats, tokens, zeros)
        b.runs.append(run)
        header = self.program.header
        first = header[f"{section}_first"]
        failures = []
        for index in range(header[f"{section}_count"]):
            if first + index in self.program.bad:
                run.fault, run.detail = self.program.bad[first + index], first + index
                return
            f = self.program.instructions[first + index]
            held = sum(
                1 << s for s in range(self.seats) if seats >> s & 1 and _holds(f, b.vectors[s] * (b.thread == E))
            )
            if not held:
                continue
            item = Item(run, index + 1, f["depends"], f.get("post", 0) == Post.LOGIT)
            run.items.append(item)
            if f["opcode"] == Opcode.MATVEC:
                item.segments = [Segment(item, wanted) for wanted in self._segments(item, f, held)]
                continue
            item.aux = self._aux(run, f, held)
            item.fails = f["opcode"] == Opcode.LOOKUP and self.rng.random() < self.failing
            failures += [item] if item.fails else []
        if failures:
            run.fault, run.detail = Fault.BUS_READ, failures[-1].aux["embed_unit"]

    def _act(self, run: Run, operand: int) -> tuple[int, int]:
        state = 1 if run.section == "encode" else 2
        region = 0 if operand >> 14 == Space.SCRATCH else state
        return self.place("act", region, run.batch.fields["side"], operand % (1 << 14))

    def _aux(self, run: Run, f: dict[str, int], held: int) -> dict[str, int]:
        side, h = run.batch.fields["side"], self.program.header
        job = {"thread": run.batch.thread, "seats": held, "joint": int(f["opcode"] == Opcode.JOINT)}
        job["destination"], job["destination_shift"] = self._act(run, f["destination"])
        if job["joint"]:
            job |= {"unit_count": f["cell_units"], "shift": f["shift"]}
            job["joint_enc"], job["joint_enc_shift"] = self.place("cell", 2, side, f["encoder"])
            prediction = h["joint_pred_unit"] + f["prediction"]
            job["joint_pred"], job["joint_pred_shift"] = self.place("cell", 1, side, prediction)
            return job
        return job | {"unit_count": f["units"], "embed_unit": f["unit"], "row": int(not f["constant"])}

    def _segments(self, item: Item, f: dict[str, int], held: int) -> Iterator[dict[str, int]]:
        """Row group by row group, each in passes of some vectors."""
        vectors, most = f["vectors_less_1"] + 1, self.config.acc_vectors
        for group in range(f["row_groups"]):
            for first in range(0, vectors, most):
                wanted = {"thread": item.run.batch.thread, "seats": held, "first_vector": first, "post": f["post"]}
                wanted["vectors_less_1"] = min(most, vectors - first) - 1
                wanted["ends"] = int(group == f["row_groups"] - 1 and first + most >= vectors)
                wanted |= {"tile": f["tile"] + group * f["col_tiles"], "col_tiles": f["col_tiles"], "group": group}
                source = f["source"] + first * f["source_stride"]  # within its space, whose number lies above
                wanted["source"], wanted["source_shift"] = self._far(item.run, f["source"], source - f["source"])
                wanted |= {name: f[name] for name in ("source_stride", "first", "last")}
                wanted |= {"sum_group": f["sum"] + first * f["row_groups"] + group, "sum_stride": f["row_groups"]}
                wanted |= {"scale_group": f["scale_group"] + group, "bias_group": f["bias_group"] + group}
                yield wanted | dict(self._post(item.run, f, first))

    def _far(self, run: Run, operand: int, more: int) -> tuple[int, int]:
        address, shift = self._act(run, operand)
        return (address + more) % (1 << 20), shift

    def _post(self, run: Run, f: dict[str, int], first: int) -> Iterator[tuple[str, int]]:
        """What the post-operation needs, and no more."""
        post, side, h = f["post"], run.batch.fields["side"], self.program.header
        encodes, far = run.section == "encode", first * f["destination_stride"]
        cells = 0 if encodes else 1
        places: list[tuple[str, tuple[int, int]]] = []
        if post in (Post.CELL, Post.I8):
            places.append(("destination", self._far(run, f["destination"], far)))
            yield from (("shift", f["shift"]), ("destination_stride", f["destination_stride"]))
        if post == Post.I8:
            yield from (("i8_high", f["second"] & 0x7F), ("i8_signed", f["second"] >> 7 & 1))
        if post == Post.CELL:
            yield from (("qh", f["qh"]), ("second_valid", int(f["second"] != NO_SECOND)))
            places.append(("cell", self.place("cell", cells, side, f["cell"])))
            if f["second"] != NO_SECOND:
                places.append(("second", self._act(run, f["second"])))
        if post == Post.I16:
            kept = h["joint_enc_unit"] if encodes else h["joint_pred_unit"]
            places.append(("cell", self.place("cell", cells, side, kept + f["destination"] + far)))
            yield "destination_stride", f["destination_stride"]
        for name, (address, shift) in places:
            yield "cell_unit" if name == "cell" else name, address
            yield f"{name}_shift", shift


_NO_FAULT: dict[str, Any] = {"fault": 0, "unit": 0, "detail": 0, "entry": 0}


def _holds(f: dict[str, int], vectors: int) -> bool:
    match f["predicate"]:
        case Predicate.MORE:
            return vectors > f["threshold"]
        case Predicate.AT_MOST:
            return vectors <= f["threshold"]
    return True


def items(b: Batch) -> Iterator[Item]:
    """All instructions of a batch, in order."""
    for run in b.runs:
        yield from run.items
