# SPDX-License-Identifier: Apache-2.0
"""Instructions of a program, decoded, and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gharial.errors import BadInput
from gharial.isa.header import HEADER
from gharial.isa.instructions import NO_SECOND, RECORDS, SECTION_LIMIT, WORDS, Opcode, Post, Predicate, Space
from gharial.program.manifest import SECTIONS

if TYPE_CHECKING:
    from gharial.program.program import Program

OFFSET_BITS = 14  # of an activation operand; the space is above


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        section: section it stands in.
        index: place in the section, from 0.
        opcode: what it does.
        fields: its fields by name (gharial.isa.instructions).
    """

    section: str
    index: int
    opcode: Opcode
    fields: dict[str, int]

    def __getitem__(self, field: str) -> int:
        return self.fields[field]

    @property
    def name(self) -> str:
        """Section, index and opcode, as errors and listings show it."""
        return f"{self.section}[{self.index}] {self.opcode.name}"

    @property
    def vectors(self) -> int:
        """Feature vectors it works on: 1 but for MATVEC."""
        return self["vectors_less_1"] + 1 if self.opcode == Opcode.MATVEC else 1

    def runs(self, vectors: int) -> bool:
        """Whether it has an effect for an entry of that many feature vectors."""
        predicate, n = self["predicate"], self["threshold"]
        if predicate == Predicate.MORE:
            return vectors > n
        return predicate == Predicate.ALWAYS or vectors <= n

    def has(self, mask: str, vector: int) -> bool:
        """Whether the bit of that vector is set in `first` or `last`."""
        return bool(self[mask] >> vector & 1)


def decode(program: Program) -> dict[str, list[Instruction]]:
    """All instructions of the program, by section.

    Raises:
        BadInput: a section outside the code or too long, an undefined opcode, or a bit that no field owns.
    """
    code, header = program.code, program.header
    there = (len(code) - HEADER.words) // WORDS
    result: dict[str, list[Instruction]] = {}
    for section in SECTIONS:
        first, count = header[f"{section}_first"], header[f"{section}_count"]
        if count > SECTION_LIMIT or first + count > there:
            raise BadInput(
                f"section {section} does not lie in the code",
                program.where,
                f"{count} instructions from {first}",
                f"at most {SECTION_LIMIT}, {there} in the code",
            )
        result[section] = []
        for index in range(count):
            start = HEADER.words + (first + index) * WORDS
            words = code[start : start + WORDS]
            number = int(words[0]) & 0xFF
            where = f"{program.where}: {section}[{index}]"
            if number not in RECORDS:
                raise BadInput("undefined opcode", where, number, ", ".join(f"{op} {op.name}" for op in Opcode))
            opcode = Opcode(number)
            stray = RECORDS[opcode].stray(words)
            if stray is not None:
                found = f"{int(words[stray]):#010x} in word {stray}"
                raise BadInput(f"{opcode.name} with a bit set that it does not have", where, found)
            result[section].append(Instruction(section, index, opcode, RECORDS[opcode].unpack(words)))
    return result


def disassemble(program: Program) -> list[str]:
    """The instructions as text, one line each.

    Raises:
        BadInput: as `decode`.
    """
    return [_line(instruction) for section in decode(program).values() for instruction in section]


def place(operand: int) -> tuple[int, int]:
    """Space number (3 is undefined) and offset of an activation operand."""
    return operand >> OFFSET_BITS, operand & (1 << OFFSET_BITS) - 1


def place_text(operand: int) -> str:
    """An activation operand as text."""
    space, offset = place(operand)
    names: dict[int, str] = {Space.SCRATCH: "scratch", Space.SOURCE: "old", Space.DESTINATION: "new"}
    return f"{names.get(space, '?')}[{offset}]"


def _line(instruction: Instruction) -> str:
    fields = instruction.fields
    texts = {Opcode.MATVEC: _matvec, Opcode.LOOKUP: _lookup, Opcode.JOINT: _joint}[instruction.opcode](fields)
    predicate = {Predicate.MORE: "if vectors >", Predicate.AT_MOST: "if vectors <="}
    if fields["predicate"] in (Predicate.MORE, Predicate.AT_MOST):
        texts.append(f"{predicate[Predicate(fields['predicate'])]} {fields['threshold']}")
    if fields["depends"]:
        texts.append(f"after {fields['depends'] - 1}")
    return f"{instruction.section} {instruction.index:3d}  {instruction.opcode.name:6s}  {', '.join(texts)}"


def _strided(operand: int, stride: int, vectors: int) -> str:
    return place_text(operand) + (f"+{stride}v" if vectors > 1 else "")


def _vectors(mask: int, vectors: int) -> str:
    return "+".join(str(v) for v in range(vectors) if mask >> v & 1)


def _matvec(f: dict[str, int]) -> list[str]:
    n = f["vectors_less_1"] + 1
    texts = [f"tiles {f['tile']} + {f['row_groups']} x {f['col_tiles']}", f"scales {f['scale_group']}"]
    texts.append(f"from {_strided(f['source'], f['source_stride'], n)}")
    if n > 1:
        texts.append(f"{n} vectors")
    if f["first"]:
        texts.append(f"begins {_vectors(f['first'], n)} at bias {f['bias_group']}")
    if f["first"] & f["last"] != (1 << n) - 1:
        texts.append(f"sums {f['sum']}")
    if f["last"]:
        target = _strided(f["destination"], f["destination_stride"], n)
        post = f["post"]
        name = Post(post).name if post in list(Post) else f"post {post}"
        if post == Post.CELL:
            second = "" if f["second"] == NO_SECOND else f" and {place_text(f['second'])}"
            what = f"{name} c[{f['cell']}] qc {f['shift']} qh {f['qh']} to {target}{second}"
        elif post == Post.I8:
            low = -127 if f["second"] >> 7 & 1 else 0
            what = f"{name} shift {f['shift']} in {low}..{f['second'] & 127} to {target}"
        elif post == Post.I16:
            what = f"{name} to c[{f['destination']}] of the output"
        else:
            what = name
        texts.append(f"ends {_vectors(f['last'], n)}: {what}")
    return texts


def _lookup(f: dict[str, int]) -> list[str]:
    source = f"constant at {f['unit']}" if f["constant"] else f"row of the token from {f['unit']}"
    return [source, f"{f['units']} units", f"to {place_text(f['destination'])}"]


def _joint(f: dict[str, int]) -> list[str]:
    return [
        f"{f['cell_units']} cell units",
        f"encoder c[{f['encoder']}]",
        f"prediction c[{f['prediction']}]",
        f"shift {f['shift']}",
        f"to {place_text(f['destination'])}",
    ]
