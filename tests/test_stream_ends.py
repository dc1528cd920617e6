# SPDX-License-Identifier: Apache-2.0
"""Streams with nothing to hear, and streams that end by themselves."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from recordings import FILES, LONG, SHORT, facts, samples, talkative
from stream_models import symbolic

from gharial.decoding import DecoderOptions
from gharial.recognise import EosMode, Recogniser, StateResets, StreamOptions, load

ALL = StreamOptions(state_resets=StateResets(1.2, 0.36), silence_s=0.6, alternatives=3)


@pytest.fixture(scope="module", params=["greedy", "beam"])
def recogniser(request: pytest.FixtureRequest) -> Iterator[Recogniser]:
    with load(device="emulator:u50", decoder=request.param) as opened:
        yield opened


@pytest.mark.parametrize("options", [StreamOptions(), ALL, StreamOptions(alternatives=2)], ids=["usual", "all", "two"])
def test_nothing_at_all(recogniser: Recogniser, options: StreamOptions) -> None:
    free = recogniser.free_streams
    with recogniser.stream(options) as stream:
        assert recogniser.free_streams == free - options.places
        assert stream.push(b"") == [] and stream.steps() == [] and stream.partial == [] and not stream.done
        transcript = stream.finish()
        assert stream.done
    assert (transcript.text, transcript.tokens, transcript.audio_s, transcript.ended_by) == ("", (), 0.0, None)
    readings = [(one.text, one.tokens, one.score, one.confidence) for one in transcript.alternatives]
    assert readings == ([("", (), 0.0, 1.0)] if options.alternatives > 1 else [])
    assert recogniser.free_streams == free


@pytest.mark.parametrize("options", [StreamOptions(), ALL], ids=["usual", "all"])
@pytest.mark.parametrize("count", [1, 240, 961])
def test_next_to_nothing(recogniser: Recogniser, options: StreamOptions, count: int) -> None:
    with recogniser.stream(options) as stream:
        stream.feed(np.zeros(count, np.int16))
        transcript = stream.finish()
        steps = stream.steps()
    assert transcript.audio_s == count / 16000 and len(steps) >= 4
    assert [step.step for step in steps] == list(range(len(steps)))


def test_audio_behind_the_end_is_not_heard(recogniser: Recogniser) -> None:
    """What comes after is taken and ignored, the place is free, and the transcript says where it ended."""
    free = recogniser.free_streams
    options = StreamOptions(silence_s=0.9, alternatives=2, state_resets=StateResets(6, 1))
    speech = samples(LONG)[:48000]
    quiet = np.zeros(32000, np.int16)
    whole = recogniser.transcribe(np.concatenate([speech, quiet, samples(LONG)]), options)
    with recogniser.stream(options) as stream:
        for piece in np.array_split(speech, 7):
            stream.push(piece)
        stream.push(quiet)
        assert stream.ended_by == "silence" and stream.done
        assert recogniser.free_streams == free
        before = stream.tokens, stream.text, stream.audio_s, len(stream.steps())
        for _ in range(3):
            assert stream.push(samples(LONG)) == [] and stream.steps() == []
        assert before == (stream.tokens, stream.text, stream.audio_s, before[3])
        with pytest.raises(Exception, match="stream of arrays"):
            stream.feed(b"\0\0")
        transcript = stream.finish()
    assert recogniser.free_streams == free
    assert (transcript.text, facts(transcript.tokens)) == (whole.text, facts(whole.tokens))
    assert transcript.audio_s == whole.audio_s < 5.0 and transcript.notes == whole.notes
    assert transcript.notes == (f"ended by silence at {transcript.audio_s:.2f} s: nothing behind it was heard",)
    last = transcript.tokens[-1].step
    assert transcript.audio_s == pytest.approx((last + 15 + 1) * 0.06)
    with recogniser.stream(options) as stream:  # from bytes, closed without an end
        stream.push(np.concatenate([speech, quiet]).tobytes())
        stream.push(b"\1" * 999)
        assert stream.ended_by == "silence"


def test_a_file_is_read_no_further(recogniser: Recogniser) -> None:
    """A recording that has ended by itself is not decoded to its end: it may be a microphone."""
    read = 0

    class Endless:
        path, source_rate, channels, notes, duration_s = "endless", 16000, 1, ["a note"], None

        def blocks(self) -> Iterator[np.ndarray]:
            nonlocal read
            yield samples(SHORT)
            while True:
                read += 1
                assert read < 1000
                yield np.zeros(8192, np.int16)

        def close(self) -> None:
            pass

    transcript = recogniser.transcribe(Endless(), StreamOptions(silence_s=1.0))  # type: ignore[arg-type]
    assert transcript.ended_by == "silence" and read < 30
    assert transcript.notes[0] == "a note" and "ended by silence" in transcript.notes[1]


def test_silence_before_the_first_word_ends_nothing(recogniser: Recogniser) -> None:
    audio = np.concatenate([np.zeros(64000, np.int16), samples(SHORT)])
    options = StreamOptions(silence_s=0.6)
    transcript = recogniser.transcribe(audio, options)
    plain = recogniser.transcribe(audio)
    assert plain.tokens and transcript.tokens
    assert facts(transcript.tokens) == facts(plain.tokens)[: len(transcript.tokens)]
    nothing = recogniser.transcribe(np.zeros(64000, np.int16), options)
    assert nothing.ended_by is None or nothing.tokens


def test_what_json_says_of_an_end(tmp_path: Path) -> None:
    """`ended_by` and `alternatives` are there where there is something to say."""
    (tmp_path / "talk.flac").write_bytes(SHORT.read_bytes())
    loose = DecoderOptions(topk_threshold=6.0, score_threshold=3.0, final_limit_s=-1.0)
    with load(symbolic(tmp_path), "emulator:u50", decoder="beam", options=loose, calibrate=tmp_path) as recogniser:
        for mode in EosMode:
            found = recogniser.transcribe(FILES[5], StreamOptions(eos_mode=mode, alternatives=3))
            json_ = found.as_json("talk.flac")
            assert json.loads(json.dumps(json_)) == json_
            assert json_["alternatives"][0]["text"] == json_["text"]
            assert json_["alternatives"][0]["tokens"] == json_["tokens"]
            assert len(json_["alternatives"]) <= 3 and (len(json_["alternatives"]) > 1 or mode is not EosMode.STREAM)
            assert all(set(one) == {"text", "tokens", "score", "confidence"} for one in json_["alternatives"])
            assert json_.get("ended_by") == ("eos" if mode is EosMode.TERMINAL else None)
            assert ("ended_by" in json_) == (mode is EosMode.TERMINAL)
        assert not {"alternatives", "ended_by"} & set(recogniser.transcribe(SHORT).as_json("talk.flac"))


def test_streams_with_resets_that_are_dropped(recogniser: Recogniser) -> None:
    free = recogniser.free_streams
    for _ in range(3):
        streams = [recogniser.stream(ALL) for _ in range(3)]
        for stream in streams:
            stream.feed(samples(LONG))
        recogniser.engine.submit()
        del stream, streams
        gc.collect()
    recogniser.run()
    assert recogniser.free_streams == free


def test_a_model_that_never_stops(tmp_path: Path) -> None:
    """Every step runs into the limit of symbols; segments and readings hold all the same."""
    (tmp_path / "talk.flac").write_bytes(SHORT.read_bytes())
    with load(talkative(tmp_path), calibrate=tmp_path) as recogniser:
        plain = recogniser.transcribe(samples(SHORT))
        reset = recogniser.transcribe(samples(SHORT), StreamOptions(state_resets=StateResets(1.2, 0.36)))
        steps = recogniser.front_end.vectors(len(samples(SHORT)))
        assert len(plain.tokens) == 30 * -(-steps // 2)
        dropped = len(plain.tokens) - len(reset.tokens)
        assert 0 <= dropped <= 3 * (steps // 14)
