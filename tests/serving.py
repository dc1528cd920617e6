# SPDX-License-Identifier: Apache-2.0
"""A server for tests, on an event loop of its own, and a client as CAIMAN-ASR's are: blocking, one reply a chunk."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import websocket

from gharial.serve import Server, Settings

T = TypeVar("T")

AUDIO = "content_type=audio/x-raw;format=S16LE;channels=1;rate=16000"
FRAME = 1920  # bytes of 60 ms
PATIENCE_S = 600.0
"""After which something that was to happen has not: only a broken server takes so long, on the busiest machine."""


class Running:
    """A server on a thread.

    Attributes:
        server: the server.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the server's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def connect(self, query: str = AUDIO, **options: Any) -> websocket.WebSocket:
        """A client's connection."""
        url = f"ws://localhost:{self.server.port}/asr/v0.1/stream?{query}"
        return websocket.create_connection(url, timeout=PATIENCE_S, **options)


@contextmanager
def serving(server: Server | None = None, **settings: Any) -> Iterator[Running]:
    """A server that listens on a free port."""
    running = Running(server or Server(Settings(port=0, **settings)))
    try:
        running.do(running.server.start())
        try:
            yield running
        finally:
            running.do(running.server.stop())
    finally:
        running.end()


def said(socket: websocket.WebSocket) -> tuple[list[dict[str, Any]], int, str]:
    """All messages until the server closes; code and reason of the close."""
    messages: list[dict[str, Any]] = []
    while True:
        kind, data = socket.recv_data()
        if kind == websocket.ABNF.OPCODE_CLOSE:
            socket.shutdown()  # its close() leaves the connection open once the server has closed
            return messages, int.from_bytes(data[:2], "big"), data[2:].decode()
        assert kind == websocket.ABNF.OPCODE_TEXT
        messages.append(json.loads(data))


def spoken(socket: websocket.WebSocket, audio: bytes) -> list[list[dict[str, Any]]]:
    """Send audio as a live client does: a frame, then a reply is waited for. The replies by frame, then the rest."""
    replies: list[list[dict[str, Any]]] = []
    for at in range(0, len(audio), FRAME):
        socket.send_binary(audio[at : at + FRAME])
        if len(audio) - at >= FRAME:
            replies.append([json.loads(socket.recv())])
    socket.send_binary(b"")
    rest, code, reason = said(socket)
    assert (code, reason) == (1000, "")
    return [*replies, rest]


def transcript(messages: list[dict[str, Any]]) -> str:
    """Final messages joined."""
    return "".join(m["alternatives"][0]["transcript"] for m in messages if not m["is_provisional"])
