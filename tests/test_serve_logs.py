# SPDX-License-Identifier: Apache-2.0
"""The server's log: lines of JSON, no transcripts unless asked, and no wait for a disk that is full or slow."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from gharial.errors import BadInput
from gharial.serve.logs import Bridge, Log


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_event_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = Log(str(path))
    log.event("info", "stream opened", stream=3, peer="::1", model=None)
    log.event("debug", "not written")
    log.event("error", "device failed", reason='said "no"\nand stopped')
    log.close()
    log.close()
    first, second = lines(path)
    assert first.pop("time").endswith("Z")
    assert first == {"level": "info", "event": "stream opened", "stream": 3, "peer": "::1"}
    assert second["reason"] == 'said "no"\nand stopped'
    assert log.written == 2 and log.lost == 0
    again = Log(str(path), "debug")
    again.event("debug", "added")
    again.close()
    assert len(lines(path)) == 3


@pytest.mark.parametrize("asked", [False, True])
def test_transcripts_only_where_asked(tmp_path: Path, asked: bool) -> None:
    path = tmp_path / "log"
    log = Log(str(path), transcripts=asked)
    log.event("info", "final", text="right down")
    log.close()
    assert ("right down" in path.read_text()) is asked
    assert lines(path)[0].get("text") == ("right down" if asked else None)


def test_a_full_disk_is_told_once_and_counted() -> None:
    said: list[str] = []
    log = Log("/dev/full", tell=said.append)
    for number in range(2000):
        log.event("info", "line", number=number)
    log.close()
    assert log.lost == 2000 and log.written == 0
    (sentence,) = said
    assert "No space left" in sentence and "/dev/full" in sentence


def test_a_disk_with_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was written of a line when the disk became full, the next line is whole."""
    path = tmp_path / "log"
    said: list[str] = []
    written = threading.Semaphore(0)
    real, room = os.write, [30]

    def write(handle: int, data: Any) -> int:
        if threading.current_thread().name != "log":
            return real(handle, data)
        try:
            if not room[0]:
                raise OSError(28, "No space left on device")
            done = real(handle, bytes(data)[: room[0]])
            room[0] -= done
            return done
        finally:
            written.release()

    monkeypatch.setattr(os, "write", write)
    log = Log(str(path), tell=said.append)
    log.event("info", "cut")
    assert written.acquire(timeout=60) and written.acquire(timeout=60)
    while log.lost != 1:
        pass
    room[0] = 1 << 30
    log.event("info", "whole")
    log.close()
    torn, whole = path.read_text().splitlines()
    assert len(torn) == 30 and json.loads(whole)["event"] == "whole"
    assert (log.written, log.lost) == (1, 1)
    assert len(said) == 2 and "1 lines are missing" in said[1]


def test_a_reader_that_does_not_read_stops_nobody(tmp_path: Path) -> None:
    """A pipe that is full: lines wait up to the capacity, the rest is lost, and no call waits."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log = Log(str(path), capacity=100)
    for _ in range(20_000):
        log.event("info", "line", filler="x" * 100)
    assert log.lost > 0
    log.close(timeout_s=0.05)  # what cannot be written is given up
    os.close(reader)


def test_the_file_is_opened_anew_when_it_was_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gharial.serve.logs._LOOK_S", 0.0)
    path, kept = tmp_path / "log", tmp_path / "log.1"
    log = Log(str(path))
    log.event("info", "before")
    while log.written < 1:
        pass
    path.rename(kept)
    log.event("info", "after")
    log.close()
    assert [line["event"] for line in lines(kept)] == ["before"]
    assert [line["event"] for line in lines(path)] == ["after"]


def test_what_cannot_be_a_log(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "log", tmp_path):
        with pytest.raises(BadInput, match="cannot be opened"):
            Log(str(path))
    with pytest.raises(BadInput, match="no such level"):
        Log(str(tmp_path / "log"), "loud")


def test_fields_of_any_type_and_text(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = Log(str(path))
    log.event("info", "odd", path=tmp_path, name="\udcff\u2028", number=float("inf"))
    log.close()
    (line,) = path.read_bytes().splitlines()
    found = json.loads(line)
    assert found["path"] == str(tmp_path) and found["number"] == "inf"


def test_libraries_log_as_events(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = Log(str(path))
    logger = logging.getLogger("test_serve_logs")
    logger.propagate = False
    logger.addHandler(Bridge(log.event, "library", {"usual": "debug"}))
    logger.info("not written")
    logger.error("usual")
    try:
        raise ValueError("bad")
    except ValueError:
        logger.exception("failed %d", 3)
    log.close()
    (line,) = lines(path)
    assert line["level"] == "error" and line["message"] == "failed 3" and line["reason"] == "ValueError: bad"
