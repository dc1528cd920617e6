# SPDX-License-Identifier: Apache-2.0
"""The zip container: the same members as the standard library finds, and a refusal of every contradiction."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest
from checkpoint_files import DEMO, GOOD, patched

from gharial.checkpoint.ziparchive import ZipArchive
from gharial.errors import BadInput


def test_zip_members_equal_zipfile() -> None:
    data = DEMO.read_bytes()
    ours = ZipArchive(io.BytesIO(data), len(data), "demo")
    with zipfile.ZipFile(DEMO) as file:
        assert list(ours.members) == file.namelist()
        for name in file.namelist():
            assert ours.read(name) == file.read(name)


def local_record(name: bytes, payload: bytes) -> bytes:
    return struct.pack("<4s5H3I2H", b"PK\3\4", 45, 0, 0, 0, 0, zlib.crc32(payload), 0, 0, len(name), 0) + name + payload


def central_record(name: bytes, payload: bytes, size: int, offset: int, extra: bytes = b"") -> bytes:
    crc = zlib.crc32(payload)
    sizes = crc, size, size, len(name), len(extra), 0, 0, 0, 0, offset
    return struct.pack("<4s6H3I5H2I", b"PK\1\2", 45, 45, 0, 0, 0, 0, *sizes) + name + extra


def zip64(payload: bytes) -> bytes:
    """A zip of one member whose sizes and offset stand in zip64 fields, as for a member beyond 4 GiB."""
    name = b"a/data.pkl"
    local = local_record(name, payload)
    wide = 0xFFFFFFFF
    extra = struct.pack("<HHH", 0x7075, 2, 0) + struct.pack("<HH3Q", 1, 24, len(payload), len(payload), 0)
    central = central_record(name, payload, wide, wide, extra)
    end64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(central), len(local))
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(local) + len(central), 1)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, wide, wide, 0)
    return local + central + end64 + locator + end


def test_zip64_fields() -> None:
    data = zip64(b"hello")
    assert ZipArchive(io.BytesIO(data), len(data), "z").read("a/data.pkl") == b"hello"
    # The same bytes mean the same to the standard library.
    assert zipfile.ZipFile(io.BytesIO(data)).read("a/data.pkl") == b"hello"


def test_zip64_size_beyond_the_file() -> None:
    data = zip64(b"hello").replace(struct.pack("<HH2Q", 1, 24, 5, 5), struct.pack("<HH2Q", 1, 24, 1 << 60, 1 << 60))
    with pytest.raises(BadInput, match="reaches beyond the data"):
        ZipArchive(io.BytesIO(data), len(data), "z")


def overlapping() -> bytes:
    # A member inside another one's data: the way of zip bombs that share data between members.
    inner = local_record(b"a/version", b"3")
    outer = local_record(b"a/data.pkl", inner)
    central = central_record(b"a/data.pkl", inner, len(inner), 0)
    central += central_record(b"a/version", b"3", 1, len(outer) - len(inner))
    return outer + central + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 2, 2, len(central), len(outer), 0)


WIDE = zip64(b"hello")

DIRECTORY_FAULTS = {
    "locator": (patched(WIDE, b"PK\6\7", 8, b"\1"), "not where its locator"),
    "zip64-mark": (patched(WIDE, b"PK\6\6", 0, b"xx"), "zip64 end record is damaged"),
    "zip64-counts": (patched(WIDE, b"PK\6\6", 24, b"\2"), "zip64 end record is damaged"),
    "directory-moved": (patched(GOOD, b"PK\5\6", 16, b"\0"), "does not end at the end record"),
    "one-record-too-few": (patched(GOOD, b"PK\5\6", 8, b"\5\0\5\0"), "directory is cut short"),
    "record-mark": (patched(GOOD, b"PK\1\2", 0, b"xx"), "directory record is damaged"),
    "record-too-long": (patched(GOOD, b"PK\1\2", 30, b"\xff\xff"), "directory record is damaged"),
    "name": (GOOD.replace(b"archive/version", b"archive/v\xffrsion"), "name is not UTF-8"),
    "no-zip64-extra": (WIDE.replace(struct.pack("<HH", 1, 24), struct.pack("<HH", 2, 24)), "zip64 sizes are missing"),
    "short-zip64-extra": (
        WIDE.replace(struct.pack("<HH", 1, 24), struct.pack("<HH", 1, 16)),
        "zip64 sizes are missing",
    ),
    "long-zip64-extra": (WIDE.replace(struct.pack("<HH", 1, 24), struct.pack("<HH", 1, 99)), "zip64 sizes are missing"),
    "overlapping": (overlapping(), "two members overlap"),
    "header-mark": (GOOD.replace(b"PK\3\4", b"PK\3\5", 1), "header of member archive/data.pkl is damaged"),
    "header-name": (GOOD.replace(b"archive/data.pkl", b"archive/dota.pkl", 1), "contradicts the directory"),
    "header-name-length": (patched(GOOD, b"PK\3\4", 26, b"\1\0"), "header of member archive/data/0 is damaged"),
    "header-extra": (patched(GOOD, b"PK\3\4", 28, b"\xff\xff"), "header of member archive/data/0 is damaged"),
}


@pytest.mark.parametrize("name", DIRECTORY_FAULTS)
def test_directory_faults(name: str) -> None:
    data, message = DIRECTORY_FAULTS[name]
    with pytest.raises(BadInput, match=message):
        ZipArchive(io.BytesIO(data), len(data), "m")


def test_member_that_is_not_there() -> None:
    with pytest.raises(BadInput, match="a member is missing"):
        ZipArchive(io.BytesIO(GOOD), len(GOOD), "m").read("archive/absent")


def test_file_that_shrinks_while_read() -> None:
    class Shrinking(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(size)[:-1]

    with pytest.raises(BadInput, match="shrank"):
        ZipArchive(Shrinking(GOOD), len(GOOD), "m")
