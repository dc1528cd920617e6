# SPDX-License-Identifier: Apache-2.0
"""Half-written files: what a killed process leaves goes later, what another is writing stays."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import IO

import pytest

from gharial.cli.paths import check_output
from gharial.files import write_atomically
from gharial.partial import clear_leftovers, partial_file

ENTRY = "0123456789abcdef" * 4 + ".gprog"  # as the cache names its entries
CACHE = re.compile(r"[0-9a-f]{48}")

WRITER = """
import sys
from gharial.files import write_atomically

def pieces():
    yield b"half of it"
    print("begun", flush=True)
    sys.stdin.readline()
    yield b", and the rest"

write_atomically(sys.argv[1], pieces())
"""


def begun(target: Path) -> subprocess.Popen[str]:
    """A process that has written half of `target`, and goes on when it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(target)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert pipe(process.stdout).readline() == "begun\n"
    return process


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", [ENTRY, "out.hw.pt", "n" * 255])
def test_what_a_killed_process_left_goes_and_what_is_being_written_stays(tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    dead, alive = begun(target), begun(target)
    try:
        dead.send_signal(signal.SIGKILL)
        dead.wait(60)
        assert len(names(tmp_path)) == 2
        check_output(str(target))
        assert len(names(tmp_path)) == 1  # the other's
        pipe(alive.stdin).write("go on\n")
        pipe(alive.stdin).close()
        assert alive.wait(60) == 0
    finally:
        for process in (dead, alive):
            process.kill()
            process.wait(60)
            for stream in (process.stdin, process.stdout):
                pipe(stream).close()
    assert names(tmp_path) == [name]
    assert target.read_bytes() == b"half of it, and the rest"


def test_the_cache_clears_its_own_alone(tmp_path: Path) -> None:
    mine = [f".{ENTRY[:48]}.{'a' * 12}.part", f".{'f' * 48}.{'0' * 12}.part"]
    others = [
        f".{ENTRY[:48]}.{'a' * 11}.part",
        f".{ENTRY[:48]}.{'A' * 12}.part",
        f".{ENTRY[:47]}.{'a' * 12}.part",
        f".out.hw.pt.{'a' * 12}.part",
        f"{ENTRY[:48]}.{'a' * 12}.part",
        ENTRY,
        "a.part",
    ]
    for name in (*mine, *others):
        (tmp_path / name).write_bytes(b"x")
    clear_leftovers(tmp_path, CACHE)
    assert names(tmp_path) == sorted(others)
    clear_leftovers(tmp_path, "out.hw.pt")
    assert f".out.hw.pt.{'a' * 12}.part" not in names(tmp_path)
    assert len(names(tmp_path)) == len(others) - 1


def test_what_is_no_file_stays(tmp_path: Path) -> None:
    link, pipe, folder = (tmp_path / f".out.{digit * 12}.part" for digit in "abc")
    (tmp_path / "kept").write_bytes(b"x")
    link.symlink_to("kept")
    os.mkfifo(pipe)
    folder.mkdir()
    clearing = threading.Thread(target=clear_leftovers, args=(tmp_path, "out"), daemon=True)
    clearing.start()
    clearing.join(60)
    assert not clearing.is_alive()  # nobody reads the pipe: waiting for it would hang
    assert (tmp_path / "kept").read_bytes() == b"x"
    assert link.is_symlink() and folder.is_dir()
    clear_leftovers(tmp_path / "not there", "out")


def test_cleared_away_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a file's making and its lock another process may take it for left over: a new one is made."""
    real, calls = fcntl.flock, []

    def late(handle: int, operation: int) -> None:
        calls.append(handle)
        if len(calls) == 1:
            monkeypatch.setattr(fcntl, "flock", real)
            clear_leftovers(tmp_path, "out")
            monkeypatch.setattr(fcntl, "flock", late)
            assert names(tmp_path) == []
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    write_atomically(tmp_path / "out", iter([b"whole"]))
    assert len(calls) == 2
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_without_locks_all_is_written_and_nothing_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    left = tmp_path / f".out.{'a' * 12}.part"
    left.write_bytes(b"x")
    clear_leftovers(tmp_path, "out")
    write_atomically(tmp_path / "out", iter([b"whole"]))
    assert names(tmp_path) == [left.name, "out"]


def test_what_is_not_renamed_is_removed(tmp_path: Path) -> None:
    def stopped() -> Generator[None, None, None]:
        with partial_file(tmp_path / "out") as (file, _):
            file.write(b"half")
            yield

    writing = stopped()
    next(writing)
    assert len(names(tmp_path)) == 1
    writing.close()
    assert names(tmp_path) == []
