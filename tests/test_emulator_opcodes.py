# SPDX-License-Identifier: Apache-2.0
"""Instructions that the emulator must refuse when it reaches them: undefined ones, and operands outside their space."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from emulator_host import NONE, TOKEN, Host
from emulator_program import Images, network

from gharial.devices.emulator import open_emulator
from gharial.isa import _registers as reg
from gharial.isa.commands import DECODE_ENTRY, ENCODE_ENTRY, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit

IMAGES = network(config("tiny"), np.random.default_rng(7))[0]
SEQUENCER = Unit.SEQUENCER
Outcome = tuple[int, int, int, int]


def outcome(done: dict[str, int]) -> Outcome:
    return done["status"], done["unit"], done["entry"], done["detail"]


def live(host: Host, slot: int, prediction: bool = False) -> bool:
    return host.slots(Operation.SAVE, [slot], prediction)["status"] == Fault.NONE


def encode_entry(**fields: int) -> bytes:
    return ENCODE_ENTRY.pack(**({"vectors": 2} | fields)).tobytes()


def decode_entry(**fields: int) -> bytes:
    return DECODE_ENTRY.pack(**fields).tobytes()


def instruction(section: str, index: int, change: Callable[[np.ndarray], None]) -> Images:
    """The program with one instruction altered."""
    words = np.frombuffer(IMAGES.spaces[0], "<u4").copy()
    number = IMAGES.header[f"{section}_first"] + index
    change(words[64 + 8 * number : 72 + 8 * number])
    return IMAGES.with_code(words.tobytes())


def altered(word: int, value: int, mask: int = 0xFFFFFFFF) -> Callable[[np.ndarray], None]:
    def change(words: np.ndarray) -> None:
        words[word] = int(words[word]) & ~mask | value & mask

    return change


ENCODE_H = 1  # pre_rnn's h part of vector 0: a CELL with a second destination
BAD_OPCODES = [
    ("encode", 0, altered(0, 0, 0xFF)),
    ("encode", 0, altered(0, 4, 0xFF)),
    ("encode", 0, altered(0, 5 << 8, 7 << 8)),
    ("encode", 0, altered(0, 4 << 8, 7 << 8)),  # LOGIT
    ("encode", 0, altered(0, 3 << 11, 3 << 11)),  # predicate
    ("encode", 0, altered(0, 3, 0xFF)),  # JOINT
    ("encode", ENCODE_H, altered(0, 1 << 15 | 3 << 17 | 3 << 21, 1 << 15 | 15 << 17 | 15 << 21)),  # two last bits
    ("encode", 3, altered(0, 0 << 8, 7 << 8)),  # row of a token
    ("predict", 0, altered(0, 2 << 8, 7 << 8)),
    ("joint", 1, altered(0, 1 << 8, 7 << 8)),  # CELL
    ("joint", 1, altered(0, 2 << 8, 7 << 8)),  # I16
    ("predict", 2, altered(0, 1 << 15, 3 << 15)),  # two vectors, CELL
    ("joint", 1, altered(0, 1 << 15, 3 << 15)),  # LOGIT
]


@pytest.mark.parametrize(("section", "index", "change"), BAD_OPCODES)
def test_bad_opcode(section: str, index: int, change: Callable[[np.ndarray], None]) -> None:
    """Halts; the completion says so; commands behind stay; after a reset all but the destination slots is there."""
    host = Host(open_emulator(config("tiny")))
    host.load(instruction(section, index, change))
    number = IMAGES.header[f"{section}_first"] + index
    assert host.slots(Operation.RESET, [0, 1])["status"] == Fault.NONE
    assert host.slots(Operation.RESET, [0, 1, 2], prediction=True)["status"] == Fault.NONE
    if section == "encode":
        words = host.descriptor(Operation.ENCODE, encode_entry())
    else:  # entry 0 does not run section predict; the joint runs for both
        entries = decode_entry(kind=NONE) + decode_entry(kind=TOKEN, source=1, destination=2)
        words = host.descriptor(Operation.DECODE, entries, k=1, stride=20)
    host.post(words)
    host.post(host.descriptor(Operation.NOP))
    host.ring()
    assert outcome(host.take()) == (Fault.BAD_OPCODE, SEQUENCER, int(section == "predict"), number)
    assert host.read(reg.STATUS) == 4 | 8 | Fault.BAD_OPCODE << 8 | SEQUENCER << 16
    assert (host.read(reg.FAULT_DETAIL), host.read(reg.FAULT_TAG)) == (number, int(words[1]))
    assert host.read(reg.IRQ_STATUS) == 2
    assert host.tail - host.read(reg.CMD_HEAD) in (0, 1)  # a device may have read the next one; it is not done
    host.device.reset()
    host.setup()
    assert [live(host, s) for s in (0, 1)] == [section != "encode", True]
    assert [live(host, s, True) for s in (0, 1, 2)] == [section == "encode", True, section == "encode"]


BAD_OPERANDS = [
    ("encode", 0, altered(1, 1 << 31)),  # tile
    ("encode", 0, altered(1, 0xFFFFFFFF)),
    ("encode", 0, altered(2, 0xFFFF, 0xFFFF)),  # row groups
    ("encode", 0, altered(2, 0xFFFF << 16, 0xFFFF << 16)),  # column tiles
    ("encode", 0, altered(3, 0x3FFF, 0xFFFF)),  # source
    ("encode", 0, altered(3, 0xC000, 0xFFFF)),
    ("encode", 0, altered(3, 0xFFFF << 16, 0xFFFF << 16)),  # its stride
    ("encode", 0, altered(6, 0xFFFF, 0xFFFF)),  # sum
    ("encode", 0, altered(7, 0xFFFF, 0xFFFF)),  # scales
    ("encode", 0, altered(7, 0xFFFF << 16, 0xFFFF << 16)),  # biases
    ("encode", ENCODE_H, altered(4, 0x4000, 0xFFFF)),  # h into the source
    ("encode", ENCODE_H, altered(4, 0xBFFF, 0xFFFF)),
    ("encode", ENCODE_H, altered(5, 0xFFFF, 0xFFFF)),  # c
    ("encode", ENCODE_H, altered(5, 0xFFFE << 16, 0xFFFF << 16)),  # second
    ("encode", 6, altered(4, 0x8000, 0xFFFF)),  # I16 has no space
    ("encode", 6, altered(4, 1, 0xFFFF)),  # beyond the bank
    ("predict", 0, altered(1, 1 << 31)),  # embedding
    ("predict", 0, altered(2, 0xFFFF << 16, 0xFFFF << 16)),
    ("predict", 0, altered(4, 0x4000, 0xFFFF)),
    ("joint", 0, altered(2, 0xFFFF, 0xFFFF)),
    ("joint", 0, altered(3, 1, 0xFFFF)),
    ("joint", 0, altered(3, 1 << 16, 0xFFFF << 16)),
    ("joint", 0, altered(4, 0x3FFF, 0xFFFF)),
]


@pytest.mark.parametrize(("section", "index", "change"), BAD_OPERANDS)
def test_operands_outside_their_space(section: str, index: int, change: Callable[[np.ndarray], None]) -> None:
    """Reported by the sequencer when reached; halts nothing."""
    host = Host(open_emulator(config("tiny")))
    host.load(instruction(section, index, change))
    assert host.slots(Operation.RESET, [0])["status"] == Fault.NONE
    assert host.slots(Operation.RESET, [0], prediction=True)["status"] == Fault.NONE
    if section == "encode":
        done = host.send(Operation.ENCODE, encode_entry())
    else:
        done = host.send(Operation.DECODE, decode_entry(kind=TOKEN), k=1)
    assert outcome(done) == (Fault.ADDRESS, SEQUENCER, 0, IMAGES.header[f"{section}_first"] + index)
    assert host.read(reg.STATUS) == 1 | 8
    assert live(host, 0) == (section != "encode")


def test_masks_of_vectors_that_are_not_there() -> None:
    """Their bits, sums and destinations do not matter."""
    host = Host(open_emulator(config("tiny")))
    host.load(instruction("encode", ENCODE_H, altered(0, 14 << 17 | 14 << 21, 14 << 17 | 14 << 21)))
    assert host.send(Operation.ENCODE, encode_entry(reset=1))["status"] == Fault.NONE
