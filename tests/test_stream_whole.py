# SPDX-License-Identifier: Apache-2.0
"""Streams on the emulator with every option: equal to the plain rules over sessions run by hand, however cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from recordings import FILES, SHORT, cuts, facts, samples
from sim.decoding import Token as Plain
from sim.decoding.streams import Rules, Step, hear, spans
from stream_cases import plain
from stream_models import EOS, HEARD, PREFIXES, symbolic

from gharial.decoding import DecoderOptions
from gharial.features import FeatureStream, quantise_features
from gharial.model import Detokeniser, compile_model
from gharial.program import Program
from gharial.recognise import EosMode, Recogniser, StateResets, StreamOptions, StreamStep, Transcript, load

LOOSE = DecoderOptions(width=3, topk_threshold=4.0, score_threshold=1.0, final_limit_s=0.6)
"""Hypotheses that differ for long."""


@dataclass(frozen=True)
class Talker:
    """A recogniser, and audio that it has much to say about."""

    recogniser: Recogniser
    audio: np.ndarray


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A network that ends sequences, and takes prefixes."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "talk.flac").write_bytes(SHORT.read_bytes())
    return compile_model(symbolic(folder), "u50", folder)


@pytest.fixture(scope="module", params=["greedy", "beam"])
def talker(request: pytest.FixtureRequest, program: Program) -> Iterator[Talker]:
    """Eight seconds in which sequences end, and end again."""
    beam = {"decoder": "beam", "options": LOOSE} if request.param == "beam" else {}
    with Recogniser(program, "emulator:u50", **beam) as recogniser:
        free = recogniser.free_streams
        yield Talker(recogniser, np.concatenate([samples(FILES[5]), samples(FILES[7])]))
        assert recogniser.free_streams == free


@pytest.fixture(scope="module", params=["greedy", "beam"])
def demo_talker(request: pytest.FixtureRequest) -> Iterator[Talker]:
    """The demo model on 66 s of the shipped recordings."""
    audio = np.concatenate([samples(path) for path in (*FILES, *FILES[:6])])
    assert len(audio) > 60 * 16000
    beam = {"decoder": "beam", "options": DecoderOptions()} if request.param == "beam" else {}
    with load(device="emulator:u50", **beam) as recogniser:
        yield Talker(recogniser, audio)


def vectors_of(talker: Talker) -> np.ndarray:
    stream = FeatureStream(talker.recogniser.front_end)
    vectors = np.concatenate([stream.push(talker.audio), stream.finish()])
    return quantise_features(vectors, talker.recogniser.feature_bits)


def by_hand(talker: Talker, options: StreamOptions) -> tuple[list[Step], str | None]:
    """What the stream is to show: each segment in a session of its own, the plain rules over what they gave."""
    recogniser, vectors = talker.recogniser, vectors_of(talker)
    stack, engine = recogniser.engine.stack, recogniser.engine
    segment, overlap = options.state_resets.steps(recogniser.step_s) if options.state_resets else (None, 0)
    rules = Rules(
        segment, overlap, recogniser.vocabulary.eos, options.eos_mode.value, options.silence_steps(recogniser.step_s)
    )
    steps = -(-len(vectors) // stack)
    brought = []
    for first, _, end in spans(steps, rules):
        keywords = recogniser.checked(options).keywords
        session = engine.open(recogniser.prefixes.tokens(options.prefix), keywords)
        session.put(vectors[first * stack : end * stack])
        session.ended = True
        engine.run()
        assert session.error is None
        brought.append([Step(plain(result.finals), plain(result.partial)) for result in session.results])
        engine.close(session)
    return hear(steps, brought, rules)


def shown(steps: list[StreamStep]) -> list[Step]:
    return [
        Step(
            tuple(Plain(token.id, token.step, token.confidence) for token in step.finals),
            tuple(Plain(token.id, token.step, token.confidence) for token in step.partial),
        )
        for step in steps
    ]


def stepwise(
    talker: Talker, options: StreamOptions, random: np.random.Generator | None = None, longest: int = 20000
) -> tuple[list[StreamStep], Transcript]:
    """Every step of a stream, and its transcript: the audio at once, or cut and looked at by chance."""
    recogniser = talker.recogniser
    found: list[StreamStep] = []
    with recogniser.stream(options) as stream:
        pieces: Any = [talker.audio] if random is None else cuts(talker.audio, random, longest)
        for piece in pieces:
            stream.feed(piece)
            if random is not None and random.random() < 0.6:
                recogniser.run()
                found += stream.steps()
                if random.random() < 0.2:  # asked at any time, it says the same
                    assert stream.text == text_of(found) and stream.tokens == tokens_of_steps(found)
                    assert stream.partial == list(found[-1].partial if found else ())
        stream.end()
        recogniser.run()
        assert stream.done
        found += stream.steps()
        transcript = stream.transcript()
    assert [step.step for step in found] == list(range(len(found)))
    return found, transcript


def tokens_of_steps(steps: list[StreamStep]) -> list[Any]:
    return [token for step in steps for token in step.finals]


def text_of(steps: list[StreamStep]) -> str:
    return "".join(token.text for token in tokens_of_steps(steps)).strip()


def facts_of(transcript: Transcript) -> Transcript:
    """All of a transcript that the audio decides."""
    return replace(transcript, compute_s=0.0, cycles=None)


def check(talker: Talker, options: StreamOptions, seed: int, cuts_: tuple[int, ...] = (3000, 60000)) -> Transcript:
    """Equal to the plain rules, at once and in pieces; and what holds between steps, transcript and alternatives."""
    expected, ended_by = by_hand(talker, options)
    steps, transcript = stepwise(talker, options)
    assert shown(steps) == expected and transcript.ended_by == ended_by
    for longest in cuts_:
        again, other = stepwise(talker, options, np.random.default_rng(seed), longest)
        assert again == steps
        assert facts_of(other) == facts_of(transcript)
    assert list(transcript.tokens) == tokens_of_steps(steps)
    assert transcript.text == text_of(steps) and steps[-1].partial == ()
    assert (len(transcript.notes) == 1) == (ended_by is not None)
    if ended_by is not None:
        end = round((len(steps)) * 0.06, 6)
        assert transcript.audio_s == pytest.approx(min(end, len(talker.audio) / 16000))
        assert f"{end:.2f} s" in transcript.notes[0]
    else:
        assert transcript.audio_s == len(talker.audio) / 16000
    if options.alternatives > 1:
        first = transcript.alternatives[0]
        assert (first.text, first.tokens) == (transcript.text, transcript.tokens)
        assert len({one.text for one in transcript.alternatives}) == len(transcript.alternatives)
        assert len(transcript.alternatives) <= options.alternatives
        for one in transcript.alternatives:
            assert one.text == "".join(token.text for token in one.tokens).strip()
            assert 0.0 <= one.confidence <= 1.0
    return transcript


RESETS = (None, StateResets(1.2, 0.36), StateResets(0.6, 0.0))
MODES = tuple(EosMode)
SILENCES = (None, 0.6, 1.5)


@pytest.mark.parametrize("resets", range(3))
@pytest.mark.parametrize("mode", MODES)
def test_every_option_with_every_other(talker: Talker, seed: int, mode: EosMode, resets: int) -> None:
    random = np.random.default_rng(seed)
    for silence in SILENCES:
        prefix, readings = str(random.choice(PREFIXES)), int(random.integers(1, 5))
        transcript = check(talker, StreamOptions(prefix, None, mode, RESETS[resets], silence, readings), seed)
        ends = [token.id for token in transcript.tokens].count(talker.recogniser.vocabulary.eos or -1)
        assert ends == transcript.text.count(EOS) and (mode is EosMode.STREAM or not ends)


def test_modes_side_by_side(talker: Talker) -> None:
    """One search, shown in three ways; what the model chooses of its user-defined symbols is shown."""
    eos = talker.recogniser.vocabulary.eos
    classic, stream, terminal = (
        facts(talker.recogniser.transcribe(talker.audio, StreamOptions(eos_mode=mode)).tokens) for mode in MODES
    )
    places = [place for place, token in enumerate(stream) if token[0] == eos]
    assert places
    assert classic == [token for token in stream if token[0] != eos]
    assert terminal == stream[: places[0]]
    found = talker.recogniser.transcribe(talker.audio, StreamOptions(eos_mode=EosMode.TERMINAL))
    assert found.ended_by == "eos" and "end-of-sequence" in found.notes[0]
    shown_ = talker.recogniser.transcribe(talker.audio, StreamOptions(eos_mode=EosMode.STREAM)).text
    assert HEARD in shown_ and EOS in shown_


def test_segments_matter(talker: Talker) -> None:
    """A network that begins anew says something else, if only in its probabilities; but not in the first segment."""
    plain_, reset = (
        facts(talker.recogniser.transcribe(talker.audio, StreamOptions(state_resets=resets)).tokens)
        for resets in (None, StateResets(4.2, 1.2))
    )
    assert reset != plain_
    first = [token for token in plain_ if token[1] < 60]
    assert first and reset[: len(first)] == first


@pytest.mark.parametrize(
    "options",
    [
        StreamOptions(state_resets=StateResets()),
        StreamOptions(state_resets=StateResets(6.0, 3.0), alternatives=4),
        StreamOptions(silence_s=1.5, alternatives=4),
    ],
    ids=["usual", "short", "silence"],
)
def test_a_minute_of_speech(demo_talker: Talker, seed: int, options: StreamOptions) -> None:
    transcript = check(demo_talker, options, seed, (20000,))
    assert transcript.tokens
    if options.state_resets is not None:
        assert transcript.tokens[-1].end > 50.0


def test_keywords_in_every_segment(seed: int) -> None:
    audio = np.concatenate([samples(path) for path in FILES[:4]])
    with load(device="emulator:u50", decoder="beam") as recogniser:
        talker = Talker(recogniser, audio)
        found = {}
        for boosts in (None, {"left": 3.0, " no": -3.0}):
            options = StreamOptions(keywords=boosts, state_resets=StateResets(5.0, 1.0))
            found[boosts is None] = check(talker, options, seed).text
        assert found[True] != found[False]


def test_in_company(demo_talker: Talker, seed: int) -> None:
    """Streams of every kind side by side: none changes another."""
    random = np.random.default_rng(seed)
    recogniser, audio = demo_talker.recogniser, demo_talker.audio[: 16000 * 12]
    kinds = [
        StreamOptions(None, None, EosMode.CLASSIC, resets, silence, alternatives)
        for resets, silence, alternatives in itertools.product((None, StateResets(2.4, 0.6)), (None, 1.2), (1, 3))
    ]
    alone = [facts_of(recogniser.transcribe(audio, options)) for options in kinds]
    streams = [recogniser.stream(options) for options in kinds]
    pieces = [cuts(audio, random, 12000) for _ in kinds]
    live = list(range(len(kinds)))
    while live:
        number = int(random.choice(live))
        piece = next(pieces[number], None)
        if piece is None:
            streams[number].end()
            live.remove(number)
        else:
            streams[number].feed(piece)
        if random.random() < 0.4:
            recogniser.run()
    recogniser.run()
    assert [facts_of(stream.transcript()) for stream in streams] == alone
    for stream in streams:
        stream.close()
    many = recogniser.transcribe_many([audio] * 5, streams=3, options=kinds[-1])
    assert [facts_of(outcome) for outcome in many] == [alone[-1]] * 5  # type: ignore[arg-type]


def test_partial_texts_continue_the_final_ones(talker: Talker) -> None:
    """A partial's tokens read as they do when they become final, bytes and word marks included."""
    recogniser = talker.recogniser
    steps, _ = stepwise(talker, StreamOptions("", eos_mode=EosMode.STREAM))
    known: list[int] = []
    for step in steps:
        known += [token.id for token in step.finals]
        detokeniser = Detokeniser(recogniser.vocabulary)
        texts = [detokeniser.push(token) for token in (*known, *[token.id for token in step.partial])]
        assert [token.text for token in step.partial] == texts[len(known) :]
        for token in (*step.finals, *step.partial):
            assert (token.start, token.end) == recogniser.times(token.step)
