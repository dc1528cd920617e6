# SPDX-License-Identifier: Apache-2.0
"""Beam search on the host over DECODE commands (docs/decoding.md, sections 8 and 12).

A session's step is encoded by an ENCODE command, then searched in a lane: a DECODE command, results to the search, the
next DECODE command, until the search says that the step has ended. While it is searched the next step is encoded into
the other bank, none further ahead. A search begins when its ENCODE command is known to be done, so that one that failed
hits nobody else. A lane takes all sessions that wait for a search.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from gharial.decoding import (
    BeamSearch,
    DecoderOptions,
    Hypothesis,
    Keywords,
    NgramScorer,
    SearchModel,
    Token,
    asked_for,
)
from gharial.driver import Driver, Recovery
from gharial.errors import BadInput, BadRequest, GharialError
from gharial.isa.commands import Mode
from gharial.recognise.engine import Engine, Round, share
from gharial.recognise.session import Alternative, Emitted, Session, StepResult

LANES = 3
"""Searches on their way at once, where there are prediction slots for it."""


@dataclass(eq=False)
class BeamSession(Session):
    """See `Session`.

    Attributes:
        engine: whose it is.
        keywords: those boosted in it.
        encoded: encoder steps that are encoded.
        number: of its stream in the search, None before its first step is searched.
        searched: whether a step of it is being searched.
    """

    engine: BeamEngine | None = None
    keywords: Keywords | None = None
    encoded: int = 0
    number: int | None = None
    searched: bool = False

    def alternatives(self, count: int = 1) -> list[Alternative]:
        """See `Session.alternatives`."""
        self.check_done()
        assert self.engine is not None
        if self.number is None:
            return [Alternative(0.0, 0.0, ())]
        return list(_alternatives(self.engine.search.best(self.number, max(1, count))))


@dataclass(frozen=True, eq=False)
class _Encoding(Round[BeamSession]):
    """An ENCODE command."""


@dataclass(frozen=True, eq=False)
class _Searching(Round[BeamSession]):
    """A DECODE command of a lane."""

    lane: _Lane


@dataclass(eq=False)
class _Lane:
    """A lane of the search.

    Attributes:
        number: its number.
        members: sessions whose step it searches, by the number of their stream.
        left: numbers of streams that were closed meanwhile, which may hold slots until the lane goes on.
    """

    number: int
    members: dict[int, BeamSession]
    left: list[int]


class BeamEngine(Engine[BeamSession]):
    """Beam search of many sessions on one driver.

    All prediction slots that the driver has left go to the search.

    Args:
        driver: with the program loaded; the engine does not close it.
        model: what the search has to know of the model.
        options: settings, the same for all sessions.
        ngram: an n-gram over the model's pieces, or None; its scale is in the options.
        mode: what a DECODE command is asked to list.

    Attributes:
        search: the search.

    Raises:
        BadInput: options that do not fit the model or the device.
    """

    def __init__(
        self,
        driver: Driver,
        model: SearchModel,
        options: DecoderOptions,
        *,
        ngram: NgramScorer | None = None,
        mode: Mode = Mode.TOP_K,
    ) -> None:
        super().__init__(driver)
        slots = driver.prediction_slots.free
        self._most_sessions, lanes = places(driver.encoder_slots.count, slots, options)
        if not self._most_sessions:
            raise BadInput(
                "the device has too few prediction slots for this width of the beam",
                f"width {options.width} on {driver.device.name}",
                f"{slots} slots",
                f"{2 * options.width} or more",
                "take a smaller width, or a device with more slots",
            )
        k, named = asked_for(model, options, mode)
        try:
            self._form = driver.decode_form(k=k, mode=mode, named=named, temperature=options.inverse_temperature)
        except BadRequest as error:
            what, remedy = "the device cannot list this model's classes so", f"take mode {Mode.TOP_K.name}"
            raise BadInput(what, f"mode {mode.name}", error, "a mode that the model's classes allow", remedy) from error
        self.search = BeamSearch(
            model,
            options,
            streams=self._most_sessions,
            slots=driver.allocate("prediction", slots),
            lanes=lanes,
            max_entries=self._form.most,
            mode=mode,
            ngram=ngram,
        )
        self._numbers = list(range(self._most_sessions))  # of streams, a heap
        self._lanes = [_Lane(number, {}, []) for number in range(lanes)]
        self._idle = list(self._lanes)

    def _places(self) -> int:
        return min(self._driver.encoder_slots.free, self._most_sessions - len(self._sessions))

    def _opened(self, prefix: tuple[int, ...], keywords: Keywords | None) -> BeamSession:
        if len(self._sessions) >= self._most_sessions:
            raise GharialError(
                f"no place is left: {len(self._sessions)} streams with a beam of {self.search.options.width}\n"
                "end a stream, take a smaller width, or use a device with more prediction slots"
            )
        (encoder,) = self._driver.allocate("encoder")
        return BeamSession(encoder, prefix, engine=self, keywords=keywords)

    def close(self, session: BeamSession) -> None:
        """See `Engine.close`."""
        super().close(session)
        self._forget(session)

    def _slots(self, session: BeamSession) -> Iterable[tuple[str, int]]:
        return (("encoder", session.encoder),)

    def submit(self) -> bool:
        """Send the next steps of all sessions that may have them encoded, and begin the search of those encoded."""
        self._reap()
        self._take_finished()
        encoding = self._encode()
        return self._begin() or encoding

    def _encode(self) -> bool:
        ready = [s for s in self._sessions if s.sent - s.taken < 2 and self._has_step(s)]
        ready = self._chosen(ready, self._most)
        if not ready:
            return False
        started = perf_counter()
        batch = self._batch(ready, [session.sent == 0 for session in ready], [0] * len(ready))
        try:
            self._rounds.append(_Encoding(self._driver.encode(batch), ready))
        except GharialError as error:
            self._fail(ready, error)
            self._recover(error)
        share(ready, perf_counter() - started)
        return True

    def _begin(self) -> bool:
        """Begin a search on a lane; False if there is none free, or nobody to be searched."""
        if not self._idle:
            return False
        ready = [s for s in self._sessions if not s.searched and s.encoded > s.taken and s.error is None]
        for session in ready:
            if session.number is None and self._numbers:
                session.number = heapq.heappop(self._numbers)
                self.search.open(session.number, session.keywords, session.prefix)
        ready = self._chosen([session for session in ready if session.number is not None], self._form.most)
        if not ready:
            return False
        started = perf_counter()
        lane = self._idle.pop()
        lane.members = {session.number: session for session in ready if session.number is not None}
        for session in ready:
            session.searched = True
        self._go_on(
            lane,
            self.search.begin(
                lane.number,
                list(lane.members),
                [session.encoder for session in ready],
                [session.taken & 1 for session in ready],
            ),
        )
        share(ready, perf_counter() - started)
        return True

    def _go_on(self, lane: _Lane, entries: Any) -> None:
        """Take the outcomes of a lane, and send what the search wants to know next."""
        self._let_go(lane)
        for outcome in self.search.outcomes(lane.number):
            session = lane.members.pop(outcome.stream)
            session.searched = False
            if outcome.error is not None:
                self._fail([session], outcome.error)
                continue
            best = self.search.best(outcome.stream, max(1, session.listed))
            partial = _emitted(best[0].tokens)
            readings = _alternatives(best) if session.listed else ()
            session.results.append(StepResult(session.taken, _emitted(outcome.finals), partial, readings))
            session.taken += 1
        if not len(entries):
            self._idle.append(lane)
            return
        sessions = list(lane.members.values())
        try:
            self._rounds.append(_Searching(self._driver.decode_bytes(self._form, entries), sessions, lane))
        except GharialError as error:
            self._cancel(lane, error)
            self._recover(error)

    def _take(self, round_: Round[BeamSession], results: Any) -> None:
        if not isinstance(round_, _Searching):
            for session in round_.sessions:
                session.encoded += 1
            return
        lane = round_.lane
        try:
            entries = self.search.feed(lane.number, results)
        except BaseException:
            self._cancel(lane, GharialError("the search was interrupted"))
            raise
        self._go_on(lane, entries)

    def _lose(self, round_: Round[BeamSession], error: GharialError) -> None:
        if isinstance(round_, _Searching):
            self._cancel(round_.lane, error)
        super()._lose(round_, error)

    def _cancel(self, lane: _Lane, error: GharialError) -> None:
        """Give a lane up; its sessions fail."""
        self.search.cancel(lane.number)
        self._let_go(lane)
        members = list(lane.members.values())
        lane.members.clear()
        for session in members:
            session.searched = False
        self._idle.append(lane)
        self._fail(members, error)

    def _let_go(self, lane: _Lane) -> None:
        """Results are here: streams that were closed while they were on their way hold nothing any more."""
        for number in lane.left:
            heapq.heappush(self._numbers, number)
        lane.left.clear()

    def _fail(self, sessions: Iterable[BeamSession], error: GharialError) -> None:
        sessions = list(sessions)
        super()._fail(sessions, error)
        for session in sessions:
            self._forget(session)

    def _forget(self, session: BeamSession) -> None:
        """The session has no more business with the search."""
        number, session.number = session.number, None
        if number is None:
            return
        self.search.close(number)
        for lane in self._lanes:
            if lane.members.get(number) is session:
                del lane.members[number]
                lane.left.append(number)
                session.searched = False
                return
        heapq.heappush(self._numbers, number)

    def _hit(self, session: BeamSession, recovery: Recovery) -> bool:
        if not session.sent:
            return False
        if session.encoder in recovery.lost_encoder or recovery.reloaded:
            return True
        if session.number is None or session.searched:
            return False  # nothing there yet, or it stands and falls with its lane's command
        kept = self.search.kept(session.number)
        return not {one.slot for one in kept}.isdisjoint(recovery.lost_prediction)


def places(encoder_slots: int, prediction_slots: int, options: DecoderOptions) -> tuple[int, int]:
    """(sessions, lanes) for which a device has slots; no session, if it has not enough for one.

    A session may hold `width` prediction slots between two steps, and a lane may need another `max_expansions` to get a
    step to its end. So many are there for any step of any session, except that one session alone makes do with less.
    """
    width, within = options.width, options.expansions
    if prediction_slots < width + within:
        return int(prediction_slots >= 2 * width), 1
    most = [min(encoder_slots, (prediction_slots - lanes * within) // width) for lanes in range(1, LANES + 1)]
    lanes = max(lane for lane, sessions in enumerate(most, 1) if sessions * 16 >= most[0] * 15)
    return most[lanes - 1], lanes


def _alternatives(best: Sequence[Hypothesis]) -> tuple[Alternative, ...]:
    return tuple(Alternative(one.score, one.mean, _emitted(one.tokens)) for one in best)


def _emitted(tokens: Sequence[Token]) -> tuple[Emitted, ...]:
    # The log-sum-exp is rounded, so a near-certain token could come out a hair above 1.
    return tuple(Emitted(token.id, token.step, min(1.0, token.confidence)) for token in tokens)
