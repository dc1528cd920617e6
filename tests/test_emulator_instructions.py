# SPDX-License-Identifier: Apache-2.0
"""Single instructions of the emulator against plain numpy int64, at the limits of their fields and values."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_host import NONE, START, TOKEN, Host
from emulator_program import Assembler, Images, Ints
from emulator_witness import LIVE, Witness

from gharial.devices.emulator import EmulatorDevice, _engine
from gharial.isa.commands import Mode, Operation
from gharial.isa.configs import Config, config
from gharial.isa.faults import Fault
from gharial.isa.instructions import Post, Predicate, Space, i8_range, operand

ALL_TINY = {"enc_a_units": 64, "enc_c_units": 64, "pred_a_units": 64, "pred_c_units": 64, "joint_enc_unit": 0,
            "joint_enc_units": 32, "joint_pred_unit": 0, "joint_pred_units": 64, "scratch_units": 512,
            "feature_unit": 0, "sum_groups": 128, "classes": 1, "blank": 0, "logit_bits": 8}  # fmt: skip


def start(cfg: Config, images: Images, kernel: str | None = None) -> tuple[Host, Witness]:
    host = Host(EmulatorDevice(cfg, min(cfg.window_bytes, 256 << 20), kernel))
    host.load(images)
    return host, Witness(cfg, images)


def encode_both(host: Host, witness: Witness, features: Ints, bank: int = 0) -> None:
    """One step on a fresh slot 0; the slot must come out the same."""
    assert host.encode([{"slot": 0, "reset": 1, "bank": bank, "features": features}])["status"] == Fault.NONE
    witness.encode(0, features, True, bank)
    if witness.encoder[0].flag == LIVE:
        a, c = host.saved(0)
        np.testing.assert_array_equal(a, witness.encoder[0].a)
        np.testing.assert_array_equal(c, witness.encoder[0].c)


@pytest.mark.parametrize("kernel", _engine.kernels())
def test_requantise_at_its_limits(kernel: str, seed: int) -> None:
    """Every k that six bits hold, extreme multipliers and biases, sums from nothing to 16384 products of 127 x 127."""
    cfg, rng = config("kv260"), np.random.default_rng(seed)
    columns = 512 * cfg.cols  # all that a scratch holds
    extreme = np.array([0, 1, 127, 128, (1 << 16) - 1, 1 << 16, (1 << 17) - 1])
    matrix = rng.integers(-127, 128, (cfg.rows, columns))
    matrix[: cfg.rows // 2] = rng.choice([-127, 127], (cfg.rows // 2, 1))
    matrix[1] = 0
    matrix[1, 0] = 1
    a = Assembler(cfg)
    tile = a.tiles(matrix)
    for index, k in enumerate(range(-32, 32)):
        any_m, any_b = rng.integers(0, 1 << 17, cfg.rows), rng.integers(-(1 << 26), 1 << 26, cfg.rows)
        m = np.where(rng.random(cfg.rows) < 0.6, rng.choice(extreme, cfg.rows), any_m)
        b = np.where(rng.random(cfg.rows) < 0.3, rng.choice([-(1 << 30), 0, 1 << 30], cfg.rows), any_b)
        a.matvec("encode", matrix, tile=tile, first=1, last=1, post=Post.I16, source=0, destination=4 * index,
                 scale_group=a.scale(m, np.full(cfg.rows, k)), bias_group=a.bias(b))  # fmt: skip
    images = a.build(**ALL_TINY | {"scratch_units": 512, "vectors": 1, "feature_bytes": columns, "enc_c_units": 512,
                                   "joint_enc_units": 256, "sum_groups": 0, "pred_a_units": 1, "pred_c_units": 0,
                                   "joint_pred_units": 0})  # fmt: skip
    host, witness = start(cfg, images, kernel)
    host.feature_address, host.result_address = 1 << 16, 1 << 18
    for features in (np.full((1, columns), 127), np.full((1, columns), -127), rng.integers(-128, 128, (1, columns)),
                     np.eye(1, columns, dtype=np.int64), np.zeros((1, columns), np.int64)):  # fmt: skip
        encode_both(host, witness, features, bank=1)


@pytest.mark.parametrize("kernel", _engine.kernels())
def test_masks_and_sums(kernel: str, seed: int) -> None:
    """Four vectors, every pair of masks: sums that start, go on, are kept, are finished; outputs at their strides."""
    cfg, rng = config("tiny"), np.random.default_rng(seed)
    for _ in range(24):
        a = Assembler(cfg)
        groups, tiles = int(rng.integers(1, 4)), int(rng.integers(1, 9))
        rows, columns = groups * cfg.rows, tiles * cfg.cols
        for part in range(3):
            a.matvec(
                "encode", rng.integers(-127, 128, (rows, columns)), vectors_less_1=3, sum=5,
                first=int(rng.integers(16)) if part else 15, last=int(rng.integers(16)) if part < 2 else 15,
                post=Post.I8, second=i8_range(127, True), shift=8, source=operand(Space.SCRATCH, 3 * part),
                source_stride=int(rng.integers(0, 12)), destination=operand(Space.DESTINATION, 0),
                destination_stride=rows // cfg.cols, scale_group=a.scale(*_scales(rng, rows)),
                bias_group=a.bias(rng.integers(-(1 << 24), 1 << 24, rows)),
            )  # fmt: skip
        images = a.build(**ALL_TINY | {"vectors": 1, "feature_bytes": 256})
        host, witness = start(cfg, images, kernel)
        encode_both(host, witness, rng.integers(-128, 128, (1, 256)))


def ones(a: Assembler, rows: int, k: int = -1) -> dict[str, int]:
    """Scales under which a sum of products comes out times 2^(-1 - k)."""
    return {"scale_group": a.scale(np.full(rows, 1 << 16), np.full(rows, k))}


def _scales(rng: np.random.Generator, rows: int) -> tuple[Ints, Ints]:
    return rng.integers(1 << 16, 1 << 17, rows), rng.integers(0, 6, rows)


def test_i8_ranges(seed: int) -> None:
    """Every shift, signed and not, ceilings at their ends; into scratch, and from there into the slot."""
    cfg, rng = config("tiny"), np.random.default_rng(seed)
    a = Assembler(cfg)
    settings = [(s, high, signed) for s in range(9) for high in (1, 64, 127) for signed in (False, True)]
    for index, (shift, high, signed) in enumerate(settings):
        matrix = rng.integers(-127, 128, (16, 16))
        a.matvec("encode", matrix, first=1, last=1, post=Post.I8, shift=shift, second=i8_range(high, signed), source=0,
                 destination=operand(Space.DESTINATION, 4 * index), scale_group=a.scale(*_scales(rng, 16)),
                 bias_group=a.bias(rng.integers(-(1 << 23), 1 << 23, 16)))  # fmt: skip
    units = 4 * len(settings)
    images = a.build(**ALL_TINY | {"vectors": 1, "feature_bytes": 16, "enc_a_units": units})
    host, witness = start(cfg, images)
    for _ in range(4):
        encode_both(host, witness, rng.integers(-128, 128, (1, 16)))


@pytest.mark.parametrize("qc", range(8, 16))
def test_cell(qc: int, seed: int) -> None:
    """Gates over all of int16, c at its limits, every qh; h to the slot and to a second place, c read and written."""
    cfg, rng = config("tiny"), np.random.default_rng(seed)
    a = Assembler(cfg)
    for index, qh in enumerate(range(5, 15)):
        y = rng.integers(-32768, 32768, 64)
        y[:8] = rng.choice([-32768, -1, 0, 1, 32767], 8)
        bias = (y << 10) + rng.integers(-512, 512, 64)
        a.matvec("predict", np.zeros((64, 4), np.int64), first=1, last=1, post=Post.CELL, shift=qc, qh=qh,
                 source=operand(Space.SOURCE, 0), destination=operand(Space.DESTINATION, 4 * index),
                 second=operand(Space.DESTINATION, 40 + 4 * index), cell=4 * index,
                 scale_group=a.scale(np.zeros(64, int), np.zeros(64, int)), bias_group=a.bias(bias))  # fmt: skip
    a.embed(np.zeros((1, 4), np.int64))
    images = a.build(**ALL_TINY | {"vectors": 1, "feature_bytes": 4, "pred_a_units": 80, "tokens": 1})
    host, witness = start(cfg, images)
    for slot in range(3):
        c = rng.integers(-32768, 32768, 64 * cfg.cell_unit)
        c[::5] = rng.choice([-32768, 0, 32767], len(c[::5]))
        host.device.write_memory(host.result_address, bytes(80 * cfg.cols) + c.astype("<i2").tobytes())
        assert host.slots(Operation.RESTORE, [slot], prediction=True)["status"] == Fault.NONE
        witness.prediction[slot] = witness.slot("pred")
        witness.prediction[slot].c[:] = c
        for target in (5, slot):  # from one slot into another, and in place
            entry = {"kind": TOKEN, "source": slot, "destination": target, "token": 0, "no_joint": 1}
            assert host.decode([entry])["status"] == Fault.NONE
            witness.predict(slot, target, 0)
            _same(host, witness, target)


def test_cell_goes_on_from_its_state(seed: int) -> None:
    """Steps in place and into other slots, with c and h from the slot before."""
    cfg, rng = config("tiny"), np.random.default_rng(seed)
    a = Assembler(cfg)
    a.embed(rng.integers(-127, 128, (8, 64)))
    a.lookup("predict", units=16, destination=0)
    a.matvec("predict", rng.integers(-127, 128, (256, 64)), first=1, source=operand(Space.SOURCE, 0),
             scale_group=a.scale(*_scales(rng, 256)), bias_group=a.bias(np.zeros(256, int)))  # fmt: skip
    a.matvec("predict", rng.integers(-127, 128, (256, 64)), last=1, post=Post.CELL, shift=12, qh=7, source=0,
             destination=operand(Space.DESTINATION, 0), scale_group=a.scale(*_scales(rng, 256)))  # fmt: skip
    images = a.build(**ALL_TINY | {"vectors": 1, "feature_bytes": 4, "tokens": 8})
    host, witness = start(cfg, images)
    slots = [0]
    for step in range(12):
        source, target = int(rng.choice(slots)), int(rng.integers(4))
        token = int(rng.integers(8))
        kind = START if step == 0 else TOKEN
        entry = {"kind": kind, "token": token, "source": source, "destination": target, "no_joint": 1}
        assert host.decode([entry])["status"] == Fault.NONE
        witness.predict(None if kind == START else source, target, None if kind == START else token)
        slots = sorted({*slots, target} if step else {target})
        _same(host, witness, target)


def _same(host: Host, witness: Witness, slot: int) -> None:
    a, c = host.saved(slot, prediction=True)
    np.testing.assert_array_equal(a, witness.prediction[slot].a)
    np.testing.assert_array_equal(c, witness.prediction[slot].c)


def test_predicates() -> None:
    """Constants written only for entries with more, or at most, n vectors."""
    cfg = config("tiny")
    a = Assembler(cfg)
    for n in range(4):
        for offset, predicate in ((0, Predicate.ALWAYS), (4, Predicate.MORE), (8, Predicate.AT_MOST)):
            unit = a.embed(np.full((1, 4), 100 + n))
            a.lookup("encode", constant=1, unit=unit, units=1, predicate=predicate, threshold=n,
                     destination=operand(Space.DESTINATION, offset + n))  # fmt: skip
    images = a.build(**ALL_TINY | {"vectors": 4, "feature_bytes": 4, "enc_a_units": 12})
    host, witness = start(cfg, images)
    for vectors in (4, 3, 2, 1):
        encode_both(host, witness, np.zeros((vectors, 4), np.int64))
        a_part = witness.encoder[0].a.reshape(3, 4, 4)[:, :, 0]
        wanted = [[True] * 4, [vectors > n for n in range(4)], [vectors <= n for n in range(4)]]
        np.testing.assert_array_equal(a_part > 0, wanted)
    # All four at once, so that each instruction has an effect for some entries only.
    entries = [{"slot": v, "reset": 1, "features": np.zeros((v, 4), np.int64)} for v in (1, 2, 3, 4)]
    assert host.encode(entries)["status"] == Fault.NONE
    np.testing.assert_array_equal(host.saved(4)[0], [x for n in range(4) for x in [100 + n] * 4] * 2 + [0] * 16)


def test_features_of_missing_vectors_are_zero() -> None:
    """The second vector's place shows in the bank; DECODE of the ended slot reads it."""
    cfg = config("tiny")
    a = Assembler(cfg)
    a.matvec("encode", np.eye(16, 32, k=16, dtype=np.int64) * 5, first=1, last=1, post=Post.I16, source=2,
             **ones(a, 16), bias_group=a.bias(np.full(16, 5 << 10)))  # fmt: skip
    a.joint(cell_units=4, destination=0)
    a.matvec("joint", np.eye(16, dtype=np.int64), first=1, last=1, post=Post.LOGIT, source=0,
             **ones(a, 16), bias_group=a.bias(np.zeros(16, int)))  # fmt: skip
    images = a.build(**ALL_TINY | {"vectors": 2, "feature_bytes": 16, "feature_unit": 2, "joint_enc_units": 4,
                                   "pred_c_units": 4, "joint_pred_units": 4, "classes": 16})  # fmt: skip
    host, _ = start(cfg, images)
    assert host.slots(Operation.RESET, [0], prediction=True)["status"] == Fault.NONE
    for vectors, value in ((2, 5 + 15), (1, 5)):
        entry = {"slot": 0, "reset": 2 - vectors ^ 1, "features": np.full((vectors, 16), 3), "bank": vectors - 1}
        assert host.encode([entry])["status"] == Fault.NONE
        joint = {"slot": 0, "bank": vectors - 1, "kind": NONE, "source": 0, "destination": 0}
        assert host.decode([joint], mode=Mode.ALL)["status"] == Fault.NONE
        assert host.decode_result(0, 1, Mode.ALL)["logits"] == [value] * 16


@pytest.mark.parametrize("shift", range(9))
def test_joint(shift: int, seed: int) -> None:
    """Sums of 17 bits, both banks, offsets within joint_enc and joint_pred; logits show z."""
    cfg, rng = config("tiny"), np.random.default_rng(seed)
    a = Assembler(cfg)
    for part in range(2):
        a.joint(cell_units=4, encoder=4 * (1 - part), prediction=4 * part, destination=4 * part, shift=shift)
    a.matvec("joint", np.eye(32, dtype=np.int64) * 127, first=1, last=1, post=Post.LOGIT, source=0,
             **ones(a, 32, k=0), bias_group=a.bias(np.zeros(32, int)))  # fmt: skip
    images = a.build(**ALL_TINY | {"vectors": 1, "feature_bytes": 4, "joint_enc_unit": 16, "joint_enc_units": 8,
                                   "joint_pred_unit": 8, "joint_pred_units": 8, "classes": 31})  # fmt: skip
    host, witness = start(cfg, images)
    for side, slots, prediction in (("enc", witness.encoder, False), ("pred", witness.prediction, True)):
        slots[0] = witness.slot(side)
        span = 40 << shift
        slots[0].c[:] = np.where(rng.random(len(slots[0].c)) < 0.2, rng.choice([-32768, 32767], len(slots[0].c)),
                                 rng.integers(-span, span, len(slots[0].c)).clip(-32768, 32767))  # fmt: skip
        image = bytes(len(slots[0].a)) + slots[0].c.astype("<i2").tobytes()
        host.device.write_memory(host.result_address, image)
        assert host.slots(Operation.RESTORE, [0], prediction)["status"] == Fault.NONE
    for bank in (0, 1):
        entry = {"slot": 0, "bank": bank, "kind": NONE, "source": 0, "destination": 0}
        assert host.decode([entry], mode=Mode.ALL)["status"] == Fault.NONE
        wanted = witness.joint(0, bank, 0).logits
        assert host.decode_result(0, 1, Mode.ALL)["logits"] == wanted.tolist()
        assert len(set(wanted.tolist())) > 2


def test_lookup_rows(seed: int) -> None:
    """Rows of two tables, the zero row at the start, and a constant that stays."""
    cfg, rng = config("tiny"), np.random.default_rng(seed)
    a = Assembler(cfg)
    a.embed(np.full((1, 4), 77))
    rows = rng.integers(-128, 128, (9, 12))
    first = a.embed(rows)
    constant = a.embed(np.arange(1, 9).reshape(1, 8))
    a.lookup("predict", unit=first, units=3, destination=operand(Space.DESTINATION, 2))
    a.lookup("predict", constant=1, unit=constant, units=2, destination=operand(Space.DESTINATION, 0))
    images = a.build(**ALL_TINY | {"vectors": 1, "feature_bytes": 4, "pred_a_units": 5, "tokens": 9})
    host, _ = start(cfg, images)
    entry = {"source": 0, "destination": 0, "no_joint": 1}
    assert host.decode([entry | {"kind": START, "token": 5}])["status"] == Fault.NONE
    assert host.saved(0, prediction=True)[0].tolist() == [*range(1, 9), *[0] * 12]
    for token in range(9):
        assert host.decode([entry | {"kind": TOKEN, "token": token}])["status"] == Fault.NONE
        assert host.saved(0, prediction=True)[0].tolist() == [*range(1, 9), *rows[token]]
