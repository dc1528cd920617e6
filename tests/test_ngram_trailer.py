# SPDX-License-Identifier: Apache-2.0
"""The mark of an n-gram file: its bytes, damage, other layouts; put on files, checked against models."""

from __future__ import annotations

import hashlib
import os
import signal
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import pytest
from command import environment
from ngram_files import OTHER, binary, copy, demo_pieces, written

from gharial.errors import BadInput, GharialError
from gharial.ngram import append_mark, check_file, read_file, trailer

PIECES = demo_pieces()


def mark_by_the_page(sentencepiece: bytes) -> bytes:
    """The mark as docs/ngram.md lays it out."""
    body = hashlib.sha256(sentencepiece).digest() + b"sha256\0\0"
    tail = (1).to_bytes(4, "little") + (60).to_bytes(4, "little")
    return body + zlib.crc32(body + tail).to_bytes(4, "little") + tail + b"GHNGRAM\0"


def refused(path: Path, *parts: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        check_file(path, PIECES)
    for part in (str(path), *parts):
        assert part in str(caught.value)
    return caught.value


def test_bytes_are_those_of_the_page(tmp_path: Path) -> None:
    path = copy(tmp_path)
    plain = path.read_bytes()
    assert append_mark(path, PIECES)
    assert path.read_bytes() == plain + mark_by_the_page(PIECES)
    file = check_file(path, PIECES)
    assert file.mark is not None and file.mark.digest == hashlib.sha256(PIECES).digest()
    assert (file.foreign, file.header.end, file.bytes) == (0, len(plain), len(plain) + 60)
    assert str(file.mark) == f"sha256:{hashlib.sha256(PIECES).hexdigest()}"


def test_twice_is_nothing(tmp_path: Path) -> None:
    path = copy(tmp_path)
    path.chmod(0o640)
    assert append_mark(path, PIECES)
    before = written(path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert not append_mark(path, PIECES) and not append_mark(path, PIECES, force=True)
    assert written(path) == before, "it was written"


def test_other_model(tmp_path: Path) -> None:
    path = copy(tmp_path)
    append_mark(path, OTHER)
    marked = path.read_bytes()
    ours, theirs = (hashlib.sha256(data).hexdigest() for data in (PIECES, OTHER))
    refused(path, ours, theirs, "another SentencePiece model")
    with pytest.raises(BadInput) as caught:
        append_mark(path, PIECES)
    assert all(part in str(caught.value) for part in (ours, theirs, "--force"))
    assert path.read_bytes() == marked
    assert append_mark(path, PIECES, force=True)
    assert path.read_bytes() == binary().read_bytes() + mark_by_the_page(PIECES)


@pytest.mark.parametrize("at", range(trailer.LENGTH - 8))
def test_damage_is_seen(tmp_path: Path, at: int) -> None:
    """Every byte but the magic: without that there is no mark, only bytes that are not known."""
    path = copy(tmp_path)
    append_mark(path, PIECES)
    data = bytearray(path.read_bytes())
    data[len(data) - trailer.LENGTH + at] ^= 0x10
    path.write_bytes(data)
    refused(path, "version" if 44 <= at < 48 else "damaged")
    with pytest.raises(BadInput):
        append_mark(path, PIECES)
    assert append_mark(path, PIECES, force=True)
    check_file(path, PIECES)


def test_cut_mark(tmp_path: Path) -> None:
    plain, mark = binary().read_bytes(), mark_by_the_page(PIECES)
    for kept in range(1, len(mark)):
        path = tmp_path / f"{kept}.binary"
        path.write_bytes(plain + mark[:kept])
        file = read_file(path)
        assert file.mark is None and file.foreign == kept
        path.write_bytes(plain + mark[-kept:])  # the front is missing
        if kept >= len(trailer.MAGIC):
            with pytest.raises(BadInput, match="damaged"):
                read_file(path)
        else:
            assert read_file(path).foreign == kept


def test_unknown_hash(tmp_path: Path) -> None:
    path = copy(tmp_path)
    body = bytes(32) + b"md5\0\0\0\0\0"
    tail = struct.pack("<II", 1, 60)
    mark = body + struct.pack("<I", zlib.crc32(body + tail)) + tail + b"GHNGRAM\0"
    path.write_bytes(path.read_bytes() + mark)
    refused(path, "another hash", "found md5", "sha256")


def test_unmarked_warns_once_a_file(tmp_path: Path) -> None:
    first, second = copy(tmp_path, name="a.binary"), copy(tmp_path, name="b.binary")
    notes: list[str] = []
    for path in (first, first, second, first):
        assert check_file(path, PIECES, notes.append).mark is None
    assert [note.split(" ")[0] for note in notes] == [str(first), str(second)]
    assert "is not marked" in notes[0] and "gharial ngram append" in notes[0]
    third = copy(tmp_path, name="c.binary")
    third.write_bytes(third.read_bytes() + bytes(32))
    with pytest.warns(UserWarning, match="ends in 32 bytes that are no mark"):
        check_file(third, PIECES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_file(third, PIECES)


def test_foreign_bytes_are_not_covered_up(tmp_path: Path) -> None:
    path = copy(tmp_path)
    path.write_bytes(path.read_bytes() + bytes(5000))
    with pytest.raises(BadInput, match="5000 bytes"):
        append_mark(path, PIECES)
    assert append_mark(path, PIECES, force=True)
    assert path.read_bytes() == binary().read_bytes() + mark_by_the_page(PIECES)


def test_another_layout_can_be_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare digest behind the data, say."""

    def bare(tail: bytes, _where: str) -> trailer.Mark | None:
        return trailer.Mark("sha256", tail, "bare", 32) if len(tail) == 32 else None

    path = copy(tmp_path)
    path.write_bytes(path.read_bytes() + hashlib.sha256(PIECES).digest())
    monkeypatch.setitem(trailer.LAYOUTS, "bare", bare)
    file = check_file(path, PIECES)
    assert file.mark is not None and file.mark.layout == "bare" and file.foreign == 0
    assert not append_mark(path, PIECES), "it says whom it is for already"
    with pytest.raises(BadInput, match="another SentencePiece model"):
        check_file(path, OTHER)


def test_nothing_is_lost_where_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copy(tmp_path)
    plain = path.read_bytes()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GharialError, match="No space left"):
        append_mark(path, PIECES)
    assert path.read_bytes() == plain
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_killed_half_way(tmp_path: Path) -> None:
    """The file is as it was; the unfinished new one beside it has another name."""
    path = copy(tmp_path)
    code = f"""
import os, signal
from gharial.ngram import append_mark
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
append_mark({str(path)!r}, b"pieces")
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.read_bytes() == binary().read_bytes()
    assert append_mark(path, PIECES)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        append_mark(tmp_path / "none", PIECES)
    with pytest.raises(BadInput, match="is a directory"):
        append_mark(tmp_path, PIECES)
    arpa = tmp_path / "a.arpa"
    arpa.write_text("\\data\\\nngram 1=2\n")
    for force in (False, True):
        with pytest.raises(BadInput, match="ARPA"):
            append_mark(arpa, PIECES, force=force)
