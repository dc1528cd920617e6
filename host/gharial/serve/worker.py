# SPDX-License-Identifier: Apache-2.0
"""A model on a device, on a thread of its own: commands in, replies out, both in order.

The thread takes whatever has come, feeds it, runs the device for all streams together, and hands what came out to the
event loop in one piece. While it works the next audio comes in; so batches grow with the load. Of one stream no more
than `QUANTUM` is fed at a time: one that sends faster than real time does not hold the others up.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gharial.errors import GharialError
from gharial.serve.protocol import Replies

if TYPE_CHECKING:
    from gharial.recognise import Recogniser, Stream, StreamOptions

QUANTUM = 4 * 1920
"""Bytes of a stream that are fed at a time: four encoder steps of 16 kHz."""


@dataclass(eq=False)
class Job:
    """A stream as its worker has it; touched by the worker's thread alone.

    Attributes:
        handle: whom its outcomes are for.
        options: of the stream.
        replies: makes its messages.
        stream: the stream, None before it was opened and after it was closed.
        audio: pieces that wait.
        ended: whether no more will come.
    """

    handle: object
    options: StreamOptions
    replies: Replies
    stream: Stream | None = None
    audio: deque[bytes] = field(default_factory=deque)
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a stream.

    Attributes:
        handle: of the stream.
        messages: replies.
        taken: bytes of audio that were fed.
        done: whether it is over.
        error: why it cannot go on, None if nothing is wrong.
    """

    handle: object
    messages: list[str]
    taken: int
    done: bool
    error: GharialError | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a run of the device came to."""

    outcomes: list[Outcome]
    streams: int
    steps: int
    seconds: float
    queued: int


class Worker:
    """A recogniser on a thread.

    Args:
        name: of the thread.
        opener: makes the recogniser, on the thread.
        deliver: called on the thread with a `Report`.
        wait_s: longest wait for more streams to have a step ready.
    """

    def __init__(
        self, name: str, opener: Callable[[], Recogniser], deliver: Callable[[Report], object], wait_s: float
    ) -> None:
        self.name = name
        self.recogniser: Recogniser | None = None
        self._opener, self._deliver, self._wait_s = opener, deliver, wait_s
        self._commands: deque[tuple[str, Job | None, bytes]] = deque()
        self._awake = threading.Event()
        self._opened = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> Recogniser:
        """Start the thread and wait for the model to be open.

        Raises:
            GharialError: why it cannot be.
        """
        self._thread.start()
        self._opened.wait()
        if self._problem is not None:
            raise self._problem
        assert self.recogniser is not None
        return self.recogniser

    def send(self, command: str, job: Job | None = None, audio: bytes = b"") -> None:
        """Give the thread something to do: "open", "feed", "end" or "close" a job, or "stop"; from any thread."""
        self._commands.append((command, job, audio))
        if not self._awake.is_set():
            self._awake.set()

    def stop(self) -> None:
        """Close the device and end the thread; what its streams still had to say is lost."""
        self.send("stop")
        self._thread.join()

    def _main(self) -> None:
        try:
            self.recogniser = self._opener()
        except BaseException as error:
            self._problem = error
            return
        finally:
            self._opened.set()
        with self.recogniser as recogniser:
            self._work(recogniser)

    def _work(self, recogniser: Recogniser) -> None:
        busy: dict[Job, None] = {}  # with audio or an end that was not fed
        while True:
            if not busy:
                self._awake.wait()
                if self._wait_s:
                    time.sleep(self._wait_s)
            self._awake.clear()
            started = time.perf_counter()
            while self._commands:
                command, job, audio = self._commands.popleft()
                if job is None:
                    return
                self._obey(recogniser, command, job, audio, busy)
            fed = list(busy)
            outcomes = self._run(recogniser, fed)
            for job in fed:
                if not (job.audio or (job.ended and job.stream is not None)):
                    del busy[job]
            if outcomes:
                steps = sum([len(outcome.messages) for outcome in outcomes])
                seconds = time.perf_counter() - started
                self._deliver(Report(outcomes, len(fed), steps, seconds, len(self._commands)))

    def _obey(self, recogniser: Recogniser, command: str, job: Job, audio: bytes, busy: dict[Job, None]) -> None:
        if command == "open":
            try:
                job.stream = recogniser.stream(job.options)
            except GharialError as error:
                self._deliver(Report([Outcome(job.handle, [], 0, True, error)], 0, 0, 0.0, 0))
        elif command == "close":
            busy.pop(job, None)
            self._close(job)
        elif job.stream is not None:
            if audio:
                job.audio.append(audio)
            else:
                job.ended = True
            busy[job] = None

    def _close(self, job: Job) -> None:
        stream, job.stream = job.stream, None
        job.audio.clear()
        if stream is not None:
            stream.close()

    def _run(self, recogniser: Recogniser, jobs: list[Job]) -> list[Outcome]:
        taken = [self._feed(job) for job in jobs]
        recogniser.run()
        return [self._outcome(job, count) for job, count in zip(jobs, taken, strict=True) if job.stream is not None]

    def _feed(self, job: Job) -> int:
        """Hand a piece of a stream's audio on; how many bytes of it."""
        stream, taken = job.stream, 0
        assert stream is not None
        while job.audio and taken < QUANTUM:
            piece = job.audio.popleft()
            if len(piece) > QUANTUM:
                job.audio.appendleft(piece[QUANTUM:])
                piece = piece[:QUANTUM]
            stream.feed(piece)
            taken += len(piece)
        if job.ended and not job.audio:
            stream.end()
        return taken

    def _outcome(self, job: Job, taken: int) -> Outcome:
        stream = job.stream
        assert stream is not None
        try:
            steps = stream.steps()
        except GharialError as error:
            self._close(job)
            return Outcome(job.handle, [], taken, True, error)
        done = stream.done
        messages = [message for step in steps for message in job.replies.of(step, done and step is steps[-1])]
        if done:
            self._close(job)
        return Outcome(job.handle, messages, taken, done)
