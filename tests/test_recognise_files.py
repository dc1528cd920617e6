# SPDX-License-Identifier: Apache-2.0
"""Recordings transcribed side by side."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from recordings import FILES, LONG, SHORT, facts, samples

from gharial.audio import open_audio, open_raw
from gharial.errors import BadInput
from gharial.recognise import Recogniser, Transcript, load


@pytest.fixture(scope="module")
def recogniser() -> Iterator[Recogniser]:
    with load() as opened:
        yield opened
        assert opened.free_streams == 8


@pytest.fixture(scope="module")
def alone(recogniser: Recogniser) -> dict[Path, list[tuple[int, int, float]]]:
    return {path: facts(recogniser.transcribe(path).tokens) for path in FILES}


@pytest.mark.parametrize("streams", [1, 2, 5, 100, None])
def test_how_many_at_a_time_does_not_matter(
    recogniser: Recogniser, alone: dict, seed: int, streams: int | None
) -> None:
    order = [FILES[i] for i in np.random.default_rng(seed).permutation(len(FILES))]
    outcomes = list(recogniser.transcribe_many(order, streams))
    assert [facts(outcome.tokens) for outcome in outcomes] == [alone[path] for path in order]


def test_all_kinds_of_audio(recogniser: Recogniser, alone: dict) -> None:
    values = samples(SHORT)
    raw = open_raw(io.BytesIO(values.astype("<i2").tobytes()))
    with open_audio(SHORT) as opened:
        audio = [SHORT, str(SHORT), values, (values / 32768).astype(np.float32), raw, opened]
        outcomes = list(recogniser.transcribe_many(audio, 3))
    assert [facts(outcome.tokens) for outcome in outcomes] == [alone[SHORT]] * len(audio)
    assert {outcome.audio_s for outcome in outcomes} == {len(values) / 16000}


def test_a_bad_one_does_not_stop_the_others(recogniser: Recogniser, alone: dict, tmp_path: Path) -> None:
    nan = tmp_path / "nan.wav"
    spoiled = (samples(LONG) / 32768).astype(np.float32)
    spoiled[60000] = np.nan
    soundfile.write(nan, spoiled, 16000, subtype="FLOAT")
    empty = tmp_path / "empty.wav"
    soundfile.write(empty, np.zeros(0, np.int16), 16000)
    audio = [FILES[1], tmp_path / "missing.wav", nan, FILES[2], empty, np.zeros(0, np.int16), FILES[3]]
    outcomes = list(recogniser.transcribe_many(audio, 4))
    assert [type(outcome) for outcome in outcomes] == [
        *(Transcript, BadInput, BadInput, Transcript, BadInput, BadInput, Transcript)
    ]
    assert [facts(outcomes[i].tokens) for i in (0, 3, 6)] == [alone[FILES[i]] for i in (1, 2, 3)]
    assert "no samples" in str(outcomes[4]) and "no samples" in str(outcomes[5])
    assert "not a number" in str(outcomes[2])


def test_inputs_are_taken_as_places_come_free(recogniser: Recogniser) -> None:
    taken = []

    def inputs() -> Iterator[Path]:
        for path in FILES:
            taken.append(path)
            yield path

    outcomes = recogniser.transcribe_many(inputs(), 2)
    next(outcomes)
    assert len(taken) <= 4
    outcomes.close()  # type: ignore[attr-defined]
    assert recogniser.free_streams == 8


def test_other_streams_keep_their_places(recogniser: Recogniser, alone: dict) -> None:
    held = [recogniser.stream() for _ in range(7)]
    outcomes = list(recogniser.transcribe_many(FILES[:3]))
    assert [facts(outcome.tokens) for outcome in outcomes] == [alone[path] for path in FILES[:3]]
    held.append(recogniser.stream())
    with pytest.raises(Exception, match="no encoder slot is left"):
        recogniser.transcribe(SHORT)
    for stream in held:
        stream.close()


def test_number_of_streams_is_checked(recogniser: Recogniser) -> None:
    with pytest.raises(BadInput, match="number of streams"):
        recogniser.transcribe_many(FILES, 0)


def test_notes_come_with_the_transcript(recogniser: Recogniser, tmp_path: Path) -> None:
    path = tmp_path / "stereo.wav"
    stereo = np.stack([samples(SHORT)[::2]] * 2, axis=1)
    soundfile.write(path, stereo, 8000)
    transcript = recogniser.transcribe(path)
    assert transcript.notes == ("resampled from 8000 Hz", "2 channels mixed to one")
    assert transcript.audio_s == pytest.approx(len(samples(SHORT)) / 16000, abs=1e-3)


def test_long_recordings_are_read_as_they_are_worked_through(recogniser: Recogniser) -> None:
    """Memory must not grow with the length: whatever was read is on its way to the device."""
    most = 0

    class Watched:
        path, source_rate, channels, notes = "long", 16000, 1, []
        duration_s = None

        def blocks(self) -> Iterator[np.ndarray]:
            nonlocal most
            for _ in range(60):
                yield samples(SHORT)[:8000]
                most = max(most, sum(session.waiting for session in recogniser.engine._sessions))

        def close(self) -> None:
            pass

    assert recogniser.transcribe(Watched()).audio_s == 30.0  # type: ignore[arg-type]
    assert 0 < most < 60
