# SPDX-License-Identifier: Apache-2.0
"""Programs with an instruction that cannot run, and what is to be expected of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gharial.isa.faults import Fault, Unit
from gharial.isa.header import HEADER
from gharial.isa.instructions import MATVEC, Opcode
from sim.uvm.program.drawn import SECTIONS, DrawnProgram

TILE_BYTES_FIELD = "weight_bytes"


@dataclass(frozen=True)
class Stop:
    """Where a section stops: the fault, who finds it, and the instruction's number in the code space."""

    fault: Fault
    unit: Unit
    number: int


def stops(program: DrawnProgram, tile_bytes: int) -> dict[str, Stop]:
    """The first instruction of each section that cannot run: an undefined opcode, or weights that are not there.

    Of all that docs/isa.md refuses, these two are what `damaged` makes.
    """
    found = {}
    tiles = program.header[TILE_BYTES_FIELD] // tile_bytes
    for section in SECTIONS:
        for at, row in enumerate(program.instructions(section)):
            number, fields = program.header[f"{section}_first"] + at, MATVEC.unpack(row)
            if fields["opcode"] not in list(Opcode):
                found[section] = Stop(Fault.BAD_OPCODE, Unit.SEQUENCER, number)
            elif fields["opcode"] != Opcode.MATVEC:
                continue
            elif fields["tile"] + fields["row_groups"] * fields["col_tiles"] > tiles:
                found[section] = Stop(Fault.ADDRESS, Unit.SEQUENCER, number)
            if section in found:
                break
    return found


def damaged(program: DrawnProgram, section: str, fault: Fault, rng: np.random.Generator) -> DrawnProgram:
    """The program with one instruction of a section made such that it faults."""
    words = np.frombuffer(program.images["code"], "<u4").copy()
    rows = words[HEADER.words :].reshape(-1, 8)
    first, count = program.header[f"{section}_first"], program.header[f"{section}_count"]
    if fault == Fault.BAD_OPCODE:
        rows[first + int(rng.integers(count)), 0] ^= np.uint32(0xC0)
    else:
        products = [n for n in range(first, first + count) if int(rows[n, 0]) & 0xFF == Opcode.MATVEC]
        rows[int(rng.choice(products)), 1] |= np.uint32(1 << 20)
    return program.with_code(words)
