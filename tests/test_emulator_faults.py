# SPDX-License-Identifier: Apache-2.0
"""Faults of docs/isa.md, section 6: code, unit, entry, detail; the order of the checks; what is left afterwards."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from emulator_host import NONE, STAGING, START, TOKEN, Host
from emulator_program import network

from gharial.devices.emulator import open_emulator
from gharial.isa import _registers as reg
from gharial.isa.commands import DECODE_ENTRY, ENCODE_ENTRY, GREEDY_ENTRY, SLOT_ENTRY, Flag, Mode, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit

IMAGES = network(config("tiny"), np.random.default_rng(7))[0]
FEATURES = np.random.default_rng(8).integers(-9, 10, (2, IMAGES.header["feature_bytes"]))
HOST, SEQUENCER, MEMORY = Unit.HOST, Unit.SEQUENCER, Unit.MEMORY
Outcome = tuple[int, int, int, int]


@pytest.fixture
def host() -> Host:
    host = Host(open_emulator(config("tiny")))
    host.load(IMAGES)
    assert host.slots(Operation.RESET, [0, 1, 2])["status"] == Fault.NONE
    assert host.slots(Operation.RESET, [0, 1, 2], prediction=True)["status"] == Fault.NONE
    return host


def outcome(done: dict[str, int]) -> Outcome:
    return done["status"], done["unit"], done["entry"], done["detail"]


def live(host: Host, slot: int, prediction: bool = False) -> bool:
    return host.slots(Operation.SAVE, [slot], prediction)["status"] == Fault.NONE


def encode_entry(**fields: int) -> bytes:
    return ENCODE_ENTRY.pack(**({"vectors": 2} | fields)).tobytes()


def decode_entry(**fields: int) -> bytes:
    return DECODE_ENTRY.pack(**fields).tobytes()


def raw(entry: bytes, word: int, bits: int) -> bytes:
    """The entry with bits set that no field has."""
    words = np.frombuffer(entry, "<u4").copy()
    words[word] |= bits
    return words.tobytes()


def test_descriptor_crc(host: Host) -> None:
    words = host.descriptor(Operation.NOP)
    right = int(words[15])
    done = host.send(Operation.NOP, crc=right ^ 1, tag=77)
    words[1] = 77
    assert outcome(done) == (Fault.CHECKSUM, HOST, 0, zlib.crc32(words[:15].tobytes()))
    assert done["tag"] == 0


@pytest.mark.parametrize("operation", [0, 4, 15, 19, 31, 37, 255])
def test_unknown_operations(host: Host, operation: int) -> None:
    assert outcome(host.send(operation)) == (Fault.BAD_COMMAND, HOST, 0, 0)


def test_flags(host: Host) -> None:
    for flags in (16, 128, Flag.IN_PLACE):
        assert outcome(host.send(Operation.NOP, flags=flags)) == (Fault.BAD_COMMAND, SEQUENCER, 0, 0)


def test_number_of_entries(host: Host) -> None:
    most = host.config.max_entries
    entries = b"".join(decode_entry(kind=START, destination=i % 32, no_joint=1) for i in range(most + 1))
    assert outcome(host.send(Operation.DECODE, entries, k=1)) == (Fault.BAD_COMMAND, SEQUENCER, 0, 0)
    assert host.send(Operation.DECODE, b"", k=1)["status"] == Fault.NONE


def test_fields_of_decode_and_greedy(host: Host) -> None:
    bad = [
        (Operation.DECODE, {"k": 0}, 6),
        (Operation.DECODE, {"k": 34}, 6),
        (Operation.DECODE, {"k": 1, "mode": 3}, 6),
        (Operation.DECODE, {"k": 1, "mode": Mode.FUZZY}, 6),
        (Operation.DECODE, {"k": 1, "named": 5}, 6),
        (Operation.DECODE, {"k": 1, "named": 1, "named_01": 48}, 7),
        (Operation.DECODE, {"k": 1, "named": 3, "named_23": 48}, 8),
        (Operation.DECODE, {"k": 1, "stride": 2}, 9),
        (Operation.GREEDY, {"k": 0}, 6),
        (Operation.GREEDY, {"k": 1, "stride": 7}, 9),
    ]
    for operation, fields, word in bad:
        assert outcome(host.send(operation, **fields)) == (Fault.BAD_COMMAND, SEQUENCER, 0, word), fields


def test_entry_list_address_and_crc(host: Host) -> None:
    entries = encode_entry() + encode_entry(slot=1)
    end = host.config.window_bytes
    for address in (end - 16, 2, end + 64):
        words = host.descriptor(Operation.ENCODE, b"", address, entries=2)
        host.post(words)
        host.ring()
        assert outcome(host.take()) == (Fault.ADDRESS, HOST, 0, address)
    done = host.send(Operation.ENCODE, entries, flags=Flag.CHECKED, body_crc=5)
    assert outcome(done) == (Fault.CHECKSUM, HOST, 0, zlib.crc32(entries))
    assert host.send(Operation.ENCODE, entries, body_crc=5)["status"] == Fault.NONE  # nobody asked


def test_encode_entries(host: Host) -> None:
    good, end = encode_entry(slot=2), host.config.window_bytes
    base = host.feature_address
    cases = [
        (encode_entry(vectors=0), Fault.BAD_ENTRY, SEQUENCER, 0),
        (encode_entry(vectors=3), Fault.BAD_ENTRY, SEQUENCER, 0),
        (raw(encode_entry(), 0, 1 << 21), Fault.BAD_ENTRY, SEQUENCER, 0),
        (raw(encode_entry(), 3, 1), Fault.BAD_ENTRY, SEQUENCER, 3),
        (encode_entry(slot=16, reset=1), Fault.BAD_SLOT, SEQUENCER, 16),
        (encode_entry(slot=7), Fault.BAD_SLOT, SEQUENCER, 7),
        (encode_entry(slot=2, offset=end), Fault.HAZARD, SEQUENCER, 2),
        (encode_entry(slot=0, offset=end), Fault.ADDRESS, HOST, base + end),
        (encode_entry(slot=0, offset=end - base - 4), Fault.ADDRESS, HOST, end - 4),
        (encode_entry(slot=0, offset=2), Fault.ADDRESS, HOST, base + 2),
        (encode_entry(slot=7, vectors=0, offset=end), Fault.BAD_ENTRY, SEQUENCER, 0),
        (encode_entry(slot=7, offset=end), Fault.BAD_SLOT, SEQUENCER, 7),
    ]
    for entry, fault, unit, detail in cases:
        done = host.send(Operation.ENCODE, good + entry)
        assert outcome(done) == (fault, unit, 1, detail)
    before = host.saved(2)
    assert not any(part.any() for part in before)  # the good entry had no effect
    size = IMAGES.header["feature_bytes"]
    assert host.send(Operation.ENCODE, encode_entry(offset=end - base - 2 * size))["status"] == Fault.NONE
    assert host.send(Operation.ENCODE, good, feature_hi=1)["status"] == Fault.ADDRESS


def test_greedy_entries(host: Host) -> None:
    def entry(**fields: int) -> bytes:
        return GREEDY_ENTRY.pack(**({"vectors": 2} | fields)).tobytes()

    first = entry(slot=1, prediction=1)
    cases = [
        (raw(entry(), 3, 1 << 16), Fault.BAD_ENTRY, SEQUENCER, 3),
        (entry(slot=5), Fault.BAD_SLOT, SEQUENCER, 5),
        (entry(prediction=9), Fault.BAD_SLOT, SEQUENCER, 9),
        (entry(prediction=64, reset=1), Fault.BAD_SLOT, SEQUENCER, 64),
        (entry(slot=1, prediction=2), Fault.HAZARD, SEQUENCER, 1),
        (entry(prediction=1), Fault.HAZARD, SEQUENCER, 1),
    ]
    for second, fault, unit, detail in cases:
        done = host.send(Operation.GREEDY, first + second, k=2, stride=24)
        assert outcome(done) == (fault, unit, 1, detail)
    # The second result does not fit: 8 + 8 * 30 bytes.
    at = host.config.window_bytes - 24 - 8 - 240 + 4
    done = host.send(Operation.GREEDY, first + entry(), k=30, stride=24, result_lo=at)
    assert outcome(done) == (Fault.ADDRESS, HOST, 1, at + 24)
    assert host.send(Operation.GREEDY, first + entry(), k=30, stride=24, result_lo=at - 4)["status"] == Fault.NONE


def test_decode_entries(host: Host) -> None:
    first = decode_entry(slot=0, kind=TOKEN, source=0, destination=1)
    cases = [
        (decode_entry(kind=3), Fault.BAD_ENTRY, SEQUENCER, 0),
        (raw(decode_entry(), 0, 1 << 16), Fault.BAD_ENTRY, SEQUENCER, 0),
        (raw(decode_entry(), 0, 1 << 20), Fault.BAD_ENTRY, SEQUENCER, 0),
        (raw(decode_entry(), 0, 1 << 24), Fault.BAD_ENTRY, SEQUENCER, 0),
        (decode_entry(kind=NONE, source=0, destination=2), Fault.BAD_ENTRY, SEQUENCER, 1),
        (decode_entry(kind=TOKEN, source=2, destination=2, token=48), Fault.BAD_ENTRY, SEQUENCER, 2),
        (raw(decode_entry(kind=START, destination=2), 3, 8), Fault.BAD_ENTRY, SEQUENCER, 3),
        (decode_entry(slot=5, kind=NONE, source=2, destination=2), Fault.BAD_SLOT, SEQUENCER, 5),
        (decode_entry(slot=99, kind=START, destination=2), Fault.BAD_SLOT, SEQUENCER, 99),
        (decode_entry(kind=NONE, source=9, destination=9), Fault.BAD_SLOT, SEQUENCER, 9),
        (decode_entry(kind=TOKEN, source=9, destination=2), Fault.BAD_SLOT, SEQUENCER, 9),
        (decode_entry(kind=TOKEN, source=2, destination=500), Fault.BAD_SLOT, SEQUENCER, 500),
        (decode_entry(kind=TOKEN, source=1, destination=2), Fault.HAZARD, SEQUENCER, 1),
        (decode_entry(kind=TOKEN, source=0, destination=1), Fault.HAZARD, SEQUENCER, 1),
        (decode_entry(kind=TOKEN, source=2, destination=0), Fault.HAZARD, SEQUENCER, 0),
        (decode_entry(kind=START, source=1, destination=0), Fault.HAZARD, SEQUENCER, 0),
        (decode_entry(kind=NONE, source=0, destination=0), Fault.HAZARD, SEQUENCER, 0),
    ]
    for second, fault, unit, detail in cases:
        done = host.send(Operation.DECODE, first + second, k=1, stride=20)
        assert outcome(done) == (fault, unit, 1, detail)
    assert not any(part.any() for part in host.saved(1, prediction=True))
    good = [
        decode_entry(kind=START, source=9, token=99, destination=2),  # neither source nor token counts
        decode_entry(slot=99, kind=TOKEN, source=2, destination=2, no_joint=1),
        decode_entry(kind=TOKEN, source=0, destination=2),  # a source may be shared
    ]
    for second in good:
        assert host.send(Operation.DECODE, first + second, k=1, stride=20)["status"] == Fault.NONE
    for address in (host.config.window_bytes - 36, host.result_address + 1):
        done = host.send(Operation.DECODE, first + good[2], k=1, stride=20, result_lo=address)
        entry = int(address % 4 == 0)
        assert outcome(done) == (Fault.ADDRESS, HOST, entry, address + 20 * entry)


def test_slot_entries(host: Host) -> None:
    def entry(**fields: int) -> bytes:
        return SLOT_ENTRY.pack(**fields).tobytes()

    for word, bits in ((0, 1 << 16), (1, 1 << 31), (3, 1)):
        done = host.send(Operation.RESET, raw(entry(), word, bits))
        assert outcome(done) == (Fault.BAD_ENTRY, SEQUENCER, 0, word)
    for operation in (Operation.SAVE, Operation.RESTORE):
        for offset in (host.config.window_bytes, 2):
            done = host.send(operation, entry(slot=1) + entry(slot=2, offset=offset))
            assert outcome(done) == (Fault.ADDRESS, HOST, 1, host.result_address + offset)
    assert live(host, 1)


def test_features_crc(host: Host) -> None:
    """Found after the command began: its destination slots are free, others keep their state."""
    entries = [{"slot": s, "features": FEATURES} for s in (0, 1)]
    entries[1]["crc"] = 99
    done = host.encode(entries)
    assert outcome(done) == (Fault.CHECKSUM, HOST, 1, zlib.crc32(FEATURES.astype(np.int8).tobytes()))
    assert [live(host, s) for s in (0, 1, 2)] == [False, False, True]
    done = host.greedy([{"slot": 2, "prediction": 2, "features": FEATURES, "crc": 1}])
    assert done["status"] == Fault.CHECKSUM
    assert [live(host, s, True) for s in (1, 2)] == [True, False]
    assert host.encode([entries[1] | {"reset": 1}], check=False)["status"] == Fault.NONE


def test_bus_errors(host: Host) -> None:
    """Where the memory answers with an error: the command fails with the address, the device halts."""
    h = IMAGES.header
    features = host.feature_address + 2 * h["feature_bytes"]
    encode = encode_entry(slot=0) + encode_entry(slot=1, offset=2 * h["feature_bytes"])
    joint = decode_entry(kind=START, destination=4)
    save = SLOT_ENTRY.pack(slot=1).tobytes() + SLOT_ENTRY.pack(slot=2, offset=2048).tobytes()
    cases = [
        (Operation.ENCODE, encode, {}, Fault.BUS_READ, features + 4, (1, features)),
        (Operation.ENCODE, encode, {}, Fault.BUS_READ, host.entry_address + 16, (0, host.entry_address)),
        (Operation.DECODE, joint, {"k": 1}, Fault.BUS_WRITE, host.result_address, (0, host.result_address)),
        (Operation.SAVE, save, {}, Fault.BUS_WRITE, host.result_address + 2048, (0, host.result_address + 2048)),
        (Operation.RESTORE, save, {}, Fault.BUS_READ, host.result_address + 2048, (1, host.result_address + 2048)),
        (Operation.LOAD, b"", {"address": STAGING, "bytes": 64, "space": 2}, Fault.BUS_READ, STAGING, (0, STAGING)),
    ]
    for operation, entries, fields, fault, address, (entry, detail) in cases:
        host.device.inject_bus_error(fault, address)
        assert outcome(host.send(operation, entries, **fields)) == (fault, MEMORY, entry, detail)
        assert host.read(reg.STATUS) & 0xFFFFF7 == 4 | fault << 8 | MEMORY << 16
        host.device.reset()
        host.setup()
        if operation == Operation.ENCODE and entry:
            assert [live(host, s) for s in (0, 1, 2)] == [False, False, True]
            assert host.slots(Operation.RESET, [0, 1])["status"] == Fault.NONE
        elif operation == Operation.DECODE:
            assert not live(host, 4, True)
        elif operation == Operation.SAVE:
            assert live(host, 1) and live(host, 2)
        elif operation == Operation.RESTORE:
            assert not live(host, 1) and not live(host, 2)
    assert host.read(reg.PROGRAM_ID) == 0  # the LOAD had passed its checks


def test_bus_error_of_whatever_comes_next(host: Host) -> None:
    """A descriptor that cannot be read is no command; a completion that cannot be written is not counted."""
    completions = host.read(reg.CPL_TAIL)
    host.device.inject_bus_error(Fault.BUS_READ)
    host.post(host.descriptor(Operation.NOP))
    host.ring()
    assert host.read(reg.STATUS) == 4 | 8 | Fault.BUS_READ << 8 | MEMORY << 16
    assert (host.read(reg.CPL_TAIL), host.read(reg.CMD_HEAD)) == (completions, host.tail - 1)
    host.device.reset()
    host.setup()
    host.device.inject_bus_error(Fault.BUS_WRITE)
    host.post(host.descriptor(Operation.NOP))
    host.ring()
    assert host.read(reg.STATUS) == 4 | 8 | Fault.BUS_WRITE << 8 | MEMORY << 16
    assert (host.read(reg.CPL_TAIL), host.read(reg.FAULT_DETAIL)) == (0, 64 << host.log2)
    host.device.reset()
    host.setup()
    host.done(Operation.NOP)
    with pytest.raises(ValueError, match="bus error"):
        host.device.inject_bus_error(Fault.HAZARD)


def test_watchdog(host: Host) -> None:
    host.device.inject_watchdog()
    host.done(Operation.NOP)
    words = host.descriptor(Operation.GREEDY, GREEDY_ENTRY.pack(vectors=2).tobytes(), k=1)
    host.post(words)
    host.ring()
    number = IMAGES.header["encode_first"]
    assert outcome(host.take()) == (Fault.WATCHDOG, SEQUENCER, 0, number)
    assert host.read(reg.STATUS) == 4 | 8 | Fault.WATCHDOG << 8 | SEQUENCER << 16
    assert (host.read(reg.FAULT_DETAIL), host.read(reg.FAULT_TAG)) == (number, int(words[1]))
    host.device.reset()
    host.setup()
    assert [live(host, 0), live(host, 0, True), live(host, 1)] == [False, False, True]
    assert host.greedy([{"slot": 1, "prediction": 1, "features": FEATURES}], 1)["status"] == Fault.NONE
