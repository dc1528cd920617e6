# SPDX-License-Identifier: Apache-2.0
"""Instructions that the RTL cannot run: the fault of the emulator, at the same instruction, and what is left then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from emulator_program import Images, network
from rtl_pair import BOTH, HALTED, HAS_PROGRAM, NONE, START, TOKEN, Fields, Pair, fault
from test_emulator_opcodes import BAD_OPCODES, BAD_OPERANDS

from gharial.devices.emulator import open_emulator
from gharial.isa import _registers as reg
from gharial.isa.commands import Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import ProgramSpace

SECTIONS = ("code", "weights", "scales", "biases", "tables", "embedding")
Case = tuple[str, int, Any]


IMAGES = {name: network(config(name), np.random.default_rng(7))[0] for name in BOTH}


@pytest.fixture(scope="module", params=BOTH)
def assembled(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """A hand-made program, beside the emulator, which runs instructions."""
    pair = Pair(open_emulator(config(request.param)))
    pair.load(dict(zip(SECTIONS, images(pair).spaces, strict=True)))
    yield pair
    pair.close()


def with_code(pair: Pair, code: np.ndarray) -> Fields:
    """Another code for the same program; START's completion."""
    assert pair.load_chunk(ProgramSpace.CODE, 0, code.tobytes())["status"] == 0
    return pair.start()


def images(pair: Pair) -> Images:
    """The program."""
    return IMAGES[pair.config.name]


def altered_code(pair: Pair, case: Case) -> np.ndarray:
    """Its code with one instruction altered."""
    section, index, change = case
    words = np.frombuffer(images(pair).spaces[0], "<u4").copy()
    number = images(pair).header[f"{section}_first"] + index
    change(words[64 + 8 * number : 72 + 8 * number])
    return words


def gives_logits(header: Fields, code: np.ndarray) -> bool:
    """Whether section joint has what ends it: a LOGIT that its one vector does not skip. Without, the RTL waits for
    a best class until the watchdog ends it."""
    words = code[64 + 8 * header["joint_first"] :].reshape(-1, 8)[: header["joint_count"], 0]
    return any(
        word & 0xFF == 1 and word >> 8 & 7 == 4 and word >> 11 & 3 != 1 and word >> 21 & 1 for word in words.tolist()
    )


def prepared(pair: Pair, case: Case) -> int:
    """The program with an instruction altered, some slots live; the instruction's number."""
    section, index, _ = case
    assert with_code(pair, altered_code(pair, case))["status"] == 0
    for prediction in (False, True):
        pair.slots(Operation.RESET, [0, 1, 2], prediction)
    pair.flush()
    return int(images(pair).header[f"{section}_first"]) + index


def steps(pair: Pair, slots: list[int], **fields: int) -> list[dict[str, Any]]:
    features = np.random.default_rng(0).integers(-9, 10, (2, pair.header["feature_bytes"]))
    return [{"slot": n, "features": features} | fields for n in slots]


def alive(pair: Pair) -> list[list[int]]:
    """Live slots among the first eight, of both kinds, the same on both devices."""
    return [[n for n in range(8) if pair.live(n, prediction)] for prediction in (False, True)]


def test_instructions_that_are_not_defined(assembled: Pair) -> None:
    """The command completes with the fault and halts; those behind stay in the ring or are given up."""
    pair = assembled
    for section, index, change in BAD_OPCODES:
        number = prepared(pair, (section, index, change))
        if section == "encode":
            done = pair.steps(Operation.ENCODE, steps(pair, [0, 1]))
        else:  # entry 0 does not run section predict; the joint runs for both
            none = {"kind": NONE, "source": 0, "destination": 0}
            done = pair.decode([none, {"kind": TOKEN, "source": 1, "destination": 2, "token": 3}])
        assert fault(done) == (Fault.BAD_OPCODE, Unit.SEQUENCER, int(section == "predict"), number)
        behind = pair.descriptor(Operation.NOP)
        pair.put(behind)
        pair.put(behind)
        for side in pair.sides:
            side.device.ring_doorbell(pair.tail)
            assert side.wait(pair.tail)
        pair.rtl.device.advance(2000)  # type: ignore[attr-defined]
        for side in pair.sides:
            word = HALTED | HAS_PROGRAM | Fault.BAD_OPCODE << 8 | Unit.SEQUENCER << 16
            assert side.read(reg.STATUS) == word, (section, index)
            assert side.read(reg.FAULT_DETAIL) == number
            assert side.read(reg.FAULT_TAG) == done["tag"]
            assert side.read(reg.IRQ_STATUS) == 2
            assert side.read(reg.CPL_TAIL) == pair.tail - 2
        found = pair.rtl.take()
        assert {k: found[k] for k in ("status", "tag", "index", "detail")} \
            == {k: done[k] for k in ("status", "tag", "index", "detail")}  # fmt: skip
        pair.pending.clear()
        pair.anew()
        assert alive(pair) == ([[2], [0, 1, 2]] if section == "encode" else [[0, 1, 2], [1]])


def test_operands_outside_their_space(assembled: Pair) -> None:
    """The command fails and frees its destinations; nothing halts, and others go on."""
    pair = assembled
    for section, index, change in BAD_OPERANDS:
        number = prepared(pair, (section, index, change))
        if section == "encode":
            pair.steps(Operation.ENCODE, steps(pair, [0]))
        else:
            pair.decode([{"slot": 1, "kind": TOKEN, "source": 0, "destination": 0, "token": 2}], k=3)
        (done,) = pair.flush()
        assert fault(done) == (Fault.ADDRESS, Unit.SEQUENCER, 0, number), (section, index)
        assert alive(pair) == ([[1, 2], [0, 1, 2]] if section == "encode" else [[0, 1, 2], [1, 2]])
        assert pair.rtl.read(reg.STATUS) == 1 | HAS_PROGRAM


def test_what_follows_a_fault_of_an_instruction(assembled: Pair) -> None:
    """In a section that only some entries run, the others run; a command behind that needs a lost slot fails too, and
    writes nothing after its completion."""
    pair = assembled
    section, index, change = next(case for case in BAD_OPERANDS if case[0] == "predict")
    number = prepared(pair, (section, index, change))
    none = {"kind": NONE, "source": 0, "destination": 0}
    token = {"kind": TOKEN, "source": 1, "destination": 1, "token": 3}
    pair.decode([none, token], k=3)
    pair.decode([{"slot": 1, "kind": NONE, "source": 2, "destination": 2}], k=3)
    pair.decode([none | {"source": 1, "destination": 1}], k=3)  # lost
    pair.decode([{"slot": 1, "kind": NONE, "source": 2, "destination": 2}], k=2)
    found = pair.flush()
    assert fault(found[0]) == (Fault.ADDRESS, Unit.SEQUENCER, 1, number)
    assert [fault(c) for c in found[1:]] == [(0, 0, 0, 0), (Fault.BAD_SLOT, Unit.SEQUENCER, 0, 1), (0, 0, 0, 0)]
    assert alive(pair) == [[0, 1, 2], [2]]
    # A step whose tokens are being written when it fails.
    for prediction in (False, True):
        pair.slots(Operation.RESET, [0, 1, 2], prediction)
    pair.steps(Operation.GREEDY, [e | {"prediction": e["slot"]} for e in steps(pair, [0, 1, 2])], k=3)
    pair.flush()
    alive(pair)


@pytest.mark.parametrize("number", range(2))
def test_random_instructions(assembled: Pair, number: int, seed: int) -> None:
    """Bits flipped in good instructions, and noise: the RTL finds the same faults as the emulator, at the same
    instruction. What runs gives whatever it gives: it may break the rules of what may overlap."""
    pair, random = assembled, np.random.default_rng([seed, number])
    outcomes: dict[Fault, int] = {}
    certain = [None, BAD_OPCODES[0], BAD_OPERANDS[0]]  # the outcomes that must be among those
    for trial in range(-len(certain), 110):
        case = certain[trial] if trial < 0 else None
        code = altered_code(pair, case) if case else np.frombuffer(images(pair).spaces[0], "<u4").copy()
        instructions = code[64:].reshape(-1, 8)
        for _ in range(int(random.integers(1, 4)) if trial >= 0 else 0):
            word, value = int(random.integers(8)), int(random.integers(1 << 32))
            row = instructions[int(random.integers(len(instructions)))]
            if trial % 4 == 0:
                row[word] = value & int(random.choice([0xFF, 0xFFFF, 0xFFFF0000, 0xFFFFFFFF]))
            else:
                row[word] ^= 1 << int(random.integers(32))
        if not gives_logits(images(pair).header, code):
            continue
        assert with_code(pair, code)["status"] == 0
        for prediction in (False, True):
            pair.slots(Operation.RESET, [0, 1], prediction)
        pair.flush()
        for operation, entries in (
            (Operation.ENCODE, steps(pair, [0])),
            (Operation.DECODE, [{"kind": TOKEN, "source": 0, "destination": 1, "token": 5}]),
            (Operation.DECODE, [{"kind": START, "source": 0, "destination": 1}]),
            (Operation.GREEDY, [e | {"prediction": 1, "reset": 1} for e in steps(pair, [1])]),
        ):
            if operation == Operation.DECODE:
                expected = pair.decode(entries, k=1)
            else:
                expected = pair.steps(operation, entries, k=1)
            pair.ring()
            found = pair.rtl.take()
            assert fault(found) == fault(expected), trial
            outcomes[Fault(found["status"])] = outcomes.get(Fault(found["status"]), 0) + 1
            pair.pending.clear()
            if found["status"] == Fault.BAD_OPCODE:
                pair.anew()
                break
    print(f"outcomes: {outcomes}")
    assert {Fault.NONE, Fault.ADDRESS, Fault.BAD_OPCODE} <= set(outcomes)
