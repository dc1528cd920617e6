# SPDX-License-Identifier: Apache-2.0
"""Many real-time streams to a server out of one thread, cheap enough not to be what is measured.

One loop over non-blocking sockets; the WebSocket protocol is the websockets library's, without its own tasks and
queues: a frame or a reply costs about 15 us. What a reply says is looked at when all is over.
"""

from __future__ import annotations

import gc
import heapq
import random
import selectors
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from gharial.client.pace import FRAME_S
from gharial.errors import BadInput, ServerError

RAMP_S = 1.0
"""Seconds over which the streams begin: their phases are random, and no server takes all its clients in at once."""

_PATIENCE_S = 30.0  # for a server that says nothing, at any point
_RECEIVE = 1 << 16


@dataclass
class Heard:
    """One utterance, streamed.

    Attributes:
        utterance: its number.
        begun: when its first sample was spoken; seconds, as all times here.
        sent: when the last byte of each frame was handed to the system.
        replies: when each message came, and the message.
        closed: when the server had closed.
        code, reason: of its close; 1006 where there was none.
    """

    utterance: int
    begun: float = 0.0
    sent: list[float] = field(default_factory=list)
    replies: list[tuple[float, bytes]] = field(default_factory=list)
    closed: float = 0.0
    code: int = 1006
    reason: str = ""


class _Stream:
    """A place for one utterance after the other."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.heard = Heard(-1)
        self.frames: Sequence[bytes] = ()
        self.next = 0  # frame
        self.socket: socket.socket | None = None
        self.protocol: ClientProtocol | None = None
        self.writing: list[tuple[bytes, bool]] = []  # what the system did not take yet; whether a frame ends with it
        self.open = False
        self.due = 0.0


class Load:
    """Real-time streams.

    Args:
        url: address of a stream (ws://).
        headers: of each request.
        utterances: the frames of each utterance.
        streams: how many at a time.
        seconds: utterances are begun for so long; those that are on are finished. Each stream has one at least.
        seed: of phases and of the order of utterances.

    Attributes:
        late: seconds that each frame was sent after its time: the client's own doing.
        most: streams that were open at the same time.
    """

    def __init__(
        self,
        url: str,
        headers: dict[str, str],
        utterances: Sequence[Sequence[bytes]],
        streams: int,
        seconds: float,
        seed: int,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "ws":
            raise BadInput("the load is sent without TLS", "--url", url, "ws://HOST:PORT")
        self.late: list[float] = []
        self.most = 0
        self._open = 0
        self._url, self._headers = parse_uri(url), headers
        self._address = (parts.hostname or "localhost", parts.port or 80)
        self._utterances = utterances
        self._seconds = seconds
        self._random = random.Random(seed)
        self._order = self._shuffled()
        self._streams = [_Stream(number) for number in range(streams)]
        self._heap: list[tuple[float, int]] = []
        self._selector = selectors.DefaultSelector()
        self._done: list[Heard] = []
        self._ending = 0.0

    def run(self, progress: Callable[[int, int], object] = lambda done, total: None) -> list[Heard]:
        """Send and hear; what was heard, in the order of its end.

        Args:
            progress: called with the seconds done and in all.

        Raises:
            ServerError: the server does not answer, refuses a stream or falls silent.
        """
        family, kind, number, _, address = socket.getaddrinfo(*self._address, type=socket.SOCK_STREAM)[0]
        self._connect_to = family, kind, number, address
        begun = perf_counter()
        self._ending = begun + self._seconds
        for stream in self._streams:
            self._schedule(stream, begun + self._random.random() * RAMP_S)
        running, told = len(self._streams), begun
        gc.disable()  # nothing here is in circles, and a collection would show as a latency
        try:
            while running:
                now = perf_counter()
                if now - told > 1.0:
                    told = now
                    progress(min(int(now - begun), int(self._seconds)), int(self._seconds))
                while self._heap and self._heap[0][0] <= now:
                    stream = self._streams[heapq.heappop(self._heap)[1]]
                    running -= not self._act(stream)
                    now = perf_counter()
                wait = max(0.0, self._heap[0][0] - now) if self._heap else 1.0
                for key, mask in self._selector.select(wait):
                    if mask & selectors.EVENT_WRITE:
                        self._write(key.data)
                    if mask & selectors.EVENT_READ:
                        self._read(key.data)
        finally:
            gc.enable()
            self._selector.close()
            for stream in self._streams:
                if stream.socket is not None:
                    stream.socket.close()
        return self._done

    def _shuffled(self) -> Iterator[int]:
        while True:
            order = list(range(len(self._utterances)))
            self._random.shuffle(order)
            yield from order

    def _schedule(self, stream: _Stream, due: float) -> None:
        stream.due = due
        heapq.heappush(self._heap, (due, stream.number))

    def _act(self, stream: _Stream) -> bool:
        """What is due for a stream: to begin, to send a frame, or to be missed. False when it is over."""
        if stream.socket is None:
            if stream.heard.utterance >= 0 and perf_counter() >= self._ending:
                return False
            self._begin(stream)
        elif not stream.open or stream.next > len(stream.frames):
            where = f"{self._address[0]}:{self._address[1]}"
            raise ServerError(f"the server said nothing for {_PATIENCE_S:g} s", where, again=True)
        else:
            self._send_next(stream)
        return True

    def _begin(self, stream: _Stream) -> None:
        """Open a connection for the next utterance."""
        number = next(self._order)
        stream.heard, stream.frames, stream.next = Heard(number), self._utterances[number], 0
        family, kind, protocol, address = self._connect_to
        stream.socket = socket.socket(family, kind, protocol)
        stream.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            stream.socket.connect(address)  # the other end is near: a queue of its system takes us at once
        except OSError as error:
            where = f"{self._address[0]}:{self._address[1]}"
            raise ServerError(f"no server answers there: {error.strerror or error}", where, again=True) from None
        stream.socket.setblocking(False)
        self._selector.register(stream.socket, selectors.EVENT_READ, stream)
        stream.protocol = ClientProtocol(self._url, max_size=None)
        request = stream.protocol.connect()
        request.headers.update(self._headers)
        stream.protocol.send_request(request)
        self._flush(stream)
        self._schedule(stream, perf_counter() + _PATIENCE_S)

    def _send_next(self, stream: _Stream) -> None:
        assert stream.protocol is not None
        at = stream.next
        stream.next += 1
        if at == len(stream.frames):
            stream.protocol.send_binary(b"")
            self._flush(stream)
            self._schedule(stream, perf_counter() + _PATIENCE_S)
            return
        self.late.append(perf_counter() - stream.due)
        stream.protocol.send_binary(stream.frames[at])
        self._flush(stream, frame=True)
        # The end is said with the last frame: there is nothing to wait for.
        last = at + 1 == len(stream.frames)
        self._schedule(stream, stream.due if last else stream.heard.begun + (at + 2) * FRAME_S)

    def _flush(self, stream: _Stream, frame: bool = False) -> None:
        assert stream.protocol is not None
        pieces = stream.protocol.data_to_send()
        for index, piece in enumerate(pieces):
            stream.writing.append((piece, frame and index == len(pieces) - 1))
        self._write(stream)

    def _write(self, stream: _Stream) -> None:
        assert stream.socket is not None
        while stream.writing:
            piece, frame = stream.writing[0]
            try:
                if piece:
                    taken = stream.socket.send(piece)
                else:  # the protocol's sign that nothing more will be written
                    stream.socket.shutdown(socket.SHUT_WR)
                    taken = 0
            except BlockingIOError:
                self._selector.modify(stream.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, stream)
                return
            except OSError:
                stream.writing.clear()  # the server has gone; reading says so
                break
            if taken < len(piece):
                stream.writing[0] = (piece[taken:], frame)
                continue
            if frame:
                stream.heard.sent.append(perf_counter())
            del stream.writing[0]
        if self._selector.get_key(stream.socket).events != selectors.EVENT_READ:
            self._selector.modify(stream.socket, selectors.EVENT_READ, stream)

    def _read(self, stream: _Stream) -> None:
        if stream.socket is None:  # closed by what was written just now
            return
        assert stream.protocol is not None
        try:
            data = stream.socket.recv(_RECEIVE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now = perf_counter()
        protocol = stream.protocol
        if data:
            protocol.receive_data(data)
        else:
            protocol.receive_eof()
        for event in protocol.events_received():
            if isinstance(event, Response):
                self._opened(stream, now)
            elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                stream.heard.replies.append((now, bytes(event.data)))
        if data:
            self._flush(stream)
        else:
            self._over(stream, now)

    def _opened(self, stream: _Stream, now: float) -> None:
        assert stream.protocol is not None
        refused = stream.protocol.handshake_exc
        if refused is not None:
            where = f"{self._address[0]}:{self._address[1]}"
            raise ServerError(f"the server refuses streams: {refused}", where)
        stream.open = True
        self._open += 1
        self.most = max(self.most, self._open)
        stream.heard.begun = now
        self._unschedule(stream)
        self._schedule(stream, now + FRAME_S)

    def _over(self, stream: _Stream, now: float) -> None:
        assert stream.socket is not None and stream.protocol is not None
        heard, protocol = stream.heard, stream.protocol
        heard.closed = now
        try:
            heard.code, heard.reason = protocol.close_code or 1006, protocol.close_reason or ""
        except (ConnectionClosed, InvalidHandshake):
            heard.code = 1006
        if stream.open:
            self._open -= 1
        self._selector.unregister(stream.socket)
        stream.socket.close()
        stream.socket, stream.open = None, False
        stream.writing.clear()
        self._done.append(heard)
        self._unschedule(stream)
        self._schedule(stream, now + self._random.random() * FRAME_S)

    def _unschedule(self, stream: _Stream) -> None:
        self._heap = [entry for entry in self._heap if entry[1] != stream.number]
        heapq.heapify(self._heap)
