# SPDX-License-Identifier: Apache-2.0
"""Order of a section's reads and writes: what `depends on` has to cover (docs/isa.md, section 4).

A section is gone through once for each number of feature vectors an entry may have, since predicates take out other
instructions each time. Instructions are counted from 1 here, as `depends on` does; 0 means before the section.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from gharial.errors import BadInput
from gharial.isa.instructions import Opcode
from gharial.program.code import Instruction
from gharial.program.operands import Access, Effect, Memory, Room

_NOBODY = -1

# The two names of one place: the state before and after a command, where both slots are one.
_TWIN = {
    Memory.OLD: Memory.NEW,
    Memory.OLD_CELLS: Memory.NEW_CELLS,
}


@dataclass
class _Track:
    """Who touched each unit of a place last: instruction numbers, `_NOBODY` where no one did."""

    size: int
    writer: np.ndarray = field(init=False)
    matrix_reader: np.ndarray = field(init=False)
    other_reader: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.writer = np.full(self.size, _NOBODY)
        self.matrix_reader = np.full(self.size, _NOBODY)
        self.other_reader = np.full(self.size, _NOBODY)


class SectionOrder:
    """Goes through a section for entries of one number of feature vectors.

    Args:
        section: name of the section.
        sizes: units of each place.
        features: scratch units (start, a vector) of the features, and how many vectors there are; None where the
            section has none.
        where: the program, for errors.
    """

    def __init__(self, section: str, sizes: Room, features: tuple[int, int, int] | None, where: str) -> None:
        self.section, self.where = section, where
        self.in_place = section == "encode"
        places = [memory for memory in Memory if memory not in _TWIN]
        self.tracks = {memory: _Track(sizes.sizes[memory]) for memory in places}
        if features is not None:
            start, units, vectors = features
            # Vectors that an entry lacks are zero in scratch: they are there too.
            self.tracks[Memory.SCRATCH].writer[start : start + units * vectors] = 0
        self.old_read: list[tuple[Access, Instruction]] = []
        self.undefined: dict[int, bool] = {}  # sum group: whether undefined activations went into it
        self.done = 0
        self.now: Instruction | None = None

    def step(self, instruction: Instruction, effect: Effect, effective: bool) -> None:
        """The section's next instruction; not `effective`: its predicate is false, so that it writes nothing.

        Raises:
            BadInput: it reads what is not there yet, or writes where others are still at work; it is named.
        """
        self.now = instruction
        self.done = max(self.done, instruction["depends"])
        if not effective:
            return
        for access in effect.reads:
            self._read(access, instruction)
        for access in effect.writes:
            self._clash(access, effect)
            self._write(access)

    def finish(self) -> None:
        """After the last instruction: the section's output must be there, and all of its state in another slot too.

        Raises:
            BadInput: output that is not written, or state that the section reads, but does not write.
        """
        output = {"encode": Memory.BANK, "predict": Memory.STORED, "joint": Memory.LOGITS}[self.section]
        if (self.tracks[output].writer == _NOBODY).any():
            what = f"section {self.section} does not write all of {output.value}"
            raise BadInput(what, f"{self.where}: {self.section}")
        if self.in_place or self.section == "joint":
            return
        for access, reader in self.old_read:
            self.now = reader
            twin = self.tracks[_TWIN[access.memory]]
            if (twin.writer[access.units] == _NOBODY).any():
                self._fail("reads state that the section never writes, so that it is lost in another slot")

    def _fail(self, what: str, other: int | None = None) -> NoReturn:
        assert self.now is not None
        found = None
        if other is not None:
            found = f"depends on {self.done or 'nothing'}, the other is {self.section}[{other - 1}]"
        expected = None if other is None else f"depends on {other} or later"
        raise BadInput(what, f"{self.where}: {self.now.name}", found, expected)

    def _read(self, access: Access, instruction: Instruction) -> None:
        memory = _TWIN.get(access.memory, access.memory)
        track = self.tracks[memory]
        writer = track.writer[access.units]
        last = int(writer.max(initial=_NOBODY))
        if access.memory == Memory.OLD_CELLS:
            # In place, a second vector's cell goes on from the first one's; else it would find the old one.
            if last > 0 and not self.in_place:
                self._fail("reads an old cell that was already replaced", last)
            self.old_read.append((access, instruction))
        elif access.memory == Memory.OLD:
            if last > 0:
                self._fail("reads old state that was already replaced", last)
            self.old_read.append((access, instruction))
        elif access.memory in (Memory.SCRATCH, Memory.NEW):
            undefined = bool((writer == _NOBODY).any())
            self._mark(instruction, access.vector, undefined)
        # Cells are read and written in order, so nobody waits for them.
        if last > self.done and access.memory != Memory.OLD_CELLS:
            self._fail("reads a result without waiting for it", last)
        reader = track.matrix_reader if instruction.opcode == Opcode.MATVEC else track.other_reader
        reader[access.units] = self._number

    @property
    def _number(self) -> int:
        assert self.now is not None
        return self.now.index + 1

    def _mark(self, instruction: Instruction, vector: int, undefined: bool) -> None:
        """Undefined activations are harmless until a sum that holds them is used.

        An instruction for several vectors also runs where an entry has fewer; what it makes of the missing ones must
        not get further.
        """
        groups = range(0)
        if not (instruction.has("first", vector) and instruction.has("last", vector)):
            count = instruction["row_groups"]
            groups = range(instruction["sum"] + vector * count, instruction["sum"] + (vector + 1) * count)
        carried = not instruction.has("first", vector) and any(self.undefined.get(group, False) for group in groups)
        if (undefined or carried) and instruction.has("last", vector):
            self._fail("uses activations that nobody has written")
        for group in groups:
            self.undefined[group] = undefined or carried

    def _clash(self, write: Access, effect: Effect) -> None:
        """Within one instruction later row groups still read when the first ones write."""
        for read in effect.reads:
            cells = read.memory == Memory.OLD_CELLS  # read and written unit by unit
            same = _TWIN.get(read.memory, read.memory) == write.memory
            if same and not cells and _overlap(read, write):
                self._fail("writes over what it still reads")

    def _write(self, access: Access) -> None:
        assert self.now is not None
        track = self.tracks[access.memory]
        last = int(track.writer[access.units].max(initial=_NOBODY))
        if last == self._number:
            self._fail("writes one place twice")
        if access.memory == Memory.NEW_CELLS:
            track.writer[access.units] = self._number
            return
        if last > self.done:
            self._fail("writes over a result that may still be outstanding", last)
        readers = [track.other_reader[access.units]]
        if self.now.opcode != Opcode.MATVEC:
            # Products read in order, so only another unit's result can come before an earlier product's reads.
            readers.append(track.matrix_reader[access.units])
        last = max(int(reader.max(initial=_NOBODY)) for reader in readers)
        if last > self.done:
            self._fail("writes over what may still be read", last)
        track.writer[access.units] = self._number


def _overlap(a: Access, b: Access) -> bool:
    return a.start < b.start + b.count and b.start < a.start + a.count
