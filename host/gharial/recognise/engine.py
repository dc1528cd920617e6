# SPDX-License-Identifier: Apache-2.0
"""What recognition of many streams on one device has in common, whatever the decoder (docs/decoding.md, section 12).

An engine sends commands in rounds, each with an entry for every session that it can serve, several rounds in flight.
Commands take effect in order. What the device gives for a session does not depend on who shares its rounds, nor on how
its audio was cut, so neither does what comes out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np

from gharial.decoding import Keywords
from gharial.driver import Driver, EncodeBatch, Recovery, Ticket
from gharial.errors import CommandFailed, DeviceError, GharialError
from gharial.isa.faults import Fault
from gharial.recognise.session import Session

S = TypeVar("S", bound=Session)


@dataclass(frozen=True, eq=False)
class Round(Generic[S]):
    """A command in flight, and the sessions that it is for."""

    ticket: Ticket[Any]
    sessions: Sequence[S]


class Engine(ABC, Generic[S]):
    """Sessions on one driver.

    Args:
        driver: with the program loaded; the engine does not close it.
    """

    def __init__(self, driver: Driver) -> None:
        header = driver.program.header
        self._driver = driver
        self._stack: int = header["vectors"]
        self._features = int(driver.program.manifest["features"]["count"])
        self._most = driver.program.config.max_entries
        self._sessions: list[S] = []
        self._dropped: deque[S] = deque()
        self._rounds: deque[Round[S]] = deque()

    @property
    def stack(self) -> int:
        """Feature vectors of a full encoder step."""
        return self._stack

    @property
    def free(self) -> int:
        """Sessions that may still be opened."""
        self._reap()
        return self._places()

    @abstractmethod
    def _places(self) -> int:
        """Sessions that may still be opened."""

    def open(self, prefix: tuple[int, ...] = (), keywords: Keywords | None = None) -> S:
        """A session with slots of its own.

        Args:
            prefix: tokens that the prediction network hears before the first step.
            keywords: those boosted in it.

        Raises:
            BadInput: the engine has no use for keywords.
            GharialError: all slots are taken.
        """
        self._reap()
        self._look()
        session = self._opened(prefix, keywords)
        self._sessions.append(session)
        return session

    @abstractmethod
    def _opened(self, prefix: tuple[int, ...], keywords: Keywords | None) -> S:
        """A session with its slots."""

    def close(self, session: S) -> None:
        """Give the session's slots back; may be called twice. Results still on their way are dropped.

        The slots can be handed out at once: commands take effect in order, and whoever has them next begins with the
        slots cleared.
        """
        if session.closed:
            return
        session.closed = True
        self._sessions.remove(session)
        session.vectors.clear()
        session.waiting = 0
        for kind, slot in self._slots(session):
            # A device that failed, or a closed driver, cannot wipe the slot; its number is free all the same.
            with suppress(GharialError):
                self._driver.release(kind, (slot,))

    @abstractmethod
    def _slots(self, session: S) -> Iterable[tuple[str, int]]:
        """(kind, number) of the driver's slots that a session which is being closed gives back."""

    def drop(self, session: S) -> None:
        """Close the session at the next opportunity; safe from a garbage collector's call in the middle of anything."""
        self._dropped.append(session)

    @abstractmethod
    def submit(self) -> bool:
        """Send what can be sent now; False if there was nothing.

        A session whose steps could not be sent has failed, and says so when it is asked next.
        """

    def collect(self) -> bool:
        """Take the results of the oldest round; False if none is in flight.

        A round that failed fails its sessions, each of which says so when it is asked next; the others go on.
        """
        if not self._rounds:
            return False
        error = self._settle(self._rounds.popleft())
        if error is not None:
            self._recover(error)
        return True

    def run(self, drain: bool = True) -> None:
        """Send every step that is ready.

        Args:
            drain: also wait for all results.
        """
        while self.submit() or (drain and self.collect()):
            pass

    def _settle(self, round_: Round[S]) -> GharialError | None:
        """Wait for a round and give its sessions what came of it; the error if it failed."""
        started = perf_counter()
        failed = None
        try:
            results = round_.ticket.result()
        except GharialError as error:
            failed = error
        for session in round_.sessions:
            session.cycles += round_.ticket.cycles
        if failed is None:
            self._take(round_, results)
        else:
            self._lose(round_, failed)
        share(round_.sessions, perf_counter() - started)
        return failed

    @abstractmethod
    def _take(self, round_: Round[S], results: Any) -> None:
        """A round's results are there. It may not wait for others."""

    def _lose(self, round_: Round[S], error: GharialError) -> None:
        """A round failed."""
        self._fail(round_.sessions, error)

    def _fail(self, sessions: Iterable[S], error: GharialError) -> None:
        """These sessions cannot go on."""
        for session in sessions:
            session.error = session.error or error

    def _take_finished(self) -> None:
        """Results that are there already. A round that failed is noticed before its sessions spoil another one."""
        self._look()
        while self._rounds and self._rounds[0].ticket.done:
            self.collect()

    def _look(self) -> None:
        """See what the device has done, and that it can be sent more: it may have halted in a command of nobody's."""
        try:
            self._driver.poll()
        except GharialError as error:
            self._recover(error)
        if self._driver.stopped is not None:
            self._recover(self._driver.stopped)

    def _recover(self, error: GharialError) -> None:
        """After an error that stops the device: get it to work again for the sessions that it did not hit.

        What was in flight is over then, one way or the other, and settled here.
        """
        if not isinstance(error, DeviceError):
            return
        if isinstance(error, CommandFailed) and not (error.code in list(Fault) and Fault(error.code).halts):
            return
        pending, failed = self._rounds, None
        try:
            recovery = self._driver.recover()
        except GharialError as final:
            failed = final
        self._rounds = deque()
        if failed is not None:
            self._fail(list(self._sessions), failed)
            for round_ in pending:
                self._lose(round_, failed)
            return
        self._fail([session for session in self._sessions if self._hit(session, recovery)], error)
        for round_ in pending:
            self._settle(round_)

    @abstractmethod
    def _hit(self, session: S, recovery: Recovery) -> bool:
        """Whether a recovery found something lost that the session had on the device."""

    def _reap(self) -> None:
        while self._dropped:
            self.close(self._dropped.popleft())

    def _has_step(self, session: S) -> bool:
        full = session.waiting >= self._stack or (session.ended and session.waiting > 0)
        return full and session.error is None and not session.closed

    def _chosen(self, ready: list[S], most: int) -> list[S]:
        """As many of them as a command takes. Who was served goes to the back, so that nobody waits for ever."""
        if len(ready) < most:
            return ready
        ready = ready[:most]
        served = set(map(id, ready))
        self._sessions.sort(key=lambda session: id(session) in served)
        return ready

    def _batch(self, ready: list[S], reset: list[bool], prediction: list[int]) -> EncodeBatch:
        """The next step of each of these sessions, counted as sent."""
        features = np.zeros((len(ready), self._stack, self._features), np.int8)
        vectors = np.zeros(len(ready), np.int64)
        for index, session in enumerate(ready):
            step = session.take_step(self._stack)
            features[index, : len(step)] = step
            vectors[index] = len(step)
        sent = np.array([session.sent for session in ready], np.int64)
        for session in ready:
            session.sent += 1
        return EncodeBatch(
            slot=np.array([session.encoder for session in ready], np.int64),
            features=features,
            vectors=vectors,
            # Two banks, so that one step can be decoded while the next is encoded.
            bank=sent & 1,
            reset=np.array(reset, np.bool_),
            prediction=np.array(prediction, np.int64),
        )


def share(sessions: Sequence[Session], seconds: float) -> None:
    """Count time that was spent for all of these sessions together."""
    for session in sessions:
        session.seconds += seconds / len(sessions)
