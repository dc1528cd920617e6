# SPDX-License-Identifier: Apache-2.0
"""Random programs and random bytes: valid ones come out as plain numpy says, others must not do harm."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_host import START, TOKEN, Host
from emulator_program import Assembler, Images, network, random_scales, sealed
from emulator_witness import LIVE, Witness

from gharial.devices.emulator import EmulatorDevice, _engine, open_emulator
from gharial.isa import _registers as reg
from gharial.isa.commands import DECODE_ENTRY, DESCRIPTOR, ENCODE_ENTRY, GREEDY_ENTRY, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault
from gharial.isa.header import HEADER
from gharial.isa.instructions import NO_SECOND, Post, Predicate, Space, i8_range, operand

CFG = config("tiny")
SCRATCH, SLOT_A, SLOT_C = 96, 48, 64  # units of a random program
TOKENS = 40
FIELDS = {"vectors": 4, "feature_bytes": 24, "feature_unit": 1, "scratch_units": SCRATCH, "enc_a_units": SLOT_A,
          "enc_c_units": SLOT_C, "pred_a_units": SLOT_A, "pred_c_units": SLOT_C, "joint_enc_unit": 32,
          "joint_enc_units": 16, "joint_pred_unit": 48, "joint_pred_units": 16, "classes": TOKENS, "blank": 0,
          "logit_bits": 9, "sum_groups": 24, "tokens": TOKENS}  # fmt: skip


class Generator:
    """Valid instructions at random; no instruction writes where it reads."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.a = Assembler(CFG)
        self.rows = self.a.embed(rng.integers(-127, 128, (TOKENS, 12)))

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def place(self, section: str, units: int, write: bool) -> tuple[int, range]:
        """An operand of that many units, and where it lies as (memory's first unit + units)."""
        spaces = [Space.SCRATCH, Space.DESTINATION] if write else list(Space)
        space = spaces[self.integer(0, 1 if section == "joint" else len(spaces))]
        size = SCRATCH if space == Space.SCRATCH else SLOT_A
        unit = self.integer(0, size - units + 1)
        base = 0 if space == Space.SCRATCH else 1000  # source and destination may be one slot
        return operand(space, unit), range(base + unit, base + unit + units)

    def apart(self, section: str, units: int, taken: list[range]) -> int:
        """A place to write that is not among those taken; it is taken then."""
        while True:
            field, where = self.place(section, units, write=True)
            if not any(set(where) & set(other) for other in taken):
                taken.append(where)
                return field

    def predicate(self, section: str) -> dict[str, int]:
        if section != "encode":
            return {}
        return {"predicate": self.integer(0, Predicate.AT_MOST + 1), "threshold": self.integer(0, 4)}

    def matvec(self, section: str) -> None:
        groups, tiles = self.integer(1, 5 if section != "joint" else 3), self.integer(1, 10)
        vectors = self.integer(1, 5) if section == "encode" else 1
        rows, columns = groups * CFG.rows, tiles * CFG.cols
        stride = self.integer(0, 3)
        source, where = self.place(section, tiles + stride * (vectors - 1), write=False)
        taken = [where]
        post = self.integer(0, 5)
        while (post in (Post.CELL, Post.I16) and section == "joint") or (post == Post.LOGIT and section != "joint"):
            post = self.integer(0, 5)
        first, last = self.integer(0, 1 << vectors), self.integer(0, 1 << vectors)
        fields: dict[str, int] = {"post": post}
        if post == Post.CELL:
            vectors, last = 1, last & 1
            first &= 1
            destination = self.apart(section, groups, taken)
            fields |= {"cell": self.integer(0, SLOT_C - groups + 1), "shift": self.integer(8, 16),
                       "qh": self.integer(5, 15), "destination": destination, "second": NO_SECOND}  # fmt: skip
            if self.rng.random() < 0.5:
                fields["second"] = self.apart(section, groups, taken)
        elif post == Post.I16:
            step = self.integer(0, 2) * 4 * groups
            room = 16 - 4 * groups - step * (vectors - 1)
            if room < 0:
                return
            fields |= {"destination": self.integer(0, room + 1), "destination_stride": step}
        elif post == Post.I8:
            units = rows // CFG.cols
            step = self.integer(0, 2) * units if units * vectors <= SLOT_A - 12 else 0
            fields |= {"destination": self.apart(section, units + step * (vectors - 1), taken),
                       "destination_stride": step, "shift": self.integer(0, 9),
                       "second": i8_range(self.integer(1, 128), bool(self.integer(0, 2)))}  # fmt: skip
        m, k = random_scales(self.rng, rows, columns)
        self.a.matvec(
            section, self.rng.integers(-127, 128, (rows, columns)), source=source, source_stride=stride,
            vectors_less_1=vectors - 1, first=first, last=last, sum=self.integer(0, 24 - groups * vectors + 1),
            scale_group=self.a.scale(m, k), bias_group=self.a.bias(self.rng.integers(-(1 << 23), 1 << 23, rows)),
            **fields, **self.predicate(section),
        )  # fmt: skip

    def lookup(self, section: str) -> None:
        constant = section != "predict" or self.rng.random() < 0.5
        self.a.lookup(section, constant=int(constant), unit=self.rows, units=3, **self.predicate(section),
                      destination=self.apart(section, 3, []))  # fmt: skip

    def joint(self) -> None:
        units = self.integer(1, 9)
        self.a.joint(cell_units=units, encoder=self.integer(0, 17 - units), prediction=self.integer(0, 17 - units),
                     destination=self.apart("joint", units, []), shift=self.integer(0, 9))  # fmt: skip

    def images(self) -> Images:
        for section in ("encode", "predict", "joint"):
            for _ in range(self.integer(4, 14)):
                choice = self.rng.random()
                if choice < 0.75:
                    self.matvec(section)
                elif choice < 0.9 or section != "joint":
                    self.lookup(section)
                if section == "joint":
                    self.joint()
        return self.a.build(**FIELDS)


@pytest.mark.parametrize("kernel", _engine.kernels())
def test_random_programs(kernel: str, seed: int) -> None:
    for number in range(12):
        rng = np.random.default_rng([seed, number])
        images = Generator(rng).images()
        host = Host(EmulatorDevice(CFG, CFG.window_bytes, kernel))
        host.load(images)
        witness = Witness(CFG, images)
        witness.prediction[2] = witness.slot("pred")
        assert host.slots(Operation.RESET, [2], prediction=True)["status"] == Fault.NONE
        for step in range(3):
            entries = [
                {"slot": s, "reset": int(step == 0), "bank": step % 2,
                 "features": rng.integers(-127, 128, (4 if step < 2 else s + 1, 24))} for s in range(4)
            ]  # fmt: skip
            assert host.encode(entries)["status"] == Fault.NONE
            for e in entries:
                witness.encode(e["slot"], e["features"], step == 0, step % 2)
            joints = [
                {"slot": 0, "kind": TOKEN, "token": int(rng.integers(TOKENS)), "source": 2, "destination": 4},
                {"slot": 1, "kind": TOKEN, "token": int(rng.integers(TOKENS)), "source": 2, "destination": 5},
                {"slot": 3, "kind": START, "token": 3, "source": 2, "destination": 1},
            ]
            assert host.decode([e | {"bank": step % 2} for e in joints], 8)["status"] == Fault.NONE
            for index, e in enumerate(joints):
                start = e["kind"] == START
                before = witness.predict(None if start else 2, e["destination"], None if start else e["token"])
                logits = witness.joint(e["slot"], step % 2, e["destination"], before).logits
                found = host.decode_result(index, 8)
                assert found["logits"] == sorted(logits.tolist(), reverse=True)[:8], number
                assert found["lse"] == witness.log_sum_exp(logits, 16384)
            for prediction, slots in ((False, witness.encoder), (True, witness.prediction)):
                for slot, state in slots.items():
                    if state.flag == LIVE:
                        a, c = host.saved(slot, prediction)
                        np.testing.assert_array_equal(a, state.a, err_msg=f"program {number}")
                        np.testing.assert_array_equal(c, state.c, err_msg=f"program {number}")


def exercise(host: Host, rng: np.random.Generator) -> list[int]:
    """Some commands of each kind; their outcomes. The device may refuse and halt, nothing else."""
    outcomes = []
    header = host.images.header if host.images else {}
    vectors = max(1, header.get("vectors", 1) & 7)
    for operation, entry in (
        (Operation.GREEDY, GREEDY_ENTRY.pack(vectors=vectors, reset=1)),
        (Operation.ENCODE, ENCODE_ENTRY.pack(vectors=1, slot=0)),
        (Operation.DECODE, DECODE_ENTRY.pack(kind=START, source=0, destination=1)),
    ):
        done = host.send(operation, entry.tobytes(), k=1, stride=64, temperature=int(rng.integers(65536)))
        assert done["status"] in list(Fault)
        outcomes.append(done["status"])
        if host.read(reg.STATUS) & 4:
            host.device.reset()
            host.setup()
    return outcomes


def try_program(images: Images, rng: np.random.Generator, kernel: str | None = None) -> list[int]:
    host = Host(EmulatorDevice(CFG, CFG.window_bytes, kernel))
    try:
        host.load(images)
    except AssertionError:  # refused by START, as most are
        assert host.read(reg.STATUS) & 4 == 0
        return []
    return exercise(host, rng)


def test_random_instruction_bytes(seed: int) -> None:
    """Any code behind a good header: bits flipped in good instructions, and plain noise."""
    rng = np.random.default_rng(seed)
    good, _ = network(CFG, rng)
    outcomes: list[int] = []
    for trial in range(150):
        code = np.frombuffer(good.spaces[0], np.uint8).copy()
        if trial % 5:
            at = rng.integers(HEADER.bytes, len(code), int(rng.integers(1, 20)))
            code[at] ^= 1 << rng.integers(0, 8, len(at)).astype(np.uint8)
        else:
            code[HEADER.bytes :] = rng.integers(0, 256, len(code) - HEADER.bytes)
            code[HEADER.bytes :: 32] = rng.integers(1, 4)
        outcomes += try_program(good.with_code(code.tobytes()), rng, str(rng.choice(_engine.kernels())))
    assert {int(Fault.NONE), int(Fault.ADDRESS), int(Fault.BAD_OPCODE)} <= set(outcomes)


def test_random_headers(seed: int) -> None:
    """Sizes that fit the configuration but not the instructions."""
    rng = np.random.default_rng(seed)
    good, _ = network(CFG, rng)
    fields = [k for k in HEADER.fields if k not in ("magic", "version", "config_id", "crc") and "bytes" not in k]
    ran = 0
    for _ in range(150):
        header = dict(good.header)
        for key in rng.choice(fields, int(rng.integers(1, 4))):
            width = HEADER.fields[key].width
            near = [0, 1, header[key] + 1, max(0, header[key] - 1), (1 << width) - 1]
            header[key] = int(rng.choice(near)) % (1 << width)
        code = sealed(HEADER.pack(**header)) + good.spaces[0][HEADER.bytes :]
        ran += bool(try_program(Images([code, *good.spaces[1:]], header), rng))
    assert 0 < ran < 150


def test_random_tables_scales_and_biases(seed: int) -> None:
    """Numbers that no compiler makes: results mean nothing, and are the same with every kernel."""
    rng = np.random.default_rng(seed)
    good, _ = network(CFG, rng)
    for _ in range(10):
        spaces = [good.spaces[0], *(rng.integers(0, 256, len(s)).astype(np.uint8).tobytes() for s in good.spaces[1:])]
        states = []
        for kernel in _engine.kernels():
            host = Host(EmulatorDevice(CFG, CFG.window_bytes, kernel))
            host.load(Images(spaces, good.header))
            exercise(host, np.random.default_rng(1))
            states.append(host.device.read_memory(host.result_address, 4096))
        assert len(set(states)) == 1


def test_random_commands(seed: int) -> None:
    """Descriptors and entries of noise, with right CRCs: the device refuses or runs them, and goes on."""
    rng = np.random.default_rng(seed)
    good, _ = network(CFG, rng)
    host = Host(open_emulator(CFG))
    host.load(good)
    outcomes = set()
    for trial in range(2000):
        fields = {}
        for key, field in DESCRIPTOR.fields.items():
            if rng.random() < 0.1 and key != "crc":
                fields[key] = int(rng.integers(0, 1 << min(field.width, int(rng.integers(1, 33)))))
        operation = int(fields.pop("operation", rng.choice(list(Operation))))
        entry_bits = rng.integers(0, 1 << int(rng.integers(1, 25)), (int(rng.integers(0, 6)), 4))
        done = host.send(operation, entry_bits.astype("<u4").tobytes(), **({"k": 1, "flags": 0} | fields))
        outcomes.add(done["status"])
        if trial % 50 == 0:
            host.load(good)
    assert {0, 1, 2, 3, 5} <= outcomes
    assert not {10, 11, 12, 13} & outcomes
