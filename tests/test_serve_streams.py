# SPDX-License-Identifier: Apache-2.0
"""Clients of every kind beside each other: nobody's transcript depends on anybody else, and nothing is left of them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import websocket
from recordings import FILES, LONG, SHORT, cuts, samples
from serve_expected import Message, messages_of, steps_of
from serving import AUDIO, FRAME, PATIENCE_S, Running, said, serving

from gharial.recognise import StateResets, StreamOptions, load

RESETS = StreamOptions(state_resets=StateResets())


@pytest.fixture(scope="module")
def expected() -> dict[Path, list[Message]]:
    with load(decoder="beam", device="emulator:u50") as recogniser:
        return {path: messages_of(steps_of(recogniser, samples(path), RESETS), False) for path in FILES}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(max_rate=0.0, max_ahead=1 << 14, max_unread=1 << 14, unread_timeout_s=5.0) as server:
        yield server


@pytest.fixture(autouse=True)
def _nothing_is_left(running: Running) -> Iterator[None]:
    """After every test the server has no stream, and all its places are free."""
    yield
    until = time.monotonic() + PATIENCE_S
    while running.server.clients and time.monotonic() < until:
        time.sleep(0.01)
    (slot,) = running.server.hub.models[0].workers
    assert not slot.streams and slot.used == 0
    # Commands are done in their order: what is asked now is behind the last close.
    while slot.worker.recogniser.free_streams < slot.places and time.monotonic() < until:
        time.sleep(0.01)
    assert slot.worker.recogniser.free_streams == slot.places


def whole(running: Running, path: Path, random: np.random.Generator | None = None) -> tuple[list[Message], int, str]:
    client = running.connect()
    audio = samples(path).tobytes()
    for piece in cuts(audio, random, 9000) if random is not None else [audio]:
        if piece:
            client.send_binary(piece)
    client.send_binary(b"")
    return said(client)


def together(work: list[Callable[[], None]]) -> None:
    """Do things at the same time; what one of them raises is raised."""
    problems: list[BaseException] = []

    def guarded(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=guarded, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def test_many_at_once_with_every_kind_of_client_between(
    running: Running, expected: dict[Path, list[Message]], seed: int
) -> None:
    """Streams that share the device with clients that break off, send rubbish or nothing, are as if they were alone."""
    random = np.random.default_rng(seed)

    def good(path: Path, child: np.random.Generator) -> Callable[[], None]:
        def run() -> None:
            messages, code, reason = whole(running, path, child)
            assert (code, reason) == (1000, "")
            assert messages == expected[path]

        return run

    def bad(kind: int, child: np.random.Generator) -> Callable[[], None]:
        def run() -> None:
            client = running.connect()
            client.send_binary(child.bytes(int(child.integers(1, 40000))))
            if kind == 0:
                client.shutdown()  # without a word
            elif kind == 1:
                client.close()
            elif kind == 2:
                assert client.sock is not None
                client.sock.sendall(child.bytes(100) + b"\xff" * 100)  # no frame of a WebSocket
                client.shutdown()
            else:
                client.send("no audio")
                assert said(client)[1] == 1003

        return run

    children = random.spawn(20)
    work = [good(path, child) for path, child in zip(FILES[:10], children, strict=False)]
    work += [bad(number % 4, child) for number, child in enumerate(children[10:18])]
    together(work)


def test_faster_than_real_time_holds_nobody_up(running: Running, expected: dict[Path, list[Message]]) -> None:
    """Somebody sends minutes of audio at once; a live client beside them gets its reply to every frame all the same."""
    many = running.connect()
    audio = np.tile(samples(LONG), 20).tobytes()
    got: list[bytes] = []

    def hasty() -> None:
        sender = threading.Thread(target=lambda: [many.send_binary(audio[at : at + 50000]) for at in starts])
        starts = range(0, len(audio), 50000)
        sender.start()
        while len(got) < 100:
            got.append(many.recv())  # type: ignore[arg-type]
        alive.wait()
        many.shutdown()
        sender.join()

    alive = threading.Event()

    def live() -> None:
        client = running.connect()
        data = samples(SHORT).tobytes()
        messages: list[Message] = []
        for at in range(0, len(data), FRAME):
            client.send_binary(data[at : at + FRAME])
            if len(data) - at >= FRAME:
                messages.append(json.loads(client.recv()))
        alive.set()
        client.send_binary(b"")
        assert messages + said(client)[0] == expected[SHORT]

    with pytest.MonkeyPatch.context() as patch:  # the sender's connection is cut under it, which it may say
        patch.setattr(threading, "excepthook", lambda *_: None)
        together([hasty, live])


def test_who_reads_nothing_is_read_no_further_and_then_given_up(running: Running) -> None:
    """What waits for a client is bounded: its socket is not read while it does not read, and then it is closed."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # before it connects, or it grows
    client.connect(("localhost", running.server.port))
    request = (
        f"GET /asr/v0.1/stream?{AUDIO} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    client.sendall(request.encode())
    frame = websocket.ABNF.create_frame(bytes(60000), websocket.ABNF.OPCODE_BINARY).format()
    client.settimeout(PATIENCE_S)
    sent = 0
    most = 0
    with pytest.raises(ConnectionError):  # reset, or a broken pipe: the server has had enough
        while sent < 1 << 30:
            client.sendall(frame)
            sent += len(frame)
            for one in list(running.server.clients):
                most = max(most, one._unread, 0 if one.handle is None else one.handle.ahead)
    client.close()
    assert sent < 1 << 30
    assert most < (1 << 14) + (1 << 20)  # the limits, and what one message more can bring


def test_short_connections_leave_nothing(running: Running) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(60):
        client = running.connect()
        if number % 3:
            client.send_binary(bytes(700))
        client.shutdown()
    until = time.monotonic() + PATIENCE_S
    while running.server.clients and time.monotonic() < until:
        time.sleep(0.01)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2
