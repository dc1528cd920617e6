# SPDX-License-Identifier: Apache-2.0
"""Segments, end of sequence and silence (docs/decoding.md, section 7), against the plain rules, on random steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim.decoding import Token
from sim.decoding.streams import Rules, Step, hear, spans
from stream_cases import ToldEngine, emitted, numbered, plain, random_steps, result_of

from gharial.errors import GharialError
from gharial.recognise.endings import Endings
from gharial.recognise.options import EosMode
from gharial.recognise.segments import Border, Heard, Segments
from gharial.recognise.session import Emitted, StepResult

EOS = 0


@dataclass(frozen=True)
class Case:
    """A stream: its rules, its steps, and what each segment's search brings."""

    rules: Rules
    steps: int
    short: bool
    brought: dict[int, list[Step]]
    seed: int

    def told(self, first: int, step: int, listed: bool) -> StepResult:
        return result_of(step, self.brought[first][step], listed)

    def expected(self) -> tuple[list[Step], str | None]:
        given_ = spans(self.steps, self.rules)
        return hear(self.steps, [self.brought[first][: end - first] for first, _, end in given_], self.rules)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    segment = draw(st.none() | st.integers(1, 12))
    overlap = 0 if segment is None else draw(st.integers(0, segment // 2))
    mode = draw(st.sampled_from([mode.value for mode in EosMode]))
    silence = draw(st.none() | st.integers(1, 8))
    rules = Rules(segment, overlap, draw(st.sampled_from([EOS, None])), mode, silence)
    steps = draw(st.integers(0, 50))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    vocabulary, rate = draw(st.sampled_from([2, 4, 30])), draw(st.sampled_from([0.1, 0.3, 0.6]))
    length = steps if segment is None else segment
    firsts = [0] if segment is None else range(0, steps + 1, segment - overlap)
    brought = {first: random_steps(random, length, vocabulary, rate) for first in firsts}
    return Case(rules, steps, draw(st.booleans()) and steps > 0, brought, seed)


def segments_of(case: Case, engine: ToldEngine, readings: int = 0) -> Segments:
    resets = None if case.rules.segment is None else (case.rules.segment, case.rules.overlap)
    return Segments(engine.as_engine(), (7, 8), None, resets, readings)


def endings_of(case: Case) -> Endings:
    return Endings(case.rules.eos, EosMode(case.rules.mode), case.rules.silence)


def heard(case: Case, random: np.random.Generator | None, readings: int = 0) -> tuple[list[Heard], str | None]:
    """What comes out of a case, its vectors in one piece or cut, and the engine run, by chance."""
    engine = ToldEngine(case.told)
    segments, endings = segments_of(case, engine, readings), endings_of(case)
    vectors, found, at, ended = numbered(case.steps, case.short), [], 0, False
    while not segments.done:
        size = len(vectors) if random is None else int(random.integers(0, 9))
        if at < len(vectors):
            segments.put(vectors[at : at + size])
            at += size
        if at >= len(vectors) and not ended and (random is None or random.random() < 0.5):
            segments.end()
            ended = True
        if random is None or random.random() < 0.5:
            engine.run(random)
        if random is None or random.random() < 0.5:
            segments.advance()
        places = 1 if case.rules.segment is None else 2
        assert segments.error is None and (len(engine.sessions) == places or (ended and engine.sessions))
        while segments.results and endings.reason is None:
            found.append(endings.apply(segments.results.popleft()))
        if endings.reason is not None:
            segments.close()
    assert all(session.prefix == (7, 8) for session in engine.sessions)
    segments.close()
    assert not engine.sessions
    return found, endings.reason


def shown(found: list[Heard]) -> list[Step]:
    """By step: the end may have become known after the last one's result."""
    steps: list[Step] = []
    for one in found:
        finals = plain(one.finals + one.rest)
        if one.step < len(steps):
            before = steps.pop()
            steps.append(Step(before.finals + finals, plain(one.partial)))
        else:
            steps.append(Step(finals, plain(one.partial)))
        assert one.step == len(steps) - 1
    return steps


@settings(max_examples=400)
@given(cases())
def test_equal_to_the_plain_rules(case: Case) -> None:
    expected = case.expected()
    for random in (None, np.random.default_rng(case.seed), np.random.default_rng(case.seed + 1)):
        found, reason = heard(case, random)
        assert (shown(found), reason) == expected


@settings(max_examples=200)
@given(cases())
def test_finals_are_never_taken_back(case: Case) -> None:
    """All finals in order are the best hypothesis at the end, and every token's step is one that it was heard in."""
    found, reason = heard(case, np.random.default_rng(case.seed))
    best: tuple[Emitted, ...] = ()
    finals: tuple[Emitted, ...] = ()
    for one in found:
        finals += one.finals + one.rest
        best = finals + one.partial
        assert all(token.step <= one.step for token in best)
        assert [token.step for token in best] == sorted(token.step for token in best)
    assert best == finals
    if case.rules.mode != "stream":
        assert not any(token.token == case.rules.eos for token in finals)
    if reason is None and found:
        assert found[-1].step == case.steps - 1


@settings(max_examples=200)
@given(cases())
def test_readings_begin_with_what_is_shown(case: Case) -> None:
    """The first reading of a step is its best hypothesis, at the end the transcript."""
    for random in (None, np.random.default_rng(case.seed)):
        found, _ = heard(case, random, readings=2)
        for one in found:
            assert one.readings[0].tokens == one.rest + one.partial
            assert 1 <= len(one.readings) <= 2
        whole, _ = heard(case, None, readings=2)
        assert not found or found[-1].readings == whole[-1].readings


def test_borders() -> None:
    """The page's examples: b and c are heard twice; a word said twice is said twice."""

    def tokens(text: str, step: int = 10) -> tuple[Emitted, ...]:
        return tuple(Emitted(ord(letter), step, 0.5) for letter in text)

    def kept(before: str | None, behind: str) -> str:
        border = Border(10, None if before is None else [ord(letter) for letter in before])
        assert border.look(tokens(behind)) == border.look(tokens(behind))
        looked = border.look(tokens("xyz", 9) + tokens(behind))
        assert border.take(tokens("xyz", 9)) == ()
        piecewise = sum((border.take(tokens(letter)) for letter in behind), ())
        assert looked == piecewise
        assert border.tail == tuple(token.token for token in looked)[-3:]
        return "".join(chr(token.token) for token in looked)

    assert kept("abc", "bcd") == "d"
    assert kept("abc", "cc") == "c"
    assert kept("abc", "cba") == "ba"
    assert kept("abc", "xyzabc") == "xyzabc"
    assert kept("abc", "xyc") == "xy"
    assert kept("abc", "xyzc") == "xyzc"
    assert kept("ab", "ab") == ""
    assert kept("", "ab") == "ab"
    first = Border(0)
    assert first.take(tokens("aab")) == tokens("aab") and first.tail == tuple(map(ord, "aab"))


def told_by(*steps: tuple[str, str]) -> list[Step]:
    """Steps of (finals, partial), a letter a token, each chosen in the step that it is first seen in."""
    known: list[Token] = []
    found, done = [], 0
    for step, (finals, partial) in enumerate(steps):
        del known[done + len(partial) + len(finals) :]
        for place, letter in enumerate(finals + partial, done):
            if place >= len(known) or known[place].id != ord(letter):
                del known[place:]
                known.append(Token(ord(letter), step, 1.0))
        found.append(Step(tuple(known[done : done + len(finals)]), tuple(known[done + len(finals) :])))
        done += len(finals)
    return found


def lines(found: list[Heard]) -> list[str]:
    """finals|rest|partial of each step."""
    parts = [(one.finals, one.rest, one.partial) for one in found]
    return ["|".join("".join(chr(token.token) for token in part) for part in step) for step in parts]


def run(brought: dict[int, list[Step]], steps: int, rules: Rules) -> tuple[list[str], str | None]:
    found, reason = heard(Case(rules, steps, False, brought, 0), None)
    return lines(found), reason


def test_who_owns_what() -> None:
    """Segments of five steps, two of them shared."""
    first = told_by(("a", ""), ("", ""), ("", "b"), ("", "bc"), ("b", "cd"))
    second = told_by(("", "X"), ("X", "Y"), ("Y", "d"), ("d", "e"), ("", "ef"))
    third = told_by(("", ""), ("", "f"), ("f", ""))
    rules = Rules(5, 2)
    assert run({0: first, 3: second, 6: third}, 9, rules) == (
        # X and Y were chosen in steps that belong to the first; d is heard by both; f by second and, as a step of
        # the overlap, by the third.
        ["a||", "||", "||b", "||bc", "b|cd|", "||", "||e", "|ef|", "||"],
        None,
    )
    # The end within an overlap: the second has nothing of its own.
    assert run({0: first, 3: second}, 4, rules) == (["a||", "||", "||b", "|bc|"], None)
    assert run({0: first, 3: second}, 5, rules) == (["a||", "||", "||b", "||bc", "b|cd|"], None)


@pytest.mark.parametrize(
    ("mode", "expected", "reason"),
    [
        ("classic", ["||a", "||a", "a||b", "b||", "|c|"], None),
        ("stream", ["||a", "||a.", "a.||b", "b||.", "|.c|"], None),
        ("terminal", ["||a", "||a", "a||"], "eos"),
    ],
)
def test_end_of_sequence(mode: str, expected: list[str], reason: str | None) -> None:
    steps = told_by(("", "a"), ("", "a."), ("a.", "b"), ("b", "."), ("", ".c"))
    assert run({0: steps}, 5, Rules(eos=ord("."), mode=mode)) == (expected, reason)


def test_an_end_of_sequence_at_the_end() -> None:
    """It is final with the rest of the best hypothesis."""
    steps = told_by(("", "a"), ("", "a.b"))
    assert run({0: steps}, 2, Rules(eos=ord("."), mode="terminal")) == (["||a", "|a|"], "eos")
    assert run({0: steps}, 2, Rules(eos=ord("."))) == (["||a", "|ab|"], None)


def test_silence() -> None:
    steps = told_by(("", ""), ("", ""), ("", ""), ("a", "b"), ("", "b"), ("", "bc"), ("", "bc"), ("b", "c"), ("c", ""))
    assert run({0: steps}, 9, Rules(silence=2))[0] == ["||", "||", "||", "a||b", "||b", "||bc", "||bc", "b|c|"]
    assert run({0: steps}, 9, Rules(silence=2))[1] == "silence"
    assert run({0: steps}, 9, Rules(silence=3))[1] == "silence"
    assert run({0: steps}, 8, Rules(silence=3))[1] is None
    # A hypothesis that is given up takes its token's time with it.
    steps = told_by(("a", ""), ("", "b"), ("", ""))
    assert run({0: steps}, 3, Rules(silence=2)) == (["a||", "||b", "||"], "silence")
    # What is not shown does not count.
    steps = told_by(("a", ""), (".", ""), ("", "."), ("", ""))
    assert run({0: steps}, 4, Rules(silence=2, eos=ord("."))) == (["a||", "||", "||"], "silence")
    assert run({0: steps}, 4, Rules(silence=2, eos=ord("."), mode="stream"))[1] == "silence"
    assert len(run({0: steps}, 4, Rules(silence=2, eos=ord("."), mode="stream"))[0]) == 4


def test_two_sessions_and_no_more() -> None:
    """A stream with resets holds two from beginning to end, fed at once as well, and says so where there is one."""
    steps = [Step() for _ in range(6)]
    engine = ToldEngine(lambda first, step, listed: result_of(step, steps[step], listed), places=2)
    segments = Segments(engine.as_engine(), resets=(6, 3))
    assert engine.free == 0
    segments.put(numbered(40))
    segments.end()
    waited = False
    while not segments.done:
        waited = waited or segments.held
        engine.run()
        assert segments.advance() or segments.waiting == 0
        assert engine.free == 0 or not segments.held
    assert waited and [one.step for one in segments.results] == list(range(40))
    assert engine.opened == 14 and segments.cycles == 40 + 3 * 12
    segments.close()
    segments.close()
    assert engine.free == 2 and segments.error is None
    for places in (0, 1):
        engine = ToldEngine(lambda first, step, listed: result_of(step, steps[step], listed), places=places)
        with pytest.raises(GharialError, match="no slot"):
            Segments(engine.as_engine(), resets=(6, 3))
        assert engine.free == places


def test_a_session_that_fails_fails_the_stream() -> None:
    """One that hears the stream; one that only waits for its turn is taken for another."""
    for which, fails in ((1, True), (0, False)):
        engine = ToldEngine(lambda first, step, listed: result_of(step, Step(), listed))
        segments = Segments(engine.as_engine(), resets=(6, 3))
        segments.put(numbered(2))
        engine.run()
        engine.sessions[which].error = GharialError("gone")
        assert (segments.error is not None) == fails
        segments.put(numbered(6)[4:])
        engine.run()
        segments.advance()
        assert len(segments.results) == (0 if fails else 6)
        segments.close()
        assert (segments.error is not None) == fails
        assert engine.free == 8


def test_a_stream_that_is_dropped_leaves_nothing() -> None:
    engine = ToldEngine(lambda first, step, listed: result_of(step, Step(), listed))
    segments = Segments(engine.as_engine(), resets=(6, 3))
    segments.put(numbered(8))
    engine.run()
    segments.drop()
    segments.advance()  # in the middle of which it may have been dropped
    assert {id(one) for one in engine.sessions} <= {id(one) for one in engine.dropped}


def test_cases_are_of_every_kind() -> None:
    """The random steps hold what the rules are about."""
    random = np.random.default_rng(1)
    steps = random_steps(random, 2000, 4)
    assert any(step.finals for step in steps) and any(step.partial for step in steps)
    assert any(token.step < number for number, step in enumerate(steps) for token in step.finals)
    assert emitted(steps[0].finals) == tuple(emitted([token])[0] for token in steps[0].finals)
