# SPDX-License-Identifier: Apache-2.0
"""Streams: how audio is cut, who shares the device and on which device it runs changes no token."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from recordings import FILES, LONG, SHORT, cuts, facts, pushed, samples, talkative

from gharial.errors import BadInput, GharialError
from gharial.recognise import Recogniser, load


@pytest.fixture(scope="module")
def recogniser() -> Iterator[Recogniser]:
    with load() as opened:
        yield opened
        assert opened.free_streams == 8  # what every test took, it gave back


@pytest.fixture(scope="module")
def expected(recogniser: Recogniser) -> dict[str, list[tuple[int, int, float]]]:
    """Facts of the recordings' tokens, each alone and in one piece."""
    found = {path.name: pushed(recogniser, samples(path)) for path in FILES}
    assert all(found.values())
    return found


@pytest.mark.parametrize("longest", [40, 1500, 40000])
def test_cuts_do_not_matter(recogniser: Recogniser, expected: dict, seed: int, longest: int) -> None:
    random = np.random.default_rng(seed)
    with recogniser.stream() as stream:
        given = [token for piece in cuts(samples(SHORT), random, longest) for token in stream.push(piece)]
        transcript = stream.finish()
    assert facts(transcript.tokens) == expected[SHORT.name]
    assert facts(given + stream.take()) == expected[SHORT.name]


@pytest.mark.parametrize("kind", ["bytes", "bytearray", "memoryview", "float32", "float64"])
def test_kinds_of_samples_do_not_matter(recogniser: Recogniser, expected: dict, seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    values = samples(SHORT)
    if kind.startswith("float"):
        pieces = cuts((values / 32768.0).astype(kind), random, 3000)
    else:
        raw = values.astype("<i2").tobytes()
        pieces = cuts({"bytes": raw, "bytearray": bytearray(raw), "memoryview": memoryview(raw)}[kind], random, 3001)
    with recogniser.stream() as stream:
        for piece in pieces:
            stream.push(piece)
        transcript = stream.finish()
    assert facts(transcript.tokens) == expected[SHORT.name]
    assert transcript.audio_s == len(values) / 16000


def test_streams_at_a_time_do_not_matter(recogniser: Recogniser, expected: dict, seed: int) -> None:
    """Eight streams of random cuts in random order, run together whenever it comes to it."""
    random = np.random.default_rng(seed)
    chosen = [FILES[i] for i in random.permutation(len(FILES))[:8]]
    streams = {path: recogniser.stream() for path in chosen}
    waiting = {path: cuts(samples(path), random, 4000) for path in chosen}
    found: dict[str, list[tuple[int, int, float]]] = {path.name: [] for path in chosen}
    open_paths = list(chosen)
    while open_paths:
        path = open_paths[int(random.integers(len(open_paths)))]
        piece = next(waiting[path], None)
        if piece is None:
            streams[path].end()
            open_paths.remove(path)
        else:
            streams[path].feed(piece)
        if random.random() < 0.2:
            recogniser.run()
        found[path.name] += facts(streams[path].take())
    recogniser.run()
    for path, stream in streams.items():
        assert stream.done
        found[path.name] += facts(stream.take())
        stream.close()
    assert found == {path.name: expected[path.name] for path in chosen}


def test_slots_do_not_matter(recogniser: Recogniser, expected: dict) -> None:
    """The slots that other streams have used, and left something in."""
    for path in (LONG, SHORT, FILES[3]):
        held = [recogniser.stream() for _ in range(7)]
        for stream in held[::2]:
            stream.push(samples(LONG)[:20000])
        assert pushed(recogniser, samples(path)) == expected[path.name]
        for stream in held:
            stream.close()


@pytest.mark.parametrize("device", ["reference", "emulator:tiny", "emulator:u50"])
def test_device_does_not_matter(expected: dict, device: str) -> None:
    with load(device=device) as other:
        for path in (SHORT, FILES[5]):
            assert pushed(other, samples(path)) == expected[path.name]


@pytest.mark.parametrize("count", [30000, 30000 + 480, 30000 + 960])
def test_last_step_may_have_one_vector(recogniser: Recogniser, count: int) -> None:
    """Of an odd number of feature vectors the last makes a step; the device is asked for as many as there are."""
    vectors = recogniser.front_end.vectors(count)
    stream = recogniser.stream()
    stream.push(samples(LONG)[:count])
    tokens = facts(stream.finish().tokens)
    assert stream._step + 1 == -(-vectors // 2)
    with load(device="reference") as reference:
        assert pushed(reference, samples(LONG)[:count]) == tokens


def test_numbers_of_vectors_are_odd_and_even(recogniser: Recogniser) -> None:
    counts = {recogniser.front_end.vectors(count) % 2 for count in (30000, 30000 + 480, 30000 + 960)}
    assert counts == {0, 1}


def test_no_audio_gives_no_text(recogniser: Recogniser) -> None:
    with recogniser.stream() as stream:
        assert stream.push(b"") == []
        transcript = stream.finish()
    assert (transcript.text, transcript.tokens, transcript.audio_s) == ("", (), 0.0)


def test_one_sample_is_audio(recogniser: Recogniser) -> None:
    with recogniser.stream() as stream:
        stream.push(np.zeros(1, np.int16))
        assert stream.finish().audio_s == 1 / 16000
    assert stream._step > 0


def test_a_lone_byte_at_the_end_is_dropped(recogniser: Recogniser, expected: dict) -> None:
    with recogniser.stream() as stream:
        stream.push(samples(SHORT).astype("<i2").tobytes() + b"\x55")
        assert facts(stream.finish().tokens) == expected[SHORT.name]


def test_text_only_grows(recogniser: Recogniser) -> None:
    with recogniser.stream() as stream:
        before = ""
        for start in range(0, len(samples(LONG)), 4000):
            stream.push(samples(LONG)[start : start + 4000])
            assert stream.text.startswith(before)
            before = stream.text
        assert stream.finish().text.startswith(before)
    assert before


def test_at_most_thirty_symbols_a_step(tmp_path: Path) -> None:
    (tmp_path / "calibration").mkdir()
    shutil.copy(SHORT, tmp_path / "calibration")
    with load(talkative(tmp_path), calibrate=tmp_path / "calibration") as chatty, chatty.stream() as stream:
        stream.push(samples(SHORT)[:9000])
        tokens = stream.finish().tokens
        steps = -(-chatty.front_end.vectors(9000) // 2)
    assert [token.step for token in tokens] == [step for step in range(steps) for _ in range(30)]
    assert 255 not in {token.id for token in tokens}


def test_times_are_those_of_the_step(recogniser: Recogniser) -> None:
    for token in recogniser.transcribe(LONG).tokens:
        assert (token.start, token.end) == (round(token.step * 0.06, 6), round((token.step + 1) * 0.06, 6))


def test_offsets_are_taken_off_and_never_below_zero() -> None:
    with load() as plain, load(head_offset_s=0.3, tail_offset_s=0.2) as moved:
        pairs = list(zip(plain.transcribe(SHORT).tokens, moved.transcribe(SHORT).tokens, strict=True))
        assert moved.times(0) == (0.0, 0.0)
    for before, after in pairs:
        assert (after.start, after.end) == (pytest.approx(before.start - 0.3), pytest.approx(before.end - 0.2))


def test_confidences_are_probabilities(recogniser: Recogniser) -> None:
    confidences = [token.confidence for path in FILES for token in recogniser.transcribe(path).tokens]
    assert all(0 < value <= 1 for value in confidences)
    assert len(set(confidences)) > len(confidences) / 2


@pytest.mark.parametrize(
    "bad",
    [np.zeros(10, np.int32), np.zeros((5, 2), np.int16), np.array([0.0, np.nan], np.float32), np.array(["a"]), b"RIFF"],
    ids=["int32", "two channels", "nan", "text", "bytes"],
)
def test_bad_samples_leave_the_stream_as_it_was(recogniser: Recogniser, expected: dict, bad: object) -> None:
    values = samples(SHORT)
    with recogniser.stream() as stream:
        stream.push(values[:5000])
        with pytest.raises(BadInput):
            stream.push(bad)  # type: ignore[arg-type]
        stream.push(values[5000:])
        assert facts(stream.finish().tokens) == expected[SHORT.name]


@pytest.mark.parametrize("head", [b"RIFF\x24\0\0\0WAVEfmt ", b"fLaC\0\0\0\x22"])
def test_a_file_sent_as_samples_is_refused(recogniser: Recogniser, head: bytes) -> None:
    with recogniser.stream() as stream, pytest.raises(BadInput, match="raw samples"):
        stream.push(head + bytes(1000))


def test_arrays_into_a_stream_of_bytes_are_refused(recogniser: Recogniser) -> None:
    with recogniser.stream() as stream:
        stream.push(bytes(100))
        with pytest.raises(BadInput, match="array"):
            stream.push(np.zeros(4, np.int16))


def test_an_ended_stream_takes_nothing(recogniser: Recogniser) -> None:
    stream = recogniser.stream()
    stream.push(samples(SHORT)[:4000])
    stream.finish()
    for call in (lambda: stream.push(b"ab"), stream.end):
        with pytest.raises(RuntimeError, match="ended"):
            call()
    stream.close()
    closed = recogniser.stream()
    closed.close()
    with pytest.raises(RuntimeError):
        closed.feed(b"ab")


def test_as_many_streams_as_there_are_slots(recogniser: Recogniser, expected: dict) -> None:
    streams = [recogniser.stream() for _ in range(recogniser.free_streams)]
    with pytest.raises(GharialError, match="no encoder slot is left"):
        recogniser.stream()
    streams.pop().close()
    assert pushed(recogniser, samples(SHORT)) == expected[SHORT.name]
    for stream in streams:
        stream.close()


def test_a_forgotten_stream_gives_its_place_back(recogniser: Recogniser) -> None:
    before = recogniser.free_streams
    stream = recogniser.stream()
    stream.feed(samples(SHORT))
    assert recogniser.free_streams == before - 1
    del stream
    gc.collect()
    assert recogniser.free_streams == before


def test_a_stream_closed_in_the_middle_does_not_disturb_others(recogniser: Recogniser, expected: dict) -> None:
    with recogniser.stream() as first:
        first.feed(samples(LONG))
        second = recogniser.stream()
        second.feed(samples(SHORT))
        recogniser.engine.run(drain=False)
        second.close()
        third = recogniser.stream()  # takes the place that was given back
        third.feed(samples(SHORT))
        third.end()
        recogniser.run()
        assert facts(third.finish().tokens) == expected[SHORT.name]
        assert facts(first.finish().tokens) == expected[LONG.name]


def test_compute_time_is_shared_out(recogniser: Recogniser) -> None:
    with recogniser.stream() as idle, recogniser.stream() as busy:
        busy.push(samples(SHORT))
        assert busy.transcript().compute_s > 0
        assert idle.transcript().compute_s == 0
    assert busy.transcript().cycles is None  # the emulator has no clock
