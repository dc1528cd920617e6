# SPDX-License-Identifier: Apache-2.0
"""Greedy recognition: the device takes the best class at every turn, all by itself.

A round is one GREEDY command. A step needs nothing of the host but its features, so a session's next step is sent while
the one before is being worked on.

A session with a prefix is primed before its first step: its encoder slot is reset, its prediction slot is started and
led through the prefix's tokens, all without a joint. Its first step waits for that, so that a failure hits nobody else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from gharial.decoding import Keywords
from gharial.driver import DecodeEntry, Driver, GreedyResult, Recovery
from gharial.errors import BadInput, DeviceError, GharialError
from gharial.isa.commands import Kind
from gharial.recognise.engine import Engine, Round, share
from gharial.recognise.session import Alternative, Emitted, Session, StepResult

ROUNDS_IN_FLIGHT = 8
"""Commands sent ahead of the results that have been taken."""

_SLACK = 0.01  # of the device's log-sum-exp, with room: its error is 0.0014 at most (docs/numerics.md, section 8)

ON_THE_HOST = "--decoder beam --beam-width 1 is a greedy search on the host"
"""For who wants of a greedy search what the device's own cannot do."""


def no_keywords() -> BadInput:
    """The error for keywords."""
    return BadInput("the device's greedy search boosts no keywords", "keywords", "some", "none", ON_THE_HOST)


@dataclass(eq=False)
class GreedySession(Session):
    """See `Session`.

    Attributes:
        prediction: its prediction slot.
        begun: whether its priming was sent.
        priming: commands of its priming that are not done, sent or not.
        score: natural logarithm of the probability of all its tokens.
        tokens: how many they are.
    """

    prediction: int = 0
    begun: bool = False
    priming: int = 0
    score: float = 0.0
    tokens: int = 0

    def __post_init__(self) -> None:
        if self.prefix:
            self.priming = len(self.prefix) + 2  # reset and start come first

    def alternatives(self, count: int = 1) -> list[Alternative]:
        """There is one, and all its tokens are final."""
        self.check_done()
        return [self.reading()]

    def reading(self) -> Alternative:
        """The one that there is."""
        return Alternative(self.score, self.score / (self.tokens + 1), ())


@dataclass(frozen=True, eq=False)
class _Steps(Round[GreedySession]):
    """A GREEDY command; `steps` has the encoder step of each session."""

    steps: Sequence[int]


class GreedyEngine(Engine[GreedySession]):
    """Greedy sessions on one driver.

    Args:
        driver: with the program loaded; the engine does not close it.
        max_symbols: most tokens of one encoder step.
    """

    def __init__(self, driver: Driver, max_symbols: int) -> None:
        super().__init__(driver)
        self._max_symbols = max_symbols
        self._blank = int(driver.program.header["blank"])
        self._least = -math.log(driver.program.header["classes"]) - _SLACK

    def _places(self) -> int:
        return min(self._driver.encoder_slots.free, self._driver.prediction_slots.free)

    def _opened(self, prefix: tuple[int, ...], keywords: Keywords | None) -> GreedySession:
        if keywords is not None:
            raise no_keywords()
        (encoder,) = self._driver.allocate("encoder")
        try:
            (prediction,) = self._driver.allocate("prediction")
        except GharialError:
            self._driver.release("encoder", (encoder,))
            raise
        return GreedySession(encoder, prefix, prediction=prediction)

    def _slots(self, session: GreedySession) -> Iterable[tuple[str, int]]:
        return ("encoder", session.encoder), ("prediction", session.prediction)

    def submit(self) -> bool:
        """Send one round; False if no session has a step ready."""
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
        ready = self._chosen(ready, self._most)
        started = perf_counter()
        steps = [session.sent for session in ready]
        batch = self._batch(
            ready,
            # Of a session with a prefix it would start the prediction slot anew, which is primed.
            [session.sent == 0 and not session.prefix for session in ready],
            [session.prediction for session in ready],
        )
        try:
            ticket = self._driver.greedy(batch, max_symbols=self._max_symbols)
        except GharialError as error:
            self._fail(ready, error)
            self._recover(error)
        else:
            self._rounds.append(_Steps(ticket, ready, steps))
        share(ready, perf_counter() - started)
        return True

    def _ready(self) -> list[GreedySession]:
        return [session for session in self._sessions if not session.priming and self._has_step(session)]

    def _prime(self) -> None:
        """Send the priming of all sessions that need one, a command for each place in their prefixes."""
        new = [s for s in self._sessions if s.prefix and not s.begun and s.error is None][: self._most]
        if not new:
            return
        started = perf_counter()
        for session in new:
            session.begun = True
        try:
            self._rounds.append(Round(self._driver.reset("encoder", [s.encoder for s in new]), new))
            self._predict(new, Kind.START, [0] * len(new))
            for place in range(max(len(session.prefix) for session in new)):
                longer = [session for session in new if len(session.prefix) > place]
                self._predict(longer, Kind.TOKEN, [session.prefix[place] for session in longer])
        except GharialError as error:
            self._fail(new, error)
            self._recover(error)
        share(new, perf_counter() - started)

    def _predict(self, sessions: list[GreedySession], kind: Kind, tokens: list[int]) -> None:
        """Send one prediction step without a joint for each session, in its slot."""
        entries = [
            DecodeEntry(kind=kind, source=session.prediction, destination=session.prediction, token=token, joint=False)
            for session, token in zip(sessions, tokens, strict=True)
        ]
        self._rounds.append(Round(self._driver.decode(entries), sessions))

    def _take(self, round_: Round[GreedySession], results: Any) -> None:
        if isinstance(round_, _Steps):
            for session, step, result in zip(round_.sessions, round_.steps, results, strict=True):
                self._hear(session, step, result)
        self._count(round_)

    def _lose(self, round_: Round[GreedySession], error: GharialError) -> None:
        super()._lose(round_, error)
        self._count(round_)

    def _count(self, round_: Round[GreedySession]) -> None:
        for session in round_.sessions:
            if isinstance(round_, _Steps):
                session.taken += 1
            else:
                session.priming -= 1

    def _hit(self, session: GreedySession, recovery: Recovery) -> bool:
        lost = session.encoder in recovery.lost_encoder or session.prediction in recovery.lost_prediction
        return lost and (session.sent > 0 or session.begun)

    def _hear(self, session: GreedySession, step: int, result: GreedyResult) -> None:
        if session.closed or session.error is not None:
            return
        finals: tuple[Emitted, ...] = ()
        if len(result.tokens):
            logarithms = result.log_probabilities.tolist()
            # Results are not trusted. The best of n classes has a probability of 1 / n or more.
            if not (self._least <= min(logarithms) and max(logarithms) <= _SLACK and self._blank not in result.tokens):
                self._fail([session], DeviceError("a result's tokens contradict themselves", unit="greedy results"))
                return
            session.score += sum(logarithms)
            session.tokens += len(logarithms)
            finals = tuple(
                # The log-sum-exp is rounded, so a near-certain token could come out a hair above 1.
                Emitted(token, step, min(1.0, math.exp(logarithm)))
                for token, logarithm in zip(result.tokens.tolist(), logarithms, strict=True)
            )
        readings = (session.reading(),) if session.listed else ()
        session.results.append(StepResult(step, finals, (), readings))
