# SPDX-License-Identifier: Apache-2.0
"""One client's WebSocket: audio to its stream, replies back, never more of either in memory than was agreed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from socket import SO_SNDBUF, SOL_SOCKET
from time import monotonic

from websockets.asyncio.connection import broadcast
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from gharial.errors import GharialError, Refused
from gharial.serve import protocol
from gharial.serve.hub import BUSY, INVALID, Hub, Sink, StreamHandle
from gharial.serve.limits import Pace

BYTES_A_SECOND = 32000

_KERNEL = 1 << 16  # bytes of replies
_LOOK_S = 0.05
_FAILED = 500
_LOST = 1006  # what a connection that was not closed counts as


class Socket(ServerConnection):
    """A connection, and the place that it may have.

    Attributes:
        leave: gives the place back; None where it has none.
        gone: done once the connection is.
    """

    leave: Callable[[], object] | None = None
    gone: asyncio.Future[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what the kernel holds of replies that nobody reads small; it would let it grow to megabytes."""
        self.gone = asyncio.get_running_loop().create_future()
        if (socket := transport.get_extra_info("socket")) is not None:
            socket.setsockopt(SOL_SOCKET, SO_SNDBUF, _KERNEL)
        super().connection_made(transport)

    def release(self) -> None:
        """Give the place back; may be called again."""
        leave, self.leave = self.leave, None
        if leave is not None:
            leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone, however it went."""
        self.release()
        if not self.gone.done():
            self.gone.set_result(None)
        super().connection_lost(exc)


class Client(Sink):
    """A connection that was accepted.

    Args:
        socket: the connection.
        hub: gives it a stream.

    Attributes:
        handle: its stream, None before it has one.
        began: when it was accepted, on the monotonic clock.
        heard: when its last message came.
    """

    def __init__(self, socket: Socket, hub: Hub) -> None:
        self._socket, self._hub = socket, hub
        self._closing: asyncio.Task[None] | None = None
        self._farewell = protocol.CLOSE_DONE, ""
        self._lost = ""
        self._ended = False
        self.handle: StreamHandle | None = None
        self.began = self.heard = monotonic()

    async def serve(self, ask: protocol.Ask | Refused) -> None:
        """Serve the client until the connection is closed."""
        peer = peer_of(self._socket)
        try:
            if isinstance(ask, Refused):
                raise ask
            self.handle = self._hub.open(ask, peer, self)
        except Refused as refused:
            code = protocol.CLOSE_BUSY if refused.status == BUSY else protocol.CLOSE_INVALID
            self._hub.watcher.refused(refused.status, refused.logged, peer)
            await self._socket.close(code, protocol.close_reason(refused.status, refused.reason))
            return
        try:
            await self._listen(self.handle)
        except ConnectionClosed:
            pass
        finally:
            self.handle.close()
            if self._closing is not None:
                await self._closing
            code = self._socket.close_code or _LOST
            self._hub.watcher.closed(self.handle, code, self._socket.close_reason or self._lost)

    async def _listen(self, handle: StreamHandle) -> None:
        limits = self._hub.settings
        pace = Pace(limits.max_rate, limits.max_burst_s, self.began)
        async for message in self._socket:
            self.heard = monotonic()
            if self._ended:
                continue
            if isinstance(message, str):
                reason = protocol.close_reason(INVALID, "text: audio comes in binary frames")
                await self._socket.close(protocol.CLOSE_TEXT, reason)
                return
            if not message:
                self._ended = True
                handle.end()
                continue
            handle.feed(bytes(message))
            if self._unread > limits.max_unread:
                await self._read(limits.max_unread, limits.unread_timeout_s)
            while handle.ahead > limits.max_ahead:
                await handle.room()
            if wait := pace.take(len(message) / BYTES_A_SECOND, self.heard):
                self.heard += wait  # it is not the client that is silent
                # Nothing is read meanwhile, which stops the client's sending.
                await asyncio.wait({self._socket.gone}, timeout=wait)
            self.heard = monotonic()

    @property
    def _unread(self) -> int:
        """Bytes of replies that wait for the client."""
        return self._socket.transport.get_write_buffer_size()

    async def _read(self, most: int, timeout: float) -> None:
        """Wait for the client to read."""
        left, since = self._unread, monotonic()
        while self._unread > most:
            await asyncio.sleep(_LOOK_S)
            if self._unread < left:
                left, since = self._unread, monotonic()
            elif monotonic() - since > timeout:
                self._given_up()
                return

    def replies(self, messages: list[str]) -> None:
        """See `Sink`."""
        for message in messages:
            broadcast((self._socket,), message)

    def over(self, error: GharialError | None) -> None:
        """See `Sink`."""
        self._socket.release()  # before the client hears of it: it may come again at once
        if error is None:
            self._close(*self._farewell)
        else:
            self._close(protocol.CLOSE_FAILED, protocol.close_reason(_FAILED, str(error)))

    def finish(self, code: int, reason: str) -> None:
        """End the stream as if its client had: what was heard is told, then the connection is closed so."""
        if self._ended or self.handle is None:
            return
        self._ended = True
        self._farewell = code, reason
        self.handle.end()

    def abort(self) -> None:
        """Drop the connection as it is."""
        self._socket.transport.abort()

    @property
    def ended(self) -> bool:
        """Whether no more audio is taken."""
        return self._ended

    def _close(self, code: int, reason: str) -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._say_goodbye(code, reason))

    async def _say_goodbye(self, code: int, reason: str) -> None:
        """Close the connection once the client has read everything; as it is, if it reads nothing any more."""
        closing = asyncio.get_running_loop().create_task(self._socket.close(code, reason))
        left = self._unread
        while not (await asyncio.wait({closing}, timeout=self._hub.settings.unread_timeout_s))[0]:
            if self._unread >= left:
                self._given_up()
            left = self._unread

    def _given_up(self) -> None:
        self._lost = "replies are not read"
        self.abort()


def peer_of(socket: ServerConnection) -> str:
    """Address of a client, for logs."""
    address = socket.remote_address
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) and len(address) >= 2 else str(address or "")
