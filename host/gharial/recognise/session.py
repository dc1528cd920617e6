# SPDX-License-Identifier: Apache-2.0
"""One stream as an engine has it: feature vectors in, a result for each encoder step out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from gharial.errors import GharialError


@dataclass(frozen=True, slots=True)
class Emitted:
    """A token: its id, encoder step from the session's start, and probability, 0 to 1."""

    token: int
    step: int
    confidence: float


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an encoder step came to.

    Attributes:
        step: its number, from 0.
        finals: tokens that became final; their own steps may be earlier ones.
        partial: tokens of the best hypothesis behind all finals so far; none where every token is final at once.
        readings: what the best hypotheses have behind all finals so far, as many as the session is to list.
    """

    step: int
    finals: tuple[Emitted, ...]
    partial: tuple[Emitted, ...] = ()
    readings: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """What a session may have said.

    Attributes:
        score: natural logarithm.
        mean: score divided by one more than the number of all its tokens, final ones included.
        tokens: those behind the finals.
    """

    score: float
    mean: float
    tokens: tuple[Emitted, ...]


@dataclass(eq=False)
class Session(ABC):
    """One stream on the device.

    Attributes:
        encoder: its encoder slot.
        prefix: tokens that the prediction network hears before the first step.
        vectors: feature vectors that wait, int8 (n, F) each.
        waiting: how many they are.
        ended: whether no more will come; set by its owner.
        listed: readings that each step's result is to have; set by its owner.
        sent, taken: encoder steps sent to the device, and those that are through.
        results: of steps, in order, that nobody has taken yet.
        error: why the stream cannot go on.
        seconds: its share of the time spent on the device.
        cycles: device clocks of the commands it was part of.
        closed: whether its slots have been given back.
    """

    encoder: int
    prefix: tuple[int, ...] = ()
    vectors: deque[np.ndarray] = field(default_factory=deque)
    waiting: int = 0
    ended: bool = False
    listed: int = 0
    sent: int = 0
    taken: int = 0
    results: deque[StepResult] = field(default_factory=deque)
    error: GharialError | None = None
    seconds: float = 0.0
    cycles: int = 0
    closed: bool = False

    @property
    def done(self) -> bool:
        """Whether everything that was put in has come out, or nothing more will."""
        return self.error is not None or (self.waiting == 0 and self.taken == self.sent)

    @abstractmethod
    def alternatives(self, count: int = 1) -> list[Alternative]:
        """The best hypotheses now that the session is ended and done, the best first, `count` at most and one at least.

        The first one's tokens are final with that, and come in no step's result.

        Raises:
            GharialError: why the session cannot go on.
            RuntimeError: it is not done, or closed.
        """

    def check_done(self) -> None:
        """Raise what `alternatives` raises."""
        if self.error is not None:
            raise self.error
        if self.closed or not self.done:
            raise RuntimeError("the session is closed" if self.closed else "the session is not done")

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
