# SPDX-License-Identifier: Apache-2.0
"""Who is told what happens in a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gharial.serve.hub import StreamHandle


class Watcher:
    """Told what happens, on the event loop; does nothing here. Its methods must not raise, nor take long."""

    def refused(self, status: int, reason: str, peer: str) -> None:
        """A connection was refused with a status such as 400 or 503."""

    def opened(self, stream: StreamHandle) -> None:
        """A stream has begun."""

    def replied(self, stream: StreamHandle, messages: list[str], latencies_s: list[float]) -> None:
        """Replies were handed to the socket; seconds since the last byte of each frame among them had come."""

    def moved(self, stream: StreamHandle, before: str, after: str) -> None:
        """Another worker goes on with a stream."""

    def closed(self, stream: StreamHandle, code: int, reason: str) -> None:
        """A stream is over; code and reason of the WebSocket's close."""

    def ran(self, worker: str, streams: int, steps: int, seconds: float, queued: int) -> None:
        """A worker ran its device for that many streams and encoder steps; how many commands then waited for it."""

    def fault(self, worker: str, reason: str) -> None:
        """A device failed."""
