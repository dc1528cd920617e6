# SPDX-License-Identifier: Apache-2.0
"""The verifier: a program that passes does what its manifest says, in any implementation of docs/isa.md.

The compiler has what it makes verified, and a program file is verified when it is read.
"""

from __future__ import annotations

from gharial.errors import BadInput
from gharial.isa.instructions import Opcode
from gharial.program.code import Instruction, decode
from gharial.program.flow import Flow, Transducer
from gharial.program.hazards import SectionOrder
from gharial.program.manifest import SECTIONS, check_identity, check_manifest
from gharial.program.operands import Checker, Effect, Memory
from gharial.program.products import Products, Sums
from gharial.program.program import Program
from gharial.program.spaces import check_data, check_header


def verify(program: Program) -> None:
    """Check manifest, header, numbers and every instruction of a program.

    Raises:
        BadInput: the first thing that does not hold; where it is an instruction, it is named by section, index from 0
            and opcode.
    """
    config = check_identity(program.manifest, program.where)
    sizes = {name: len(data) for name, data in program.sections.items()}
    check_manifest(program.manifest, config, sizes, program.where)
    check_header(program)
    check_data(program)
    code = decode(program)
    products = Products(program)
    effects = {name: _effects(program, name, code[name]) for name in SECTIONS}
    for name in SECTIONS:
        for vectors in _entries(program, name):
            _run(program, products, name, code[name], effects[name], vectors)
    _check_apart(program, code, effects)
    products.check_trace(code)
    if Transducer.describes(program):
        network = Transducer(program)
        network.check_slots()
        for name in SECTIONS:
            for vectors in _entries(program, name):
                _follow(Flow(network, name, vectors), products, code[name], vectors)


def _entries(program: Program, section: str) -> range:
    """Numbers of feature vectors that an entry may have, a full step first; without features there is one case."""
    return range(program.header["vectors"] if section == "encode" else 1, 0, -1)


def _effects(program: Program, section: str, code: list[Instruction]) -> list[Effect]:
    checker = Checker(program, section)
    return [checker.effect(instruction) for instruction in code]


def _run(
    program: Program,
    products: Products,
    section: str,
    code: list[Instruction],
    effects: list[Effect],
    vectors: int,
) -> None:
    """Go through a section as an entry of that many feature vectors does: order and products."""
    header = program.header
    features = None
    if section == "encode":
        features = (header["feature_unit"], header["feature_bytes"] // program.config.cols, header["vectors"])
    order = SectionOrder(section, Checker(program, section).room, features, program.where)
    sums = Sums(products, full=vectors == _entries(program, section)[0])
    for instruction, effect in zip(code, effects, strict=True):
        effective = instruction.runs(vectors)
        order.step(instruction, effect, effective)
        if instruction.opcode == Opcode.MATVEC:
            piece = products.piece(instruction)
            if effective:
                sums.step(instruction, piece)
        elif instruction.opcode == Opcode.JOINT:
            products.joint(instruction)
    order.finish()
    sums.finish()


def _follow(flow: Flow, products: Products, code: list[Instruction], vectors: int) -> None:
    """Go through a section once more: does each product read what its layer takes?"""
    for instruction in code:
        if instruction.runs(vectors):
            piece = products.piece(instruction) if instruction.opcode == Opcode.MATVEC else None
            flow.step(instruction, piece)
    flow.finish()


def _check_apart(program: Program, code: dict[str, list[Instruction]], effects: dict[str, list[Effect]]) -> None:
    """Encode shares no scratch unit and no sum group with predict and joint: the two may overlap."""
    header = program.header
    units = header["vectors"] * (header["feature_bytes"] // program.config.cols)
    scratch = set(range(header["feature_unit"], header["feature_unit"] + units))
    sums: set[int] = set()
    for instruction, effect in zip(code["encode"], effects["encode"], strict=True):
        scratch |= _scratch(effect)
        sums |= _sums(instruction)
    for section in ("predict", "joint"):
        for instruction, effect in zip(code[section], effects[section], strict=True):
            both = {"scratch unit": scratch & _scratch(effect), "sum group": sums & _sums(instruction)}
            for what, shared in both.items():
                if shared:
                    where = f"{program.where}: {instruction.name}"
                    raise BadInput(f"uses a {what} that section encode uses too", where, min(shared))


def _scratch(effect: Effect) -> set[int]:
    accesses = (*effect.reads, *effect.writes)
    return {unit for a in accesses if a.memory == Memory.SCRATCH for unit in range(a.start, a.start + a.count)}


def _sums(instruction: Instruction) -> set[int]:
    if instruction.opcode != Opcode.MATVEC:
        return set()
    count = instruction["row_groups"]
    return {
        instruction["sum"] + vector * count + g
        for vector in range(instruction.vectors)
        if not (instruction.has("first", vector) and instruction.has("last", vector))
        for g in range(count)
    }
