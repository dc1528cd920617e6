# SPDX-License-Identifier: Apache-2.0
"""Slots of the emulator: RESET, FREE, COPY, SAVE, RESTORE; who may read what; streams that never see one another."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_host import START, TOKEN, Host
from emulator_program import Assembler, Sizes, network

from gharial.devices.emulator import open_emulator
from gharial.isa import _registers as reg
from gharial.isa.commands import Flag, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault
from gharial.isa.instructions import Space, operand

BOTH = pytest.mark.parametrize("prediction", [False, True], ids=["encoder", "prediction"])


@pytest.fixture
def host(seed: int) -> Host:
    cfg = config("tiny")
    images, _ = network(cfg, np.random.default_rng(seed))
    host = Host(open_emulator(cfg))
    host.load(images)
    return host


def content(host: Host, slot: int, prediction: bool) -> bytes:
    a, c = host.saved(slot, prediction)
    return a.tobytes() + c.tobytes()


def size(host: Host, prediction: bool) -> int:
    assert host.images is not None
    h, side = host.images.header, "pred" if prediction else "enc"
    return h[f"{side}_a_units"] * host.config.cols + 2 * h[f"{side}_c_units"] * host.config.cell_unit


def fill(host: Host, slot: int, prediction: bool, seed: int) -> bytes:
    """Put random state into a slot by RESTORE."""
    data = np.random.default_rng(seed + slot).integers(0, 256, size(host, prediction)).astype(np.uint8).tobytes()
    host.device.write_memory(host.result_address, data)
    assert host.slots(Operation.RESTORE, [slot], prediction)["status"] == Fault.NONE
    return data


def status(host: Host, operation: Operation, slot: int | tuple[int, int], prediction: bool) -> tuple[Fault, int]:
    done = host.slots(operation, [slot], prediction)
    return Fault(done["status"]), done["detail"]


@BOTH
def test_save_and_restore(host: Host, prediction: bool, seed: int) -> None:
    """What SAVE wrote, RESTORE brings back, into any slot; A part, then C part, nothing behind."""
    first, second = fill(host, 0, prediction, seed), fill(host, 5, prediction, seed)
    assert (content(host, 0, prediction), content(host, 5, prediction)) == (first, second)
    stride = (size(host, prediction) + 67) // 4 * 4
    host.device.write_memory(host.result_address, b"\xee" * 3 * stride)
    assert host.slots(Operation.SAVE, [5, 0, 5], prediction, [0, stride, 2 * stride])["status"] == Fault.NONE
    raw = host.device.read_memory(host.result_address, 3 * stride)
    for at, data in ((0, second), (stride, first), (2 * stride, second)):
        assert raw[at : at + len(data)] == data
        assert raw[at + len(data) : at + stride] == b"\xee" * (stride - len(data))
    assert host.slots(Operation.RESTORE, [7, 0], prediction, [stride, 0])["status"] == Fault.NONE
    assert content(host, 7, prediction) == first
    assert content(host, 0, prediction) == second


@BOTH
def test_reset_free_copy(host: Host, prediction: bool, seed: int) -> None:
    data = fill(host, 1, prediction, seed)
    assert status(host, Operation.COPY, (1, 2), prediction) == (Fault.NONE, 0)
    assert status(host, Operation.COPY, (1, 1), prediction) == (Fault.NONE, 0)
    assert content(host, 2, prediction) == content(host, 1, prediction) == data
    assert host.slots(Operation.RESET, [1, 3], prediction)["status"] == Fault.NONE
    assert content(host, 1, prediction) == content(host, 3, prediction) == bytes(len(data))
    assert content(host, 2, prediction) == data
    assert status(host, Operation.FREE, 2, prediction) == (Fault.NONE, 0)
    assert status(host, Operation.FREE, 2, prediction) == (Fault.NONE, 0)
    assert status(host, Operation.SAVE, 2, prediction) == (Fault.BAD_SLOT, 2)
    assert status(host, Operation.COPY, (2, 1), prediction) == (Fault.BAD_SLOT, 2)
    assert status(host, Operation.RESET, 2, prediction) == (Fault.NONE, 0)
    assert content(host, 2, prediction) == bytes(len(data))


def test_encoder_and_prediction_slots_are_apart(host: Host, seed: int) -> None:
    first, second = fill(host, 3, False, seed), fill(host, 3, True, seed + 1)
    assert (content(host, 3, False), content(host, 3, True)) == (first, second)
    assert host.slots(Operation.RESET, [3], prediction=True)["status"] == Fault.NONE
    assert content(host, 3, False) == first


@BOTH
def test_numbers_beyond_the_slots(host: Host, prediction: bool) -> None:
    count = host.read(reg.PRED_SLOTS if prediction else reg.ENC_SLOTS)
    assert host.slots(Operation.RESET, [count - 1], prediction)["status"] == Fault.NONE
    for operation in (Operation.RESET, Operation.FREE, Operation.SAVE, Operation.RESTORE):
        assert status(host, operation, count, prediction) == (Fault.BAD_SLOT, count)
    assert status(host, Operation.COPY, (count - 1, count), prediction) == (Fault.BAD_SLOT, count)
    assert status(host, Operation.COPY, (0xFFFF, 0), prediction) == (Fault.BAD_SLOT, 0xFFFF)


@BOTH
def test_hazards_between_entries(host: Host, prediction: bool, seed: int) -> None:
    """A destination that another entry names faults, and nothing is done."""
    data = fill(host, 0, prediction, seed)
    assert host.slots(Operation.RESET, [1, 2, 3], prediction)["status"] == Fault.NONE
    cases = [
        (Operation.RESET, [0, 1, 0], 2, 0),
        (Operation.FREE, [0, 0], 1, 0),
        (Operation.RESTORE, [2, 0, 2], 2, 2),
        (Operation.COPY, [(0, 1), (2, 1)], 1, 1),
        (Operation.COPY, [(0, 1), (1, 2)], 1, 1),
        (Operation.COPY, [(1, 2), (3, 1)], 1, 1),
        (Operation.COPY, [(0, 0), (0, 1)], 1, 0),
    ]
    for operation, slots, entry, slot in cases:
        done = host.slots(operation, slots, prediction)
        assert (done["status"], done["entry"], done["detail"]) == (Fault.HAZARD, entry, slot)
    assert content(host, 0, prediction) == data
    assert content(host, 1, prediction) == bytes(len(data))
    assert host.slots(Operation.COPY, [(0, 1), (0, 2), (3, 3)], prediction)["status"] == Fault.NONE
    assert content(host, 2, prediction) == data


def test_a_bad_entry_undoes_the_good_ones_before(host: Host, seed: int) -> None:
    data = fill(host, 0, False, seed)
    done = host.slots(Operation.RESET, [0, 1, 99])
    assert (done["status"], done["entry"]) == (Fault.BAD_SLOT, 2)
    assert content(host, 0, False) == data
    assert status(host, Operation.SAVE, 1, False) == (Fault.BAD_SLOT, 1)


def test_ended_slots(host: Host) -> None:
    """After a short step: decoded and copied, neither continued nor saved, and made anew by reset."""
    assert host.images is not None
    step = np.zeros((2, host.images.header["feature_bytes"]), np.int64)
    assert host.encode([{"slot": 0, "reset": 1, "features": step[:1], "bank": 1}])["status"] == Fault.NONE
    assert host.encode([{"slot": 0, "features": step}])["status"] == Fault.BAD_SLOT
    assert status(host, Operation.SAVE, 0, False) == (Fault.BAD_SLOT, 0)
    assert status(host, Operation.COPY, (0, 1), False) == (Fault.NONE, 0)
    joint = {"bank": 1, "kind": START, "source": 0, "destination": 0}
    results = []
    for slot in (0, 1):
        assert host.decode([joint | {"slot": slot}], 3)["status"] == Fault.NONE
        results.append(host.decode_result(0, 3))
    assert results[0] == results[1]
    assert host.encode([{"slot": 1, "features": step}])["status"] == Fault.BAD_SLOT  # became as the first: ended
    assert host.encode([{"slot": 1, "features": step, "reset": 1}])["status"] == Fault.NONE
    assert host.encode([{"slot": 1, "features": step}])["status"] == Fault.NONE
    assert host.slots(Operation.FREE, [0])["status"] == Fault.NONE
    assert host.decode([joint | {"slot": 0}])["status"] == Fault.BAD_SLOT


def test_start_frees_all_slots(host: Host) -> None:
    assert host.slots(Operation.RESET, [0, 4])["status"] == Fault.NONE
    assert host.slots(Operation.RESET, [0, 4], prediction=True)["status"] == Fault.NONE
    host.done(Operation.START)
    for prediction in (False, True):
        assert status(host, Operation.SAVE, 4, prediction) == (Fault.BAD_SLOT, 4)


def test_nothing_is_left_of_the_slot_before(host: Host, seed: int) -> None:
    """A destination that was freed, or whose command failed, starts from zeros whatever it held."""
    assert host.images is not None
    fresh = {"kind": START, "source": 0, "no_joint": 1}
    assert host.decode([fresh | {"destination": 9}])["status"] == Fault.NONE
    clean = content(host, 9, True)
    fill(host, 2, True, seed)
    assert host.slots(Operation.FREE, [2], prediction=True)["status"] == Fault.NONE
    assert host.decode([fresh | {"destination": 2}])["status"] == Fault.NONE
    assert content(host, 2, True) == clean
    step = {"kind": TOKEN, "token": 3, "source": 9, "destination": 4, "no_joint": 1}
    assert host.decode([step])["status"] == Fault.NONE
    clean = content(host, 4, True)
    fill(host, 4, True, seed)
    assert host.decode([step])["status"] == Fault.NONE
    assert content(host, 4, True) == clean


def test_what_lay_in_the_memory_before_does_not_show() -> None:
    """State in device memory: a slot that becomes live is zero where its section writes nothing."""
    cfg, a = config("kv260"), Assembler(config("kv260"))
    unit = a.embed(np.full((1, cfg.cols), 5))
    for section in ("encode", "predict"):
        a.lookup(section, constant=1, unit=unit, units=1, destination=operand(Space.DESTINATION, 1))
    sizes = {f"{side}_{part}_units": 3 for side in ("enc", "pred") for part in ("a", "c")}
    images = a.build(vectors=1, feature_bytes=cfg.cols, scratch_units=1, classes=1, blank=0, logit_bits=8, **sizes)
    host = Host(open_emulator(cfg, 64 << 20))
    host.load(images)
    slots = cfg.enc_slots + cfg.pred_slots
    stride = (size(host, True) + 63) // 64 * 64
    host.device.write_memory(host.state, b"\xee" * stride * slots)
    wanted = bytes(cfg.cols) + bytes([5] * cfg.cols) + bytes(size(host, True) - 2 * cfg.cols)
    entry = {"kind": START, "source": 0, "destination": 8, "no_joint": 1}
    assert host.decode([entry])["status"] == Fault.NONE
    assert content(host, 8, True) == wanted
    step = {"slot": 8, "prediction": 9, "reset": 1, "features": np.zeros((1, cfg.cols), int)}
    assert host.greedy([step], 1)["status"] == Fault.NONE
    assert content(host, 8, False) == content(host, 9, True) == wanted


def test_state_lies_where_start_put_it(seed: int) -> None:
    """In configurations with memory: slot s at base + s * stride, the prediction slots behind the last encoder slot."""
    cfg = config("kv260")
    images, _ = network(cfg, np.random.default_rng(seed), Sizes(classes=64))
    host = Host(open_emulator(cfg, 64 << 20))
    host.load(images)
    strides = [(size(host, prediction) + 63) // 64 * 64 for prediction in (False, True)]
    assert (host.read(reg.ENC_SLOTS), host.read(reg.PRED_SLOTS)) == (cfg.enc_slots, cfg.pred_slots)
    bases = [host.state, host.state + cfg.enc_slots * strides[0]]
    for prediction, slot in ((False, 0), (False, 4095), (True, 0), (True, 49151)):
        data = fill(host, slot, prediction, seed)
        at = bases[prediction] + slot * strides[prediction]
        assert host.device.read_memory(at, len(data)) == data
        assert host.slots(Operation.FREE, [slot], prediction)["status"] == Fault.NONE
        assert host.device.read_memory(at, len(data)) == bytes(len(data))


def test_as_many_slots_as_the_pools_hold(host: Host) -> None:
    assert host.images is not None
    h, cfg = host.images.header, host.config
    for side, register in (("enc", reg.ENC_SLOTS), ("pred", reg.PRED_SLOTS)):
        pools = [getattr(cfg, f"{side}_{part}_units") // h[f"{side}_{part}_units"] for part in ("a", "c")]
        assert host.read(register) == min(*pools, getattr(cfg, f"{side}_slots"))


def test_flag_of_a_stream_command_is_not_the_bank(host: Host) -> None:
    """PREDICTION chooses the slots of slot commands only."""
    done = host.decode([{"kind": START, "source": 0, "destination": 0, "no_joint": 1}], flags=Flag.PREDICTION)
    assert done["status"] == Fault.NONE
