# SPDX-License-Identifier: Apache-2.0
"""LOAD and START on the RTL beside a device that computes: the same word is refused, and a program is whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from compiled import program, random_dims
from random_checkpoint import SMALL
from rtl_pair import BOTH, Pair, fault, lively, pair_for
from test_emulator_loading import HEADER_FAULTS

from gharial.devices.emulator import open_emulator
from gharial.isa import _registers as reg
from gharial.isa.commands import Flag, Kind, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import HEADER, TABLE_BYTES, ProgramSpace

reference = pytest.importorskip("sim.reference", reason="needs a source checkout")

CODE = ProgramSpace.CODE


@pytest.fixture(params=BOTH)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """With a program, beside the emulator, which starts any that is sound."""
    pair = pair_for(lively(request.param), open_emulator(config(request.param)))
    yield pair
    pair.close()


def images(pair: Pair) -> dict[str, bytes]:
    """The program's spaces."""
    return lively(pair.config.name).sections


def code(pair: Pair) -> np.ndarray:
    """Its code's words."""
    return np.frombuffer(images(pair)["code"], "<u4")


def works(pair: Pair) -> None:
    """An entry of each section comes out the same, whatever the slots held before."""
    random = np.random.default_rng(3)
    features = random.integers(-99, 99, (pair.header["vectors"], pair.header["feature_bytes"]))
    pair.steps(Operation.GREEDY, [{"slot": 2, "reset": 1, "prediction": 4, "features": features}])
    pair.decode([{"slot": 2, "kind": Kind.TOKEN, "source": 4, "destination": 1, "token": 1}], k=2)
    pair.flush()
    pair.compare_slots([2], [1, 4])
    registers = (reg.PROGRAM_ID, reg.ENC_SLOTS, reg.PRED_SLOTS, reg.STATUS)
    assert [pair.rtl.read(r) for r in registers] == [pair.twin.read(r) for r in registers]


def sealed(words: np.ndarray) -> bytes:
    """The code with the header's CRC made right."""
    words = words.copy()
    words[63] = zlib.crc32(words[:63].tobytes())
    return words.tobytes()


def test_descriptors_of_load(pair: Pair) -> None:
    """What is refused leaves the program running."""
    there, size = pair.config, pair.config.window_bytes
    chunk = {"entry_lo": pair.place(bytes(range(64))), "bytes": 64, "body_crc": zlib.crc32(bytes(range(64)))}
    bad = [
        (6, 0, {}, (Fault.BAD_COMMAND, Unit.HOST, 0, 13)),
        (7, 4, {"flags": int(Flag.IN_PLACE), "entry_lo": 2}, (Fault.BAD_COMMAND, Unit.HOST, 0, 13)),
        (1, 0, {"flags": 0 if there.in_memory else int(Flag.IN_PLACE)}, (Fault.BAD_COMMAND, Unit.HOST, 0, 0)),
        (1, 4, {"bytes": 3}, (Fault.BAD_COMMAND, Unit.HOST, 0, 12)),
        (1, 0xFFFFFFFC, {}, (Fault.BAD_COMMAND, Unit.HOST, 0, 12)),
        (0, 4, {}, (Fault.BAD_COMMAND, Unit.HOST, 0, 12)),
        (1, 0, {"bytes": 62}, (Fault.BAD_COMMAND, Unit.HOST, 0, 13)),
        (1, 0, {"bytes": 0x1FFFFFFC}, (Fault.BAD_COMMAND, Unit.HOST, 0, 13)),
        (2, 0, {"entry_lo": 2}, (Fault.ADDRESS, Unit.HOST, 0, 2)),
        (2, 0, {"entry_lo": size - 60}, (Fault.ADDRESS, Unit.HOST, 0, size - 60)),
        (2, 0, {"entry_lo": 1024, "entry_hi": 1}, (Fault.ADDRESS, Unit.HOST, 0, 1024)),
        (2, 0, {"entry_lo": 0xFFFFFFF0, "entry_hi": 0xFFFFFFFF}, (Fault.ADDRESS, Unit.HOST, 0, 0xFFFFFFF0)),
    ]
    capacities = [there.code_bytes, there.weight_bytes, there.scale_bytes, there.bias_bytes, TABLE_BYTES]
    capacities.append(there.embed_bytes)
    for space, capacity in enumerate(capacities):
        bad.append((space, 0, {"bytes": capacity + 4}, (Fault.BAD_COMMAND, Unit.HOST, 0, 13)))
        end = len(images(pair)[ProgramSpace(space).name.lower()])
        bad.append((space, end, {"bytes": capacity - end + 4}, (Fault.BAD_COMMAND, Unit.HOST, 0, 13)))
        bad.append((space, end + 4, {"bytes": 0}, (Fault.BAD_COMMAND, Unit.HOST, 0, 12)))
    for space, offset, fields, expected in bad:
        values = chunk | {"space": space, "offset": offset, "flags": int(Flag.IN_PLACE) * pair.in_place(space)}
        assert fault(pair.run(Operation.LOAD, **(values | fields))) == expected, (space, offset, fields)
    works(pair)


def test_chunks_of_any_size(pair: Pair, seed: int) -> None:
    """Words one by one, whole spaces, and everything between; damaged ones are sent again; some are empty."""
    random = np.random.default_rng(seed)
    for space in ProgramSpace:
        image = images(pair)[space.name.lower()]
        at = 0
        pair.load_chunk(space, 0, b"\xff" * 4 * int(random.integers(0, 9)))  # started anew below
        while at < len(image):
            size = 4 * int(random.choice([0, 1, 2, 3, 7, 16, 17, 63, 64, 65, 400, 1024, 1025]))
            chunk = image[at : at + size]
            if random.random() < 0.2:
                longer = chunk + b"\0" * 4 * (space != ProgramSpace.TABLES)
                assert pair.load_chunk(space, at, longer, body_crc=1)["status"] == Fault.CHECKSUM
            assert pair.load_chunk(space, at, chunk)["status"] == 0
            at += len(chunk)
    assert pair.start()["status"] == 0
    works(pair)


def test_a_chunk_that_fails(pair: Pair) -> None:
    """It unloads the program and may be sent again; a space begun anew is short until it is whole again."""
    image = images(pair)["scales"]
    assert pair.load_chunk(2, 0, image[:64], body_crc=1)["status"] == Fault.CHECKSUM
    assert pair.rtl.read(reg.STATUS) & 8 == 0
    for operation in (16, 17, 18, 32, 33, 34, 35, 36):
        assert fault(pair.run(operation, k=1)) == (Fault.NO_PROGRAM, Unit.SEQUENCER, 0, 0)
    pair.start()  # the twin says whether what the chunk left counts
    assert pair.load_chunk(2, 0, image[:64])["status"] == 0
    assert pair.load_chunk(2, 128, image[128:192])["detail"] == 12
    assert fault(pair.start()) == (Fault.BAD_PROGRAM, Unit.HOST, 0, 6)
    assert pair.load_chunk(2, 64, image[64:], body_crc=1)["status"] == Fault.CHECKSUM
    assert pair.start()["detail"] == 6
    assert pair.load_chunk(2, 64, image[64:])["status"] == 0
    assert pair.start()["status"] == 0
    works(pair)


def test_an_image_that_is_not_all_there(pair: Pair) -> None:
    for space in ProgramSpace:
        image = images(pair)[space.name.lower()]
        assert pair.load_chunk(space, 0, image[:-4])["status"] == 0
        assert pair.start()["detail"] == 4 + space
        assert pair.load_chunk(space, len(image) - 4, image[-4:])["status"] == 0
        assert pair.start()["status"] == 0
    for size in (0, 4, 252):
        pair.load_chunk(CODE, 0, images(pair)["code"][:size])
        assert fault(pair.start()) == (Fault.BAD_PROGRAM, Unit.HOST, 0, 0)


@pytest.mark.parametrize("name", BOTH)
def test_before_any_program(name: str) -> None:
    pair = Pair(open_emulator(config(name)))
    refused = Fault.ADDRESS if pair.config.in_memory else Fault.BAD_PROGRAM  # weights are not where they should be
    assert fault(pair.run(Operation.START)) == (refused, Unit.HOST, 0, 0)
    assert fault(pair.run(Operation.ENCODE)) == (Fault.NO_PROGRAM, Unit.SEQUENCER, 0, 0)
    assert [pair.rtl.read(r) for r in (reg.PROGRAM_ID, reg.ENC_SLOTS, reg.PRED_SLOTS, reg.STATUS)] == [0, 0, 0, 1]
    pair.load(images(pair))
    works(pair)
    pair.close()


def test_headers_that_are_refused(pair: Pair) -> None:
    """One word of the header at fault, whatever the rest says; the program can be loaded again."""
    header = HEADER.unpack(code(pair)[:64])
    for word, fields in HEADER_FAULTS:
        changed = {
            key: value if isinstance(value, int) else header[value] if value in header else header[key] + int(value)
            for key, value in fields.items()
        }
        words = code(pair).copy()
        words[:64] = HEADER.pack(**(header | changed))
        pair.load_chunk(CODE, 0, sealed(words))
        done = pair.start()
        assert fault(done) == (Fault.BAD_PROGRAM, Unit.HOST, 0, word), changed
        assert pair.rtl.read(reg.PROGRAM_ID) == 0
    words = code(pair).copy()
    words[62] ^= 1  # no field; the CRC sees it
    pair.load_chunk(CODE, 0, words.tobytes())
    assert fault(pair.start()) == (Fault.BAD_PROGRAM, Unit.HOST, 0, 63)
    pair.load_chunk(CODE, 0, code(pair).tobytes())
    assert pair.start()["status"] == 0
    works(pair)


def test_random_headers(pair: Pair, seed: int) -> None:
    """Any value in any field: START says the same, and so do the registers."""
    random = np.random.default_rng(seed)
    header = HEADER.unpack(code(pair)[:64])
    fields = [key for key in HEADER.fields if key not in ("magic", "crc")]
    outcomes = set()
    for number in range(250):
        changed = dict(header)
        for key in random.choice(fields, int(random.integers(1, 4)) if number else 0):
            width = HEADER.fields[key].width
            near = [0, 1, changed[key] + 1, max(0, changed[key] - 1), (1 << width) - 1, changed[key] * 2]
            near += [int(random.integers(0, 1 << min(width, 10))), int(random.integers(0, 1 << width))]
            changed[key] = int(random.choice(near)) % (1 << width)
        words = code(pair).copy()
        words[:64] = HEADER.pack(**changed)
        pair.load_chunk(CODE, 0, sealed(words))
        done = pair.start()
        outcomes.add(done["detail"] if done["status"] else -1)
        for register in (reg.PROGRAM_ID, reg.ENC_SLOTS, reg.PRED_SLOTS, reg.STATUS):
            assert pair.rtl.read(register) == pair.twin.read(register), (register.name, changed)
    assert len(outcomes) > 8 and -1 in outcomes
    pair.load_chunk(CODE, 0, code(pair).tobytes())
    assert pair.start()["status"] == 0
    works(pair)


@pytest.mark.parametrize("name", BOTH)
def test_a_program_after_another(name: str, seed: int) -> None:
    """Larger and smaller ones by turns on one device: nothing of the one before is left, and all slots are free."""
    random = np.random.default_rng(seed)
    pair: Pair | None = None
    for number in range(5):
        p = program(int(random.integers(1 << 30)), name, random_dims(random) if number % 2 else SMALL)
        twin = reference.ReferenceDevice(p.config, p.manifest)
        pair = Pair(twin, pair.rtl.device if pair else None)  # type: ignore[arg-type]
        pair.load(p.sections, int(random.choice([1000, 4096, 8192])))
        assert not any(pair.live(slot, prediction) for slot in range(8) for prediction in (False, True))
        works(pair)
        pair.slots(Operation.RESET, range(5))
        pair.flush()
        assert pair.start()["status"] == 0  # again
        assert not any(pair.live(slot, prediction) for slot in range(5) for prediction in (False, True))
        pair.rtl.device.reset()
    assert pair is not None
    pair.close()


def test_load_and_start_wait_for_what_is_under_way(pair: Pair) -> None:
    """Queued behind streams at work, in one ring of the bell."""
    random = np.random.default_rng(1)
    image = images(pair)["embedding"]
    for _ in range(3):
        features = random.integers(-99, 99, (2, 12))
        pair.steps(Operation.GREEDY, [{"slot": 1, "reset": 1, "prediction": 1, "features": features}], k=9)
        there = pair.in_place(ProgramSpace.EMBEDDING)
        at = pair.places[ProgramSpace.EMBEDDING] if there else pair.place(image)
        pair.post(Operation.LOAD, entry_lo=at, bytes=len(image), space=5, body_crc=zlib.crc32(image),
                  flags=int(Flag.IN_PLACE) if there else 0)  # fmt: skip
        pair.steps(Operation.GREEDY, [{"slot": 1, "prediction": 1, "features": features}])
        pair.post(Operation.START, **pair.addresses())
        pair.steps(Operation.GREEDY, [{"slot": 1, "prediction": 1, "features": features}])
        pair.steps(Operation.GREEDY, [{"slot": 1, "reset": 1, "prediction": 1, "features": features}])
        found = [done["status"] for done in pair.flush()]
        assert found == [0, 0, Fault.NO_PROGRAM, 0, Fault.BAD_SLOT, 0]
