# SPDX-License-Identifier: Apache-2.0
"""Sessions one after the other behind one stream: state resets with overlap (docs/decoding.md, section 7)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gharial.errors import GharialError
from gharial.recognise.session import Alternative, Emitted, Session, StepResult

if TYPE_CHECKING:
    from gharial.decoding import Keywords
    from gharial.recognise.engine import Engine

BORDER = 3
"""Tokens on either side of a border between segments in which repeats are looked for."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What an encoder step brought.

    Attributes:
        step: of the stream, from 0.
        finals: tokens that became final, steps being the stream's.
        rest: those that are final behind them because a segment or the stream ended here.
        partial: what the best hypothesis has behind all of them.
        readings: what the best hypotheses have behind `finals`, best first; none where they were not asked for.
    """

    step: int
    finals: tuple[Emitted, ...] = ()
    rest: tuple[Emitted, ...] = ()
    partial: tuple[Emitted, ...] = ()
    readings: tuple[Alternative, ...] = ()


class Border:
    """Which tokens of a segment are the stream's.

    Args:
        own: the stream's step with which the segment's own steps begin.
        before: the last tokens kept of the segment in front, `BORDER` at most; None for the first segment.
    """

    def __init__(self, own: int, before: Sequence[int] | None = None) -> None:
        self._own = own
        self._before = tuple(before or ())
        self._seen = BORDER if before is None else 0
        self.tail: tuple[int, ...] = ()

    def take(self, finals: tuple[Emitted, ...]) -> tuple[Emitted, ...]:
        """Those of the segment's next finals that are kept."""
        kept, self._seen, self._before = self._judged(finals)
        if kept:
            self.tail = (*self.tail, *[token.token for token in kept])[-BORDER:]
        return kept

    def look(self, tokens: tuple[Emitted, ...]) -> tuple[Emitted, ...]:
        """Those that would be kept of what may follow the finals."""
        return self._judged(tokens)[0]

    def _judged(self, tokens: tuple[Emitted, ...]) -> tuple[tuple[Emitted, ...], int, tuple[int, ...]]:
        """Those kept; how many own tokens there are then; what the next one may repeat."""
        seen, before = self._seen, self._before
        if seen >= BORDER:  # steps never fall: an own token has only own ones behind it
            return tokens, seen, before
        kept = []
        for token in tokens:
            if token.step < self._own:
                continue
            if seen < BORDER and token.token in before:
                before = before[before.index(token.token) + 1 :]
            else:
                kept.append(token)
            seen += 1
        return tuple(kept), seen, before


@dataclass(eq=False)
class _Segment:
    """A segment at work.

    Attributes:
        session: its own.
        first: the stream's step with which it begins.
        own: the one with which its own steps begin.
        end: how many of the stream's vectors there are at its end, None if it has none before the stream's.
        border: what is kept of its tokens; None as long as the one in front is not over.
        last: what its last own step so far has brought.
        pending: tokens of that step's best hypothesis that are not final, kept or not.
        kept: vectors that the session was given, None where they became too many or are not to be kept.
        given: results of its own that were taken.
        skip: results of its session that had been taken from one before it.
    """

    session: Session
    first: int
    own: int
    end: int | None
    border: Border | None = None
    last: Heard = Heard(-1)
    pending: tuple[Emitted, ...] = ()
    kept: list[np.ndarray] | None = None
    given: int = 0
    skip: int = 0

    def hear(self, vectors: np.ndarray, keep: bool) -> None:
        self.session.put(vectors)
        if self.kept is not None:
            self.kept.append(vectors)
        self.kept = self.kept if keep else None


class Segments:
    """A stream's sessions: vectors in, what its steps brought out.

    With state resets it has two sessions from beginning to end, so that it never finds the device full.

    Args:
        engine: where sessions come from.
        prefix, keywords: of each of them.
        resets: steps of a segment and of the overlap, the latter half of the former at most; None for no resets.
        readings: best hypotheses that each step is to list, 0 for none.
        keep: vectors of a segment that are kept at most, so that it can be begun anew elsewhere; 0 for none.

    Attributes:
        results: what nobody has taken yet.
        done: whether everything that was put in has come out, and no more will come.
        held: whether vectors wait for a session that another segment has still to leave: call `advance` once the
            device has been run.

    Raises:
        GharialError: the device has not the places.
    """

    def __init__(
        self,
        engine: Engine,
        prefix: tuple[int, ...] = (),
        keywords: Keywords | None = None,
        resets: tuple[int, int] | None = None,
        readings: int = 0,
        keep: int = 0,
    ) -> None:
        self.results: deque[Heard] = deque()
        self.done = False
        self._engine = engine
        self._prefix, self._keywords, self._listed = prefix, keywords, readings
        self._resets = resets
        self._keep = keep
        self._ended = False
        self._gone = False
        self._held: deque[np.ndarray] = deque()
        self._fed = 0  # vectors that sessions were given
        self._next = 0  # vectors with which the next segment begins, -1 for none
        self._begun = 0
        self._spent = 0.0, 0
        self._tail: tuple[int, ...] | None = None  # of the segment in front
        self._failed: GharialError | None = None
        self._spares: list[Session] = []
        self._live: list[_Segment] = []
        try:
            for _ in range(1 if resets is None else 2):
                self._spares.append(self._open())
        except GharialError:
            self.close()
            raise
        self._begin()

    @property
    def error(self) -> GharialError | None:
        """Why the stream cannot go on."""
        if self.done or self._failed is not None:
            return self._failed
        live = [segment.session for segment in self._live]
        return next((session.error for session in live if session.error is not None), None)

    @property
    def waiting(self) -> int:
        """Vectors that were not sent to the device yet."""
        return sum(map(len, self._held)) + max((segment.session.waiting for segment in self._live), default=0)

    @property
    def held(self) -> bool:
        """See the class."""
        return bool(self._held)

    @property
    def seconds(self) -> float:
        """Share of the time spent on the device."""
        return self._spent[0] + sum(session.seconds for session in self._sessions)

    @property
    def cycles(self) -> int:
        """Device clocks of the commands that these sessions were part of."""
        return self._spent[1] + sum(session.cycles for session in self._sessions)

    def put(self, vectors: np.ndarray) -> None:
        """More feature vectors, int8 (n, F)."""
        if len(vectors) and not self.done:
            self._held.append(vectors)
            self.advance()

    def end(self) -> None:
        """No more vectors will come."""
        self._ended = True
        self.advance()

    def advance(self) -> bool:
        """Take what the sessions have given; whether any was given vectors that had been waiting."""
        if self.done or self.error is not None:
            return False
        self._read()
        fed = self._fed
        self._feed()
        return self._fed > fed

    @property
    def movable(self) -> bool:
        """Whether all that its sessions have heard is kept, so that others can hear it again."""
        return not self.done and all(segment.kept is not None for segment in self._live)

    def leave(self) -> None:
        """Give all sessions back, to go on with others: on this engine or another one (`join`)."""
        for session in self._sessions:
            self._leave(session)
        self._spares.clear()

    def join(self, engine: Engine) -> None:
        """Go on where `leave` has stopped, with sessions of an engine that gives the same for the same vectors.

        They hear again what those before have heard. What was taken of it does not come again.

        Raises:
            GharialError: the engine has not the places, or what was heard is not kept; nothing has changed.
        """
        if not self.movable:
            raise GharialError("the stream cannot go on: what it has heard is not kept")
        (before, self._engine), opened = (self._engine, engine), list[Session]()
        try:
            while len(opened) < (1 if self._resets is None else 2):
                opened.append(self._open())
        except GharialError:
            for session in opened:
                engine.close(session)
            self._engine = before
            raise
        self._failed = None
        for segment in self._live:
            ended, segment.session, segment.skip = segment.session.ended, opened.pop(), segment.given
            for vectors in segment.kept or ():
                segment.session.put(vectors)
            segment.session.ended = ended
        self._spares = opened

    def close(self) -> None:
        """Give the sessions back; may be called twice. What has been taken stays."""
        self._failed = self.error
        self._held.clear()
        for session in self._sessions:
            self._leave(session)
        self._live.clear()
        self._spares.clear()
        self.done = True

    def drop(self) -> None:
        """Have the sessions closed at the next opportunity; safe in a garbage collector's call."""
        self._gone = True
        for session in self._sessions:
            self._engine.drop(session)

    @property
    def _sessions(self) -> list[Session]:
        return [*[segment.session for segment in self._live], *self._spares]

    def _open(self) -> Session:
        session = self._engine.open(self._prefix, self._keywords)
        session.listed = self._listed
        if self._gone:
            self._engine.drop(session)
        return session

    def _replace(self, session: Session) -> bool:
        """Leave a session and keep its place for another; False if the stream has failed by that."""
        self._leave(session)
        try:
            self._spares.append(self._open())
        except GharialError as error:  # the driver was closed: places there are
            self._failed = error
        return self._failed is None

    def _leave(self, session: Session) -> None:
        if not session.closed:
            self._spent = self._spent[0] + session.seconds, self._spent[1] + session.cycles
        self._engine.close(session)

    def _begin(self) -> None:
        """The next segment, on a session that waits for it."""
        stack, session = self._engine.stack, self._spares.pop()
        if self._resets is None:
            self._live.append(_Segment(session, 0, 0, None, kept=[] if self._keep else None))
            self._next = -1
            return
        length, overlap = self._resets
        first = self._begun * (length - overlap)
        own = first + overlap if self._begun else 0
        self._live.append(_Segment(session, first, own, (first + length) * stack, kept=[] if self._keep else None))
        self._begun += 1
        self._next = self._begun * (length - overlap) * stack

    def _feed(self) -> None:
        """Give the segments the vectors that wait, as far as there are sessions."""
        while self._held:
            if self._fed == self._next:
                # A session that has begun nothing but its prefix may have been lost with it: another will do.
                if not self._spares or (self._spares[-1].error and not self._replace(self._spares.pop())):
                    return
                self._begin()
            hearing = [segment for segment in self._live if not segment.session.ended]
            stops = [segment.end for segment in hearing if segment.end is not None]
            if self._next > 0:
                stops.append(self._next)
            vectors = self._held.popleft()
            part = vectors[: min(stops) - self._fed] if stops else vectors
            if len(part) < len(vectors):
                self._held.appendleft(vectors[len(part) :])
            self._fed += len(part)
            for segment in hearing:
                segment.hear(part, self._fed - segment.first * self._engine.stack <= self._keep)
                segment.session.ended = segment.end == self._fed
        if self._ended:
            self._end()

    def _end(self) -> None:
        """All vectors were given: the segment whose own steps were going on has ended, and is the last."""
        if len(self._live) == 2 and not self._live[0].session.ended:
            self._leave(self._live.pop().session)  # it has heard nothing but what the first has
        for segment in self._live:
            segment.session.ended = True
        self._read()

    def _read(self) -> None:
        """Take the results of the segment whose turn it is, and go on to the next where it is over."""
        while self._live:
            segment = self._live[0]
            session = segment.session
            if session.error is not None:
                return
            if segment.border is None:
                segment.border = Border(segment.own, self._tail)
            while session.results:
                result = session.results.popleft()
                if segment.skip:
                    segment.skip -= 1
                    continue
                segment.given += 1
                self._give(segment, segment.border, result, session.ended and session.done and not session.results)
            if not (session.ended and session.done):
                return
            if segment.last.partial:  # its end became known after its last step's result
                step, readings = segment.last.step, segment.last.readings
                segment.last = Heard(step, (), segment.border.take(segment.pending), (), readings)
                self.results.append(segment.last)
            if len(self._live) == 1 and self._ended and not self._held:
                break
            self._tail = segment.border.tail
            del self._live[0]
            if not self._replace(session):
                return
        self.done = self._ended and not self._held

    def _give(self, segment: _Segment, border: Border, result: StepResult, over: bool) -> None:
        """A step's result, `over` if the segment ends with it."""
        first, step = segment.first, segment.first + result.step
        finals = border.take(_later(result.finals, first))
        if step < segment.own:
            return
        partial = _later(result.partial, first)
        readings = tuple(
            [replace(reading, tokens=border.look(_later(reading.tokens, first))) for reading in result.readings]
        )
        if over:
            segment.last = Heard(step, finals, border.take(partial), (), readings)
        else:
            segment.last = Heard(step, finals, (), border.look(partial), readings)
            segment.pending = partial
        self.results.append(segment.last)


def _later(tokens: tuple[Emitted, ...], steps: int) -> tuple[Emitted, ...]:
    """Tokens of a segment with the stream's steps."""
    if not steps:
        return tokens
    return tuple([Emitted(token.token, token.step + steps, token.confidence) for token in tokens])
