# SPDX-License-Identifier: Apache-2.0
"""Options of streams: their ranges, and what a model or a decoder refuses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefix_models import checkpoint
from recordings import SHORT, samples

from gharial.decoding import Keywords
from gharial.errors import BadInput, GharialError
from gharial.recognise import EosMode, Recogniser, StateResets, StreamOptions, load


@pytest.fixture(scope="module")
def recogniser() -> Iterator[Recogniser]:
    with load() as opened:
        yield opened
        assert opened.free_streams == 8


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"eos_mode": "loud"}, "eos_mode"),
        ({"eos_mode": 1}, "eos_mode"),
        ({"prefix": 3}, "prefix"),
        ({"state_resets": True}, "state_resets"),
        ({"silence_s": 0.0}, "silence_s"),
        ({"silence_s": -1.0}, "silence_s"),
        ({"silence_s": math.nan}, "silence_s"),
        ({"silence_s": math.inf}, "silence_s"),
        ({"silence_s": "1"}, "silence_s"),
        ({"silence_s": True}, "silence_s"),
        ({"silence_s": 1e308}, "silence_s"),
        ({"silence_s": 10**400}, "silence_s"),
        ({"keywords": ["no"]}, "keywords"),
        ({"keywords": "no.json"}, "keywords"),
        ({"alternatives": 0}, "alternatives"),
        ({"alternatives": 33}, "alternatives"),
        ({"alternatives": 2.0}, "alternatives"),
        ({"alternatives": True}, "alternatives"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_options_out_of_range(options: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        StreamOptions(**options)
    assert caught.value.where == field and caught.value.found is not None and caught.value.expected is not None


@pytest.mark.parametrize(
    ("lengths", "field"),
    [
        *(((0.0, 0.0), "segment_s"), ((-1, 0), "segment_s"), ((math.nan, 1), "segment_s"), (("15", 3), "segment_s")),
        *(((1e308, 0), "segment_s"), ((10**400, 0), "segment_s")),
        *(((15, -1), "overlap_s"), ((15, math.inf), "overlap_s"), ((15, True), "overlap_s"), ((4, 2.1), "overlap_s")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_state_resets_out_of_range(lengths: tuple[Any, Any], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        StateResets(*lengths)
    assert caught.value.where == field


@pytest.mark.parametrize(
    ("resets", "steps"),
    [
        (StateResets(), (250, 50)),
        (StateResets(15, 0), (250, 0)),
        (StateResets(0.06, 0.03), (1, 0)),
        (StateResets(0.3, 0.15), (5, 2)),
        (StateResets(10.0, 5.0), (167, 83)),
        (StateResets(3600.0, 1.0), (60000, 17)),
    ],
    ids=str,
)
def test_state_resets_in_steps(resets: StateResets, steps: tuple[int, int]) -> None:
    assert resets.steps(0.06) == steps
    assert 2 * steps[1] <= steps[0]


def test_silence_in_steps() -> None:
    """The first number of steps that is as long as asked, whatever floating point makes of 0.06."""
    for count in range(1, 2000):
        assert StreamOptions(silence_s=round(count * 0.06, 2)).silence_steps(0.06) == count
        assert StreamOptions(silence_s=count * 0.06 - 0.01).silence_steps(0.06) == count
        assert StreamOptions(silence_s=count * 0.06 + 0.01).silence_steps(0.06) == count + 1
    assert StreamOptions(silence_s=1e-6).silence_steps(0.06) == 1
    assert StreamOptions().silence_steps(0.06) is None


def test_names_are_taken_for_modes() -> None:
    options = StreamOptions(eos_mode="terminal")  # type: ignore[arg-type]
    assert options.eos_mode is EosMode.TERMINAL and options == StreamOptions(eos_mode=EosMode.TERMINAL)
    assert (StreamOptions().places, StreamOptions(state_resets=StateResets()).places) == (1, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (StreamOptions("<pnc>"), "prefix"),
        (StreamOptions(eos_mode=EosMode.TERMINAL), "no end-of-sequence token"),
        (StreamOptions(eos_mode=EosMode.STREAM), "no end-of-sequence token"),
        (StreamOptions(keywords={"no": 1.0}), "greedy search boosts no keywords"),
        (StreamOptions(state_resets=StateResets(0.02, 0.01)), "shorter than a step"),
    ],
    ids=["prefix", "terminal", "stream", "keywords", "short"],
)
def test_what_does_not_fit_is_refused_before_anything_is_opened(
    recogniser: Recogniser, options: StreamOptions, words: str
) -> None:
    def inputs() -> Iterator[Any]:
        raise AssertionError("an input was taken")
        yield

    for call in (
        lambda: recogniser.checked(options),
        lambda: recogniser.stream(options),
        lambda: recogniser.transcribe(SHORT, options),
        lambda: recogniser.transcribe_many(inputs(), options=options),
    ):
        with pytest.raises(BadInput, match=words):
            call()
    assert recogniser.free_streams == 8


@pytest.mark.parametrize("wrong", [{"alternatives": 2}, 0, "", "<pnc>"], ids=str)
def test_what_is_no_options_at_all(recogniser: Recogniser, wrong: Any) -> None:
    for call in (recogniser.checked, recogniser.stream, lambda options: recogniser.transcribe(SHORT, options)):
        with pytest.raises(BadInput, match="no options"):
            call(wrong)
    for decoder in ("greedy", "beam"):
        with pytest.raises(BadInput, match="no settings"):
            load("there is no such model", decoder=decoder, options=wrong)
    assert recogniser.free_streams == 8


@pytest.mark.parametrize("wrong", [math.nan, math.inf, "1", True, 10**400], ids=["nan", "inf", "text", "true", "huge"])
def test_offsets_out_of_range(wrong: Any) -> None:
    for name in ("head_offset_s", "tail_offset_s"):
        with pytest.raises(BadInput) as error:
            load(**{name: wrong})
        assert error.value.where == name


@pytest.mark.parametrize("wrong", [[1, 2, 3], 5, "ab", None, range(3)], ids=str)
def test_what_is_no_audio(recogniser: Recogniser, wrong: Any) -> None:
    """A number would be so many zeros, a list bytes."""
    with recogniser.stream() as stream:
        whole = stream.push(samples(SHORT).tobytes()) + list(stream.finish().tokens)
    with recogniser.stream() as stream:
        with pytest.raises(BadInput, match="samples of another type"):
            stream.push(wrong)
        assert stream.push(samples(SHORT).tobytes()) + list(stream.finish().tokens) == whole


def test_keywords_are_made_once() -> None:
    with load(decoder="beam") as recogniser:
        options = recogniser.checked(StreamOptions(keywords={"no": 0.5}))
        assert isinstance(options.keywords, Keywords)
        assert recogniser.checked(options).keywords is options.keywords
        with pytest.raises(BadInput, match="cannot spell") as error:
            recogniser.transcribe(SHORT, StreamOptions(keywords={"NO": 0.5}))
        assert error.value.found == "'N' 'O'" and error.value.remedy is not None
        for wrong in ("<unk>", "unk>", "<s>"):  # symbols, which nobody says
            with pytest.raises(BadInput, match="cannot spell"):
                recogniser.keywords({wrong: 0.5})
        with pytest.raises(BadInput, match="no text"):
            recogniser.keywords({1: 0.5})  # type: ignore[dict-item]


def test_a_model_with_the_token_takes_every_mode(tmp_path: Path) -> None:
    (tmp_path / "talk.flac").write_bytes(SHORT.read_bytes())
    with load(checkpoint(tmp_path, 1, None), calibrate=tmp_path) as recogniser:
        for mode in EosMode:
            recogniser.checked(StreamOptions(eos_mode=mode))


def test_places_of_state_resets(recogniser: Recogniser) -> None:
    """A stream with resets holds two from beginning to end, and no other stream can take the second."""
    options = StreamOptions(state_resets=StateResets(1.2, 0.6))
    streams = [recogniser.stream(options) for _ in range(4)]
    assert recogniser.free_streams == 0
    for stream in streams:
        stream.feed(samples(SHORT))
        recogniser.run()
        with pytest.raises(GharialError, match="no encoder slot is left"):
            recogniser.stream()
    texts = {stream.finish().text for stream in streams}
    assert len(texts) == 1 and recogniser.free_streams == 8
    with recogniser.stream(options) as stream:
        held = [recogniser.stream() for _ in range(6)]
        stream.push(samples(SHORT))
        with pytest.raises(GharialError, match="no encoder slot is left"):
            recogniser.stream()
        for other in held:
            other.close()
    held = [recogniser.stream() for _ in range(3)]  # of five places, two streams take four
    outcomes = list(recogniser.transcribe_many([SHORT] * 4, options=options))
    assert {outcome.text for outcome in outcomes} == texts  # type: ignore[union-attr]
    for other in held:
        other.close()
    alone = [recogniser.stream() for _ in range(7)]
    with pytest.raises(GharialError, match="no encoder slot is left"):
        recogniser.stream(options)
    assert recogniser.free_streams == 1
    outcomes = list(recogniser.transcribe_many([SHORT], options=options))
    assert isinstance(outcomes[0], GharialError)
    for other in alone:
        other.close()
    outcomes = list(recogniser.transcribe_many([SHORT] * 9, options=options))
    assert {outcome.text for outcome in outcomes} == texts  # type: ignore[union-attr]
