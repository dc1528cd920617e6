# SPDX-License-Identifier: Apache-2.0
"""Faults, rings and resets of the reference device: what is refused, with which detail, and what stays as it was."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from reference_host import CHUNK, FEATURES, RESULTS, Host, Outcome
from reference_program import TestProgram, make_program
from sim.reference import ReferenceDevice

from gharial.isa import _registers as reg
from gharial.isa.commands import DECODE_ENTRY, ENCODE_ENTRY, GREEDY_ENTRY, SLOT_ENTRY, Flag, Kind, Operation
from gharial.isa.faults import Fault
from gharial.isa.header import HEADER, ProgramSpace
from gharial.isa.words import Record

MEMORY = 32768
START = {"slot": 0, "kind": Kind.START}


@pytest.fixture(scope="module")
def program() -> TestProgram:
    return make_program(11)


@pytest.fixture
def host(program: TestProgram) -> Host:
    """Encoder slot 0 and prediction slot 0 are live, encoder slot 1 has ended."""
    found = Host(ReferenceDevice(program.config, program.manifest))
    found.load(program)
    assert found.start(program)["status"] == 0
    x8 = np.full((2, program.dims.features), 9)
    for slot, count in ((0, 2), (1, 1)):
        entry = {"slot": slot, "reset": 1} | found.features(x8[:count], 12)
        assert found.run(Operation.ENCODE, ENCODE_ENTRY, [entry]) == Outcome(0)
    assert decode(found, START | {"no_joint": 1}) == Outcome(0, predictions=1)
    return found


def encode(host: Host, *entries: dict[str, int], **fields: int) -> Outcome:
    """Entries without a CRC of their features, unless flags say so."""
    return host.run(Operation.ENCODE, ENCODE_ENTRY, [{"vectors": 2} | e for e in entries], **({"flags": 0} | fields))


def decode(host: Host, *entries: dict[str, int], **fields: int) -> Outcome:
    return host.run(Operation.DECODE, DECODE_ENTRY, entries, **({"k": 1, "stride": 64, "temperature": 16384} | fields))


def greedy(host: Host, *entries: dict[str, int], **fields: int) -> Outcome:
    common = {"flags": 0, "k": 2, "stride": 64, "temperature": 16384}
    return host.run(Operation.GREEDY, GREEDY_ENTRY, [{"vectors": 2} | e for e in entries], **(common | fields))


def slots(host: Host, operation: Operation, *entries: dict[str, int], **fields: int) -> Outcome:
    return host.run(operation, SLOT_ENTRY, entries, **fields)


def saved(host: Host, slot: int = 0, prediction: bool = False) -> bytes:
    flags = Flag.PREDICTION if prediction else 0
    assert slots(host, Operation.SAVE, {"slot": slot, "offset": 4096}, flags=flags) == Outcome(0)
    return host.device.read_memory(RESULTS + 4096, 512)


def test_fields_of_the_descriptor(host: Host, program: TestProgram) -> None:
    V = program.dims.classes
    for operation in (0, 4, 15, 19, 37, 255):
        done = host.command(operation)
        assert (done["status"], done["detail"], done["unit"]) == (Fault.BAD_COMMAND, 0, 1)
    for flags, operation in ((16, Operation.NOP), (8, Operation.NOP), (8, Operation.ENCODE)):
        done = host.command(operation, flags=flags)
        assert (done["status"], done["detail"], done["unit"]) == (Fault.BAD_COMMAND, 0, 2)
    bad_words = [
        (6, {"k": 0}),
        (6, {"k": 34}),
        (6, {"k": 1, "mode": 3}),
        (6, {"mode": 1}),  # 37 classes are not whole blocks
        (6, {"named": 5}),
        (7, {"named": 2, "named_01": V << 16}),
        (8, {"named": 3, "named_23": V}),
        (9, {"stride": 66}),
    ]
    for word, fields in bad_words:
        assert decode(host, START, **fields) == Outcome(Fault.BAD_COMMAND, word), fields
    assert decode(host, START, k=33) == Outcome(0, predictions=1, joints=1)
    assert decode(host, START, named=1, named_01=V << 16) == Outcome(0, predictions=1, joints=1)
    assert greedy(host, {"slot": 2, "reset": 1}, k=0) == Outcome(Fault.BAD_COMMAND, 6)
    assert encode(host, entries=program.config.max_entries + 1) == Outcome(Fault.BAD_COMMAND, 0)
    assert encode(host) == Outcome(0)


@pytest.mark.parametrize(
    ("entry", "fault", "detail"),
    [
        ({"slot": 0, "vectors": 0}, Fault.BAD_ENTRY, 0),
        ({"slot": 0, "vectors": 3}, Fault.BAD_ENTRY, 0),
        ({"slot": 16}, Fault.BAD_SLOT, 16),
        ({"slot": 0xFFFF, "reset": 1}, Fault.BAD_SLOT, 0xFFFF),
        ({"slot": 2}, Fault.BAD_SLOT, 2),  # free
        ({"slot": 1}, Fault.BAD_SLOT, 1),  # ended
        ({"slot": 0, "offset": MEMORY - FEATURES - 20}, Fault.ADDRESS, MEMORY - 20),
        ({"slot": 0, "offset": 2}, Fault.ADDRESS, FEATURES + 2),
        ({"slot": 0, "offset": 0xFFFFFFFC}, Fault.ADDRESS, FEATURES - 4),
    ],
)
def test_encode_entries(host: Host, entry: dict[str, int], fault: Fault, detail: int) -> None:
    """The second of two entries is at fault, and the first one's slot has not moved either."""
    before = saved(host)
    first = {"slot": 4, "reset": 1}
    assert encode(host, first, entry) == Outcome(fault, detail, entry=1)
    assert encode(host, {"slot": 4}) == Outcome(Fault.BAD_SLOT, 4)
    assert saved(host) == before


@pytest.mark.parametrize(
    ("entry", "fault", "detail"),
    [
        ({"slot": 0, "kind": 3}, Fault.BAD_ENTRY, 0),
        ({"slot": 0, "kind": Kind.NONE, "source": 0, "destination": 1}, Fault.BAD_ENTRY, 1),
        ({"slot": 0, "kind": Kind.TOKEN, "token": 36}, Fault.BAD_ENTRY, 2),
        ({"slot": 0, "kind": Kind.TOKEN, "source": 3}, Fault.BAD_SLOT, 3),
        ({"slot": 0, "kind": Kind.TOKEN, "source": 64}, Fault.BAD_SLOT, 64),
        ({"slot": 0, "kind": Kind.TOKEN, "destination": 1000}, Fault.BAD_SLOT, 1000),
        ({"slot": 0, "kind": Kind.NONE, "source": 5, "destination": 5}, Fault.BAD_SLOT, 5),
        ({"slot": 2, "kind": Kind.START}, Fault.BAD_SLOT, 2),
        ({"slot": 16, "kind": Kind.START}, Fault.BAD_SLOT, 16),
    ],
)
def test_decode_entries(host: Host, entry: dict[str, int], fault: Fault, detail: int) -> None:
    before = saved(host, prediction=True)
    first = {"slot": 0, "kind": Kind.TOKEN, "token": 35, "source": 0, "destination": 9}
    assert decode(host, first, entry) == Outcome(fault, detail, entry=1)
    assert decode(host, START | {"kind": Kind.TOKEN, "source": 9}) == Outcome(Fault.BAD_SLOT, 9)
    assert saved(host, prediction=True) == before


@pytest.mark.parametrize(
    ("record", "word"), [(ENCODE_ENTRY, 0), (ENCODE_ENTRY, 3), (DECODE_ENTRY, 0), (DECODE_ENTRY, 3), (SLOT_ENTRY, 1)]
)
def test_bits_that_an_entry_does_not_have(host: Host, record: Record, word: int) -> None:
    operation = {"encode entry": Operation.ENCODE, "decode entry": Operation.DECODE}.get(record.name, Operation.FREE)
    words = record.pack(**({"vectors": 1} if record is ENCODE_ENTRY else {}))
    words[word] |= np.uint32(1 << 31)
    host.device.write_memory(2048, words.tobytes())
    done = host.command(operation, entries=1, entry_lo=2048, k=1, feature_lo=FEATURES, result_lo=RESULTS)
    assert (done["status"], done["detail"], done["entry"]) == (Fault.BAD_ENTRY, word, 0)


def test_hazards(host: Host) -> None:
    def token(source: int, destination: int) -> dict[str, int]:
        return {"slot": 0, "kind": Kind.TOKEN, "token": 1, "source": source, "destination": destination}

    assert decode(host, START | {"destination": 1, "no_joint": 1}).status == 0
    hazard = [
        (0, encode(host, {"slot": 0}, {"slot": 0, "reset": 1})),
        (5, decode(host, token(0, 5), token(0, 5))),  # two destinations
        (5, decode(host, token(0, 5), token(1, 5))),
        (1, decode(host, token(0, 1), token(1, 6))),  # a source that was written
        (1, decode(host, token(1, 6), token(0, 1))),  # a destination that is read
        (0, decode(host, token(0, 4), token(0, 0))),
        (0, greedy(host, {"slot": 0}, {"slot": 2, "reset": 1, "prediction": 0})),
        (0, slots(host, Operation.COPY, {"slot": 0, "second": 4}, {"slot": 1, "second": 0})),
        (3, slots(host, Operation.RESET, {"slot": 3}, {"slot": 3})),
        (3, slots(host, Operation.RESTORE, {"slot": 3}, {"slot": 3})),
    ]
    for slot, outcome in hazard:
        assert outcome == Outcome(Fault.HAZARD, slot, entry=1)
    fine = [
        decode(host, token(0, 5), token(0, 6)),
        decode(host, token(5, 5), token(6, 6)),
        decode(host, START | {"source": 5, "destination": 7}, token(5, 5)),  # a start reads no source
        slots(host, Operation.SAVE, {"slot": 0}, {"slot": 0, "offset": 512}),
        slots(host, Operation.COPY, {"slot": 0, "second": 0}),
    ]
    assert [outcome.status for outcome in fine] == [0] * 5


def test_addresses_of_the_descriptor(host: Host) -> None:
    assert encode(host, entry_lo=MEMORY - 8, entries=1) == Outcome(Fault.ADDRESS, MEMORY - 8)
    assert encode(host, entry_hi=1, entries=1).status == Fault.ADDRESS
    assert encode(host, entry_lo=2, entries=1) == Outcome(Fault.ADDRESS, 2)
    # The second result would lie beyond the memory; the first one is not written either.
    host.device.write_memory(MEMORY - 64, bytes([0xAB]) * 64)
    at = {"result_lo": MEMORY - 64, "stride": 64, "k": 1}
    outcome = decode(host, START | {"destination": 2}, START | {"destination": 3}, **at)
    assert outcome == Outcome(Fault.ADDRESS, MEMORY, entry=1)
    assert host.device.read_memory(MEMORY - 64, 64) == bytes([0xAB]) * 64
    assert decode(host, START | {"destination": 2}, START | {"destination": 3, "no_joint": 1}, **at).status == 0
    assert greedy(host, {"slot": 0}, result_lo=MEMORY - 20) == Outcome(Fault.ADDRESS, MEMORY - 20)
    for operation in (Operation.SAVE, Operation.RESTORE):
        outcome = slots(host, operation, {"slot": 0, "offset": MEMORY - RESULTS - 4})
        assert outcome == Outcome(Fault.ADDRESS, MEMORY - 4)


def test_checksums(host: Host) -> None:
    entry = {"slot": 0} | host.features(np.full((2, 10), 3), 12)
    fields = host.entries(ENCODE_ENTRY, [entry])
    done = host.command(Operation.ENCODE, crc=1, **fields)
    assert (done["status"], done["tag"], done["unit"]) == (Fault.CHECKSUM, 0, 1)
    assert done["detail"] not in (0, 1)
    done = host.command(Operation.ENCODE, flags=Flag.CHECKED, **(fields | {"body_crc": 5}))
    assert (done["status"], done["detail"]) == (Fault.CHECKSUM, fields["body_crc"])
    assert host.command(Operation.ENCODE, feature_lo=FEATURES, **(fields | {"body_crc": 5}))["status"] == 0


def test_a_fault_after_the_checks_frees_the_destinations(host: Host) -> None:
    """Features that do not have their CRC: the command's slots become free, all others stay."""
    good = host.features(np.full((2, 10), 3), 12)
    assert slots(host, Operation.RESET, {"slot": 2}) == Outcome(0)
    before = saved(host, 2)
    entries = [{"slot": 0} | good, {"slot": 3, "reset": 1} | good | {"crc": 7}]
    assert encode(host, *entries, flags=Flag.CHECKED) == Outcome(Fault.CHECKSUM, good["crc"], entry=1)
    for slot in (0, 3):
        assert encode(host, {"slot": slot} | good) == Outcome(Fault.BAD_SLOT, slot)
    assert saved(host, 2) == before
    assert decode(host, {"slot": 1, "kind": Kind.NONE}).status == 0

    bad = good | {"crc": 7}
    assert greedy(host, {"slot": 2, "prediction": 0} | bad, flags=Flag.CHECKED).status == Fault.CHECKSUM
    assert encode(host, {"slot": 2} | good) == Outcome(Fault.BAD_SLOT, 2)
    assert decode(host, {"slot": 1, "kind": Kind.NONE}) == Outcome(Fault.BAD_SLOT, 0)


def test_load(host: Host, program: TestProgram) -> None:
    chunk = {"entry_lo": CHUNK, "bytes": 8, "space": ProgramSpace.SCALES, "body_crc": zlib.crc32(bytes(8))}
    host.device.write_memory(CHUNK, bytes(8))
    refused = [
        (Fault.BAD_COMMAND, 13, {"space": 6}),
        (Fault.BAD_COMMAND, 13, {"bytes": 6}),
        (Fault.BAD_COMMAND, 13, {"bytes": 16388}),
        (Fault.BAD_COMMAND, 12, {"offset": 4}),  # a gap, or an overlap
        (Fault.BAD_COMMAND, 0, {"flags": Flag.IN_PLACE}),
        (Fault.ADDRESS, MEMORY - 4, {"entry_lo": MEMORY - 4}),
    ]
    for fault, detail, fields in refused:
        done = host.command(Operation.LOAD, **(chunk | fields))
        assert (done["status"], done["detail"]) == (fault, detail), fields
        assert host.register(reg.STATUS) & 8  # the program is still there
    done = host.command(Operation.LOAD, **(chunk | {"body_crc": 1}))
    assert (done["status"], done["detail"]) == (Fault.CHECKSUM, chunk["body_crc"])
    assert not host.register(reg.STATUS) & 8
    assert host.command(Operation.LOAD, **chunk)["status"] == 0
    assert host.start(program)["detail"] == 6  # scales have been started anew and are short now


def test_start_without_a_program(program: TestProgram) -> None:
    host = Host(ReferenceDevice(program.config, program.manifest))
    assert encode(host, {"slot": 0}) == Outcome(Fault.NO_PROGRAM)
    done = host.start(program)
    assert (done["status"], done["detail"]) == (Fault.BAD_PROGRAM, 0)


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        (0, {"magic": 1}),
        (1, {"version": 0x00020000}),
        (1, {"version": 0x00010002}),
        (2, {"config_id": 1}),
        (3, {"program_id": 1}),  # another program than the manifest's
        (4, {"code_bytes": 288}),
        (4, {"code_bytes": 252}),
        (5, {"weight_bytes": 1 << 20}),
        (6, {"scale_bytes": 64}),  # less than was loaded
        (8, {"table_bytes": 9208}),
        (9, {"embed_bytes": 0xFFFFFFFC}),
        (10, {"predict_count": 1}),
        (11, {"encode_first": 1}),
        (12, {"joint_count": 300}),
        (13, {"feature_bytes": 10}),
        (13, {"vectors": 5}),
        (13, {"vectors": 0}),
        (14, {"scratch_units": 513}),
        (14, {"feature_unit": 1}),
        (15, {"enc_c_units": 1025}),
        (16, {"pred_a_units": 513}),
        (17, {"joint_enc_unit": 100}),
        (18, {"joint_pred_units": 100}),
        (19, {"classes": 0}),
        (19, {"classes": 513}),
        (19, {"blank": 37}),
        (20, {"logit_bits": 3}),
        (20, {"logit_bits": 13}),
        (21, {"sum_groups": 129}),
        (21, {"tokens": 35}),
        (21, {"blank": 0}),  # the last class can be emitted then, and has no row
        (63, {"crc": 1}),
    ],
)
def test_start_refuses_a_header(program: TestProgram, word: int, fields: dict[str, int]) -> None:
    header = HEADER.unpack(np.frombuffer(program.sections["code"], "<u4", HEADER.words))
    words = HEADER.pack(**(header | fields))
    if "crc" not in fields:
        words[-1] = zlib.crc32(words[:-1].tobytes())
    bad = make_program(11)
    bad.sections["code"] = words.tobytes()
    host = Host(ReferenceDevice(program.config, program.manifest))
    host.load(bad)
    done = host.start(bad)
    assert (done["status"], done["detail"]) == (Fault.BAD_PROGRAM, word)
    host.load(program)
    assert host.start(program)["status"] == 0


def test_images_of_another_program_are_refused(program: TestProgram) -> None:
    other = make_program(12)
    host = Host(ReferenceDevice(program.config, program.manifest))
    host.load(other)
    done = host.start(other)
    assert (done["status"], done["detail"]) == (Fault.BAD_PROGRAM, 3)


def test_rings_wrap_and_many_commands_wait(host: Host) -> None:
    """Four entries: a full ring of commands at once, many times over; tags and indices in order."""
    for _ in range(5):
        first = host.tail
        for _ in range(4):
            host.put(Operation.NOP)
        host.device.ring_doorbell(host.tail)
        assert host.register(reg.CMD_HEAD) == host.tail
        found = [host.take() for _ in range(4)]
        assert [(c["tag"], c["index"]) for c in found] == [(1000 + n, n) for n in range(first, first + 4)]


def test_a_full_completion_ring_holds_back_and_loses_nothing(host: Host) -> None:
    for _ in range(4):
        host.put(Operation.NOP)
    host.device.ring_doorbell(host.tail)
    for _ in range(3):
        host.put(Operation.NOP)
    host.device.ring_doorbell(host.tail)  # no room: these wait
    assert host.register(reg.CMD_HEAD) == host.tail - 3
    assert not host.device.wait(host.tail, 0.0)
    tags = [host.take()["tag"] for _ in range(7)]
    assert tags == [1000 + n for n in range(host.tail - 7, host.tail)]


def test_commands_wait_until_enabled(host: Host) -> None:
    host.device.write_register(reg.CONTROL.offset, 0)
    host.put(Operation.NOP)
    host.device.ring_doorbell(host.tail)
    assert host.register(reg.STATUS) & 1 == 0
    assert not host.device.wait(host.tail, 0.0)
    host.device.write_register(reg.CONTROL.offset, 1)
    assert host.take()["status"] == 0


def test_overrun_halts_and_a_soft_reset_recovers(host: Host) -> None:
    before = saved(host)
    host.put(Operation.NOP)
    host.device.ring_doorbell(host.tail + 4)
    status = host.register(reg.STATUS)
    assert status & 7 == 4  # halted, not ready
    assert (status >> 8 & 0xFF, status >> 16 & 0xFF) == (Fault.RING_OVERRUN, 1)
    assert host.register(reg.FAULT_DETAIL) == host.tail + 4
    assert host.device.wait(host.tail, 0.0)  # a halt ends the wait
    assert host.register(reg.CPL_TAIL) == host.taken
    assert host.register(reg.IRQ_STATUS) == 2
    host.device.reset()
    for register in (reg.CMD_TAIL, reg.CMD_HEAD, reg.CPL_TAIL, reg.CPL_HEAD, reg.FAULT_DETAIL, reg.CONTROL):
        assert host.register(register) == 0
    assert host.register(reg.STATUS) == 8  # disabled; the program is still current
    host.setup(2)
    assert saved(host) == before  # and so are the slots


def test_a_doorbell_that_goes_back_is_an_overrun(host: Host) -> None:
    host.device.ring_doorbell(host.tail - 1)
    assert host.register(reg.STATUS) >> 8 & 0xFF == Fault.RING_OVERRUN


def test_rings_outside_the_memory_halt(host: Host) -> None:
    host.device.write_register(reg.CPL_BASE_LO.offset, MEMORY)
    host.put(Operation.NOP, tag=77)
    host.device.ring_doorbell(host.tail)
    assert host.register(reg.STATUS) >> 8 & 0xFF == Fault.BUS_WRITE
    assert host.register(reg.FAULT_TAG) == 77
    host.device.reset()
    host.setup(2)
    host.device.write_register(reg.CMD_BASE_HI.offset, 1)
    host.device.ring_doorbell(1)
    assert host.register(reg.STATUS) >> 8 & 0xFF == Fault.BUS_READ


def test_interrupts(host: Host) -> None:
    host.command(Operation.NOP)
    assert host.register(reg.IRQ_STATUS) == 0
    host.command(Operation.NOP, flags=Flag.INTERRUPT)
    assert host.register(reg.IRQ_STATUS) == 1
    host.device.write_register(reg.IRQ_STATUS.offset, 2)
    assert host.register(reg.IRQ_STATUS) == 1
    host.device.write_register(reg.IRQ_STATUS.offset, 1)
    assert host.register(reg.IRQ_STATUS) == 0
