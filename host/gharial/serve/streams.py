# SPDX-License-Identifier: Apache-2.0
"""A stream as its connection has it, on the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

from gharial.errors import GharialError
from gharial.serve.jobs import Job
from gharial.serve.protocol import BYTES_A_SECOND, Ask, Replies

if TYPE_CHECKING:
    from gharial.recognise import StreamOptions
    from gharial.serve.models import LoadedModel, WorkerSlot

_AHEAD_S = 1.0  # of the clock, and still live
REPLAY_S = 600.0
"""Seconds of a stream without state resets that are remembered, to be heard again after a device has failed."""


class Sink:
    """Where a stream's replies go."""

    def replies(self, messages: list[str]) -> None:
        """More replies, in order."""

    def over(self, error: GharialError | None) -> None:
        """There will be no more: all is said, or the stream has failed."""


class StreamHandle:
    """A stream as its connection has it.

    Attributes:
        ask: what its client asked for.
        model: what it is recognised with.
        peer: address of the client.
        number: of the stream, from 1, in its server.
        places: on a device, that it takes.
        slot: the worker that has it.
        started: when it was opened, by `time.perf_counter`.
        received: bytes of audio that came.
        live: whether it never came faster than it can be spoken; what did waits for itself.
        taken: those that were recognised.
        messages: replies.
    """

    def __init__(
        self, ask: Ask, model: LoadedModel, peer: str, number: int, sink: Sink, options: StreamOptions, replies: Replies
    ) -> None:
        self.ask, self.model, self.peer, self.number = ask, model, peer, number
        self.places = options.places
        self._resets = options.state_resets is not None
        self.slot: WorkerSlot | None = None
        self.started = perf_counter()
        self.live = True
        self.received = self.taken = self.messages = 0
        self._sink = sink
        self._arrivals: deque[tuple[int, float]] = deque()
        self._room: asyncio.Future[None] | None = None
        self._job: Job | None = Job(self, options, replies)

    def begin(self, slot: WorkerSlot) -> None:
        """A worker is to take the stream."""
        self._take(slot)
        slot.worker.send("open", self._job)

    def move(self, slot: WorkerSlot) -> None:
        """Another worker is to go on with the stream; what it had from its client goes with it."""
        before, job = self.slot, self._job
        assert before is not None and job is not None
        before.left(self)
        self._take(slot)
        before.worker.send("move", job, slot.worker)

    def feed(self, audio: bytes) -> None:
        """More audio, at least a byte."""
        if self._job is not None and self.slot is not None:
            now = perf_counter()
            self.received += len(audio)
            self.live = self.live and self.received <= (now - self.started + _AHEAD_S) * BYTES_A_SECOND
            self._arrivals.append((self.received, now))
            self.slot.worker.send("feed", self._job, audio)

    def end(self) -> None:
        """No more audio comes."""
        if self._job is not None and self.slot is not None:
            self.slot.worker.send("end", self._job)

    def close(self) -> None:
        """Give the stream's place back; may be called twice."""
        job, self._job = self._job, None
        if job is not None and self.slot is not None:
            self.slot.worker.send("close", job)
            self.slot.left(self)
        self._wake()

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self._job is None

    @property
    def movable(self) -> bool:
        """Whether another worker could go on with it."""
        return self._job is not None and (self._resets or self.received < (REPLAY_S - 1) * BYTES_A_SECOND)

    @property
    def ahead(self) -> int:
        """Bytes of audio that wait for the recogniser."""
        return 0 if self._job is None else self.received - self.taken

    async def room(self) -> None:
        """Wait until something of the audio was recognised, or the stream is over."""
        if self._job is not None:
            if self._room is None or self._room.done():
                self._room = asyncio.get_running_loop().create_future()
            await self._room

    def deliver(self, messages: list[str], taken: int) -> list[float]:
        """Take what came of the stream; seconds that its frames have taken."""
        self.taken += taken
        latencies: list[float] = []
        if messages:
            self.messages += len(messages)
            self._sink.replies(messages)
            now = perf_counter()
            while self._arrivals and self._arrivals[0][0] <= self.taken:
                latencies.append(now - self._arrivals.popleft()[1])
        self._wake()
        return latencies

    def finish(self, error: GharialError | None) -> None:
        """The stream is over, by itself or with an error."""
        self.close()
        self._sink.over(error)

    def _take(self, slot: WorkerSlot) -> None:
        self.slot = slot
        slot.joined(self)

    def _wake(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
