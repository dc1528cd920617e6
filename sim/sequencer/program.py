# SPDX-License-Identifier: Apache-2.0
"""Random programs for the sequencer, and what each of their runs must give (docs/isa.md, section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gharial.isa.faults import Fault
from gharial.isa.instructions import JOINT, LOOKUP, MATVEC, NO_SECOND, Opcode, Post, Predicate, Space, operand
from sim.sequencer.limits import largest

E, D = 0, 1  # threads
SECTIONS = ("predict", "encode", "joint")
HEADER_WORDS = 64
ADDRESS = 1 << 16


@dataclass(eq=False)
class Job:
    """What an instruction gives to the units for an entry.

    Attributes:
        number: of the instruction in its section, from 1.
        depends: number of the instruction whose results it needs, 0 none.
        reads_state: whether it reads what an older run of its thread may still write.
        wanted: fields of `mat`, `vec` or `aux` that must be so.
        accepted, retired: clocks, as they come.
    """

    run: Run
    number: int
    depends: int
    reads_state: bool
    wanted: dict[str, dict[str, int]]
    accepted: int = 0
    retired: int = 0

    @property
    def aux(self) -> bool:
        """Whether it is the aux unit's."""
        return "aux" in self.wanted


@dataclass(eq=False)
class Run:
    """A section for an entry: addresses as `run_t` has them, and the jobs up to a fault."""

    thread: int
    entry: int
    section: str
    context: dict[str, int]
    jobs: list[Job] = field(default_factory=list)
    fault: Fault = Fault.NONE
    detail: int = 0

    def over(self) -> bool:
        """Whether all its results are written."""
        return all(job.retired for job in self.jobs)


class Program:
    """Code of random instructions within the header's spaces, some of which may be made bad.

    Args:
        rng: of everything.
        rows, cols: of the configuration.
        scratch_units: a bank's.
    """

    def __init__(self, rng: np.random.Generator, rows: int, cols: int, scratch_units: int) -> None:
        self.rng, self.rows, self.cols, self.scratch = rng, rows, cols, scratch_units
        counts = {
            "predict": int(rng.integers(1, 7)),
            "encode": int(rng.choice([1, 2, 5, 7, 9, 10])),
            "joint": int(rng.integers(1, 5)),
        }
        firsts = {"predict": 0, "encode": counts["predict"], "joint": counts["predict"] + counts["encode"]}
        self.header = {
            **{f"{s}_first": firsts[s] for s in SECTIONS},
            **{f"{s}_count": counts[s] for s in SECTIONS},
            "feature_units": 3,
            "vectors": 4,
            "feature_unit": 0,
            "scratch_units": scratch_units,
            "enc_a_units": 300,
            "enc_c_units": 300,
            "pred_a_units": 300,
            "pred_c_units": 300,
            "joint_enc_unit": 100,
            "joint_enc_units": 70,
            "joint_pred_unit": 50,
            "joint_pred_units": 90,
            "classes": int(rng.integers(36, 41)),
            "blank": int(rng.integers(36)),
            "logit_bits": 8,
            "sum_groups": 60,
            "tokens": 40,
            "tiles": 5000,
            "scale_groups": 700,
            "bias_groups": 800,
            "embed_units": 9000,
        }
        self.instructions: list[dict[str, int]] = []
        for section in SECTIONS:
            for index in range(counts[section]):
                self.instructions.append(self._draw(section, index, index == counts[section] - 1))
        self.words = [self._words(fields) for fields in self.instructions]
        self.bad: dict[int, Fault] = {}  # by instruction of the code space

    def code(self, address: int) -> int:
        """Word of the code space."""
        place = address - HEADER_WORDS
        assert 0 <= place < 8 * len(self.words), f"code word {address}"
        return int(self.words[place // 8][place % 8])

    def spoil(self, section: str, index: int) -> None:
        """Make an instruction one that cannot run."""
        number = self.header[f"{section}_first"] + index
        words, fields = self.words[number], self.instructions[number]
        kind = int(self.rng.integers(4))
        if kind == 0:  # opcode
            words[0] = words[0] & ~np.uint32(0xFF) | np.uint32(self.rng.choice([0, 4, 0x81, 0xFF]))
        elif kind == 1:  # predicate
            words[0] |= np.uint32(3 << 11)
        elif kind == 2 and fields["opcode"] == Opcode.MATVEC:  # one that the section does not have
            post = Post.LOGIT if section != "joint" else Post.CELL
            words[0] = words[0] & ~np.uint32(7 << 8) | np.uint32(post << 8)
        else:
            self._stretch(section, number, 1)
            self.bad[number] = Fault.ADDRESS
            return
        self.bad[number] = Fault.BAD_OPCODE

    def stretch(self, share: float) -> None:
        """Let an operand of some instructions end with its space."""
        for section in SECTIONS:
            for index in range(self.header[f"{section}_count"]):
                if self.rng.random() < share:
                    self._stretch(section, self.header[f"{section}_first"] + index, 0)

    def _stretch(self, section: str, number: int, beyond: int) -> None:
        """One operand, or an empty one, which counts as outside."""
        fields = self.instructions[number]
        sizes = [name for name in ("row_groups", "col_tiles", "units", "cell_units") if name in fields]
        most = largest(self.header, self.rows, self.cols, section, fields)
        name = str(self.rng.choice(list(most) + (sizes if beyond else [])))
        fields |= {name: most[name] + beyond if name in most else 0}
        self.words[number] = self._words(fields)

    def edges(self, section: str, opcode: Opcode, post: Post = Post.NONE) -> Iterator[None]:
        """A section's first instruction of that kind, with each operand in turn at the end of its space and beyond."""
        number, only = self.header[f"{section}_first"], self.header[f"{section}_count"] == 1
        while True:
            drawn = self._draw(section, 0, only) | {"predicate": Predicate.ALWAYS}
            if drawn["opcode"] == opcode and (opcode != Opcode.MATVEC or (drawn["post"] == post and drawn["last"])):
                break
        for name, most in largest(self.header, self.rows, self.cols, section, drawn).items():
            for beyond in (0, 1):
                self.instructions[number] = drawn | {name: most + beyond}
                self.words[number] = self._words(self.instructions[number])
                self.bad = {number: Fault.ADDRESS} if beyond else {}
                yield
        self.instructions[number], self.words[number], self.bad = drawn, self._words(drawn), {}

    def run(self, thread: int, entry: int, section: str, context: dict[str, int]) -> Run:
        """What the section gives for an entry."""
        run = Run(thread, entry, section, context)
        first = self.header[f"{section}_first"]
        for index in range(self.header[f"{section}_count"]):
            if first + index in self.bad:
                run.fault, run.detail = self.bad[first + index], first + index
                break
            fields = self.instructions[first + index]
            if self._holds(fields, context["vectors"]):
                run.jobs.append(self._job(run, index + 1, fields))
        return run

    def _holds(self, fields: dict[str, int], vectors: int) -> bool:
        threshold = fields["threshold"]
        match fields["predicate"]:
            case Predicate.MORE:
                return vectors > threshold
            case Predicate.AT_MOST:
                return vectors <= threshold
        return True

    def _draw(self, section: str, index: int, last: bool) -> dict[str, int]:
        rng = self.rng
        common = {"depends": int(rng.integers(0, index + 1)) * int(rng.integers(2)), "predicate": 0, "threshold": 0}
        if section == "encode":
            common |= {"predicate": int(rng.choice([0, 0, 1, 2])), "threshold": int(rng.integers(4))}
        ends = section == "joint" and last
        kind = Opcode.MATVEC if ends else Opcode(int(rng.choice([1, 1, 1, 2, 3 if section == "joint" else 1])))
        if section == "predict" and not index and rng.random() < 0.7:
            kind = Opcode.LOOKUP  # the token's row
        if kind == Opcode.LOOKUP:
            constant = int(section != "predict" or (index and rng.random() < 0.5))
            units = int(rng.integers(1, 9))
            unit, room = int(rng.integers(0, 8000)), operand(Space.SCRATCH, int(rng.integers(0, 200)))
            return common | {"opcode": 2, "constant": constant, "unit": unit, "units": units, "destination": room}
        if kind == Opcode.JOINT:
            operands = {"encoder": int(rng.integers(0, 60)), "prediction": int(rng.integers(0, 80))}
            place = operand(Space.SCRATCH, int(rng.integers(0, 200)))
            shape = {"cell_units": int(rng.integers(1, 10)), "shift": int(rng.integers(9)), "destination": place}
            return common | {"opcode": 3} | operands | shape
        return common | self._matvec(section, ends)

    def _matvec(self, section: str, logit: bool) -> dict[str, int]:
        rng = self.rng
        posts = [Post.NONE, Post.I8] + ([] if section == "joint" else [Post.CELL, Post.I16])
        post = Post.LOGIT if logit else Post(int(rng.choice(posts)))
        vectors = int(rng.integers(1, 5)) if section == "encode" else 1
        most = (1 << vectors) - 1
        last = int(rng.integers(0, most + 1)) if post != Post.NONE else 0
        if logit or post == Post.CELL:
            last = 1 << int(rng.integers(vectors))
        # Section joint has its activations in scratch.
        source, target, other = (int(rng.choice(n)) if section != "joint" else 0 for n in ([0, 1, 2], [0, 2], [0, 2]))
        place = int(rng.integers(0, 20))
        if post != Post.I16:
            place = operand(Space(target), place)
        second = operand(Space(other), int(rng.integers(0, 100)))
        high = int(rng.integers(1, 128)) | int(rng.integers(2)) << 7  # I8
        return {
            "opcode": 1,
            "post": int(post),
            "vectors_less_1": vectors - 1,
            "last": last,
            "first": int(rng.integers(0, most + 1)),
            "tile": int(rng.integers(0, 4000)),
            "row_groups": int(rng.integers(1, 8)),
            "col_tiles": int(rng.integers(1, 20)),
            "source": operand(Space(source), int(rng.integers(0, 100))),
            "source_stride": int(rng.integers(0, 50)),
            "destination": place,
            "destination_stride": 0 if post == Post.CELL else int(rng.integers(0, 7)),
            "cell": int(rng.integers(0, 200)),
            "shift": int(rng.integers(16)),
            "qh": int(rng.integers(16)),
            "second": high if post == Post.I8 else int(rng.choice([NO_SECOND, second])),
            "sum": int(rng.integers(0, 20)),
            "scale_group": int(rng.integers(0, 600)),
            "bias_group": int(rng.integers(0, 700)),
        }

    def _words(self, fields: dict[str, int]) -> np.ndarray:
        record = {Opcode.MATVEC: MATVEC, Opcode.LOOKUP: LOOKUP, Opcode.JOINT: JOINT}[Opcode(fields["opcode"])]
        return record.pack(**fields)

    def _job(self, run: Run, number: int, f: dict[str, int]) -> Job:
        c, h = run.context, self.header

        def place(field_value: int) -> int:
            base = (c["scratch"], c["source_act"], c["destination_act"])[field_value >> 14]
            return (base + field_value % (1 << 14)) % ADDRESS

        if f["opcode"] == Opcode.JOINT:
            aux = {
                "joint": 1,
                "unit_count": f["cell_units"],
                "shift": f["shift"],
                "destination": place(f["destination"]),
            }
            aux |= {"joint_enc": (c["joint_enc"] + f["encoder"]) % ADDRESS}
            aux |= {"joint_pred": (c["destination_cell"] + h["joint_pred_unit"] + f["prediction"]) % ADDRESS}
            return Job(run, number, f["depends"], False, {"aux": aux})
        if f["opcode"] == Opcode.LOOKUP:
            zero = c["zero"] and not f["constant"]
            aux = {"joint": 0, "zero": int(zero), "unit_count": f["units"], "destination": place(f["destination"])}
            if not zero:
                aux["embed_unit"] = f["unit"] + (0 if f["constant"] else c["token"] * f["units"])
            return Job(run, number, f["depends"], False, {"aux": aux})
        mat = {name: f[name] for name in ("tile", "row_groups", "col_tiles", "vectors_less_1", "source_stride")}
        mat["source"] = place(f["source"])
        reads_state = f["source"] >> 14 == Space.SOURCE or f["post"] == Post.CELL
        return Job(run, number, f["depends"], reads_state, {"mat": mat, "vec": dict(self._vector(run, f, place))})

    def _vector(self, run: Run, f: dict[str, int], place: Any) -> Iterator[tuple[str, int]]:
        """What the vector unit needs of the post-operation, and no more."""
        c, post = run.context, f["post"]
        yield from (("thread", run.thread), ("sum_group", f["sum"]))
        for name in ("post", "vectors_less_1", "first", "last", "row_groups", "scale_group", "bias_group"):
            yield name, f[name]
        if post in (Post.CELL, Post.I8):
            yield from (("shift", f["shift"]), ("destination", place(f["destination"])))
            yield "destination_stride", f["destination_stride"]
        if post == Post.I8:
            yield from (("i8_high", f["second"] & 0x7F), ("i8_signed", f["second"] >> 7 & 1), ("second_valid", 0))
        if post == Post.CELL:
            yield from (("qh", f["qh"]), ("second_valid", int(f["second"] != NO_SECOND)))
            yield "cell_source", (c["source_cell"] + f["cell"]) % ADDRESS
            yield "cell_destination", (c["destination_cell"] + f["cell"]) % ADDRESS
            if f["second"] != NO_SECOND:
                yield "second", place(f["second"])
        if post == Post.I16:
            yield "cell_destination", (c["i16_cell"] + f["destination"]) % ADDRESS
            yield "destination_stride", f["destination_stride"]
