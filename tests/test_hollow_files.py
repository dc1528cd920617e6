# SPDX-License-Identifier: Apache-2.0
"""Files of a few bytes that claim gigabytes: read in no more time and memory than what is there is worth."""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_files import PROTO2, STOP, storage, tensor, text

from gharial.checkpoint import load
from gharial.errors import BadInput
from gharial.files import hollow, open_regular
from gharial.trace import read_trace

GIGA = 1 << 30
ADDRESSES = 4 * GIGA  # what a process may take in all
SECONDS = 15.0  # far below what reading gigabytes takes, far above what starting takes

Members = dict[str, bytes | int]
VERSION: Members = {"archive/version": b"3\n", "archive/byteorder": b"little"}


def sparse_zip(path: Path, members: Members) -> None:
    """A zip archive with zip64 records; of a member that is a number there are so many bytes of hole."""
    directory = b""
    with path.open("wb") as file:
        for name, content in members.items():
            at, size = file.tell(), content if isinstance(content, int) else len(content)
            crc = 0 if isinstance(content, int) else zlib.crc32(content)
            encoded = name.encode()
            sizes = (0x21, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(encoded))
            wide = struct.pack("<2H2Q", 1, 16, size, size)
            file.write(struct.pack("<4s5H3I2H", b"PK\3\4", 45, 0, 0, 0, *sizes, len(wide)) + encoded + wide)
            if isinstance(content, int):
                file.seek(size, os.SEEK_CUR)
            else:
                file.write(content)
            wide = struct.pack("<2H3Q", 1, 24, size, size, at)
            record = (0, 0, 0, *sizes, len(wide), 0, 0, 0, 0, 0xFFFFFFFF)
            directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", 45, 45, *record) + encoded + wide
        start = file.tell()
        file.write(directory + end_records(start, len(directory), len(members)))


def end_records(start: int, length: int, count: int) -> bytes:
    """What ends a zip archive whose directory lies at `start`."""
    wide = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + length, 1)
    return wide + locator + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)


def pickle_of_holes(path: Path) -> None:
    sparse_zip(path, {"archive/data.pkl": 7 * GIGA, **VERSION})


def tensor_of_holes(path: Path) -> None:
    count = 7 * GIGA // 4
    view = tensor(storage("0", count), 0, (count,), (1,))
    body = PROTO2 + b"}(" + text("state_dict") + b"}(" + text("w") + view + b"uu" + STOP
    sparse_zip(path, {"archive/data.pkl": body, **VERSION, "archive/data/0": 7 * GIGA})


def unused_holes(path: Path) -> None:
    sparse_zip(path, {"archive/data.pkl": PROTO2 + b"}" + STOP, **VERSION, "archive/data/0": 7 * GIGA})


def arrays_of_holes(path: Path) -> None:
    sparse_zip(path, dict.fromkeys(("joint_enc.npy", "prefix.npy", "tokens.npy"), 2 * GIGA))


def directory_of_holes(path: Path, size: int = 6 * GIGA) -> None:
    with path.open("wb") as file:
        file.write(b"PK\3\4" + bytes(26))
        file.seek(size, os.SEEK_CUR)
        file.write(end_records(30, size, 1))


def vast_directory(path: Path) -> None:
    directory_of_holes(path, 500 * GIGA)


def sound_of_holes(path: Path) -> None:
    size = 4 * GIGA - 256
    path.write_bytes(
        b"RIFF"
        + struct.pack("<I", size - 8)
        + b"WAVEfmt "
        + struct.pack("<I2H2I2H", 16, 1, 1, 16000, 32000, 2, 16)
        + b"data"
        + struct.pack("<I", size - 44)
    )
    os.truncate(path, size)


HOLLOW = (
    pickle_of_holes,
    tensor_of_holes,
    unused_holes,
    arrays_of_holes,
    directory_of_holes,
    vast_directory,
    sound_of_holes,
)


def inspected(*files: Path) -> list[dict[str, object]]:
    """What `gharial inspect` says of files as a process that may take no more than `ADDRESSES`."""
    words = [sys.executable, "-m", "gharial", "inspect", "--json", *map(str, files)]
    began = time.monotonic()
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=20 * SECONDS,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES)),
    )
    assert time.monotonic() - began < SECONDS, files
    assert (done.returncode, done.stderr) == (2, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def there_are_holes(folder: Path) -> bool:
    """Whether the file system makes holes, and tells of them."""
    path = folder / "probe"
    with path.open("wb") as file:
        file.truncate(GIGA)
    with path.open("rb") as probe:
        return hollow(probe, "probe", "a file") is not None


def test_files_of_holes_are_told_at_once(tmp_path: Path) -> None:
    if not there_are_holes(tmp_path):
        pytest.skip("no holes in files here")
    files = []
    for make in HOLLOW:
        files.append(tmp_path / make.__name__)
        make(files[-1])
        assert files[-1].stat().st_blocks * 512 < 1 << 20
    for path, facts in zip(files, inspected(*files), strict=True):
        assert facts["good"] is False
        problem = facts["problem"]
        assert isinstance(problem, dict)
        assert problem["what"] == "most of the file is not there"
        assert problem["where"] == str(path)
        assert f"of {path.stat().st_size:,} bytes" in problem["found"]
        assert None not in problem.values()


@pytest.mark.parametrize("make", [pickle_of_holes, tensor_of_holes, unused_holes])
def test_checkpoint_of_holes_is_refused_before_it_is_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    if not there_are_holes(tmp_path):
        pytest.skip("no holes in files here")
    path = tmp_path / "hollow.hw.pt"
    make(path)
    with pytest.raises(BadInput, match="most of the file is not there") as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_file_with_some_holes_is_taken(tmp_path: Path) -> None:
    """As `cp --sparse=always` leaves one whose optimiser has not begun: half of it zeros."""
    path = tmp_path / "half"
    with path.open("wb") as file:
        for _ in range(2):
            file.write(os.urandom(48 << 20))
            file.seek(96 << 20, os.SEEK_CUR)
        file.write(b"end")
    with open_regular(path, "a file") as half:
        assert hollow(half, "half", "a file") is None
        assert half.read(4) != b""
        assert half.tell() == 4


def test_archive_of_millions_of_members(tmp_path: Path) -> None:
    """Their directory is not made, by whoever asks what kind of archive it is neither."""
    record = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, 0x21, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0) + b"a.npy"
    count = 1_000_000
    path = tmp_path / "members.zip"
    path.write_bytes(b"PK\3\4" + bytes(26) + record * count + end_records(30, count * len(record), count))
    (facts,) = inspected(path)
    problem = facts["problem"]
    assert isinstance(problem, dict)
    assert problem["what"] == "too many members"
    assert f"{count} members" in problem["found"]
    with pytest.raises(BadInput, match="this is no trace\nfound too many members"):
        read_trace(path)
