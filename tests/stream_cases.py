# SPDX-License-Identifier: Apache-2.0
"""An engine that says what it is told to, and streams of random steps, for tests of what stands behind engines."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from sim.decoding import Token
from sim.decoding.streams import Step

from gharial.errors import GharialError
from gharial.recognise.engine import Engine
from gharial.recognise.session import Alternative, Emitted, StepResult

STACK = 2


@dataclass(eq=False)
class ToldSession:
    """A session whose results depend on the first vector that it hears and the number of the step alone."""

    told: Callable[[int, int, bool], StepResult]
    prefix: tuple[int, ...] = ()
    keywords: Any = None
    heard: list[int] = field(default_factory=list)
    ended: bool = False
    taken: int = 0
    listed: int = 0
    numbered: bool = True
    results: deque[StepResult] = field(default_factory=deque)
    error: GharialError | None = None
    seconds: float = 0.0
    cycles: int = 0
    closed: bool = False

    @property
    def waiting(self) -> int:
        return 0 if self.closed else len(self.heard) - min(len(self.heard), self.taken * STACK)

    @property
    def done(self) -> bool:
        return self.error is not None or self.waiting == 0

    def put(self, vectors: np.ndarray) -> None:
        assert not self.ended and not self.closed
        assert not self.heard or not self.numbered or vectors[0, 0] == self.heard[-1] + 1
        self.heard += vectors[:, 0].tolist()

    def step(self) -> bool:
        """Take one step, if there is one to take."""
        ready = self.waiting >= STACK or (self.ended and self.waiting > 0)
        if ready and not self.closed and self.error is None:
            self.results.append(self.told(self.heard[0] // STACK, self.taken, bool(self.listed)))
            self.taken += 1
            self.cycles += 1
        return ready


class ToldEngine:
    """An engine of such sessions.

    Args:
        told: (stream's step with which a session begins, step of the session, whether it lists readings) -> result.
        places: sessions at a time.
        numbered: whether vectors are those of `numbered`.
    """

    stack = STACK

    def __init__(self, told: Callable[[int, int, bool], StepResult], places: int = 8, numbered: bool = True) -> None:
        self._told, self.places, self._numbered = told, places, numbered
        self.sessions: list[ToldSession] = []
        self.opened = 0
        self.dropped: list[ToldSession] = []

    @property
    def free(self) -> int:
        return self.places - len(self.sessions)

    def open(self, prefix: tuple[int, ...] = (), keywords: Any = None) -> ToldSession:
        if not self.free:
            raise GharialError("no slot is left")
        self.opened += 1
        self.sessions.append(ToldSession(self._told, prefix, keywords, numbered=self._numbered))
        return self.sessions[-1]

    def close(self, session: ToldSession) -> None:
        if not session.closed:
            session.closed = True
            self.sessions.remove(session)

    def drop(self, session: ToldSession) -> None:
        self.dropped.append(session)

    def run(self, random: np.random.Generator | None = None) -> None:
        """All steps that can be taken, or by chance some of them."""
        for session in list(self.sessions):
            while (random is None or random.random() < 0.7) and session.step():
                pass

    def as_engine(self) -> Engine[Any]:
        return cast("Engine[Any]", self)


def numbered(steps: int, last_is_short: bool = False) -> np.ndarray:
    """Vectors of so many steps, each of which is its number."""
    return np.arange(steps * STACK - last_is_short, dtype=np.int32)[:, None]


def random_steps(random: np.random.Generator, steps: int, vocabulary: int, rate: float = 0.3) -> list[Step]:
    """What a search may bring: hypotheses that change behind a beginning that does not."""
    found: list[Step] = []
    open_: list[Token] = []
    for step in range(steps):
        if open_ and random.random() < 0.2:  # the best hypothesis is another now
            del open_[int(random.integers(len(open_))) :]
        while random.random() < rate:
            open_.append(Token(int(random.integers(vocabulary)), step, float(random.random())))
        final = int(random.integers(len(open_) + 1)) if random.random() < 0.4 else 0
        found.append(Step(tuple(open_[:final]), tuple(open_[final:])))
        del open_[:final]
    return found


def emitted(tokens: Sequence[Token]) -> tuple[Emitted, ...]:
    return tuple(Emitted(token.id, token.step, token.confidence) for token in tokens)


def plain(tokens: Sequence[Emitted], steps: int = 0) -> tuple[Token, ...]:
    return tuple(Token(token.token, token.step + steps, token.confidence) for token in tokens)


def result_of(step: int, brought: Step, listed: bool = False) -> StepResult:
    """A session's result; its readings, if asked for, are the best hypothesis, with and without its last token."""
    partial = emitted(brought.partial)
    readings = [Alternative(math.log(0.5), math.log(0.5), partial)]
    if partial:
        readings.append(Alternative(math.log(0.25), math.log(0.25), partial[:-1]))
    return StepResult(step, emitted(brought.finals), partial, tuple(readings) if listed else ())
