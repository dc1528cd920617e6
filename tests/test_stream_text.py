# SPDX-License-Identifier: Apache-2.0
"""Text of streams: what is final, what is likely and what else there may be, in any vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import LONG, SHORT, facts, samples
from stream_cases import ToldEngine, random_steps, result_of

from gharial.devices.emulator import EmulatorDevice
from gharial.errors import DeviceError
from gharial.model import Detokeniser, Vocabulary
from gharial.recognise import Recogniser, StateResets, StreamOptions, load

PIECES = (" ", " on", "off", " a b", "c ", "", 0xE2, 0x82, 0xAC, 0xC3, 0xBC)
"""Marks alone and on both sides, no text, and bytes of characters."""


class Pieces(Vocabulary):
    """A vocabulary by hand."""

    def __init__(self) -> None:
        self._pieces = list(PIECES)
        self.eos = None


@pytest.fixture(scope="module")
def opened() -> Iterator[Recogniser]:
    with load() as recogniser:
        yield recogniser


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.8]), st.integers(2, 4))
def test_text_is_that_of_the_tokens(opened: Recogniser, seed: int, rate: float, readings: int) -> None:
    """Of partials and alternatives too, which are looked at and thrown away, whichever way it is asked for."""
    random = np.random.default_rng(seed)
    brought = random_steps(random, 60, len(PIECES), rate)
    engine = ToldEngine(lambda first, step, listed: result_of(step, brought[step], listed), numbered=False)
    keep = opened.engine, opened.vocabulary
    opened.engine, opened.vocabulary = engine.as_engine(), Pieces()
    try:
        stream = opened.stream(StreamOptions(alternatives=readings))
        known: list[int] = []
        taken: list[int] = []
        for _ in range(12):
            stream.feed(np.zeros(int(random.integers(0, 4000)), np.int16))
            engine.run(random)
            if random.random() < 0.3:  # the other way to take what is new
                taken += [token.id for token in stream.take()]
                assert stream.steps() == []
                known = list(taken)
            for step in stream.steps():
                known += [token.id for token in step.finals]
                taken += [token.id for token in step.finals]
                told = [*known, *[token.id for token in step.partial]]
                assert [token.text for token in step.partial] == texts(told)[len(known) :]
            assert stream.take() == [] and [token.id for token in stream.tokens] == known == taken
            assert stream.text == "".join(texts(known)).strip()
            assert stream.text == "".join(token.text for token in stream.tokens).strip()
        stream.end()
        engine.run()
        transcript = stream.transcript()
        assert transcript.text == "".join(texts([token.id for token in transcript.tokens])).strip()
        for one in transcript.alternatives:
            assert [token.text for token in one.tokens] == texts([token.id for token in one.tokens])
        assert transcript.alternatives[0].tokens == transcript.tokens
        stream.close()
    finally:
        opened.engine, opened.vocabulary = keep


def texts(tokens: list[int]) -> list[str]:
    detokeniser = Detokeniser(Pieces())
    return [detokeniser.push(token) for token in tokens]


def test_a_fault_hits_its_stream_alone() -> None:
    """Streams in segments: the one whose step was under way fails, the other goes on from segment to segment."""
    options = StreamOptions(state_resets=StateResets(1.2, 0.6))
    with load() as recogniser:
        whole = facts(recogniser.transcribe(LONG, options).tokens)
        other, hit = recogniser.stream(options), recogniser.stream(options)
        other.push(samples(LONG)[:40000])
        hit.feed(samples(SHORT))
        assert isinstance(recogniser.device, EmulatorDevice)
        recogniser.device.inject_watchdog()
        recogniser.run()
        with pytest.raises(DeviceError):
            hit.take()
        with pytest.raises(DeviceError):
            hit.finish()
        with pytest.raises(DeviceError):  # it is remembered
            hit.take()
        other.push(samples(LONG)[40000:])
        assert facts(other.finish().tokens) == whole
        assert recogniser.free_streams == 8
