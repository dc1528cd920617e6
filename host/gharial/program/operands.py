# SPDX-License-Identifier: Apache-2.0
"""What one instruction reads and writes, and whether its operands lie where they may (docs/isa.md, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from gharial.errors import BadInput
from gharial.isa.configs import Config
from gharial.isa.header import MAX_COLUMNS
from gharial.isa.instructions import NO_SECOND, Opcode, Post, Predicate, Space
from gharial.program.code import Instruction, place
from gharial.program.program import Program


class Memory(Enum):
    """Places that the instructions of a section share. The slots' old and new state may be one slot or two."""

    SCRATCH = "scratch"
    OLD = "old state"
    NEW = "new state"
    OLD_CELLS = "old cells"
    NEW_CELLS = "new cells"
    BANK = "joint_enc's bank"
    STORED = "joint_pred"
    LOGITS = "logits"


@dataclass(frozen=True)
class Access:
    """Units start .. start + count - 1 of a place, read or written for one feature vector of the instruction."""

    memory: Memory
    start: int
    count: int
    vector: int = 0

    @property
    def units(self) -> slice:
        """The units as a slice."""
        return slice(self.start, self.start + self.count)


@dataclass(frozen=True)
class Effect:
    """What an instruction reads and writes. Sums are kept apart: they need no `depends on`."""

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]


@dataclass(frozen=True)
class Room:
    """How many units each place has, for the instructions of one section.

    `outputs` are the C units of the slot that hold joint_enc's banks or joint_pred's output: no cell may lie there.
    """

    sizes: dict[Memory, int]
    sums: int
    weight_tiles: int
    scale_groups: int
    bias_groups: int
    embedding_units: int
    token_rows: int
    classes: int
    outputs: range
    vectors: int
    config: Config


def room(program: Program, section: str) -> Room:
    """Sizes of the places that a section's instructions may name."""
    header, config = program.header, program.config
    kind = "enc" if section == "encode" else "pred"
    group_bytes = 4 * config.rows
    a, c = header[f"{kind}_a_units"], header[f"{kind}_c_units"]
    if section == "encode":
        output, output_units = header["joint_enc_unit"], 2 * header["joint_enc_units"]
    else:
        output, output_units = header["joint_pred_unit"], header["joint_pred_units"]
    return Room(
        {
            Memory.SCRATCH: header["scratch_units"],
            Memory.OLD: a,
            Memory.NEW: a,
            Memory.OLD_CELLS: c,
            Memory.NEW_CELLS: c,
            Memory.BANK: header["joint_enc_units"],
            Memory.STORED: header["joint_pred_units"],
            Memory.LOGITS: -(-header["classes"] // config.rows),
        },
        header["sum_groups"],
        header["weight_bytes"] // config.tile_bytes,
        header["scale_bytes"] // group_bytes,
        header["bias_bytes"] // group_bytes,
        header["embed_bytes"] // config.cols,
        header["tokens"],
        header["classes"],
        range(output, output + output_units),
        header["vectors"] if section == "encode" else 1,
        config,
    )


# Which post-operations a section may have (isa.md, section 4): each writes what only that section has.
_POSTS = {
    "predict": (Post.CELL, Post.I16, Post.I8),
    "encode": (Post.CELL, Post.I16, Post.I8),
    "joint": (Post.I8, Post.LOGIT),
}
_ROWS_OF_UNIT = 4  # gates


class Checker:
    """Checks instructions of one section one by one.

    Args:
        program: whose sizes hold.
        section: "predict", "encode" or "joint".
    """

    def __init__(self, program: Program, section: str) -> None:
        self.section = section
        self.room = room(program, section)
        self.where = program.where
        self._now: Instruction | None = None

    def effect(self, instruction: Instruction) -> Effect:
        """What the instruction reads and writes.

        Raises:
            BadInput: an operand out of range, or one that the section does not have; the instruction is named.
        """
        self._now = instruction
        predicate = instruction["predicate"]
        if predicate not in list(Predicate):
            self._fail("undefined predicate", predicate)
        if predicate != Predicate.ALWAYS and self.section != "encode":
            self._fail("a predicate on feature vectors, which this section does not have", predicate)
        if instruction["depends"] > instruction.index:
            self._fail("depends on itself or a later instruction", instruction["depends"], f"0..{instruction.index}")
        if instruction.opcode == Opcode.MATVEC:
            return self._matvec(instruction)
        if instruction.opcode == Opcode.LOOKUP:
            return self._lookup(instruction)
        return self._joint(instruction)

    def _fail(self, what: str, found: object = None, expected: object = None) -> NoReturn:
        assert self._now is not None
        raise BadInput(what, f"{self.where}: {self._now.name}", found, expected)

    def _inside(self, what: str, start: int, count: int, size: int) -> None:
        if start + count > size:
            self._fail(f"{what} out of range", f"{count} from {start}", f"end at {size} at most")

    def _access(self, memory: Memory, start: int, count: int, vector: int = 0) -> Access:
        self._inside(memory.value, start, count, self.room.sizes[memory])
        return Access(memory, start, count, vector)

    def _operand(self, what: str, operand: int, spaces: dict[int, Memory], count: int, offset: int, v: int) -> Access:
        space, start = place(operand)
        if space not in spaces:
            self._fail(f"{what} in a space that it may not name", space, " or ".join(map(str, map(int, spaces))))
        return self._access(spaces[space], start + offset, count, v)

    def _sources(self) -> dict[int, Memory]:
        own: dict[int, Memory] = {Space.SCRATCH: Memory.SCRATCH}
        return own if self.section == "joint" else own | {Space.SOURCE: Memory.OLD, Space.DESTINATION: Memory.NEW}

    def _destinations(self) -> dict[int, Memory]:
        own: dict[int, Memory] = {Space.SCRATCH: Memory.SCRATCH}
        return own if self.section == "joint" else own | {Space.DESTINATION: Memory.NEW}

    def _units(self, values: int) -> int:
        """Activation units of that many int8; only whole ones, or the rest of the last would be undefined."""
        if values % self.room.config.cols:
            self._fail("output is no whole number of activation units", f"{values} values", self.room.config.cols)
        return values // self.room.config.cols

    def _matvec(self, f: Instruction) -> Effect:
        room, vectors = self.room, f.vectors
        groups, tiles = f["row_groups"], f["col_tiles"]
        if vectors > room.vectors:
            self._fail("more feature vectors than a step has", vectors, f"at most {room.vectors}")
        if not groups or not tiles or tiles * room.config.cols > MAX_COLUMNS:
            self._fail("product without rows or columns, or too wide", f"{groups} row groups, {tiles} column tiles")
        if (f["first"] | f["last"]) >> vectors:
            self._fail("mask names a vector that it does not have", f"{f['first']:#06b}, {f['last']:#06b}", vectors)
        if bool(f["last"]) != (f["post"] != Post.NONE):
            self._fail("a post-operation without a vector for it, or the reverse", f"post {f['post']}")
        self._inside("weights", f["tile"], groups * tiles, room.weight_tiles)
        self._inside("scales", f["scale_group"], groups, room.scale_groups)
        if f["first"]:
            self._inside("biases", f["bias_group"], groups, room.bias_groups)
        for v in range(vectors):
            if not (f.has("first", v) and f.has("last", v)):
                self._inside("sums", f["sum"] + v * groups, groups, room.sums)
        reads = [
            self._operand("source", f["source"], self._sources(), tiles, v * f["source_stride"], v)
            for v in range(vectors)
        ]
        writes: list[Access] = []
        if f["last"]:
            ended = [v for v in range(vectors) if f.has("last", v)]
            post_reads, writes = self._post(f, ended)
            reads += post_reads
        return Effect(tuple(reads), tuple(writes))

    def _post(self, f: Instruction, ended: list[int]) -> tuple[list[Access], list[Access]]:
        room, groups, post = self.room, f["row_groups"], f["post"]
        if post not in _POSTS[self.section]:
            names = ", ".join(p.name for p in _POSTS[self.section])
            self._fail("post-operation that this section does not have", post, names)
        strides = {v: v * f["destination_stride"] for v in ended}
        rows = groups * room.config.rows
        if post == Post.LOGIT:
            if rows - room.classes >= room.config.rows or rows < room.classes:
                self._fail("logits of other rows than the classes", rows, room.classes)
            return [], [self._access(Memory.LOGITS, 0, groups)]
        if post == Post.I16:
            output = Memory.BANK if self.section == "encode" else Memory.STORED
            return [], [self._access(output, f["destination"] + strides[v], 4 * groups, v) for v in ended]
        if post == Post.I8:
            if f["shift"] > 8 or not f["second"] & 127 or f["second"] >> 8:
                self._fail("I8 with a shift or ceiling out of range", f"shift {f['shift']}, {f['second']:#x}")
            count = self._units(rows)
            return [], [self._target("destination", f["destination"], count, strides[v], v) for v in ended]
        if len(ended) > 1:
            self._fail("CELL for more than one vector", len(ended), 1)
        if not 8 <= f["shift"] <= 15 or not 5 <= f["qh"] <= 14:
            self._fail("CELL with a unit out of range", f"qc {f['shift']}, qh {f['qh']}", "qc 8..15, qh 5..14")
        v = ended[0]
        count = self._units(rows // _ROWS_OF_UNIT)
        writes = [self._target("destination", f["destination"], count, strides[v], v)]
        if f["second"] != NO_SECOND:
            if v and f["destination_stride"]:
                self._fail("CELL with a second destination for a later vector of several", v, 0)
            writes.append(self._target("second destination", f["second"], count, 0, v))
        if f["cell"] < room.outputs.stop and room.outputs.start < f["cell"] + groups:
            self._fail("cells lie where outputs are stored", f"{groups} from {f['cell']}", room.outputs)
        # R/4 units of the LSTM a row group: one cell unit.
        writes.append(self._access(Memory.NEW_CELLS, f["cell"], groups, v))
        return [self._access(Memory.OLD_CELLS, f["cell"], groups, v)], writes

    def _target(self, what: str, operand: int, count: int, offset: int, v: int) -> Access:
        return self._operand(what, operand, self._destinations(), count, offset, v)

    def _lookup(self, f: Instruction) -> Effect:
        units = f["units"]
        if f["constant"] > 1 or not units:
            self._fail("LOOKUP of nothing or of an undefined kind", f"kind {f['constant']}, {units} units")
        if not f["constant"] and self.section != "predict":
            self._fail("LOOKUP of a token's row, which only section predict has")
        rows = 1 if f["constant"] else self.room.token_rows
        self._inside("embedding", f["unit"], units * rows, self.room.embedding_units)
        return Effect((), (self._target("destination", f["destination"], units, 0, 0),))

    def _joint(self, f: Instruction) -> Effect:
        if self.section != "joint":
            self._fail("JOINT, which only section joint has")
        cells = f["cell_units"]
        if not cells or f["shift"] > 8:
            self._fail("JOINT of nothing, or with a shift out of range", f"{cells} cell units, shift {f['shift']}")
        reads = (self._access(Memory.BANK, f["encoder"], cells), self._access(Memory.STORED, f["prediction"], cells))
        count = self._units(cells * self.room.config.cell_unit)
        return Effect(reads, (self._target("destination", f["destination"], count, 0, 0),))
