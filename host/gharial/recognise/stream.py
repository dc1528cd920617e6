# SPDX-License-Identifier: Apache-2.0
"""One stream of audio, recognised as it comes."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from gharial.audio import PcmDecoder
from gharial.decoding import Keywords
from gharial.errors import BadInput
from gharial.features import FeatureStream, quantise_features
from gharial.model import Detokeniser
from gharial.recognise.endings import EOS, Endings
from gharial.recognise.options import StreamOptions
from gharial.recognise.segments import Heard, Segments
from gharial.recognise.session import Alternative, Emitted
from gharial.recognise.transcript import Token, Transcript, TranscriptAlternative, distinct

if TYPE_CHECKING:
    from gharial.recognise.recogniser import Recogniser

Samples = bytes | bytearray | memoryview | np.ndarray
"""Mono audio at the model's rate: bytes of s16le, cut anywhere, or an array (n,), int16 or float with full scale 1."""


@dataclass(frozen=True, slots=True)
class StreamStep:
    """What an encoder step brought.

    Attributes:
        step: its number, from 0.
        finals: tokens that became final.
        partial: what the best hypothesis has behind all finals; it may change.
        readings: what the best hypotheses have in place of the partial, the best first; in place of the finals if the
            stream, or a segment of it, ended with this step. None where one alternative was asked for.
    """

    step: int
    finals: tuple[Token, ...]
    partial: tuple[Token, ...]
    readings: tuple[tuple[Token, ...], ...] = ()


class Stream:
    """Audio in, tokens out; made by `Recogniser.stream`.

    The simple way is `push` for each piece of audio, then `finish`: each runs the device and gives the tokens that
    became final. Where many streams share a device, `feed` and `end` only hand the audio over, `Recogniser.run` works
    for all streams together, and `take` gives a stream's new tokens, or `steps` what each encoder step brought.

    How the audio is cut into pieces, and what other streams do meanwhile, changes nothing in what comes out
    (docs/decoding.md, section 7). Tokens do not change any more, but for those of `partial`.

    A stream may end by itself (`ended_by`): audio that still comes is then taken and not heard.

    The prefix that it was opened with is no part of its tokens, text or times.

    A stream holds its places on the device until it is closed: use it in a `with` statement, or call `finish` or
    `close`. A stream that is dropped gives them back too.
    """

    def __init__(self, recogniser: Recogniser, options: StreamOptions | None = None, replay_s: float = 0.0) -> None:
        options = recogniser.checked(options)
        keywords = options.keywords if isinstance(options.keywords, Keywords) else None
        resets, step_s = options.state_resets, recogniser.step_s
        self._recogniser = recogniser
        self._asked = options.alternatives
        self._features = FeatureStream(recogniser.front_end)
        self._bits = recogniser.feature_bits
        self._detokeniser = Detokeniser(recogniser.vocabulary)
        self._decoder: PcmDecoder | None = None
        self._samples = 0
        self._seconds = 0.0
        self._tokens: list[Token] = []
        self._taken = 0
        self._text, self._texts = "", list[str]()
        self._steps: list[StreamStep] = []
        self._step = -1  # the last one whose result is here
        self._likely: tuple[Emitted, ...] = ()
        self._partial: tuple[Token, ...] = ()
        # Of the last step, with how many tokens in front and the text that they leave behind.
        self._readings: tuple[Alternative, ...] = ()
        self._front = 0, self._detokeniser
        self._ended = self._closed = False
        self._endings = Endings(recogniser.vocabulary.eos, options.eos_mode, options.silence_steps(step_s))
        self._segments = Segments(
            recogniser.engine,
            recogniser.prefixes.tokens(options.prefix),
            keywords,
            None if resets is None else resets.steps(step_s),
            options.alternatives if options.alternatives > 1 else 0,
            round(replay_s / recogniser.front_end.vector_seconds),
        )
        self._release = weakref.finalize(self, self._segments.drop)
        # At exit the device goes as a whole.
        self._release.atexit = False

    @property
    def tokens(self) -> list[Token]:
        """All final tokens so far."""
        self._collect()
        return list(self._tokens)

    @property
    def text(self) -> str:
        """Final text so far: words with one space between."""
        self._collect()
        if self._texts:
            self._text = (self._text + "".join(self._texts)).lstrip()
            self._texts.clear()
        return self._text.rstrip()

    @property
    def partial(self) -> list[Token]:
        """What the best hypothesis has behind the final tokens; it may change. Its texts continue theirs."""
        self._collect()
        return list(self._partial)

    @property
    def ended_by(self) -> str | None:
        """What has ended the stream by itself: "eos" (the end-of-sequence token) or "silence"; None if nothing has."""
        self.advance()
        return self._endings.reason

    @property
    def audio_s(self) -> float:
        """Seconds of audio that came in; of a stream that has ended by itself, up to the end of its last step."""
        samples, rate = self._samples, self._recogniser.front_end.sample_rate
        if self._endings.reason is not None:
            samples = min(samples, round((self._step + 1) * self._recogniser.step_s * rate))
        return samples / rate

    @property
    def backlog(self) -> int:
        """Encoder steps that wait to be sent to the device."""
        return self._segments.waiting // self._recogniser.engine.stack

    @property
    def held(self) -> bool:
        """Whether audio waits until more of what came before it has been recognised: `advance` hands it on."""
        return self._segments.held

    @property
    def ended(self) -> bool:
        """Whether it was told that no more audio comes."""
        return self._ended

    @property
    def movable(self) -> bool:
        """Whether it can go on elsewhere (`leave`, `join`): it remembers what it has to hear again."""
        return self._segments.movable

    @property
    def done(self) -> bool:
        """Whether the stream has ended and every token is known (or it has failed)."""
        self.advance()
        if self._endings.reason is not None or self._segments.error is not None:
            return True
        return self._ended and self._segments.done

    def push(self, samples: Samples) -> list[Token]:
        """Take more audio, run the device, and give the tokens that became final.

        Args:
            samples: at the model's rate, mono: bytes of s16le, cut anywhere, or an array (n,) of int16, or of float
                with full scale 1.

        Raises:
            BadInput: samples of another type, not finite or far beyond full scale; the stream can go on.
            GharialError: the device failed.
            RuntimeError: the audio was ended, or the stream closed.
        """
        self.feed(samples)
        self._recogniser.run()
        return self.take()

    def finish(self) -> Transcript:
        """End the audio, wait for the last tokens, and close the stream.

        Raises:
            GharialError: the device failed.
        """
        try:
            if not self._ended:
                self.end()
            self._recogniser.run()
            return self.transcript()
        finally:
            self.close()

    def feed(self, samples: Samples) -> None:
        """Take more audio without running the device; arguments and errors as for `push`."""
        self._check_open()
        started = perf_counter()
        values = self._decode(samples)
        if self._endings.reason is None:
            vectors = self._features.push(values)
            self._samples += len(values)
            self._put(vectors)
        self._seconds += perf_counter() - started

    def end(self) -> None:
        """Say that no more audio comes. An odd byte of s16le is dropped."""
        self._check_open()
        started = perf_counter()
        self._ended = True
        if self._endings.reason is None:
            if self._decoder is not None:
                held, _ = self._decoder.finish()
                self._put(self._features.push(held))
                self._samples += len(held)
            if self._samples:  # nothing was said: nothing to recognise in the silence put behind it
                self._put(self._features.finish())
            self._segments.end()
        self._seconds += perf_counter() - started

    def take(self) -> list[Token]:
        """Tokens that became final since the last call (or `push`, or `steps`).

        Raises:
            GharialError: the device failed for this stream.
        """
        self._collect()
        new = self._tokens[self._taken :]
        self._taken = len(self._tokens)
        self._steps.clear()
        return new

    def steps(self) -> list[StreamStep]:
        """What each encoder step brought since the last call (or `push`, or `take`), for who reports every step.

        It is kept until one of these is called: who only reads `text` or `partial` of a long stream calls one as well.

        Raises:
            GharialError: the device failed for this stream.
        """
        self._collect()
        self._taken = len(self._tokens)
        new, self._steps = self._steps, []
        return new

    def transcript(self, notes: tuple[str, ...] = ()) -> Transcript:
        """What is known so far; with alternatives, if they were asked for, once the stream is done.

        Raises:
            GharialError: the device failed for this stream.
        """
        self._collect()
        return Transcript(
            text=self.text,
            tokens=tuple(self._tokens),
            audio_s=self.audio_s,
            compute_s=self._seconds + self._segments.seconds,
            device=self._recogniser.device_name,
            decoder=self._recogniser.decoder,
            cycles=self._segments.cycles or None,
            notes=(*notes, *self._notes()),
            ended_by=self._endings.reason,
            alternatives=self._alternatives() if self._asked > 1 and self.done else (),
        )

    def advance(self) -> bool:
        """Take what the device has given; whether audio that was held is on its way now, and the device to be run."""
        given = self._segments.advance()
        heard = self._segments.results
        while heard and self._endings.reason is None:
            self._hear(self._endings.apply(heard.popleft()))
        if self._endings.reason is not None:
            self._segments.close()
            heard.clear()
            return False
        return given

    def leave(self) -> None:
        """Give the stream's places on the device back, to go on with `join`; call nothing else meanwhile."""
        self._recogniser.let_go(self)
        self._segments.leave()

    def join(self, recogniser: Recogniser) -> None:
        """Go on where `leave` has stopped, on this recogniser or on one of the same model and decoder.

        The device hears again what it has heard since the state was last reset, once it is run. What comes out is, to
        the last bit, what would have come without.

        Raises:
            BadInput: a recogniser of another model or decoder.
            GharialError: the device has no place, or more audio was heard than is kept (`replay_s`).
        """
        for fact in ("model", "numerics"):
            if recogniser.program.manifest[fact] != self._recogniser.program.manifest[fact]:
                raise BadInput("a stream cannot go on with another model", found=recogniser.program.where)
        if recogniser.decoder != self._recogniser.decoder:
            raise BadInput("a stream cannot go on with another decoder", found=recogniser.decoder)
        self._segments.join(recogniser.engine)
        self._recogniser = recogniser
        if self._segments.held:
            recogniser.hold(self)

    def close(self) -> None:
        """Give the stream's places on the device back; may be called twice. Tokens and text stay."""
        self._closed = True
        if self._release.detach() is not None:
            self.advance()
            self._segments.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _put(self, vectors: np.ndarray) -> None:
        self._segments.put(quantise_features(vectors, self._bits))
        if self._segments.held:
            self._recogniser.hold(self)

    def _decode(self, samples: object) -> np.ndarray:
        if isinstance(samples, np.ndarray):
            if self._decoder is not None:
                raise BadInput("an array was pushed into a stream of bytes", expected="one or the other")
            with np.errstate(over="ignore"):  # what is too large for float32 is refused as infinite
                return samples.astype(np.float32) if samples.dtype == np.float64 else samples
        if not isinstance(samples, bytes | bytearray | memoryview):  # bytes() makes some of a list or a number
            found, expected = type(samples).__name__, "bytes of s16le, or an array of int16 or float"
            raise BadInput("samples of another type", "stream", found, expected)
        if self._decoder is None:
            if self._samples:
                raise BadInput("bytes were pushed into a stream of arrays", expected="one or the other")
            self._decoder = PcmDecoder("stream")
        return self._decoder.push(samples)

    def _collect(self) -> None:
        self.advance()
        if self._segments.error is not None:
            raise self._segments.error

    def _hear(self, heard: Heard) -> None:
        """Make tokens of a step."""
        self._step = heard.step
        known = len(self._tokens)
        for emitted in heard.finals:
            self._add(emitted)
        if self._asked > 1:
            self._readings, self._front = heard.readings, (len(self._tokens), self._detokeniser.copy())
        for emitted in heard.rest:
            self._add(emitted)
        new = tuple(self._tokens[known:])
        if new or heard.partial != self._likely:
            self._likely = heard.partial
            self._partial = tuple(self._told(heard.partial, self._detokeniser.copy())) if heard.partial else ()
        self._steps.append(StreamStep(heard.step, new, self._partial, self._told_readings(new, heard)))

    def _told_readings(self, new: tuple[Token, ...], heard: Heard) -> tuple[tuple[Token, ...], ...]:
        """Readings of a step; of its last one they begin with what all have in common."""
        if self._asked < 2 or not heard.readings:
            return ()
        front = new[: len(heard.finals)] if heard.rest else ()
        _, detokeniser = self._front
        return tuple([(*front, *self._told(one.tokens, detokeniser.copy())) for one in heard.readings])

    def _add(self, emitted: Emitted) -> None:
        token = self._token(emitted, self._detokeniser)
        self._tokens.append(token)
        self._texts.append(token.text)

    def _told(self, tokens: tuple[Emitted, ...], detokeniser: Detokeniser) -> list[Token]:
        return [self._token(emitted, detokeniser) for emitted in tokens]

    def _token(self, emitted: Emitted, detokeniser: Detokeniser) -> Token:
        start, end = self._recogniser.times(emitted.step)
        return Token(emitted.token, detokeniser.push(emitted.token), emitted.step, start, end, emitted.confidence)

    def _alternatives(self) -> tuple[TranscriptAlternative, ...]:
        count, detokeniser = self._front
        front = self._tokens[:count]
        readings = self._readings or (Alternative(0.0, 0.0, ()),)  # where there was no step
        found = [
            TranscriptAlternative.of([*front, *self._told(reading.tokens, detokeniser.copy())], reading.score)
            for reading in readings
        ]
        return distinct(found)[: self._asked]

    def _notes(self) -> tuple[str, ...]:
        if self._endings.reason is None:
            return ()
        what = "the end-of-sequence token" if self._endings.reason == EOS else "silence"
        end = (self._step + 1) * self._recogniser.step_s
        return (f"ended by {what} at {end:.2f} s: nothing behind it was heard",)

    def _check_open(self) -> None:
        if self._ended or self._closed:
            raise RuntimeError("the stream was ended: open another")
