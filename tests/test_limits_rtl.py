# SPDX-License-Identifier: Apache-2.0
"""Limits that the RTL holds by itself, on chip and with weights in memory: commands and programs that no driver would
send, up to the last value that is good and with the first that is not. Streams at work are none the worse."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from compiled import program
from random_checkpoint import SMALL
from rtl_pair import BOTH, START, Pair, fault, pair_for

from gharial.devices.emulator import open_emulator
from gharial.isa.commands import Mode, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import HEADER, ProgramSpace

CLASSES = 256
LIVE = (0, 1)


@pytest.fixture(scope="module", params=BOTH)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """A model of 256 classes; streams on slots 0 and 1."""
    made = program(3, request.param, replace(SMALL, classes=CLASSES), 2.0)
    pair = pair_for(made, open_emulator(made.config))
    begin(pair)
    yield pair
    pair.close()


def begin(pair: Pair) -> None:
    """Two streams that have had a step."""
    features = np.random.default_rng(1).integers(-90, 90, (2, SMALL.stack, SMALL.features))
    entries = [{"slot": n, "prediction": n, "reset": 1, "features": features[n]} for n in LIVE]
    assert pair.steps(Operation.GREEDY, entries)["status"] == 0
    pair.flush()


def go_on(pair: Pair) -> None:
    """The streams have another step: the same on both, from the same state."""
    features = np.random.default_rng(2).integers(-90, 90, (2, SMALL.stack, SMALL.features))
    entries = [{"slot": n, "prediction": n, "features": features[n]} for n in LIVE]
    assert pair.steps(Operation.GREEDY, entries)["status"] == 0
    pair.flush()
    pair.compare_slots(LIVE, LIVE)


def test_the_last_slots_and_those_behind(pair: Pair) -> None:
    for prediction, most in zip((False, True), pair.most, strict=True):
        assert pair.slots(Operation.RESET, [most - 1], prediction)["status"] == 0
        assert pair.live(most - 1, prediction)
        for number in (most, 0xFFFF):
            for operation in (Operation.RESET, Operation.SAVE, Operation.RESTORE, Operation.FREE):
                image = bytes(2 * pair.slot_bytes(prediction))
                done = pair.slots(operation, [0, number], prediction, image=image)
                assert fault(done) == (Fault.BAD_SLOT, Unit.SEQUENCER, 1, number)
            done = pair.slots(Operation.COPY, [(0, number)], prediction)
            assert fault(done) == (Fault.BAD_SLOT, Unit.SEQUENCER, 0, number)
        assert pair.slots(Operation.FREE, [most - 1], prediction)["status"] == 0
        pair.flush()
    go_on(pair)


def test_as_many_entries_as_a_command_may_have(pair: Pair) -> None:
    """None, all, and one more."""
    most = pair.config.max_entries
    joint = {"slot": 0, "kind": START}
    entries = [joint | {"destination": n} for n in range(2, pair.most[1])][:most]
    if len(entries) == most:
        assert pair.decode(entries, k=33)["status"] == 0
    for count, status in ((0, 0), (most, 0), (most + 1, Fault.BAD_COMMAND)):
        done = pair.slots(Operation.SAVE, [1] * count, True)
        assert (done["status"], done["detail"]) == (status, 0), count
        pair.flush()
    done = pair.post(Operation.ENCODE, entries=0xFFFF)
    assert fault(done) == (Fault.BAD_COMMAND, Unit.SEQUENCER, 0, 0)
    pair.flush()
    go_on(pair)


def test_k_tokens_and_named_classes_at_their_ends(pair: Pair) -> None:
    entry = {"slot": 0, "kind": START, "destination": 5}
    for mode, most in ((Mode.TOP_K, 33), (Mode.FUZZY, 32)):
        for k in (0, 1, most, most + 1, 255):
            done = pair.decode([entry], k=k, mode=mode)
            bad = (Fault.BAD_COMMAND, Unit.SEQUENCER, 0, 6)
            assert fault(done) == ((0, 0, 0, 0) if 1 <= k <= most else bad), (mode, k)
    last = CLASSES - 1
    for named, word in ((4, 0), (5, 6), (63, 6)):
        done = pair.decode([entry], named=named, named_01=last | last << 16, named_23=last | last << 16)
        assert (done["status"], done["detail"]) == (Fault.BAD_COMMAND if word else 0, word), named
    for at in range(4):
        fields = {f"named_{'01' if at < 2 else '23'}": CLASSES << 16 * (at & 1)}
        done = pair.decode([entry], named=at + 1, **fields)
        assert fault(done) == (Fault.BAD_COMMAND, Unit.SEQUENCER, 0, 7 + (at > 1))
        assert pair.decode([entry], named=at, **fields)["status"] == 0  # not looked at
    tokens = pair.header["tokens"]
    for token, status in ((tokens - 1, 0), (tokens, Fault.BAD_ENTRY), (1 << 16, Fault.BAD_ENTRY)):
        done = pair.decode([entry, {"slot": 0, "kind": 1, "source": 1, "destination": 6, "token": token}])
        assert (done["status"], done["entry"], done["detail"]) == ((status, 1, 2) if status else (0, 0, 0))
    pair.flush()
    go_on(pair)


def limits(pair: Pair) -> list[tuple[int, str, int]]:
    """Word of the header, field, and the most that it may be."""
    c = pair.config
    found = [(15, "enc_a_units", c.enc_a_units), (15, "enc_c_units", c.enc_c_units)]
    found += [(16, "pred_a_units", c.pred_a_units), (16, "pred_c_units", c.pred_c_units)]
    found += [(10, "predict_count", 255), (11, "encode_count", 255), (12, "joint_count", 255), (13, "vectors", 4)]
    found += [(14, "scratch_units", c.scratch_units), (19, "classes", c.max_classes), (21, "sum_groups", c.sum_groups)]
    return [*found, (17, "joint_enc_units", c.pred_c_units)] if c.in_memory else found


def test_programs_beyond_the_configuration(pair: Pair) -> None:
    """Vocabulary, layers and slots: refused by the header's word; no program, no slots, until a good one is loaded."""
    good = np.frombuffer(program(3, pair.config.name, replace(SMALL, classes=CLASSES), 2.0).sections["code"], "<u4")
    header = HEADER.unpack(good[: HEADER.words])

    def start(code: np.ndarray) -> dict[str, int]:
        words = code.copy()
        words[HEADER.words - 1] = zlib.crc32(words[: HEADER.words - 1].tobytes())
        assert pair.load_chunk(ProgramSpace.CODE, 0, words.tobytes())["status"] == 0
        return pair.start()

    for word, field, most in limits(pair):
        room = {"enc_c_units": pair.config.enc_c_units} if field == "joint_enc_units" else {}
        for value in (most + 1, most):
            words = good.copy()
            words[: HEADER.words] = HEADER.pack(**(header | room | {field: value}))
            done = start(words)
            if value > most:
                assert fault(done) == (Fault.BAD_PROGRAM, Unit.HOST, 0, word), field
                assert fault(pair.run(Operation.RESET, bytes(16))) == (Fault.NO_PROGRAM, Unit.SEQUENCER, 0, 0)
            elif done["status"]:  # it is too much for something else
                assert done["detail"] > word or field.endswith("count") or field == "joint_enc_units", field
    assert start(good)["status"] == 0
    begin(pair)
    go_on(pair)


def test_a_memory_that_the_slots_do_not_fit(pair: Pair) -> None:
    """With weights in memory START counts how far all slots reach: to the last byte, and not 64 further. On chip they
    do not lie in it."""
    if pair.config.in_memory:
        strides = [-(-pair.slot_bytes(prediction) // 64) * 64 for prediction in (False, True)]
        last = pair.config.window_bytes - sum(n * stride for n, stride in zip(pair.most, strides, strict=True))
        for base, status in ((last + 64, Fault.ADDRESS), (last + 4, Fault.ADDRESS), (last, 0)):
            done = pair.run(Operation.START, **(pair.addresses() | {"result_lo": base}))
            assert done["status"] == status, base
        image = bytes(range(64)) * 64
        slot = pair.most[1] - 1
        pair.slots(Operation.RESTORE, [slot], True, image=image[: pair.slot_bytes(True)])
        assert pair.live(slot, True)
    assert pair.start()["status"] == 0
    begin(pair)
    go_on(pair)


def test_configurations_are_those_of_the_tests() -> None:
    """The limits differ, so that a number that was left in the RTL shows."""
    a, b = (config(name) for name in BOTH)
    assert (a.enc_slots, a.pred_slots, a.enc_a_units, a.pred_c_units) != (
        b.enc_slots,
        b.pred_slots,
        b.enc_a_units,
        b.pred_c_units,
    )
