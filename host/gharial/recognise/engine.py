# SPDX-License-Identifier: Apache-2.0
"""Greedy recognition of many streams on one device: steps that are ready, sent in rounds, several rounds in flight.

A round is one GREEDY command with an entry for every stream that has a step ready. Commands take effect in order and a
step needs nothing of the host but its features, so a stream's next step is sent while the one before is being worked
on. What the device gives for a stream does not depend on who shares its rounds, so neither do transcripts.

A stream with a prefix is primed before its first step: its encoder slot is reset, its prediction slot is started and
led through the prefix's tokens, all without a joint. Its first step waits for that, so that a failure hits nobody else.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from gharial.driver import DecodeEntry, Driver, EncodeBatch, GreedyResult, Ticket
from gharial.errors import CommandFailed, DeviceError, GharialError
from gharial.isa.commands import Kind
from gharial.isa.faults import Fault

ROUNDS_IN_FLIGHT = 8
"""Commands sent ahead of the results that have been taken."""


@dataclass(frozen=True)
class Emitted:
    """A token as the device gave it: its id, encoder step, and probability."""

    token: int
    step: int
    confidence: float


@dataclass(eq=False)
class Session:
    """One stream on the device.

    Attributes:
        encoder, prediction: its slots.
        prefix: tokens that the prediction network hears before the first step.
        begun: whether its priming was sent.
        priming: commands of its priming that are not done, sent or not.
        vectors: feature vectors that wait, int8 (n, F) each.
        ended: whether no more will come.
        sent, taken: encoder steps sent to the device, and those whose results are here.
        emitted: tokens that nobody has taken yet.
        error: why the stream cannot go on.
        seconds: its share of the time spent on the device.
        cycles: device clocks of the commands it was part of.
        closed: whether its slots have been given back.
    """

    encoder: int
    prediction: int
    prefix: tuple[int, ...] = ()
    begun: bool = False
    priming: int = 0
    vectors: deque[np.ndarray] = field(default_factory=deque)
    waiting: int = 0
    ended: bool = False
    sent: int = 0
    taken: int = 0
    emitted: list[Emitted] = field(default_factory=list)
    error: GharialError | None = None
    seconds: float = 0.0
    cycles: int = 0
    closed: bool = False

    def __post_init__(self) -> None:
        if self.prefix:
            self.priming = len(self.prefix) + 2  # reset and start come first

    @property
    def done(self) -> bool:
        """Whether everything that was put in has come out, or nothing more will."""
        return self.error is not None or (self.waiting == 0 and self.taken == self.sent)

    def put(self, vectors: np.ndarray) -> None:
        """More feature vectors, int8 (n, F)."""
        if len(vectors):
            self.vectors.append(vectors)
            self.waiting += len(vectors)

    def take_step(self, stack: int) -> np.ndarray:
        """The vectors of the next step, int8 (1..stack, F); fewer than `stack` only at the end."""
        parts, wanted = [], min(stack, self.waiting)
        self.waiting -= wanted
        while wanted:
            first = self.vectors[0]
            part = first[:wanted]
            if len(part) == len(first):
                self.vectors.popleft()
            else:
                self.vectors[0] = first[len(part) :]
            parts.append(part)
            wanted -= len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True)
class _Round:
    """A command in flight: its ticket, and the session of each entry.

    Attributes:
        steps: encoder step of each entry; none if the command is part of a priming.
    """

    ticket: Ticket[Any]
    sessions: list[Session]
    steps: list[int]


class Engine:
    """Sessions on one driver.

    Args:
        driver: with the program loaded; the engine does not close it.
        max_symbols: most tokens of one encoder step.
    """

    def __init__(self, driver: Driver, max_symbols: int) -> None:
        header = driver.program.header
        self._driver = driver
        self._max_symbols = max_symbols
        self._stack = header["vectors"]
        self._features = int(driver.program.manifest["features"]["count"])
        self._most = driver.program.config.max_entries
        self._sessions: list[Session] = []
        self._dropped: deque[Session] = deque()
        self._rounds: deque[_Round] = deque()

    @property
    def stack(self) -> int:
        """Feature vectors of a full encoder step."""
        return self._stack

    @property
    def free(self) -> int:
        """Sessions that may still be opened."""
        self._reap()
        return min(self._driver.encoder_slots.free, self._driver.prediction_slots.free)

    def open(self, prefix: tuple[int, ...] = ()) -> Session:
        """A session with slots of its own.

        Args:
            prefix: tokens that the prediction network hears before the first step.

        Raises:
            GharialError: all slots are taken.
        """
        self._reap()
        (encoder,) = self._driver.allocate("encoder")
        try:
            (prediction,) = self._driver.allocate("prediction")
        except GharialError:
            self._driver.release("encoder", (encoder,))
            raise
        session = Session(encoder, prediction, prefix)
        self._sessions.append(session)
        return session

    def close(self, session: Session) -> None:
        """Give the session's slots back; may be called twice. Results still on their way are dropped.

        The slots can be handed out at once: commands take effect in order, and a session's first step, or its priming,
        begins with the slots cleared.
        """
        if session.closed:
            return
        session.closed = True
        self._sessions.remove(session)
        session.vectors.clear()
        session.waiting = 0
        for kind, slot in (("encoder", session.encoder), ("prediction", session.prediction)):
            # A device that failed, or a closed driver, cannot wipe the slot; its number is free all the same.
            with suppress(GharialError):
                self._driver.release(kind, (slot,))

    def drop(self, session: Session) -> None:
        """Close the session at the next opportunity; safe from a garbage collector's call in the middle of anything."""
        self._dropped.append(session)

    def submit(self) -> bool:
        """Send one round; False if no session has a step ready.

        A session whose steps could not be sent has failed, and says so when it is asked next.
        """
        self._reap()
        self._take_finished()
        while len(self._rounds) >= ROUNDS_IN_FLIGHT:
            self.collect()
        self._prime()
        ready = self._ready()
        while not ready and any(session.priming and self._has_step(session) for session in self._sessions):
            if not self.collect():
                break
            ready = self._ready()
        if not ready:
            return False
        if len(ready) == self._most:
            # Who was served goes to the back, so that nobody waits for ever where not all fit in one command.
            served = set(map(id, ready))
            self._sessions.sort(key=lambda session: id(session) in served)
        started = perf_counter()
        batch = self._batch(ready)
        steps = [session.sent for session in ready]
        for session in ready:
            session.sent += 1
        try:
            ticket = self._driver.greedy(batch, max_symbols=self._max_symbols)
        except GharialError as error:
            _fail(ready, error)
            self._recover(error)
        else:
            self._rounds.append(_Round(ticket, ready, steps))
        _share(ready, perf_counter() - started)
        return True

    def _prime(self) -> None:
        """Send the priming of all sessions that need one, a command for each place in their prefixes."""
        new = [s for s in self._sessions if s.prefix and not s.begun and s.error is None][: self._most]
        if not new:
            return
        started = perf_counter()
        for session in new:
            session.begun = True
        try:
            self._rounds.append(_Round(self._driver.reset("encoder", [s.encoder for s in new]), new, []))
            self._predict(new, Kind.START, [0] * len(new))
            for place in range(max(len(session.prefix) for session in new)):
                longer = [session for session in new if len(session.prefix) > place]
                self._predict(longer, Kind.TOKEN, [session.prefix[place] for session in longer])
        except GharialError as error:
            _fail(new, error)
            self._recover(error)
        _share(new, perf_counter() - started)

    def _predict(self, sessions: list[Session], kind: Kind, tokens: list[int]) -> None:
        """Send one prediction step without a joint for each session, in its slot."""
        entries = [
            DecodeEntry(kind=kind, source=session.prediction, destination=session.prediction, token=token, joint=False)
            for session, token in zip(sessions, tokens, strict=True)
        ]
        self._rounds.append(_Round(self._driver.decode(entries), sessions, []))

    def collect(self) -> bool:
        """Take the results of the oldest round; False if none is in flight.

        A round that failed fails its sessions, each of which says so when it is asked next; the others go on.
        """
        if not self._rounds:
            return False
        error = self._settle(self._rounds[0])
        self._rounds.popleft()
        if error is not None:
            self._recover(error)
        return True

    def _settle(self, round_: _Round) -> GharialError | None:
        """Wait for a round and give its sessions what came of it; the error if it failed."""
        started = perf_counter()
        sessions = round_.sessions
        failed = None
        try:
            results = round_.ticket.result()
        except GharialError as error:
            failed = error
            _fail(sessions, error)
        else:
            if round_.steps:
                for session, step, result in zip(sessions, round_.steps, results, strict=True):
                    self._take(session, step, result)
        for session in sessions:
            if round_.steps:
                session.taken += 1
            else:
                session.priming -= 1
            session.cycles += round_.ticket.cycles
        _share(sessions, perf_counter() - started)
        return failed

    def run(self, drain: bool = True) -> None:
        """Send every step that is ready.

        Args:
            drain: also wait for all results.
        """
        while self.submit():
            pass
        while drain and self.collect():
            pass

    def _take_finished(self) -> None:
        """Results that are there already. A round that failed is noticed before its sessions spoil another one."""
        if not self._rounds:
            return
        try:
            self._driver.poll()
        except GharialError as error:
            self._recover(error)
        while self._rounds and self._rounds[0].ticket.done:
            self.collect()

    def _recover(self, error: GharialError) -> None:
        """After an error that stops the device: get it to work again for the sessions that it did not hit.

        What was in flight is over then, one way or the other, and settled here.
        """
        if not isinstance(error, DeviceError):
            return
        if isinstance(error, CommandFailed) and not (error.code in list(Fault) and Fault(error.code).halts):
            return
        try:
            recovery = self._driver.recover()
        except GharialError as final:
            _fail(self._sessions, final)
            self._rounds.clear()
            return
        while self._rounds:
            self._settle(self._rounds.popleft())
        lost_encoder, lost_prediction = set(recovery.lost_encoder), set(recovery.lost_prediction)
        held = [session for session in self._sessions if session.sent or session.begun]
        _fail([s for s in held if s.encoder in lost_encoder or s.prediction in lost_prediction], error)

    def _reap(self) -> None:
        while self._dropped:
            self.close(self._dropped.popleft())

    def _ready(self) -> list[Session]:
        """Sessions that have a step to send and may send it, as many as a command takes."""
        return [s for s in self._sessions if not s.priming and self._has_step(s)][: self._most]

    def _has_step(self, session: Session) -> bool:
        full = session.waiting >= self._stack or (session.ended and session.waiting > 0)
        return full and session.error is None and not session.closed

    def _batch(self, ready: list[Session]) -> EncodeBatch:
        features = np.zeros((len(ready), self._stack, self._features), np.int8)
        vectors = np.zeros(len(ready), np.int64)
        for index, session in enumerate(ready):
            step = session.take_step(self._stack)
            features[index, : len(step)] = step
            vectors[index] = len(step)
        sent = np.array([session.sent for session in ready], np.int64)
        return EncodeBatch(
            slot=np.array([session.encoder for session in ready], np.int64),
            features=features,
            vectors=vectors,
            # Two banks, so that one step can be decoded while the next is encoded.
            bank=sent & 1,
            # Of a session with a prefix it would start the prediction slot anew, which is primed.
            reset=np.array([session.sent == 0 and not session.prefix for session in ready], np.bool_),
            prediction=np.array([session.prediction for session in ready], np.int64),
        )

    def _take(self, session: Session, step: int, result: GreedyResult) -> None:
        if session.closed or session.error is not None or not len(result.tokens):
            return
        for token, log_probability in zip(result.tokens.tolist(), result.log_probabilities.tolist(), strict=True):
            # The log-sum-exp is rounded, so a near-certain token could come out a hair above 1.
            session.emitted.append(Emitted(token, step, min(1.0, math.exp(log_probability))))


def _fail(sessions: list[Session], error: GharialError) -> None:
    for session in sessions:
        session.error = session.error or error


def _share(sessions: list[Session], seconds: float) -> None:
    for session in sessions:
        session.seconds += seconds / len(sessions)
