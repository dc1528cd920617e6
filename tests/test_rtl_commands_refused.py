# SPDX-License-Identifier: Apache-2.0
"""Commands that must be refused: the RTL says the same as the reference device, and does nothing."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from random_checkpoint import SMALL
from rtl_pair import BOTH, NONE, START, TOKEN, UNIT_T, Pair, fault, lively, packed, pair_for

from gharial.isa import _registers as reg
from gharial.isa.commands import DECODE_ENTRY, ENCODE_ENTRY, GREEDY_ENTRY, SLOT_ENTRY, Flag, Mode, Operation
from gharial.isa.faults import Fault, Unit

reference = pytest.importorskip("sim.reference", reason="needs a source checkout")

V = SMALL.classes
FREE_ENC, FREE_PRED = 9, 40
ENDED = 3
Case = tuple[Operation | int, bytes, dict[str, int]]


@pytest.fixture(scope="module", params=BOTH)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Encoder slots 0 to 2 and prediction slots 0 to 5 are live with random state, encoder slot 3 has ended."""
    p = lively(request.param)
    pair = pair_for(p, reference.ReferenceDevice(p.config, p.manifest))
    random = np.random.default_rng(5)
    for prediction, count in ((False, 3), (True, 6)):
        image = random.integers(-90, 90, count * pair.slot_bytes(prediction)).astype(np.int8).tobytes()
        pair.slots(Operation.RESTORE, range(count), prediction, image=image)
    pair.steps(Operation.ENCODE, [{"slot": ENDED, "reset": 1, "features": random.integers(-9, 9, (1, 12))}])
    pair.flush()
    yield pair
    pair.close()


@pytest.fixture(autouse=True)
def _nothing_changed(pair: Pair) -> Iterator[None]:
    """What a test leaves behind is the same on both."""
    yield
    pair.flush()
    pair.compare_slots(range(12), range(10))
    words = [side.read(reg.STATUS) for side in pair.sides]
    assert words == [1 | 8, 1 | 8]


def encode(**fields: int) -> bytes:
    return packed(ENCODE_ENTRY, **({"vectors": 2} | fields))


def greedy(**fields: int) -> bytes:
    return packed(GREEDY_ENTRY, **({"vectors": 2} | fields))


def decode(**fields: int) -> bytes:
    return packed(DECODE_ENTRY, **fields)


def slot(**fields: int) -> bytes:
    return packed(SLOT_ENTRY, **fields)


def raw(entry: bytes, word: int, bits: int) -> bytes:
    """The entry with bits set that no field has."""
    words = np.frombuffer(entry, "<u4").copy()
    words[word] |= np.uint32(bits)
    return words.tobytes()


def refused(pair: Pair, cases: list[tuple[Fault, Case]]) -> None:
    """All cases, several on their way at once, good commands between them."""
    for number, (expected, (operation, listed, fields)) in enumerate(cases):
        done = pair.post(operation, listed, **fields)
        assert done["status"] == expected, (number, done, fields)
        if number % 3 == 0:
            pair.post(Operation.NOP)
        if number % 5 == 0:
            image = bytes(pair.slot_bytes(True))
            pair.slots(Operation.RESTORE, [5], True, image=image)
        if number % 5 == 3:  # at work when the next one is looked at
            good = decode(kind=TOKEN, source=5, destination=5, token=number % (V - 1), no_joint=1)
            assert pair.post(Operation.DECODE, good, k=1)["status"] == 0
    pair.flush()


def test_descriptors(pair: Pair) -> None:
    words = np.frombuffer(pair.descriptor(Operation.NOP, tag=77), "<u4")
    for flipped in (1, 1 << 31):
        done = pair.run(Operation.NOP, tag=77, crc=int(words[15]) ^ flipped)
        assert fault(done) == (Fault.CHECKSUM, Unit.HOST, 0, zlib.crc32(words[:15].tobytes()))
        assert done["tag"] == 0
    bad = [(operation, b"", {}) for operation in (0, 4, 15, 19, 31, 37, 48, 255)]
    bad += [(operation, b"", {"flags": 128, "tag": operation}) for operation in (0, 19)]
    for flags in (16, 32, 64, 128, Flag.IN_PLACE, 255):
        bad += [(operation, b"", {"flags": int(flags)}) for operation in (1, 3, 16, 17, 18, 32, 36)]
    many = encode(reset=1) * 65
    bad += [(o, many, {"k": 1}) for o in (16, 17, 18, 32)]
    bad += [(Operation.ENCODE, b"", {"entries": 0xFFFF})]
    refused(pair, [(Fault.BAD_COMMAND, case) for case in bad])
    for operation in (1, 16, 17, 18, 32, 33, 34, 35, 36):
        assert pair.run(operation, k=1)["status"] == 0  # without entries nothing can be wrong with them


def test_fields_of_decode_and_greedy(pair: Pair) -> None:
    bad = [
        {"k": 0},
        {"k": 34},
        {"k": V + 1},
        {"k": 255},
        {"k": 1, "mode": 3},
        {"k": 1, "mode": Mode.FUZZY},
        {"k": 1, "named": 5},
        {"k": 1, "named": 63},
        {"k": 1, "mode": Mode.ALL, "named": 5},
        {"k": 1, "named": 1, "named_01": V},
        {"k": 1, "named": 2, "named_01": V << 16},
        {"k": 1, "named": 2, "named_01": 0xFFFF, "named_23": 0xFFFF},
        {"k": 1, "named": 3, "named_23": V},
        {"k": 1, "named": 4, "named_23": 0xFFFF0000},
        {"k": 1, "stride": 2},
        {"k": 1, "stride": 0xFFFFFFFF},
        {"k": 1, "stride": 1, "entry_lo": 2},
    ]
    cases: list[Case] = [(Operation.DECODE, b"", fields) for fields in bad]
    cases += [(Operation.GREEDY, b"", {"k": 0}), (Operation.GREEDY, b"", {"k": 1, "stride": 7})]
    refused(pair, [(Fault.BAD_COMMAND, case) for case in cases])
    fine = [
        {"k": 0, "mode": Mode.ALL},
        {"k": 255, "mode": Mode.ALL},
        {"k": 1, "named": 1, "named_01": V << 16},
        {"k": V, "named": 3, "named_23": V << 16},
        {"k": 1, "named": 0, "named_01": 0xFFFFFFFF},
    ]
    for fields in fine:
        pair.decode([{"slot": 0, "kind": START, "destination": 5}], **fields)
    pair.steps(Operation.GREEDY, [], k=1, mode=3, named=63)
    assert {done["status"] for done in pair.flush()} == {0}


def test_entry_lists(pair: Pair) -> None:
    end = pair.config.window_bytes
    cases: list[tuple[Fault, Case]] = []
    for operation in (Operation.ENCODE, Operation.DECODE, Operation.GREEDY, Operation.RESET, Operation.SAVE):
        for lo, hi in ((end - 16, 0), (2, 0), (end, 0), (end - 31, 0), (0, 1), (0xFFFFFFF0, 0xFFFFFFFF)):
            cases.append((Fault.ADDRESS, (operation, b"", {"entries": 2, "k": 1, "entry_lo": lo, "entry_hi": hi})))
        cases.append((Fault.ADDRESS, (operation, b"", {"k": 1, "entry_lo": end + 4})))
        fields = {"flags": Flag.CHECKED, "body_crc": 5, "k": 1}
        cases.append((Fault.CHECKSUM, (operation, slot(slot=1) * 3, fields)))
        cases.append((Fault.CHECKSUM, (operation, b"", fields)))
    refused(pair, cases)
    assert pair.run(Operation.RESET, slot(slot=2), body_crc=5)["status"] == 0  # nobody asked
    assert pair.run(Operation.RESET, b"", entry_lo=end)["status"] == 0


def seconds(end: int, encoders: int, predictions: int) -> list[tuple[Fault, Case]]:
    """Two entries, of which the second is at fault, for a memory that ends there and so many slots."""
    cases: list[tuple[Fault, Case]] = []

    def add(expected: Fault, operation: Operation, first: bytes, second: bytes, **fields: int) -> None:
        more = {} if operation in (16, 32, 33, 34, 35, 36) else {"k": 2, "stride": 32, "result_lo": 8192}
        cases.append((expected, (operation, first + second, {"feature_lo": 16384, **more, **fields})))

    for operation, make in ((Operation.ENCODE, encode), (Operation.GREEDY, greedy)):
        first = make(slot=2) if operation == Operation.ENCODE else make(slot=2, prediction=2)
        for fields in ({"vectors": 0}, {"vectors": 3}, {"vectors": 7}, {"slot": 77, "vectors": 0, "offset": end}):
            add(Fault.BAD_ENTRY, operation, first, make(**fields))
        for bit in (21, 22, 23, 24, 31):
            add(Fault.BAD_ENTRY, operation, first, raw(make(slot=99), 0, 1 << bit))
        add(Fault.BAD_ENTRY, operation, first, raw(make(slot=99), 3, 1 << 16))
        add(Fault.BAD_ENTRY, operation, first, raw(make(slot=99), 3, 1 << 31))
        for number in (encoders, encoders + 1, 2 * encoders, 0x8000, 0xFFFF):
            add(Fault.BAD_SLOT, operation, first, make(slot=number, reset=1))
        for number in (FREE_ENC, ENDED):
            add(Fault.BAD_SLOT, operation, first, make(slot=number))
            add(Fault.BAD_SLOT, operation, first, make(slot=number, offset=end))
        add(Fault.HAZARD, operation, first, make(slot=2, offset=end))
        add(Fault.HAZARD, operation, first, make(slot=2, reset=1, offset=2))
        for offset in (end, end - 16384 - 20, 2, 1, 0xFFFFFFFC, 0x80000000):
            add(Fault.ADDRESS, operation, first, make(slot=0, offset=offset))
        for base in ({"feature_lo": 2}, {"feature_hi": 1}, {"feature_hi": 0xFFFFFFFF, "feature_lo": 0xFFFFFFFC}):
            add(Fault.ADDRESS, operation, b"", make(slot=0, offset=8), **base)
    add(Fault.BAD_ENTRY, Operation.ENCODE, encode(slot=2), raw(encode(), 3, 1))

    first = greedy(slot=1, prediction=1)
    add(Fault.BAD_SLOT, Operation.GREEDY, first, greedy(prediction=FREE_PRED))
    add(Fault.BAD_SLOT, Operation.GREEDY, first, greedy(prediction=predictions, reset=1))
    add(Fault.BAD_SLOT, Operation.GREEDY, first, greedy(slot=FREE_ENC, prediction=predictions))
    add(Fault.HAZARD, Operation.GREEDY, first, greedy(slot=1, prediction=2))
    add(Fault.HAZARD, Operation.GREEDY, first, greedy(slot=2, prediction=1, offset=end))
    add(Fault.HAZARD, Operation.GREEDY, first, greedy(slot=1, prediction=1))
    for at in (end - 32 - 20, 8190, end):
        add(Fault.ADDRESS, Operation.GREEDY, first, greedy(slot=2, prediction=2), result_lo=at)
    add(Fault.ADDRESS, Operation.GREEDY, first, greedy(slot=2, prediction=2), result_hi=1)
    add(Fault.ADDRESS, Operation.GREEDY, first, greedy(slot=2, prediction=2, offset=end), result_hi=1)
    add(Fault.ADDRESS, Operation.GREEDY, first, greedy(slot=2, prediction=2), stride=0xFFFFFFF0)

    first = decode(slot=0, kind=TOKEN, source=0, destination=1)
    for fields in (
        {"kind": 3},
        {"kind": NONE, "source": 0, "destination": 2},
        {"kind": NONE, "source": 99, "destination": 2},
        {"kind": TOKEN, "source": 2, "destination": 2, "token": V - 1},
        {"kind": TOKEN, "source": 99, "destination": 2, "token": 0xFFFFFFFF},
        {"kind": TOKEN, "source": 2, "destination": 2, "token": 1 << 16},
    ):
        add(Fault.BAD_ENTRY, Operation.DECODE, first, decode(**fields))
    for word, bit in ((0, 16), (0, 18), (0, 19), (0, 20), (0, 24), (0, 31), (3, 0), (3, 31)):
        add(Fault.BAD_ENTRY, Operation.DECODE, first, raw(decode(slot=99, kind=START, destination=2), word, 1 << bit))
    for fields in (
        {"slot": FREE_ENC, "kind": NONE, "source": 2, "destination": 2},
        {"slot": encoders, "kind": START, "destination": 2},
        {"slot": encoders + 83, "kind": START, "destination": predictions + 136},
        {"kind": NONE, "source": FREE_PRED, "destination": FREE_PRED},
        {"kind": TOKEN, "source": FREE_PRED, "destination": 2},
        {"kind": TOKEN, "source": predictions, "destination": 2},
        {"kind": TOKEN, "source": 0xFFFF, "destination": 0xFFFE},
        {"kind": TOKEN, "source": 2, "destination": predictions},
        {"kind": START, "destination": 0xFFFF},
        {"kind": START, "destination": predictions, "no_joint": 1},
    ):
        add(Fault.BAD_SLOT, Operation.DECODE, first, decode(**fields))
    for fields in (
        {"kind": TOKEN, "source": 1, "destination": 2},
        {"kind": TOKEN, "source": 0, "destination": 1},
        {"kind": TOKEN, "source": 2, "destination": 0},
        {"kind": TOKEN, "source": 1, "destination": 1},
        {"kind": TOKEN, "source": 1, "destination": 0},
        {"kind": START, "source": 1, "destination": 0},
        {"kind": NONE, "source": 0, "destination": 0},
        {"kind": NONE, "source": 1, "destination": 1},
    ):
        add(Fault.HAZARD, Operation.DECODE, first, decode(**fields))
    good = decode(kind=TOKEN, source=2, destination=3)
    for at, mode in ((end - 32 - 16, 0), (end - 32 - 36, 2), (8190, 0), (end, 0), (end - 24, 0)):
        add(Fault.ADDRESS, Operation.DECODE, first, good, result_lo=at, mode=mode)
    add(Fault.ADDRESS, Operation.DECODE, first, good, result_hi=0xFFFFFFFF, result_lo=0xFFFFFFE0)
    add(Fault.ADDRESS, Operation.DECODE, raw(first, 0, 1 << 23), good, result_hi=0xFFFFFFFF, result_lo=0xFFFFFFE0)

    for operation in (Operation.RESET, Operation.FREE, Operation.COPY, Operation.SAVE, Operation.RESTORE):
        first = slot(slot=1, second=4)
        for word, bit in ((0, 16), (0, 31), (1, 16), (1, 31), (3, 0), (3, 31)):
            add(Fault.BAD_ENTRY, operation, first, raw(slot(slot=99), word, 1 << bit))
        for flags, most in ((0, encoders), (1, predictions)):
            for number in (most, 0xFFFF, 0x8000):
                add(Fault.BAD_SLOT, operation, first, slot(slot=number), flags=flags)
    for flags, free in ((0, FREE_ENC), (1, FREE_PRED)):
        add(Fault.BAD_SLOT, Operation.COPY, slot(slot=1, second=4), slot(slot=free, second=0), flags=flags)
        add(Fault.BAD_SLOT, Operation.COPY, slot(slot=1, second=4), slot(slot=1, second=predictions), flags=flags)
        add(Fault.BAD_SLOT, Operation.COPY, slot(slot=1, second=4), slot(slot=free, second=0xFFFF), flags=flags)
        add(Fault.BAD_SLOT, Operation.SAVE, slot(slot=1), slot(slot=free, offset=end), flags=flags)
        for pairs in ([(0, 4), (2, 4)], [(0, 4), (4, 5)], [(1, 2), (0, 1)], [(0, 0), (0, 1)], [(0, 1), (1, 1)]):
            two = [slot(slot=a, second=b) for a, b in pairs]
            expected = Fault.BAD_SLOT if pairs[1][0] == 4 and flags == 0 else Fault.HAZARD
            add(expected, Operation.COPY, two[0], two[1], flags=flags)
        for operation in (Operation.RESET, Operation.FREE, Operation.RESTORE):
            add(Fault.HAZARD, operation, slot(slot=1), slot(slot=1, offset=2), flags=flags)
        for operation in (Operation.SAVE, Operation.RESTORE):
            for offset in (end, 2, 0xFFFFFFFC, end - 8192 - 4):
                add(Fault.ADDRESS, operation, slot(slot=1), slot(slot=2, offset=offset), flags=flags, result_lo=8192)
            fields = {"result_hi": 0xFFFFFFFF, "result_lo": 0xFFFFFFFC, "flags": flags}
            add(Fault.ADDRESS, operation, b"", slot(slot=2, offset=8), **fields)
            add(Fault.ADDRESS, operation, b"", slot(slot=2), result_lo=8193, flags=flags)
    add(Fault.BAD_SLOT, Operation.SAVE, slot(slot=1), slot(slot=ENDED))
    return cases


def test_entries(pair: Pair) -> None:
    cases = seconds(pair.config.window_bytes, *pair.most)
    assert len(cases) > 190
    refused(pair, cases)


def test_entries_that_look_wrong_and_are_not(pair: Pair) -> None:
    """What nobody looks at may be anything; sources may be shared; a copy may stay where it is."""
    first = {"slot": 0, "kind": TOKEN, "source": 0, "destination": 1}
    for entry in (
        {"kind": START, "source": 0xFFFF, "token": 0xFFFFFFFF, "destination": 2},
        {"slot": 0xFFFF, "kind": TOKEN, "source": 2, "destination": 2, "no_joint": 1},
        {"slot": FREE_ENC, "kind": NONE, "source": 2, "destination": 2, "no_joint": 1},
        {"kind": TOKEN, "source": 0, "destination": 2},
        {"slot": ENDED, "kind": START, "source": 1, "destination": 2},
        {"kind": START, "source": 1, "destination": 2},
    ):
        pair.decode([first, entry], k=3)
    pair.slots(Operation.COPY, [(0, 0), (2, 2)])
    pair.slots(Operation.COPY, [(0, 3), (0, 4), (2, 2)], True)
    pair.slots(Operation.SAVE, [1, 1, 0, 1], True)
    pair.slots(Operation.COPY, [(ENDED, 4)])
    pair.steps(Operation.ENCODE, [{"slot": 4, "reset": 1, "features": np.ones((2, 12))}])
    pair.slots(Operation.FREE, [11, 4])
    pair.decode([first], k=1, flags=Flag.CHECKED | Flag.PREDICTION)
    pair.decode([first | {"no_joint": 1}], k=1, result_lo=pair.config.window_bytes + 2)
    last = pair.config.window_bytes - 36
    pair.decode([first], k=5, result_lo=last)
    assert {done["status"] for done in pair.flush()} == {0}
    assert pair.rtl.device.read_memory(last, 36) == pair.twin.device.read_memory(last, 36)


@pytest.mark.parametrize("operation", [Operation.ENCODE, Operation.GREEDY])
def test_features_with_a_wrong_crc(pair: Pair, operation: Operation) -> None:
    """Found when the command has begun: its destination slots are free, the commands behind see that, and streams that
    are at work are none the worse. Whoever begins a slot anew behind it succeeds."""
    random = np.random.default_rng(7)

    def entry(slot: int, prediction: int, **fields: int) -> dict[str, Any]:
        found: dict[str, Any] = {"slot": slot, "features": random.integers(-99, 99, (2, 12))} | fields
        return found | ({"prediction": prediction} if operation == Operation.GREEDY else {})

    for at in range(3):
        pair.slots(Operation.RESET, [0, 1, 2, 4, 6, 7])
        pair.slots(Operation.RESET, [0, 1, 2, 4, 6, 7], True)
        pair.steps(operation, [entry(0, 0)])  # at work meanwhile
        bad = [entry(1, 1), entry(2, 2), entry(4, 4)]
        bad[at]["crc"] = 12345
        assert pair.steps(operation, bad)["status"] == Fault.CHECKSUM
        pair.steps(operation, [entry(0, 0), entry(6, 6)])
        assert pair.steps(operation, [entry(7, 7), entry(2, 2)])["status"] == Fault.BAD_SLOT
        assert pair.decode([{"slot": 1, "kind": START, "destination": 8}])["status"] == Fault.BAD_SLOT
        if operation == Operation.GREEDY:
            found = pair.decode([{"slot": 0, "kind": TOKEN, "source": 1, "destination": 9}])
            assert found["status"] == Fault.BAD_SLOT
        pair.steps(operation, [entry(1, 1, reset=1), entry(7, 7)])
        pair.steps(operation, [entry(1, 1), entry(0, 0), entry(6, 6)])
        pair.flush()
        pair.compare_slots(range(9), range(10))


def test_a_command_behind_a_fault_is_not_touched(pair: Pair) -> None:
    """Refused commands between good ones: tags, indices and interrupts are those of the command."""
    pair.steps(Operation.GREEDY, [{"slot": 0, "reset": 1, "prediction": 0, "features": np.ones((2, 12))}])
    pair.post(Operation.GREEDY, greedy(slot=FREE_ENC), k=1, flags=Flag.INTERRUPT, temperature=UNIT_T)
    pair.post(99, flags=0)
    pair.steps(Operation.GREEDY, [{"slot": 0, "prediction": 0, "features": np.ones((2, 12))}])
    pair.flush()
    for side in pair.sides:
        assert side.read(reg.IRQ_STATUS) == 1, side.device.name
        side.write(reg.IRQ_STATUS, 1)
        assert side.read(reg.IRQ_STATUS) == 0
