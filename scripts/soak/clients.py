# SPDX-License-Identifier: Apache-2.0
"""Clients: some that behave, whose every reply is checked, and some of every kind that does not."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

AUDIO = "content_type=audio/x-raw;format=S16LE;channels=1;rate=16000"
FRAME = 1920
BYTES_A_SECOND = 32000
_REQUEST = (
    "GET /asr/v0.1/stream?{query} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@dataclass
class Clients:
    """All clients of a run.

    Attributes:
        port: of the server.
        audio: recordings by name, s16le.
        expected: what the server must reply to each, message by message.
        random: decides what comes when.
        counts: connections by kind.
        wrong: what should not have been.
    """

    port: int
    audio: Mapping[str, bytes]
    expected: Mapping[str, list[str]]
    random: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def kinds(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """All that does not behave, by name."""
        return {
            "short": self.short,
            "abrupt": self.abrupt,
            "half_open": self.half_open,
            "silent": self.silent,
            "slow_reader": self.slow_reader,
            "garbage": self.garbage,
            "garbage_frames": self.garbage_frames,
            "invalid": self.invalid,
            "odd": self.odd,
            "fast": self.fast,
            "page": self.page,
        }

    async def one(self, kind: str) -> None:
        """A connection of this kind, from beginning to end."""
        self.counts[kind] += 1
        with suppress(OSError, WebSocketException, asyncio.IncompleteReadError):
            await self.kinds()[kind]()

    # --- Those whose replies are checked -----------------------------------------------------------------------------

    async def behaved(self, live: bool = True) -> None:
        """A stream in real time, in pieces of any length; every message must be as it should."""
        self.counts["behaved"] += 1
        name = self.random.choice(sorted(self.audio))
        audio, got = self.audio[name], list[str]()
        loop = asyncio.get_running_loop()
        try:
            async with self._connected() as link:
                reading = loop.create_task(self._read(link, got))
                began, at = loop.time(), 0
                while at < len(audio):
                    size = self.random.randint(1, 3 * FRAME)
                    await link.send(audio[at : at + size])
                    at += size
                    if live:
                        await asyncio.sleep(max(0.0, began + at / BYTES_A_SECOND - loop.time()))
                await link.send(b"")
                await reading
                code = link.close_code
        except (OSError, WebSocketException) as error:
            self.wrong.append(f"{name}: {type(error).__name__}: {error}")
            return
        if code != 1000:
            self.wrong.append(f"{name}: closed with {code} {link.close_reason}")
        elif got != self.expected[name]:
            self.wrong.append(f"{name}: {len(got)} messages, not the {len(self.expected[name])} that are right")

    async def fast(self) -> None:
        """All at once, many times faster than real time."""
        await self.behaved(live=False)

    async def odd(self) -> None:
        """Pieces of a byte and other lengths that are no samples; the text must be as it should."""
        name = min(self.audio, key=lambda name: len(self.audio[name]))
        audio, got, at = self.audio[name], list[str](), 0
        async with self._connected() as link:
            reading = asyncio.get_running_loop().create_task(self._read(link, got))
            while at < len(audio):
                size = self.random.choice((1, 3, 7, 333, 1919, 1921, 5001))
                await link.send(audio[at : at + size])
                at += size
            await link.send(b"")
            await reading
        if got != self.expected[name]:
            self.wrong.append(f"{name} in odd pieces: {len(got)} messages, not the {len(self.expected[name])}")

    # --- Those that do not behave ------------------------------------------------------------------------------------

    async def short(self) -> None:
        """A few frames, an end, and the close is waited for."""
        async with self._connected() as link:
            for _ in range(self.random.randint(0, 8)):
                await link.send(self._piece(FRAME))
            await link.send(b"")
            await self._read(link, [])

    async def abrupt(self) -> None:
        """Gone in the middle of it, with a reset or without a word."""
        async with self._connected() as link:
            for _ in range(self.random.randint(0, 12)):
                await link.send(self._piece(self.random.randint(1, 5000)))
            await asyncio.sleep(self.random.choice((0.0, 0.01, 0.1)))
            raw = link.transport.get_extra_info("socket")
            if self.random.random() < 0.5:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.transport.abort()

    async def half_open(self) -> None:
        """A connection on which nothing comes, or half a request."""
        request = _REQUEST.format(query=AUDIO).encode()
        await self._raw(request[: self.random.randint(0, len(request) - 1)], self.random.uniform(0.0, 4.0))

    async def silent(self) -> None:
        """A stream without audio, or whose audio stops."""
        async with self._connected() as link:
            if self.random.random() < 0.5:
                await link.send(self._piece(FRAME))
            await asyncio.wait([asyncio.ensure_future(link.wait_closed())], timeout=self.random.uniform(0.0, 4.0))

    async def slow_reader(self) -> None:
        """Sends and does not read."""
        audio = self._piece(self.random.randint(1, 20) * BYTES_A_SECOND)
        frames = [_frame(2, audio[at : at + FRAME]) for at in range(0, len(audio), FRAME)]
        request = _REQUEST.format(query=AUDIO).encode()
        await self._raw(request + b"".join(frames), self.random.uniform(0.5, 4.0), small=True)

    async def garbage(self) -> None:
        """Bytes that are no request."""
        await self._raw(self.random.randbytes(self.random.randint(1, 20000)), 0.2)

    async def garbage_frames(self) -> None:
        """A good request, and then what is no frame, a frame that is not masked, text, or one that is too long."""
        after = self.random.choice(
            (
                self.random.randbytes(self.random.randint(2, 3000)),
                b"\x82\x04abcd",
                b"\xf3\x80aaaa",
                _frame(1, b"hello"),
                b"\x82\xff\x7f" + bytes(7) + b"abcd",
                b"\x82\xff" + struct.pack(">Q", 1 << 40) + b"abcd",
                _frame(9, b"x" * 126),
            )
        )
        await self._raw(_REQUEST.format(query=AUDIO).encode() + after, 0.5)

    async def invalid(self) -> None:
        """A request for what there is not."""
        query = self.random.choice(
            ("", AUDIO.replace("16000", "8000"), f"{AUDIO}&model=none", f"{AUDIO}&alternatives=x")
        )
        async with self._connected(query) as link:
            await self._read(link, [])

    async def page(self) -> None:
        """A page, or none of that name."""
        path = self.random.choice(("/health", "/ready", "/metrics", "/load", "/none"))
        await self._raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), 1.0)

    # --- Parts -------------------------------------------------------------------------------------------------------

    def _connected(self, query: str = AUDIO) -> connect:
        return connect(
            f"ws://localhost:{self.port}/asr/v0.1/stream?{query}",
            compression=None,
            ping_interval=None,
            open_timeout=120,
            close_timeout=120,
        )

    async def _read(self, link: ClientConnection, got: list[str]) -> None:
        with suppress(ConnectionClosed):
            while True:
                message = await link.recv()
                assert isinstance(message, str)
                got.append(message)

    def _piece(self, size: int) -> bytes:
        audio = self.audio[self.random.choice(sorted(self.audio))]
        return (audio * (size // len(audio) + 1))[:size]

    async def _raw(self, data: bytes, hold_s: float, small: bool = False) -> None:
        """Send bytes, read nothing (or what comes), stay a while, go."""
        raw = socket.socket()
        if small:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(raw, ("127.0.0.1", self.port))
            with suppress(TimeoutError):
                await asyncio.wait_for(loop.sock_sendall(raw, data), max(hold_s, 0.2))
                if not small:
                    await asyncio.wait_for(self._drained(raw), hold_s)
                else:
                    await asyncio.sleep(hold_s)
        finally:
            raw.close()

    async def _drained(self, raw: socket.socket) -> None:
        while await asyncio.get_running_loop().sock_recv(raw, 1 << 16):
            pass


def _frame(opcode: int, payload: bytes) -> bytes:
    """A masked frame, the mask zero."""
    size = len(payload)
    if size < 126:
        head = bytes([0x80 | opcode, 0x80 | size])
    elif size < 1 << 16:
        head = bytes([0x80 | opcode, 0x80 | 126]) + struct.pack(">H", size)
    else:
        head = bytes([0x80 | opcode, 0x80 | 127]) + struct.pack(">Q", size)
    return head + bytes(4) + payload
