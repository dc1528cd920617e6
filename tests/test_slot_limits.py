# SPDX-License-Identifier: Apache-2.0
"""Where weights lie in memory, slots and banks of joint_enc are computed on in places of limited size: START, verifier
and compiler refuse what is larger."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from compiled import program
from random_checkpoint import SMALL

from gharial.devices.base import Device
from gharial.devices.emulator import open_emulator
from gharial.errors import BadInput
from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION, DESCRIPTOR, Flag, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import HEADER, ProgramSpace
from gharial.program import Program, verify

reference = pytest.importorskip("sim.reference", reason="needs a source checkout")

CONFIG = config("tiny-batch")
RING, DONE, CHUNK, STATE, PLACES = (
    0,
    1024,
    4096,
    1 << 20,
    {ProgramSpace.WEIGHTS: 2 << 20, ProgramSpace.EMBEDDING: 3 << 20},
)
LIMITS = [
    (15, {"enc_a_units": CONFIG.enc_a_units}),
    (15, {"enc_c_units": CONFIG.enc_c_units}),
    (16, {"pred_a_units": CONFIG.pred_a_units}),
    (16, {"pred_c_units": CONFIG.pred_c_units}),
    (17, {"joint_enc_units": CONFIG.pred_c_units}),
]


def changed(made: Program, fields: dict[str, int]) -> Program:
    """The program with other fields in its header."""
    words = np.frombuffer(made.sections["code"], "<u4").copy()
    words[: HEADER.words] = HEADER.pack(**(HEADER.unpack(words[: HEADER.words]) | fields))
    words[HEADER.words - 1] = zlib.crc32(words[: HEADER.words - 1].tobytes())
    return Program(made.manifest, made.sections | {"code": words.tobytes()})


class Host:
    """Rings of eight commands."""

    def __init__(self, device: Device) -> None:
        self.device, self.tail = device, 0
        for register, value in ((reg.CMD_LOG2, 3), (reg.CPL_BASE_LO, DONE), (reg.CPL_LOG2, 3), (reg.CONTROL, 1)):
            device.write_register(register.offset, value)

    def run(self, operation: Operation, **fields: int) -> dict[str, int]:
        words = DESCRIPTOR.pack(operation=operation, **fields)
        words[-1] = zlib.crc32(words[:-1].tobytes())
        self.device.write_memory(RING + 64 * (self.tail % 8), words.tobytes())
        self.tail += 1
        self.device.ring_doorbell(self.tail)
        assert self.device.wait(self.tail, 5)
        self.device.write_register(reg.CPL_HEAD.offset, self.tail)
        raw = self.device.read_memory(DONE + 32 * ((self.tail - 1) % 8), 32)
        return COMPLETION.unpack(np.frombuffer(raw, "<u4"))

    def start(self, made: Program) -> tuple[int, int, int]:
        for space in ProgramSpace:
            data = made.sections[space.name.lower()]
            address = PLACES.get(space, CHUNK)
            self.device.write_memory(address, data)
            done = self.run(Operation.LOAD, flags=Flag.IN_PLACE if space in PLACES else 0, entry_lo=address,
                            bytes=len(data), space=space, body_crc=zlib.crc32(data))  # fmt: skip
            assert done["status"] == 0, done
        bases = {"entry_lo": PLACES[ProgramSpace.EMBEDDING], "feature_lo": PLACES[ProgramSpace.WEIGHTS]}
        done = self.run(Operation.START, **bases, result_lo=STATE)
        return done["status"], done["unit"], done["detail"]


@pytest.mark.parametrize("make", [open_emulator, reference.ReferenceDevice], ids=["emulator", "reference"])
def test_start_checks_them(make: Callable[..., Device]) -> None:
    made = program(3, "tiny-batch")
    host = Host(make(CONFIG) if make is open_emulator else make(CONFIG, made.manifest))
    room = {"enc_c_units": CONFIG.enc_c_units}  # for two banks
    for word, fields in LIMITS:
        for more in (1, 0):
            beyond = {key: value + more for key, value in fields.items()}
            status, unit, detail = host.start(changed(made, (room if word == 17 else {}) | beyond))
            if more:
                assert (status, unit, detail) == (Fault.BAD_PROGRAM, Unit.HOST, word), beyond
            else:  # the reference model goes on to see that it is another program
                assert (status, detail) in ((0, 0), (Fault.BAD_PROGRAM, 3), (Fault.BAD_PROGRAM, 17)), beyond
    assert host.start(made) == (0, 0, 0)
    assert host.device.read_register(reg.ENC_SLOTS.offset) == CONFIG.enc_slots
    assert host.device.read_register(reg.PRED_SLOTS.offset) == CONFIG.pred_slots


@pytest.mark.parametrize(("word", "fields"), LIMITS, ids=str)
def test_the_verifier_checks_them(word: int, fields: dict[str, int]) -> None:
    (name,) = fields
    beyond = {"enc_c_units": CONFIG.enc_c_units} | {name: fields[name] + 1}
    with pytest.raises(BadInput, match=f"{name} is out of range"):
        verify(changed(program(3, "tiny-batch"), beyond))


def test_the_compiler_checks_them() -> None:
    with pytest.raises(BadInput, match=r"a state slot needs \d+ bytes, 256 there"):
        program(1, "tiny-batch", replace(SMALL, pred_hidden=200, pred_layers=2))
    with pytest.raises(BadInput, match=r"a bank of joint_enc needs \d+ bytes, 1024 there"):
        program(1, "tiny-batch", replace(SMALL, joint=520))
