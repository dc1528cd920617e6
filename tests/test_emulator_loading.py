# SPDX-License-Identifier: Apache-2.0
"""LOAD and START on the emulator: what is refused, with which word, and what an interrupted load leaves behind."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pytest
from emulator_host import HIGH, STAGING, Host
from emulator_program import Images, Sizes, network, sealed

from gharial.devices.emulator import open_emulator
from gharial.isa import _registers as reg
from gharial.isa.commands import Flag, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import HEADER, ProgramSpace


def made(name: str = "tiny") -> Images:
    return network(config(name), np.random.default_rng(5), Sizes(classes=64))[0]


IMAGES = made()


@pytest.fixture
def host() -> Host:
    return Host(open_emulator(config("tiny")))


def load(host: Host, space: int, offset: int, chunk: bytes, **fields: int) -> tuple[int, int, int]:
    host.device.write_memory(STAGING, chunk)
    values = {"address": STAGING, "offset": offset, "bytes": len(chunk), "space": space, "body_crc": zlib.crc32(chunk)}
    done = host.send(Operation.LOAD, **(values | fields))
    return done["status"], done["unit"], done["detail"]


def load_all(host: Host, images: Images) -> None:
    for space, image in enumerate(images.spaces):
        for offset in range(0, len(image), 8192):
            assert load(host, space, offset, image[offset : offset + 8192]) == (0, 0, 0)


GOOD = (0, 0, 0)
REFUSED = Fault.BAD_COMMAND, Unit.HOST


def test_load_fields(host: Host) -> None:
    chunk = bytes(64)
    assert load(host, 6, 0, chunk) == (*REFUSED, 13)
    assert load(host, 7, 4, chunk, flags=Flag.IN_PLACE) == (*REFUSED, 13)  # the space comes first
    assert load(host, 1, 0, chunk, flags=Flag.IN_PLACE) == (*REFUSED, 0)
    assert load(host, 1, 4, chunk) == (*REFUSED, 12)  # nothing is there before it
    assert load(host, 1, 0, chunk[:62]) == (*REFUSED, 13)
    capacity = host.config.scale_bytes
    assert load(host, 2, 0, chunk, bytes=capacity + 4) == (*REFUSED, 13)
    assert load(host, 2, 0, chunk, address=2) == (Fault.ADDRESS, Unit.HOST, 2)
    outside = host.config.window_bytes - 60
    assert load(host, 2, 0, chunk, address=outside) == (Fault.ADDRESS, Unit.HOST, outside)
    assert load(host, 2, 0, chunk, entry_hi=1) == (Fault.ADDRESS, Unit.HOST, STAGING)
    assert load(host, 2, 0, chunk, body_crc=1) == (Fault.CHECKSUM, Unit.HOST, zlib.crc32(chunk))
    assert load(host, 2, 0, chunk) == GOOD
    assert load(host, 2, 64, chunk) == GOOD


def test_chunks_come_in_order(host: Host) -> None:
    """A failed chunk is sent again; a gap or a step back is refused; offset 0 starts anew."""
    chunk = bytes(range(64))
    assert load(host, 1, 0, chunk) == GOOD
    assert load(host, 1, 128, chunk) == (*REFUSED, 12)
    assert load(host, 1, 64, chunk, body_crc=0)[0] == Fault.CHECKSUM
    assert load(host, 1, 64, chunk) == GOOD
    assert load(host, 1, 64, chunk) == (*REFUSED, 12)
    assert load(host, 1, 0, chunk) == GOOD
    assert load(host, 1, 64, chunk) == GOOD


def test_start_makes_the_program_current(host: Host) -> None:
    assert host.send(Operation.START)["status"] == Fault.BAD_PROGRAM
    assert [host.read(r) for r in (reg.PROGRAM_ID, reg.ENC_SLOTS, reg.PRED_SLOTS)] == [0, 0, 0]
    load_all(host, IMAGES)
    assert host.read(reg.STATUS) >> 3 & 1 == 0
    assert host.slots(Operation.RESET, [0])["status"] == Fault.NO_PROGRAM
    host.done(Operation.START)
    assert host.read(reg.STATUS) >> 3 & 1 == 1
    assert host.read(reg.PROGRAM_ID) == IMAGES.header["program_id"]
    host.done(Operation.START)  # again: all slots are free
    assert host.slots(Operation.RESET, [0])["status"] == Fault.NONE


def test_load_unloads(host: Host) -> None:
    """A LOAD that passes its checks does, even with a bad chunk; another leaves the program running."""
    host.load(IMAGES)
    assert load(host, 0, 4096, b"1234")[0] == Fault.BAD_COMMAND
    assert load(host, 0, 0, b"1234", address=1 << 20)[0] == Fault.ADDRESS
    assert host.slots(Operation.RESET, [0])["status"] == Fault.NONE
    assert load(host, 4, 0, bytes(64), body_crc=1)[0] == Fault.CHECKSUM
    assert host.read(reg.PROGRAM_ID) == 0
    for operation in (Operation.ENCODE, Operation.DECODE, Operation.GREEDY, Operation.SAVE):
        done = host.send(operation)
        assert (done["status"], done["unit"]) == (Fault.NO_PROGRAM, Unit.SEQUENCER)


def altered(change: Callable[[dict[str, int]], dict[str, int]]) -> Images:
    header = HEADER.unpack(np.frombuffer(IMAGES.spaces[0], "<u4", HEADER.words))
    header |= change(header)
    return IMAGES.with_code(sealed(HEADER.pack(**header)) + IMAGES.spaces[0][HEADER.bytes :])


HEADER_FAULTS: list[tuple[int, dict[str, int | str]]] = [
    (0, {"magic": 0x50524846}),
    (1, {"version": 0x00010002}),
    (1, {"version": 0x00020000}),
    (1, {"version": 0x00000000}),
    (2, {"config_id": 1}),
    (4, {"code_bytes": "-32"}),
    (5, {"weight_bytes": "-64"}),
    (6, {"scale_bytes": "+64"}),
    (7, {"bias_bytes": "-4"}),
    (8, {"table_bytes": 0}),
    (9, {"embed_bytes": "-4"}),
    (10, {"predict_count": 256}),
    (10, {"predict_first": 1000}),
    (11, {"encode_count": "+20"}),
    (12, {"joint_first": 0xFFFF}),
    (13, {"vectors": 0}),
    (13, {"vectors": 5}),
    (13, {"feature_bytes": "+1"}),
    (13, {"feature_bytes": 0}),
    (14, {"scratch_units": 513}),
    (14, {"feature_unit": "+500"}),
    (15, {"enc_a_units": 513}),
    (15, {"enc_c_units": 1025}),
    (16, {"pred_a_units": 0xFFFF}),
    (17, {"joint_enc_unit": "+1"}),
    (17, {"joint_enc_units": 0xFFFF}),
    (18, {"joint_pred_unit": "+1"}),
    (19, {"classes": 0}),
    (19, {"classes": 513}),
    (19, {"blank": "classes"}),
    (20, {"logit_bits": 3}),
    (20, {"logit_bits": 13}),
    (21, {"sum_groups": 129}),
    (21, {"tokens": "-1"}),
    (21, {"blank": 0}),  # the last class can be emitted then, and has no row
]


@pytest.mark.parametrize(("word", "fields"), HEADER_FAULTS, ids=lambda v: str(v))
def test_header_is_checked(host: Host, word: int, fields: dict[str, int | str]) -> None:
    def change(header: dict[str, int]) -> dict[str, int]:
        return {
            key: value if isinstance(value, int) else header[value] if value in header else header[key] + int(value)
            for key, value in fields.items()
        }

    load_all(host, altered(change))
    done = host.send(Operation.START)
    assert (done["status"], done["unit"], done["detail"]) == (Fault.BAD_PROGRAM, Unit.HOST, word)
    assert host.read(reg.PROGRAM_ID) == 0
    load_all(host, altered(lambda header: {}))
    assert host.send(Operation.START)["status"] == Fault.NONE


def test_header_crc(host: Host) -> None:
    code = bytearray(IMAGES.spaces[0])
    code[4 * 62] ^= 1  # a word that nothing looks at
    load_all(host, IMAGES.with_code(bytes(code)))
    done = host.send(Operation.START)
    assert (done["status"], done["detail"]) == (Fault.BAD_PROGRAM, 63)


def test_an_image_that_is_not_all_there(host: Host) -> None:
    for space in ProgramSpace:
        spaces = list(IMAGES.spaces)
        spaces[space] = spaces[space][:-64]
        load_all(host, Images(spaces, IMAGES.header))
        done = host.send(Operation.START)
        assert (done["status"], done["detail"]) == (Fault.BAD_PROGRAM, 4 + space)
    load_all(host, IMAGES.with_code(IMAGES.spaces[0][:252]))
    assert host.send(Operation.START)["detail"] == 0


def test_in_place() -> None:
    """Weights and embedding stay where the host put them: LOAD checks them there, START must name the same place."""
    host = Host(open_emulator(config("kv260"), 64 << 20))
    images = made("kv260")
    assert load(host, 1, 0, bytes(64)) == (*REFUSED, 0)
    assert load(host, 0, 0, bytes(64), flags=Flag.IN_PLACE) == (*REFUSED, 0)
    host.load(images)
    bases = {1: HIGH, 5: HIGH + (len(images.spaces[1]) + 63) // 64 * 64}
    good = host.start_fields(bases, host.state)
    for field, wrong in (("entry_lo", good["entry_lo"] + 64), ("feature_lo", good["feature_lo"] - 64),
                         ("result_lo", good["result_lo"] + 4), ("result_lo", (64 << 20) - 4096)):  # fmt: skip
        done = host.send(Operation.START, **(good | {field: wrong}))
        assert (done["status"], done["unit"], done["detail"]) == (Fault.ADDRESS, Unit.HOST, wrong)
    assert host.slots(Operation.RESET, [0])["status"] == Fault.NONE  # the program before is still current
    crc = zlib.crc32(host.device.read_memory(HIGH, 64))
    fields = {"address": HIGH, "flags": Flag.IN_PLACE, "bytes": 64}
    assert load(host, 1, 0, b"", **fields, body_crc=crc ^ 1) == (Fault.CHECKSUM, Unit.HOST, crc)
    host.load(images)
    host.done(Operation.START, **good)


def test_scattered_chunks_are_no_space() -> None:
    """Each LOAD may name any address, but the whole must lie in one piece."""
    host = Host(open_emulator(config("kv260"), 64 << 20))
    images = made("kv260")
    host.load(images)
    half = len(images.spaces[1]) // 2
    for offset, address in ((0, HIGH), (half, HIGH + half + 64)):
        chunk = images.spaces[1][offset : offset + half]
        host.device.write_memory(address, chunk)
        host.done(Operation.LOAD, address=address, offset=offset, bytes=len(chunk), space=1,
                  body_crc=zlib.crc32(chunk), flags=Flag.IN_PLACE)  # fmt: skip
    done = host.send(Operation.START, **host.start_fields({1: HIGH, 5: host.state}, host.state))
    assert done["status"] == Fault.ADDRESS
