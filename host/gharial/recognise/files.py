# SPDX-License-Identifier: Apache-2.0
"""Recordings transcribed side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from gharial.audio import AudioSource, open_audio
from gharial.errors import BadInput, GharialError
from gharial.recognise.options import StreamOptions
from gharial.recognise.stream import Stream
from gharial.recognise.transcript import Transcript

if TYPE_CHECKING:
    from gharial.recognise.recogniser import Recogniser

Audio = str | os.PathLike[str] | np.ndarray | AudioSource

STREAMS = 16
"""Recordings at a time, where the device has as many places."""

# A recording is read no further ahead than this many encoder steps, so that memory does not grow with its length.
_BACKLOG = 8
_PIECE = 8192


class _Job:
    """A recording on its way."""

    def __init__(self, recogniser: Recogniser, audio: Audio, options: StreamOptions) -> None:
        with ExitStack() as stack:
            self._notes: list[str] = []
            if isinstance(audio, np.ndarray):
                self._blocks = _pieces(audio)
            else:
                source: AudioSource = (
                    open_audio(audio, recogniser.front_end.sample_rate)
                    if isinstance(audio, str | os.PathLike)
                    else audio
                )
                stack.callback(source.close)
                self._notes = source.notes
                self._blocks = iter(source.blocks())
            self.stream: Stream = stack.enter_context(recogniser.stream(options))
            self._stack = stack.pop_all()
        self._ended = False

    def read(self) -> bool:
        """Feed the stream where it runs low; whether anything was done."""
        self.stream.take()  # what each step brought is nobody's here
        if self._ended or self.stream.backlog >= _BACKLOG:
            return False
        block = next(self._blocks, None)
        if block is None:
            self.stream.end()
            self._ended = True
        else:
            self.stream.feed(block)
        return True

    def transcript(self) -> Transcript:
        """The finished transcript."""
        return self.stream.transcript(tuple(self._notes))

    def close(self) -> None:
        """Close the file, give the stream's place back."""
        self._stack.close()


def transcribe_all(
    recogniser: Recogniser, audio: Iterable[Audio], streams: int | None = None, options: StreamOptions | None = None
) -> Iterator[Transcript | GharialError]:
    """See `Recogniser.transcribe_many`."""
    if streams is not None and streams < 1:
        raise BadInput("number of streams is out of range", found=streams, expected="1 or more")
    options = recogniser.checked(options)  # once here, and not as the outcome of every recording
    return _transcribe(recogniser, iter(audio), streams or STREAMS, options)


def _transcribe(
    recogniser: Recogniser, audio: Iterator[Audio], most: int, options: StreamOptions
) -> Iterator[Transcript | GharialError]:
    jobs: dict[int, _Job] = {}
    outcomes: dict[int, Transcript | GharialError] = {}
    opened = given = 0
    more = True
    try:
        while more or jobs or outcomes:
            while more and len(jobs) < most and (recogniser.free_streams >= options.places or not jobs):
                try:
                    item = next(audio)
                except StopIteration:
                    more = False
                    break
                try:
                    jobs[opened] = _Job(recogniser, item, options)
                except GharialError as error:
                    outcomes[opened] = error
                opened += 1
            _advance(recogniser, jobs, outcomes)
            while given in outcomes:
                yield outcomes.pop(given)
                given += 1
    finally:
        for job in jobs.values():
            job.close()


def _advance(recogniser: Recogniser, jobs: dict[int, _Job], outcomes: dict[int, Transcript | GharialError]) -> None:
    """Read a little of every recording, send what is ready, and move the finished ones to the outcomes."""
    busy = False
    for index, job in list(jobs.items()):
        try:
            busy = job.read() or busy
        except GharialError as error:
            _finish(jobs, outcomes, index, error)
    engine = recogniser.engine
    while engine.submit():
        busy = True
    if not busy:
        engine.collect()
    for index, job in list(jobs.items()):
        if job.stream.done:
            try:
                _finish(jobs, outcomes, index, job.transcript())
            except GharialError as error:
                _finish(jobs, outcomes, index, error)


def _finish(
    jobs: dict[int, _Job],
    outcomes: dict[int, Transcript | GharialError],
    index: int,
    outcome: Transcript | GharialError,
) -> None:
    outcomes[index] = outcome
    jobs.pop(index).close()


def _pieces(samples: np.ndarray) -> Iterator[np.ndarray]:
    """An array as a source gives it, block by block."""
    if samples.ndim != 1:
        raise BadInput("samples cannot be used", found=f"shape {samples.shape}", expected="a one-dimensional array")
    if len(samples) == 0:
        raise BadInput("holds no samples", found="an empty array")
    for start in range(0, len(samples), _PIECE):
        yield samples[start : start + _PIECE]
