# SPDX-License-Identifier: Apache-2.0
"""A model on a device, on a thread of its own: commands in, replies out, both in order.

The thread takes whatever has come, feeds it, runs the device for all streams together, and hands what came out to the
event loop in one piece. While it works the next audio comes in; so batches grow with the load. Of one stream no more
than `QUANTUM` is fed at a time: one that sends faster than real time does not hold the others up.

A device that fails (docs/serving.md): the streams that were hit begin anew and hear again what they had heard. First
all together; those hit once more one by one, so that whatever ails one of them hits no other; then on another device.
A device that cannot be brought back is opened anew until it works; its streams go to others, or wait for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gharial.errors import DeviceError, GharialError
from gharial.serve.jobs import Job, Outcome, Report

if TYPE_CHECKING:
    from gharial.recognise import Recogniser

QUANTUM = 4 * 1920
"""Bytes of a stream that are fed at a time: four encoder steps of 16 kHz."""

PATIENCE_S = 10.0
"""How long streams wait for a device that does not work, if there is no other."""

_TIMEOUT_S = 3.0  # a command takes milliseconds: who does not answer for so long has failed
_SLOW = ("reference", "verilator")
_FIRST_S, _RETRY_S, _RETRY_MOST_S = 0.05, 0.25, 30.0  # the first time others have gone where they can
_ALONE, _ELSEWHERE = 2, 4  # failures of a stream after which it is tried with nobody beside it, and elsewhere
_HOPELESS = 6
_MOVES = 2
_ALONE_S = 0.05  # for those that are alone between two runs of all others


class Worker:
    """A recogniser on a thread.

    Args:
        name: of the thread.
        opener: makes the recogniser, on the thread; called again where the device has to be opened anew.
        deliver: called on the thread with a `Report`.
        wait_s: longest wait for more streams to have a step ready.
        replay_s: seconds of audio that streams remember, to go on after a failure.

    Attributes:
        recogniser: what it works with; others may ask it about the model, but not run it.
        up: whether the device works.
    """

    def __init__(
        self,
        name: str,
        opener: Callable[[], Recogniser],
        deliver: Callable[[Report], object],
        wait_s: float,
        replay_s: float = 0.0,
    ) -> None:
        self.name = name
        self.up = False
        self._recogniser: Recogniser | None = None
        self._opener, self._deliver, self._wait_s, self._replay_s = opener, deliver, wait_s, replay_s
        self._commands: deque[tuple[str, Job | None, Any]] = deque()
        self._awake = threading.Event()
        self._opened = threading.Event()
        self._problem: BaseException | None = None
        self._jobs: dict[Job, None] = {}
        self._busy: dict[Job, None] = {}  # with audio or an end that was not fed, or results that were not taken
        self._alone: deque[Job] = deque()  # to be begun anew with nobody beside them
        self._early: dict[Job, list[tuple[str, Any]]] = {}  # of jobs that are still with another worker
        self._faults: list[str] = []
        self._retry_s, self._retry_at, self._down_since = _RETRY_S, 0.0, 0.0
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    @property
    def recogniser(self) -> Recogniser:
        """What it works with."""
        assert self._recogniser is not None
        return self._recogniser

    def start(self) -> Recogniser:
        """Start the thread and wait for the model to be open.

        Raises:
            GharialError: why it cannot be.
        """
        self._thread.start()
        self._opened.wait()
        if self._problem is not None:
            raise self._problem
        return self.recogniser

    def send(self, command: str, job: Job | None = None, detail: Any = None) -> None:
        """Give the thread something to do, from any thread.

        "open", "feed" (with audio), "end" or "close" a job, "move" it to a worker, "adopt" it from another, or "stop".
        """
        self._commands.append((command, job, detail))
        if not self._awake.is_set():
            self._awake.set()

    def stop(self) -> None:
        """Close the device and end the thread; what its streams still had to say is lost."""
        self.send("stop")
        self._thread.join()

    # --- The thread -------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            self._open_device()
        except BaseException as error:
            self._problem = error
            return
        finally:
            self._opened.set()
        try:
            self._work()
        finally:
            self.up = False
            with suppress(GharialError):
                self.recogniser.close()

    def _open_device(self) -> None:
        recogniser = self._opener()
        if recogniser.device_name.partition(":")[0] not in _SLOW:
            recogniser.driver.timeout = min(recogniser.driver.timeout, _TIMEOUT_S)
        self._recogniser = recogniser
        self.up = True

    def _work(self) -> None:
        while True:
            self._wait()
            started = time.perf_counter()
            outcomes: list[Outcome] = []
            while self._commands:
                command, job, detail = self._commands.popleft()
                if job is None:
                    return
                if job.owner is self or command in ("open", "adopt"):
                    self._obey(command, job, detail, outcomes)
                else:
                    self._early.setdefault(job, []).append((command, detail))
            if not self.up:
                self._try_again(outcomes)
            fed = list(self._busy) if self.up else []
            if self.up:
                self._run(fed, outcomes)
            if outcomes or self._faults:
                steps = sum([outcome.steps for outcome in outcomes])
                seconds, faults = time.perf_counter() - started, tuple(self._faults)
                self._faults.clear()
                self._deliver(Report(outcomes, len(fed), steps, seconds, len(self._commands), faults))

    def _wait(self) -> None:
        """Until there is something to do; then a little longer, if only few streams have something."""
        if not self.up:
            until = min(self._retry_at, self._down_since + PATIENCE_S) if self._jobs else self._retry_at
            self._awake.wait(max(0.0, until - time.monotonic()))
        elif not (self._busy or self._alone):
            self._awake.wait()
            until = time.monotonic() + self._wait_s
            while 2 * len(self._commands) < len(self._jobs) and (left := until - time.monotonic()) > 0:
                time.sleep(min(left, self._wait_s / 4))
        self._awake.clear()

    def _obey(self, command: str, job: Job, detail: Any, outcomes: list[Outcome]) -> None:
        if command == "feed":
            job.audio.append(detail)
        elif command == "end":
            job.ended = True
        elif command in ("open", "adopt"):
            job.owner = self
            self._jobs[job] = None
            job.away = True
            self._begin(job, outcomes)
            for early, told in self._early.pop(job, ()):
                self._obey(early, job, told, outcomes)
        elif command == "move":
            self._give(job, detail)
        elif command == "close":
            self._close(job)
        if job in self._jobs and not job.away:
            self._busy[job] = None

    def _give(self, job: Job, other: Worker) -> None:
        self._forget(job)
        if not job.away and job.stream is not None:
            with suppress(Exception):
                job.stream.leave()
        job.owner = None
        other.send("adopt", job)

    def _close(self, job: Job) -> None:
        self._forget(job)
        stream, job.stream = job.stream, None
        job.audio.clear()
        if stream is not None:
            try:
                stream.close()
            except Exception as error:
                self._broken(error)

    def _forget(self, job: Job) -> None:
        self._jobs.pop(job, None)
        self._busy.pop(job, None)
        if job in self._alone:
            self._alone.remove(job)

    def _begin(self, job: Job, outcomes: list[Outcome], alone: bool = False) -> None:
        """Give a job that has none its place on the device."""
        if not self.up:
            outcomes.append(self._lost(job, self._down(), waits=True))
            return
        if job.failures >= _ALONE and not alone:
            self._alone.append(job)
            return
        try:
            if job.stream is None:
                job.stream = self.recogniser.stream(job.options, replay_s=self._replay_s)
            else:
                job.stream.join(self.recogniser)
        except Exception as error:  # of this stream alone
            outcomes.append(self._over(job, _as_ours(error)))
            return
        job.away = False
        self._busy[job] = None

    def _run(self, jobs: list[Job], outcomes: list[Outcome]) -> None:
        """Feed, run and hear jobs together; then one by one some of those that have to be alone."""
        if jobs:
            self._together(jobs, outcomes)
        until = time.monotonic() + _ALONE_S
        for _ in range(len(self._alone)):
            if not self.up or time.monotonic() > until:
                break
            job = self._alone.popleft()
            self._begin(job, outcomes, alone=True)
            if not job.away:
                self._together([job], outcomes)

    def _together(self, jobs: list[Job], outcomes: list[Outcome]) -> None:
        taken = [self._feed(job, outcomes) for job in jobs]
        try:
            self.recogniser.run()
        except Exception as error:  # nothing is known of any stream then, but what it has to hear
            self._broken(error)
        for job, count in zip(jobs, taken, strict=True):
            self._busy.pop(job, None)
            if self.up and job.stream is not None:
                self._hear(job, count, outcomes)
            elif count:
                outcomes.append(Outcome(job, [], 0, count, False))
            if not job.away and job.stream is not None and (job.audio or (job.ended and not job.stream.ended)):
                self._busy[job] = None
        if self.up and self.recogniser.driver.stopped is not None:
            self._broken(self.recogniser.driver.stopped)
        if not self.up:
            self._leave_all(outcomes)

    def _feed(self, job: Job, outcomes: list[Outcome]) -> int:
        """Hand a piece of a stream's audio on; how many bytes of it."""
        stream, taken = job.stream, 0
        assert stream is not None
        try:
            while job.audio and taken < QUANTUM:
                piece = job.audio.popleft()
                if len(piece) > QUANTUM:
                    job.audio.appendleft(piece[QUANTUM:])
                    piece = piece[:QUANTUM]
                stream.feed(piece)
                taken += len(piece)
            if job.ended and not job.audio and not stream.ended:
                stream.end()
        except Exception as error:
            outcomes.append(self._over(job, _as_ours(error)))
        return taken

    def _hear(self, job: Job, taken: int, outcomes: list[Outcome]) -> None:
        stream = job.stream
        assert stream is not None
        try:
            done = stream.done
            steps = stream.steps()
            messages = [message for step in steps for message in job.replies.of(step, done and step is steps[-1])]
        except DeviceError as error:
            self._failed(job, error, taken, outcomes)
            return
        except Exception as error:  # of this stream alone
            outcomes.append(self._over(job, _as_ours(error)))
            return
        if messages:
            job.failures = job.moves = 0
        if done:
            self._close(job)
        if messages or taken or done:
            outcomes.append(Outcome(job, messages, len(steps), taken, done))

    # --- What fails -------------------------------------------------------------------------------------------------

    def _failed(self, job: Job, error: GharialError, taken: int, outcomes: list[Outcome]) -> None:
        """The device failed in a stream."""
        assert job.stream is not None
        if taken:
            outcomes.append(Outcome(job, [], 0, taken, False))
        self._fault(error)
        if not job.stream.movable:
            outcomes.append(self._over(job, error))
            return
        job.failures += 1
        job.stream.leave()
        job.away = True
        if self.recogniser.driver.stopped is not None:
            self._broken(error)  # all leave it, and this one is among them
        elif job.failures < _ELSEWHERE:
            self._begin(job, outcomes)
        elif job.moves < _MOVES:
            job.moves += 1
            job.failures = _ALONE
            outcomes.append(self._lost(job, error, waits=False))
        else:
            outcomes.append(self._over(job, error))

    def _broken(self, error: BaseException) -> None:
        """The device cannot be used as it is."""
        if self.up:
            self.up = False
            self._retry_s, self._down_since = _RETRY_S, time.monotonic()
            self._retry_at = self._down_since + _FIRST_S
            self._fault(_as_ours(error))

    def _fault(self, error: GharialError) -> None:
        if str(error) not in self._faults:
            self._faults.append(str(error))

    def _leave_all(self, outcomes: list[Outcome]) -> None:
        """Have all streams leave a device that does not work."""
        self._busy.clear()
        self._alone.clear()
        for job in list(self._jobs):
            error = self._down()
            movable = job.failures <= _HOPELESS
            if not job.away and job.stream is not None:
                job.away = True
                job.failures += 1
                try:
                    movable = movable and job.stream.movable
                    job.stream.leave()
                except Exception as problem:
                    movable, error = False, _as_ours(problem)
            outcomes.append(self._lost(job, error, waits=True) if movable else self._over(job, error))

    def _down(self) -> GharialError:
        return GharialError(f"{self.name} does not work")

    def _try_again(self, outcomes: list[Outcome]) -> None:
        """Open a device that does not work anew, if it is time."""
        now = time.monotonic()
        if now >= self._retry_at:
            try:
                with suppress(Exception):
                    self.recogniser.close()
                self._open_device()
            except Exception as error:
                self._fault(_as_ours(error))
                self._retry_s = min(2 * self._retry_s, _RETRY_MOST_S)
                self._retry_at = time.monotonic() + self._retry_s
            else:
                for job in list(self._jobs):
                    self._begin(job, outcomes)
                return
        if now - self._down_since >= PATIENCE_S:
            outcomes += [self._over(job, self._down()) for job in list(self._jobs)]

    def _lost(self, job: Job, error: GharialError, waits: bool) -> Outcome:
        return Outcome(job, [], 0, 0, False, error, lost=True, waits=waits)

    def _over(self, job: Job, error: GharialError) -> Outcome:
        self._close(job)
        return Outcome(job, [], 0, 0, True, error)


def _as_ours(error: BaseException) -> GharialError:
    return (
        error if isinstance(error, GharialError) else GharialError(f"internal error: {type(error).__name__}: {error}")
    )
