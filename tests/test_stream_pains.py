# SPDX-License-Identifier: Apache-2.0
"""What users of such recognisers ran into, through the whole stack; docs/decoding.md, section 9, lists the rest."""

from __future__ import annotations

import gc
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_files import saved
from ngram_files import OTHER, copy
from recordings import FILES, LONG, SHORT, cuts, facts, samples, talkative

from gharial.decoding import DecoderOptions
from gharial.driver import GreedyResult
from gharial.errors import BadInput, DeviceError, GharialError
from gharial.features import FeatureStream
from gharial.model import compile_model
from gharial.ngram import append_mark
from gharial.program import Program
from gharial.recognise import Recogniser, StateResets, StreamOptions, load
from gharial.recognise.greedy import GreedyEngine

DECODERS = ["greedy", "beam"]
CAPS = [1, 2, 8, 30]


@pytest.fixture(scope="module", params=DECODERS)
def recogniser(request: pytest.FixtureRequest) -> Iterator[Recogniser]:
    with load(device="emulator:u50", decoder=request.param) as opened:
        free = opened.free_streams
        yield opened
        assert opened.free_streams == free


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Blank is never the best class."""
    folder = tmp_path_factory.mktemp("endless")
    (folder / "talk.flac").write_bytes(SHORT.read_bytes())
    return compile_model(talkative(folder), "u50", folder)


# A cap on symbols


@pytest.mark.parametrize("most", CAPS)
def test_the_cap_on_symbols_of_the_device(endless: Program, most: int, seed: int) -> None:
    """Every step is full, and none is more than full."""
    vectors = np.random.default_rng(seed).integers(-50, 51, (12, 240)).astype(np.int8)
    with Recogniser(endless, "emulator:u50") as opened:
        engine = GreedyEngine(opened.driver, most)
        session = engine.open()
        session.put(vectors)
        session.ended = True
        engine.run()
        assert session.error is None
        assert [len(result.finals) for result in session.results] == [most] * 6
        engine.close(session)


@pytest.mark.parametrize("most", CAPS)
def test_the_cap_on_symbols_of_the_beam(endless: Program, most: int) -> None:
    """A model that never stops ends its steps: no token too many in any step of any reading, and no step is missing."""
    options = DecoderOptions(max_symbols=most, final_limit_s=0.3)
    with Recogniser(endless, "emulator:u50", decoder="beam", options=options) as opened:
        with opened.stream(StreamOptions(alternatives=4)) as stream:
            stream.feed(samples(SHORT)[:9000])
            stream.end()
            opened.run()
            steps = stream.steps()
            transcript = stream.transcript()
        assert len(steps) == -(-opened.front_end.vectors(9000) // 2)
        for tokens in [transcript.tokens, *(reading.tokens for reading in transcript.alternatives)]:
            counts = np.bincount([token.step for token in tokens], minlength=len(steps))
            assert counts.max() <= most and tokens


def test_a_model_that_never_stops_on_a_small_device(tmp_path: Path) -> None:
    """Streams side by side take turns with what slots there are, and say what each says alone; or one says why not."""
    (tmp_path / "talk.flac").write_bytes(SHORT.read_bytes())
    program = compile_model(talkative(tmp_path), "ecp5-85f", tmp_path)
    with Recogniser(program, decoder="beam") as opened:
        alone = facts(opened.transcribe(samples(SHORT)[:9000]).tokens)
        streams = [opened.stream() for _ in range(opened.free_streams)]
        for stream in streams:
            stream.feed(samples(SHORT)[:9000])
        opened.run()
        assert len(streams) > 1 and [facts(stream.finish().tokens) for stream in streams] == [alone] * len(streams)
    with Recogniser(program, decoder="beam", options=DecoderOptions(max_symbols=60)) as opened:
        with pytest.raises(GharialError, match="no free prediction slot"):
            opened.transcribe(samples(SHORT)[:9000])
        assert opened.free_streams == 1


def test_a_model_that_hears_nothing(tmp_path: Path) -> None:
    def change(top: dict[str, Any]) -> dict[str, Any]:
        top["state_dict"]["joint_net.2.bias"][-1] += 1000.0
        return top

    (tmp_path / "talk.flac").write_bytes(SHORT.read_bytes())
    program = compile_model(saved(tmp_path, change), "ecp5-85f", tmp_path)
    for decoder in DECODERS:
        with Recogniser(program, decoder=decoder) as opened:
            found = opened.transcribe(LONG, StreamOptions(alternatives=2, silence_s=0.6))
        assert (found.text, found.tokens, found.ended_by) == ("", (), None)
        assert [reading.text for reading in found.alternatives] == [""]


# Streaming


def test_nothing_is_behind_at_the_end_of_a_push(recogniser: Recogniser, seed: int) -> None:
    """However long the stream: each push brings every step that its audio was enough for, and there is no more work."""
    random = np.random.default_rng(seed)
    audio = np.concatenate([samples(path) for path in FILES[:4]])
    heard, features = 0, FeatureStream(recogniser.front_end)
    with recogniser.stream() as stream:
        steps = 0
        for piece in cuts(audio, random, 4000):
            stream.feed(piece)
            recogniser.run()
            heard += len(features.push(piece))
            new = stream.steps()
            assert [one.step for one in new] == list(range(steps, steps + len(new)))
            steps += len(new)
            assert steps == heard // 2 and stream.backlog == 0
            assert not recogniser.engine.submit() and not recogniser.engine.collect()
        stream.finish()


def test_empty_pieces_lose_nothing(recogniser: Recogniser) -> None:
    """Pushed right behind each token, where a last token or a keyword's state could get lost."""
    whole = facts(recogniser.transcribe(LONG).tokens)
    found = []
    with recogniser.stream() as stream:
        for start in range(0, len(samples(LONG)), 960):
            for piece in (samples(LONG)[start : start + 960], samples(LONG)[:0], samples(LONG)[:0]):
                found += facts(stream.push(piece))
        partial = facts(stream.partial)
        rest = facts(stream.finish().tokens)
    assert rest == whole and found == whole[: len(found)]
    assert recogniser.decoder == "beam" or not partial


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_a_long_stream_takes_no_more_memory(recogniser: Recogniser) -> None:
    """A minute and a half; scripts/bench_hours.py has hours."""
    audio = np.concatenate([samples(path) for path in FILES[:6]])
    pools = None
    with recogniser.stream() as stream:
        marks = []
        for _ in range(4):
            for piece in np.array_split(audio, 50):
                stream.push(piece)
            gc.collect()
            marks.append((int(Path("/proc/self/statm").read_text().split()[1]) * 4096, sys.getallocatedblocks()))
            if recogniser.decoder == "beam":
                search: Any = recogniser.engine
                now = {name: every for name, (_, every) in search.search.pools.items()}
                assert pools in (None, now)
                pools = now
        spoken = len(stream.tokens) / 4
    # Tokens are kept: each is an object with some parts.
    assert marks[3][1] - marks[1][1] < 2 * 30 * spoken + 2000
    assert marks[3][0] - marks[1][0] < 4 << 20


# Devices that write nonsense


def damaged(result: GreedyResult, how: str) -> GreedyResult:
    one = np.ones(1, np.int32)
    lse = {"lse too small": -(2**31), "lse too large": 2**31 - 1}.get(how)
    if lse is not None:
        return replace(result, tokens=one, logits=one.astype(np.int16), lse=one * lse)
    if how == "saturated":
        return replace(result, tokens=one, logits=(one * 32767).astype(np.int16), lse=one)
    return replace(result, tokens=one * 255, logits=one.astype(np.int16), lse=one)


def spoil(results: Any, how: str, stride: int) -> Any:
    """Results of one command, the first of them such as no device writes."""
    if isinstance(results, list):
        return [damaged(results[0], how), *results[1:]]
    data = bytearray(results)
    if how == "saturated":
        data[4:6] = data[16:18] = struct.pack("<h", 32767)
    elif how == "class":
        data[18:20] = struct.pack("<H", 60000)
    else:
        data[0:4] = struct.pack("<i", -(2**31) if how == "lse too small" else 2**31 - 1)
    assert len(data) % stride == 0
    return bytes(data)


@pytest.mark.parametrize("how", ["lse too small", "lse too large", "saturated", "class"])
def test_nonsense_hits_one_stream(recogniser: Recogniser, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so; its neighbours in the same commands go on, and so does the recogniser."""
    whole = facts(recogniser.transcribe(SHORT).tokens)
    engine: Any = recogniser.engine
    streams = [recogniser.stream() for _ in range(3)]
    for stream in streams:
        stream.feed(samples(SHORT))
    take, spoiled = engine._take, []

    def taken(round_: Any, results: Any) -> None:
        if results is not None and len(results) and not spoiled:
            spoiled.append(how)
            results = spoil(results, how, 1 if recogniser.decoder == "greedy" else engine.search.stride)
        take(round_, results)

    monkeypatch.setattr(engine, "_take", taken)
    recogniser.run()
    assert spoiled
    outcomes = []
    for stream in streams:
        try:
            outcomes.append(facts(stream.finish().tokens))
        except DeviceError as error:
            assert "result" in str(error)
            outcomes.append([])
    assert sorted(outcomes, key=len) == [[], whole, whole]
    assert facts(recogniser.transcribe(SHORT).tokens) == whole


# Keywords and n-grams


@pytest.mark.parametrize("text", ["héllo", "GO", "go\ton"])
def test_keywords_that_cannot_be_said_are_errors(text: str) -> None:
    """Before any audio: letters or a case that the model has not, a mark that it never writes."""
    boosts = {"go": 1.0, text: 1.0}
    with load(decoder="beam") as opened:
        free = opened.free_streams
        with pytest.raises(BadInput) as error:
            opened.keywords(boosts)
        with pytest.raises(BadInput) as other:
            opened.stream(StreamOptions(keywords=boosts))
        assert opened.free_streams == free
    for one in (error.value, other.value):
        assert repr(text) in str(one.where) and "spell" in str(one)


@pytest.mark.parametrize("resets", [None, StateResets(1.2, 0.36)], ids=["whole", "segments"])
def test_boosts_do_not_depend_on_pieces(resets: StateResets | None) -> None:
    """Score and text to the last bit, with silence behind the last word and nothing at all in between."""
    loose = DecoderOptions(final_limit_s=-1.0, topk_threshold=3.0)
    with load(decoder="beam", options=loose) as opened:
        words = {word for path in FILES[:4] for word in opened.transcribe(path).text.split()}
        options = StreamOptions(keywords=dict.fromkeys(words, 0.25), alternatives=2, state_resets=resets)
        audio = np.concatenate([samples(SHORT), np.zeros(16000, np.int16)])
        found = set()
        for size in (len(audio), 5000, 961):
            with opened.stream(options) as stream:
                for start in range(0, len(audio), size):
                    stream.push(audio[start : start + size])
                    stream.push(audio[:0])
                stream.finish()
                found.add(tuple((one.text, one.score) for one in stream.transcript().alternatives))
    assert len(found) == 1


def test_an_ngram_of_another_tokenisation_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("kenlm", reason="needs the package kenlm: pip install gharial[ngram]")
    path = copy(tmp_path)
    append_mark(path, OTHER)
    with pytest.raises(BadInput, match="another SentencePiece model") as error:
        load(decoder="beam", ngram=path)
    assert error.value.where == str(path) and "gharial ngram build" in str(error.value)
