# SPDX-License-Identifier: Apache-2.0
"""Every single bit of a program's code flipped: the verifier refuses it, or the flip has no effect."""

from __future__ import annotations

import pytest
from small_program import assemble, manifest
from small_run import transcript

from gharial.errors import BadInput
from gharial.isa.header import HEADER
from gharial.program import Program, disassemble, verify


def single_bit_flips() -> list[tuple[int, Program]]:
    program = assemble(entries=manifest() | {"trace": []})
    good = program.sections["code"]
    flips = []
    for bit in range(8 * HEADER.bytes, 8 * len(good)):
        image = bytearray(good)
        image[bit // 8] ^= 1 << bit % 8
        flips.append((bit, Program(program.manifest, program.sections | {"code": bytes(image)})))
    return flips


def passing(programs: list[tuple[int, Program]]) -> list[tuple[int, Program]]:
    found = []
    for bit, program in programs:
        try:
            verify(program)
        except BadInput:
            continue
        found.append((bit, program))
    return found


def test_every_bit_of_the_code() -> None:
    """A flipped bit is refused, or it does not matter: then the emulator computes the same."""
    emulator = pytest.importorskip("gharial.devices.emulator", reason="the emulator's engine is not built")

    flips = single_bit_flips()
    left = passing(flips)
    assert len(flips) == 14 * 256
    # Fields that the instruction does not use, and waiting for more than is needed.
    assert 0 < len(left) < len(flips) // 4
    expected = transcript(emulator.open_emulator, assemble())
    for bit, program in left:
        found = transcript(emulator.open_emulator, program)
        line = disassemble(program)[(bit - 8 * HEADER.bytes) // 256]
        assert found == expected, f"bit {bit % 256} of an instruction passed: {line}"
