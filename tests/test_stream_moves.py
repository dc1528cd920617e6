# SPDX-License-Identifier: Apache-2.0
"""Streams that go on elsewhere: what comes out is what would have come without, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from recordings import LONG, SHORT, cuts, samples
from stream_cases import ToldEngine, numbered
from test_stream_rules import Case, cases

from gharial.devices.emulator import EmulatorDevice
from gharial.errors import BadInput, DeviceError, GharialError
from gharial.isa.faults import Fault
from gharial.recognise import Recogniser, StateResets, Stream, StreamOptions, StreamStep, load
from gharial.recognise.segments import Heard, Segments

RESETS = StreamOptions(state_resets=StateResets(segment_s=1.2, overlap_s=0.3))


def brought(case: Case, random: np.random.Generator, moves: float) -> list[Heard]:
    """What comes out of a case in which sessions are left, some of them failed, and begun anew by chance."""
    engines = [ToldEngine(case.told) for _ in range(3)]
    engine = engines[0]
    resets = None if case.rules.segment is None else (case.rules.segment, case.rules.overlap)
    segments = Segments(engine.as_engine(), resets=resets, keep=10**6)
    vectors, at, ended = numbered(case.steps, case.short), 0, False
    while not segments.done:
        size = int(random.integers(0, 9))
        if at < len(vectors):
            segments.put(vectors[at : at + size])
            at += size
        elif not ended and random.random() < 0.5:
            segments.end()
            ended = True
        engine.run(random)
        if segments.movable and random.random() < moves:
            for session in engine.sessions:
                session.error = GharialError("lost") if random.random() < 0.5 else None
            segments.leave()
            assert not engine.sessions
            engine = engines[int(random.integers(3))]
            segments.join(engine.as_engine())
        segments.advance()
    assert segments.error is None
    segments.close()
    assert not any(one.sessions for one in engines)
    return list(segments.results)


@settings(max_examples=60)
@given(cases())
def test_sessions_begun_anew_bring_what_the_first_would_have(case: Case) -> None:
    def joined(found: list[Heard]) -> list[tuple[object, ...]]:
        steps: dict[int, tuple[object, ...]] = {}
        for one in found:  # whether the end became known with the last step or behind it is by chance
            before = steps.get(one.step, ((), ()))
            steps[one.step] = (*before[0], *one.finals, *one.rest), one.partial  # type: ignore[misc]
        return sorted(steps.items())

    expected = joined(brought(case, np.random.default_rng(case.seed), 0.0))
    assert joined(brought(case, np.random.default_rng(case.seed + 1), 0.3)) == expected


def test_what_is_not_kept_cannot_be_heard_again() -> None:
    def told(*_: object) -> None:
        raise AssertionError

    engine = ToldEngine(told)  # type: ignore[arg-type]
    segments = Segments(engine.as_engine(), keep=4)
    segments.put(numbered(2))
    assert segments.movable
    segments.put(numbered(3)[4:])
    assert not segments.movable
    segments.leave()
    with pytest.raises(GharialError, match="not kept"):
        segments.join(engine.as_engine())


def test_an_engine_without_places_is_not_joined() -> None:
    def told(*_: object) -> None:
        raise AssertionError

    full, free = ToldEngine(told, places=1), ToldEngine(told)  # type: ignore[arg-type]
    segments = Segments(free.as_engine(), resets=(6, 3), keep=100)
    segments.leave()
    with pytest.raises(GharialError, match="no slot"):
        segments.join(full.as_engine())
    assert not full.sessions
    segments.join(free.as_engine())
    assert len(free.sessions) == 2


@pytest.fixture(scope="module", params=["greedy", "beam"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Recogniser, Recogniser]]:
    with (
        load(device="emulator:u50", decoder=request.param) as one,
        load(device="emulator:ecp5-85f", decoder=request.param) as other,
    ):
        yield one, other


def listened(
    stream: Stream, recogniser: Recogniser, audio: np.ndarray, random: np.random.Generator
) -> list[StreamStep]:
    steps: list[StreamStep] = []
    for piece in cuts(audio, random, 4000):
        stream.feed(piece)
        recogniser.run()
        steps += stream.steps()
    return steps


@pytest.mark.parametrize("options", [None, RESETS], ids=["whole", "resets"])
@pytest.mark.parametrize("how", [Fault.BUS_READ, Fault.BUS_WRITE, None], ids=["read", "write", "watchdog"])
def test_a_device_that_fails_changes_nothing(
    pair: tuple[Recogniser, Recogniser], options: StreamOptions | None, how: Fault | None, seed: int
) -> None:
    """The stream that is hit goes on, first on the same device, then on one of another configuration."""
    random, audio = np.random.default_rng(seed), samples(LONG)
    one, other = pair
    with one.stream(options) as stream:
        expected = listened(stream, one, audio, random)
        expected_end = stream.finish()
    places = one.free_streams, other.free_streams
    with one.stream(options, replay_s=1000) as stream:
        found: list[StreamStep] = []
        recogniser = one
        for number, part in enumerate(np.array_split(audio, 3)):
            found += listened(stream, recogniser, part[:-2000], random)
            assert isinstance(recogniser.device, EmulatorDevice)
            if how is None:
                recogniser.device.inject_watchdog()
            else:
                recogniser.device.inject_bus_error(how)
            stream.feed(part[-2000:])
            recogniser.run()
            with pytest.raises(DeviceError):
                stream.steps()
            stream.leave()
            assert stream not in recogniser._held
            recogniser = pair[number % 2]
            stream.join(recogniser)
            recogniser.run()
        found += stream.steps()
        assert [(s.step, s.finals, s.partial) for s in found] == [(s.step, s.finals, s.partial) for s in expected]
        end = stream.finish()
    assert (end.text, end.tokens) == (expected_end.text, expected_end.tokens)
    assert (one.free_streams, other.free_streams) == places


def test_another_decoder_is_refused(pair: tuple[Recogniser, Recogniser]) -> None:
    one, _ = pair
    wanted = "beam" if one.decoder == "greedy" else "greedy"
    with load(device="emulator:u50", decoder=wanted) as stranger, one.stream(replay_s=10) as stream:
        stream.leave()
        with pytest.raises(BadInput, match="decoder"):
            stream.join(stranger)


def test_readings_come_with_every_step(pair: tuple[Recogniser, Recogniser]) -> None:
    one, _ = pair
    with one.stream(StreamOptions(alternatives=3)) as stream:
        stream.feed(samples(SHORT))
        one.run()
        steps = stream.steps()
        assert all(step.readings and step.readings[0] == step.partial for step in steps)
        known = len(stream.tokens)
        stream.end()
        one.run()
        last = stream.steps()[-1]
        transcript = stream.transcript()
    if one.decoder == "beam":
        assert any(len(step.readings) > 1 for step in steps)
        assert last.readings[0] == (last.finals or last.partial)
    assert transcript.alternatives[0].tokens == transcript.tokens
    assert len(transcript.tokens) >= known
