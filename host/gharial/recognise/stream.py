# SPDX-License-Identifier: Apache-2.0
"""One stream of audio, recognised as it comes."""

from __future__ import annotations

import weakref
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from gharial.audio import PcmDecoder
from gharial.errors import BadInput
from gharial.features import FeatureStream, quantise_features
from gharial.model import Detokeniser
from gharial.recognise.session import Emitted, Session
from gharial.recognise.transcript import Token, Transcript, joined

if TYPE_CHECKING:
    from gharial.recognise.recogniser import Recogniser

Samples = bytes | bytearray | memoryview | np.ndarray
"""Mono audio at the model's rate: bytes of s16le, cut anywhere, or an array (n,), int16 or float with full scale 1."""


class Stream:
    """Audio in, tokens out; made by `Recogniser.stream`.

    The simple way is `push` for each piece of audio, then `finish`: each runs the device and gives the tokens that
    became known. Where many streams share a device, `feed` and `end` only hand the audio over, `Recogniser.run` works
    for all streams together, and `take` gives a stream's new tokens.

    How the audio is cut into pieces, and what other streams do meanwhile, changes nothing in the tokens. Every token
    is final.

    The prefix that it was opened with is no part of its tokens, text or times.

    A stream holds a place on the device until it is closed: use it in a `with` statement, or call `finish` or `close`.
    A stream that is dropped gives its place back too.
    """

    def __init__(self, recogniser: Recogniser, prefix: str | None = None) -> None:
        tokens = recogniser.prefixes.tokens(prefix)
        self._recogniser = recogniser
        self._engine = recogniser.engine
        self._features = FeatureStream(recogniser.front_end)
        self._bits = recogniser.feature_bits
        self._detokeniser = Detokeniser(recogniser.vocabulary)
        self._decoder: PcmDecoder | None = None
        self._samples = 0
        self._seconds = 0.0
        self._tokens: list[Token] = []
        self._taken = 0
        self._ended = self._complete = False
        self._session: Session = self._engine.open(tokens)
        self._release = weakref.finalize(self, self._engine.drop, self._session)
        # At exit the device goes as a whole.
        self._release.atexit = False

    @property
    def tokens(self) -> list[Token]:
        """All tokens so far."""
        self._collect()
        return list(self._tokens)

    @property
    def text(self) -> str:
        """Text so far: words with one space between."""
        self._collect()
        return joined(self._tokens)

    @property
    def audio_s(self) -> float:
        """Seconds of audio that came in."""
        return self._samples / self._recogniser.front_end.sample_rate

    @property
    def backlog(self) -> int:
        """Encoder steps that wait to be sent to the device."""
        return self._session.waiting // self._engine.stack

    @property
    def done(self) -> bool:
        """Whether the audio has ended and every token is known (or the stream has failed)."""
        return self._session.error is not None or (self._ended and self._session.done)

    def push(self, samples: Samples) -> list[Token]:
        """Take more audio, run the device, and give the tokens that became known.

        Args:
            samples: at the model's rate, mono: bytes of s16le, cut anywhere, or an array (n,) of int16, or of float
                with full scale 1.

        Raises:
            BadInput: samples of another type, or that are not finite; the stream can go on.
            GharialError: the device failed.
            RuntimeError: the audio was ended, or the stream closed.
        """
        self.feed(samples)
        self._engine.run()
        return self.take()

    def finish(self) -> Transcript:
        """End the audio, wait for the last tokens, and close the stream.

        Raises:
            GharialError: the device failed.
        """
        try:
            if not self._ended:
                self.end()
            self._engine.run()
            self._collect()
            return self.transcript()
        finally:
            self.close()

    def feed(self, samples: Samples) -> None:
        """Take more audio without running the device; arguments and errors as for `push`."""
        self._check_open()
        started = perf_counter()
        values = self._decode(samples)
        vectors = self._features.push(values)
        self._samples += len(values)
        self._session.put(quantise_features(vectors, self._bits))
        self._seconds += perf_counter() - started

    def end(self) -> None:
        """Say that no more audio comes. An odd byte of s16le is dropped."""
        self._check_open()
        started = perf_counter()
        if self._decoder is not None:
            held, _ = self._decoder.finish()
            self._session.put(quantise_features(self._features.push(held), self._bits))
            self._samples += len(held)
        if self._samples:  # nothing was said: nothing to recognise in the silence put behind it
            self._session.put(quantise_features(self._features.finish(), self._bits))
        self._ended = self._session.ended = True
        self._seconds += perf_counter() - started

    def take(self) -> list[Token]:
        """Tokens that became known since the last call (or `push`).

        Raises:
            GharialError: the device failed for this stream.
        """
        self._collect()
        new = self._tokens[self._taken :]
        self._taken = len(self._tokens)
        return new

    def transcript(self, notes: tuple[str, ...] = ()) -> Transcript:
        """What is known so far.

        Raises:
            GharialError: the device failed for this stream.
        """
        self._collect()
        return Transcript(
            text=joined(self._tokens),
            tokens=tuple(self._tokens),
            audio_s=self.audio_s,
            compute_s=self._seconds + self._session.seconds,
            device=self._recogniser.device_name,
            decoder=self._recogniser.decoder,
            cycles=self._session.cycles or None,
            notes=notes,
        )

    def close(self) -> None:
        """Give the stream's place on the device back; may be called twice. Tokens and text stay."""
        if self._release.detach() is not None:
            self._engine.close(self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _decode(self, samples: Samples) -> np.ndarray:
        if isinstance(samples, np.ndarray):
            if self._decoder is not None:
                raise BadInput("an array was pushed into a stream of bytes", expected="one or the other")
            return samples.astype(np.float32) if samples.dtype == np.float64 else samples
        if self._decoder is None:
            if self._samples:
                raise BadInput("bytes were pushed into a stream of arrays", expected="one or the other")
            self._decoder = PcmDecoder("stream")
        return self._decoder.push(samples)

    def _collect(self) -> None:
        """Make tokens of what has arrived."""
        if self._session.error is not None:
            raise self._session.error
        new: list[Emitted] = []
        while self._session.results:
            new += self._session.results.popleft().finals
        if self.done and not self._complete and not self._session.closed:
            self._complete = True
            new += self._session.alternatives()[0].tokens
        for emitted in new:
            text = self._detokeniser.push(emitted.token)
            start, end = self._recogniser.times(emitted.step)
            self._tokens.append(Token(emitted.token, text, emitted.step, start, end, emitted.confidence))

    def _check_open(self) -> None:
        if self._ended or self._session.closed:
            raise RuntimeError("the stream was ended: open another")
