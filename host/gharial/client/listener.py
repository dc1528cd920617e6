# SPDX-License-Identifier: Apache-2.0
"""A source of audio heard by a server for as long as it goes on, over connections that may be lost.

When a connection is lost, or a server goes away, a new one is tried after 0.5 s, then 1, 2, 4, and every 5 s, for as
long as was asked for. Audio goes on being taken meanwhile. The new stream begins with what no final text covers yet:
what was shown provisionally is heard anew, nothing is lost as long as no more than `KEPT_S` have to be kept, and no
final text comes twice.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from gharial.client.connection import Connection
from gharial.client.pace import FRAME_BYTES, FRAME_S
from gharial.client.protocol import Reply
from gharial.errors import ServerError

KEPT_S = 30.0
"""Seconds of audio that are kept for another connection."""

MARGIN_S = 1.2
"""Silence that a server has reported may still hold a word that it has not made up its mind about."""

RETRY_S = 30.0
_WAITS = (0.5, 1.0, 2.0, 4.0, 5.0)
_AT_ONCE = 4  # frames of kept audio that are sent before replies are looked at again

_BYTES_S = FRAME_BYTES / FRAME_S


@dataclass(frozen=True)
class Heard:
    """A reply, its times counted from the begin of the source."""

    reply: Reply


@dataclass(frozen=True)
class Lost:
    """A stream was lost before it was complete.

    Attributes:
        error: why.
        wait_s: seconds until another is tried.
    """

    error: ServerError
    wait_s: float


@dataclass(frozen=True)
class Found:
    """Another stream was opened.

    Attributes:
        start_s: where in the source it begins.
        dropped_s: seconds of audio in front of that which no stream has heard to the end, as more came than is kept.
    """

    start_s: float
    dropped_s: float


Event = Heard | Lost | Found
_Item = (
    tuple[Literal["audio"], bytes]
    | tuple[Literal["end"], BaseException | None]
    | tuple[Literal["more"]]
    | tuple[Literal["reply"], int, Reply]
    | tuple[Literal["closed"], int, ServerError | None]
)


class Listener:
    """Hears a source of audio; iterate over it for what happens.

    Args:
        source: frames of s16le, in real time; taken in a thread of its own.
        connect: opens a stream, or raises ServerError.
        retry_s: seconds that a lost connection is tried again, 0 for not at all.
        clock: seconds.

    Raises:
        ServerError: while iterating: no server from the start, one that refuses the stream, or none any more.
        GharialError: while iterating, what the source raised, once the rest has been heard.
    """

    def __init__(
        self,
        source: Iterable[bytes],
        connect: Callable[[], Connection],
        retry_s: float = RETRY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.audio_s = 0.0
        self.connections = 0
        self._connect, self._retry_s, self._clock = connect, retry_s, clock
        self._source = source
        self._items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._kept: deque[bytes] = deque()
        self._kept_from = 0  # bytes of the source in front of what is kept
        self._kept_bytes = 0
        self._covered = 0  # bytes of the source that need not be sent again
        self._sent = 0  # bytes of the source that the open stream has been given
        self._begin = 0  # of it, in bytes of the source
        self._stream: Connection | None = None
        self._ended = False  # the source
        self._failure: BaseException | None = None

    def stop(self) -> None:
        """Take no more audio, and wait for the last replies; from any thread, or a signal's handler."""
        self._stopped.set()
        self._items.put(("end", None))

    def __iter__(self) -> Iterator[Event]:
        self._open()  # a server that cannot be had from the start is an error at once
        threading.Thread(target=self._take, daemon=True, name="audio").start()
        try:
            while self._stream is not None:
                yield from self._handle(self._items.get())
        finally:
            self._stopped.set()
            if self._stream is not None:
                self._stream.close()
        if self._failure is not None:
            raise self._failure

    def _take(self) -> None:
        error: BaseException | None = None
        try:
            for frame in self._source:
                if self._stopped.is_set():
                    break
                self._items.put(("audio", frame))
        except BaseException as failed:
            error = failed
        self._items.put(("end", error))

    def _handle(self, item: _Item) -> Iterator[Event]:
        if item[0] == "audio":
            if not self._ended:
                self._keep(item[1])
                self._send()
        elif item[0] == "end":
            if not self._ended:
                self._ended, self._failure = True, item[1]
                self._send()
        elif item[0] == "more":
            self._send()
        elif item[0] == "reply" and item[1] == self.connections:
            reply = item[2]
            offset = self._begin / _BYTES_S
            self._cover(reply)
            yield Heard(replace(reply, start=reply.start + offset, end=reply.end + offset))
        elif item[0] == "closed" and item[1] == self.connections:
            if item[2] is None:
                self._close()
            else:
                yield from self._lost(item[2])

    def _keep(self, frame: bytes) -> None:
        self._kept.append(frame)
        self._kept_bytes += len(frame)
        self.audio_s += len(frame) / _BYTES_S
        self._forget()

    def _forget(self) -> None:
        """Let go of frames that are covered and were sent, and of the oldest where there are too many."""
        while self._kept:
            size, end = len(self._kept[0]), self._kept_from + len(self._kept[0])
            if not (end <= min(self._covered, self._sent) or self._kept_bytes > KEPT_S * _BYTES_S):
                return
            self._kept.popleft()
            self._kept_from, self._kept_bytes = end, self._kept_bytes - size

    def _cover(self, reply: Reply) -> None:
        """What the open stream's reply says about what need not be sent again."""
        end = reply.end
        if reply.provisional and reply.text:
            return
        if not reply.text:
            end -= MARGIN_S
        self._covered = max(self._covered, self._begin + 2 * round(end * _BYTES_S / 2))
        self._forget()

    def _send(self) -> None:
        """Send what the open stream has not been given, a few frames at a time."""
        stream = self._stream
        if stream is None:
            return
        room = _AT_ONCE
        at = self._kept_from + self._kept_bytes
        waiting: list[bytes] = []
        for frame in reversed(self._kept):
            if at <= self._sent:
                break
            waiting.append(frame)
            at -= len(frame)
        try:
            while waiting and room:
                frame = waiting.pop()
                stream.send(frame)
                self._sent += len(frame)
                room -= 1
            if waiting:
                self._items.put(("more",))
            elif self._ended:
                stream.end()
        except ServerError:
            return  # the stream's reader has the same, and says so once every reply before it was taken
        self._forget()

    def _lost(self, error: ServerError) -> Iterator[Event]:
        """Try again, or raise the error that ends it all."""
        self._close()
        if not error.again:
            raise error
        gave_up, waits = self._clock() + self._retry_s, iter(_WAITS)
        wait = next(waits)
        while True:
            if self._clock() + wait > gave_up:
                raise error
            yield Lost(error, wait)
            self._pause(wait)
            try:
                self._open()
                break
            except ServerError as failed:
                if not failed.again:
                    raise
                error, wait = failed, next(waits, _WAITS[-1])
        yield Found(self._begin / _BYTES_S, max(0, self._begin - self._covered) / _BYTES_S)
        self._send()

    def _pause(self, seconds: float) -> None:
        """Wait, and take audio meanwhile."""
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0:
            try:
                item = self._items.get(timeout=left)
            except queue.Empty:
                return
            if item[0] == "audio":
                self._keep(item[1])
            elif item[0] == "end" and not self._ended:
                self._ended, self._failure = True, item[1]

    def _open(self) -> None:
        stream = self._connect()
        self.connections += 1
        self._stream = stream
        self._begin = self._sent = self._kept_from
        threading.Thread(target=self._read, args=(stream, self.connections), daemon=True, name="replies").start()

    def _close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _read(self, stream: Connection, number: int) -> None:
        error: ServerError | None = None
        try:
            for reply in stream:
                self._items.put(("reply", number, reply))
        except ServerError as failed:
            error = failed
        self._items.put(("closed", number, error))
