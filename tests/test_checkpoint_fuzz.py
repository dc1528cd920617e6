# SPDX-License-Identifier: Apache-2.0
"""Damage at random: whatever bytes a checkpoint holds, it is read or `BadInput` is raised, in bounded memory.

Three attacks: the file itself (flipped bits, cut ends, pieces moved), its pickle behind a checksum that is made right
again (otherwise the checksum would catch every change), and pickles put together from instructions at random.
"""

from __future__ import annotations

import io
import random
import struct
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from checkpoint_files import DEMO, PROTO2, PROTO5, STOP, archive, group, integer, named, storage, tensor, text
from hypothesis import given
from hypothesis import strategies as st

from gharial.checkpoint.hardware import load_hardware
from gharial.checkpoint.unpickle import unpickle
from gharial.checkpoint.ziparchive import ZipArchive
from gharial.errors import BadInput

MEBI = 1 << 20


@contextmanager
def bounded(limit: int) -> Iterator[None]:
    """Asserts that the block takes no more than `limit` bytes at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def outcome(path: Path, data: bytes) -> str:
    """ "read", or what BadInput says; every other exception goes through."""
    path.write_bytes(data)
    with bounded(16 * MEBI):
        try:
            load_hardware(path)
        except BadInput as error:
            assert len(str(error).split("\n")) <= 3
            return error.what[:24]
    return "read"


def positions(data: bytes) -> list[int]:
    """Bytes that mean something to the zip format: headers, directory, end records, and the pickle's small parts."""
    structure = list(range(data.index(b"PK\1\2"), len(data)))
    at = data.find(b"PK\3\4")
    while at >= 0:
        structure += range(at, at + 64)
        at = data.find(b"PK\3\4", at + 1)
    return structure


def test_flipped_bytes(tmp_path: Path, seed: int) -> None:
    original = DEMO.read_bytes()
    choose = random.Random(seed)
    structure = positions(original)
    seen: Counter[str] = Counter()
    for trial in range(300):
        data = bytearray(original)
        for _ in range(choose.choice([1, 1, 1, 2, 8])):
            at = choose.choice(structure) if trial % 4 else choose.randrange(len(data))
            data[at] = choose.choice([0, 0xFF, data[at] ^ (1 << choose.randrange(8)), choose.randrange(256)])
        seen[outcome(tmp_path / "m.pt", bytes(data))] += 1
    # The trials must reach several checks, and a few changes fall into padding.
    assert len(seen) > 8, seen
    assert sum(seen.values()) == 300


def test_truncations(tmp_path: Path, seed: int) -> None:
    original = DEMO.read_bytes()
    choose = random.Random(seed)
    lengths = [*range(64), *(len(original) - n for n in range(1, 128)), *choose.sample(range(len(original)), 100)]
    for length in lengths:
        assert outcome(tmp_path / "m.pt", original[:length]) != "read"


def test_pieces_removed_doubled_and_swapped(tmp_path: Path, seed: int) -> None:
    original = DEMO.read_bytes()
    choose = random.Random(seed)
    for _ in range(100):
        a, b = sorted(choose.sample(range(len(original)), 2))
        b = min(b, a + choose.choice([1, 4, 64, 4096, 100_000]))
        piece = original[a:b]
        middle = choose.choice([b"", piece + piece, piece[::-1], bytes(len(piece))])
        outcome(tmp_path / "m.pt", original[:a] + middle + original[b:])


def test_damaged_pickle_behind_a_good_checksum(tmp_path: Path, seed: int) -> None:
    with zipfile.ZipFile(DEMO) as file:
        members = {name.split("/", 1)[1]: file.read(name) for name in file.namelist()}
    pickled = members.pop("data.pkl")
    model_at = pickled.index(b"sentpiece_model")
    # All but the bytes of the SentencePiece model, which are most of the pickle and mean nothing to it.
    structure = [*range(model_at + 40), *range(len(pickled) - 1200, len(pickled))]
    choose = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(250):
        data = bytearray(pickled)
        for _ in range(choose.choice([1, 1, 2])):
            at = choose.choice(structure)
            data[at] = choose.choice(
                [data[at] ^ (1 << choose.randrange(8)), choose.randrange(256), choose.choice(b"NJK(tuR.hq")]
            )
        seen[outcome(tmp_path / "m.pt", archive(bytes(data), extra=members))] += 1
    assert len(seen) > 15, seen


def test_damaged_piece_model(tmp_path: Path, seed: int) -> None:
    with zipfile.ZipFile(DEMO) as file:
        members = {name.split("/", 1)[1]: file.read(name) for name in file.namelist()}
    pickled = members.pop("data.pkl")
    start = pickled.index(b"sentpiece_model")
    choose = random.Random(seed)
    for _ in range(50):
        data = bytearray(pickled)
        for _ in range(20):
            data[choose.randrange(start + 30, start + 5000)] = choose.randrange(256)
        outcome(tmp_path / "m.pt", archive(bytes(data), extra=members))


WORDS = [
    *[
        bytes([code])
        for code in b"(NJKM)]}taesuRbQ.cGXBChjqr0i\x80\x85\x86\x87\x88\x89\x8a\x8c\x8d\x8e\x93\x94\x95\x81"
    ],
    text("a"),
    text("storage"),
    integer(3),
    integer(1 << 70),
    group(),
    group(integer(2), integer(3)),
    b"q\x00",
    b"h\x00",
    b"r\xff\xff\xff\xff",
    named("collections", "OrderedDict"),
    named("collections", "OrderedDict") + b")R",
    named("torch._utils", "_rebuild_tensor_v2"),
    named("torch", "FloatStorage"),
    named("os", "system"),
    storage("0", 4),
    tensor(storage("0", 4), 0, (2, 2), (2, 1)),
    struct.pack("<Q", 1 << 40),
]


@given(
    st.sampled_from([PROTO2, PROTO5]), st.lists(st.one_of(st.sampled_from(WORDS), st.binary(max_size=4)), max_size=40)
)
def test_random_instructions(head: bytes, words: list[bytes]) -> None:
    with bounded(4 * MEBI):
        try:
            unpickle(head + b"".join(words) + STOP, "m.pt", lambda ref: None)
        except BadInput as error:
            assert len(str(error).split("\n")) <= 3


@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    for candidate in (data, data + b"PK\5\6" + bytes(18)):
        with bounded(4 * MEBI), suppress(BadInput):
            ZipArchive(io.BytesIO(candidate), len(candidate), "m.pt")


def test_text_encoded_again_and_again() -> None:
    """Each call would take as much memory as its text, though the text is there once."""
    size = 2 * MEBI
    encode = named("_codecs", "encode") + b"q\x01"
    call = b"h\x01h\x00" + text("latin1") + b"\x86R"
    first = encode + text("a" * size) + b"q\x00" + text("latin1") + b"\x86R"
    assert unpickle(PROTO2 + b"](" + first + b"e" + STOP, "m.pt", lambda ref: None) == [b"a" * size]
    with bounded(16 * size), suppress(BadInput):
        unpickle(PROTO2 + b"](" + first + call * 100 + b"e" + STOP, "m.pt", lambda ref: None)
        raise AssertionError("not refused")
