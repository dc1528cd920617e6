# SPDX-License-Identifier: Apache-2.0
"""A model on a device, ready to recognise speech."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from gharial.decoding import DecoderOptions, Keywords, read_keywords
from gharial.devices.base import Device
from gharial.devices.open import DEFAULT, device_config, open_device
from gharial.driver import Driver
from gharial.errors import BadInput, GharialError
from gharial.isa.commands import Mode
from gharial.model import front_end, open_model, prefixes, vocabulary
from gharial.model.vocabulary import END_OF_SEQUENCE
from gharial.program import Program
from gharial.recognise.decoders import NgramChoice, check_decoder, make_engine
from gharial.recognise.files import Audio, transcribe_all
from gharial.recognise.greedy import no_keywords
from gharial.recognise.options import MAX_SECONDS, EosMode, StreamOptions
from gharial.recognise.stream import Stream
from gharial.recognise.transcript import Transcript

_MICROSECOND = 6  # digits of a time: 3 * 0.06 is to read 0.18


class Recogniser:
    """A program on an open device.

    Close it after use, or use it in a `with` statement. Not for use from several threads at once: a server gives all
    calls to one thread.

    Args:
        program: the model.
        device: name of the device (`gharial devices` lists them).
        decoder: how the best text is looked for: "greedy" (by the device alone) or "beam" (docs/decoding.md).
        options: settings of the beam search; None for the usual ones.
        ngram: file of an n-gram over the model's pieces, for the beam search; None for the one that lies beside the
            program, if there is one; True for that in any case; False for none.
        mode: what the beam search has the device list.
        head_offset_s: taken from the start of every token's time.
        tail_offset_s: taken from its end.
        note: called with a sentence about an n-gram that has no mark or no scale.

    Raises:
        BadInput: the device or decoder is not known, the program cannot be used on it, or settings or n-gram do not fit
            the decoder, the model or the device.
        DeviceError: the device failed.
    """

    def __init__(
        self,
        program: Program,
        device: str = DEFAULT,
        *,
        decoder: str = "greedy",
        options: DecoderOptions | None = None,
        ngram: NgramChoice = None,
        mode: Mode = Mode.TOP_K,
        head_offset_s: float = 0.0,
        tail_offset_s: float = 0.0,
        note: Callable[[str], object] | None = None,
    ) -> None:
        check_decoder(decoder, options, ngram, mode)
        for name, offset in (("head_offset_s", head_offset_s), ("tail_offset_s", tail_offset_s)):
            if isinstance(offset, bool) or not isinstance(offset, int | float) or not abs(offset) <= MAX_SECONDS:
                raise BadInput("offset is no span of time", name, offset, f"seconds, {MAX_SECONDS:g} at most")
        self.program = program
        self.decoder = decoder
        self.front_end = front_end(program)
        self.front_end.require_audio(program.where)
        self.vocabulary = vocabulary(program)
        self.prefixes = prefixes(program)
        self.feature_bits: int = program.manifest["features"]["frac_bits"]
        self.step_s = self.front_end.vector_seconds * program.header["vectors"]
        self._offsets = head_offset_s, tail_offset_s
        self._held = weakref.WeakSet[Stream]()
        self._device = open_device(device, program.config, program.manifest)
        self._driver = Driver(self._device, program)  # closes the device where it fails
        try:
            self.engine = make_engine(self._driver, self.vocabulary, decoder, options, ngram, mode, note)
        except BaseException:
            self._driver.close()
            raise

    @property
    def device(self) -> Device:
        """The device itself, which belongs to the driver; for traces and counters."""
        return self._device

    @property
    def driver(self) -> Driver:
        """The driver, for what is not recognition of speech."""
        return self._driver

    @property
    def device_name(self) -> str:
        """Name of the device, its configuration included."""
        return self._device.name

    @property
    def free_streams(self) -> int:
        """Streams that may still be opened at the same time; one with state resets counts as two."""
        return self.engine.free

    def stream(self, options: StreamOptions | None = None, *, replay_s: float = 0.0) -> Stream:
        """A new stream of audio.

        Args:
            options: of this stream; None for the usual ones.
            replay_s: seconds since the state was last reset that the stream remembers, so that it can go on after its
                device has failed (`Stream.join`); 0 for none. Each takes 8 KB, or what 34 feature vectors do.

        Raises:
            BadInput: options that do not fit the model or the decoder, as for `checked`.
            GharialError: the device has no place left.
        """
        return Stream(self, options, replay_s)

    def checked(self, options: StreamOptions | None = None) -> StreamOptions:
        """Options of streams, held against model and decoder, their keywords ready to be used again and again.

        Raises:
            BadInput: the model does not take this prefix, or needs one, or does not say which it takes; it has no
                end-of-sequence token to be shown or to end a stream; a keyword that its pieces cannot spell; keywords,
                and a greedy decoder; segments shorter than an encoder step.
        """
        options = StreamOptions() if options is None else options
        if not isinstance(options, StreamOptions):
            raise BadInput("no options of a stream", "options", options, "StreamOptions(...) or None")
        self.prefixes.tokens(options.prefix)
        if options.eos_mode is not EosMode.CLASSIC and self.vocabulary.eos is None:
            raise BadInput(
                "the model has no end-of-sequence token",
                "eos_mode",
                options.eos_mode.value,
                EosMode.CLASSIC.value,
                f"take a model whose vocabulary has the piece {END_OF_SEQUENCE}",
            )
        if options.state_resets is not None:
            options.state_resets.steps(self.step_s)
        if options.keywords is not None:
            if self.decoder == "greedy":
                raise no_keywords()
            if not isinstance(options.keywords, Keywords):
                options = replace(options, keywords=self.keywords(options.keywords))
        return options

    def hold(self, stream: Stream) -> None:
        """`run` is to hand on the audio of a stream that is held."""
        self._held.add(stream)

    def let_go(self, stream: Stream) -> None:
        """`run` is to have nothing more to do with a stream that goes on elsewhere."""
        self._held.discard(stream)

    def keywords(self, boosts: Mapping[str, float] | str | os.PathLike[str]) -> Keywords:
        """Keywords to be boosted in streams, checked against the model's vocabulary.

        Args:
            boosts: score in nats for each character of a keyword, by keyword; or a JSON file
                `{"keywords": {keyword: score}}`. A space stands for the word mark; case counts.

        Raises:
            BadInput: the file cannot be used, a keyword cannot be spelled, or a score is no finite number.
        """
        if isinstance(boosts, Mapping):
            return Keywords(boosts, self.vocabulary.spelling)
        return Keywords(read_keywords(boosts), self.vocabulary.spelling, os.fspath(boosts))

    def run(self) -> None:
        """Work through everything that the streams have been fed, all of them together.

        An error of the device shows where a stream that it hit is asked next.
        """
        self.engine.run()
        while self._held:
            again = [stream.advance() for stream in list(self._held)]
            for stream in [stream for stream in self._held if not stream.held]:
                self._held.discard(stream)
            if not any(again):
                return
            self.engine.run()

    def transcribe(self, audio: Audio, options: StreamOptions | None = None) -> Transcript:
        """Transcribe a recording.

        Args:
            audio: an audio file of any format and rate, an `AudioSource`, or samples (n,) at the model's rate, int16 or
                float with full scale 1.
            options: as for `stream`.

        Raises:
            BadInput: the audio cannot be used, or holds no samples; the options, as for `stream`.
            GharialError: the device failed.
        """
        for outcome in transcribe_all(self, [audio], 1, options):
            if isinstance(outcome, GharialError):
                raise outcome
            return outcome
        raise AssertionError("an input without an outcome")

    def transcribe_many(
        self, audio: Iterable[Audio], streams: int | None = None, options: StreamOptions | None = None
    ) -> Iterator[Transcript | GharialError]:
        """Transcribe recordings, several at a time.

        Args:
            audio: as for `transcribe`; taken one after the other as places come free.
            streams: most recordings at a time; None for 16, or as many as the device has places for.
            options: of all of them, as for `stream`.

        Returns:
            An outcome for each, in the order given: its transcript, or the error that it ran into. One that fails does
            not stop the others.

        Raises:
            BadInput: the number of streams is out of range; the options, as for `stream`.
        """
        return transcribe_all(self, audio, streams, options)

    def times(self, step: int) -> tuple[float, float]:
        """Start and end in seconds of a token that encoder step `step` emitted, neither below 0."""
        head, tail = self._offsets
        start = max(0.0, round(step * self.step_s - head, _MICROSECOND))
        return start, max(start, round((step + 1) * self.step_s - tail, _MICROSECOND))

    def close(self) -> None:
        """Let go of the device; may be called twice."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def load(
    model: str | os.PathLike[str] | None = None,
    device: str = DEFAULT,
    *,
    decoder: str = "greedy",
    options: DecoderOptions | None = None,
    ngram: NgramChoice = None,
    mode: Mode = Mode.TOP_K,
    calibrate: str | os.PathLike[str] | None = None,
    head_offset_s: float = 0.0,
    tail_offset_s: float = 0.0,
    progress: Callable[[int, int], object] | None = None,
    note: Callable[[str], object] | None = None,
) -> Recogniser:
    """Open a model on a device.

    Args:
        model: a hardware checkpoint (compiled on the fly, and cached) or a program; None for the shipped demo model.
        device: name of the device.
        decoder, options, ngram, mode: as in `Recogniser`.
        calibrate: folder of recordings to calibrate a checkpoint with; None for the shipped ones.
        head_offset_s, tail_offset_s: taken from the start and the end of every token's time.
        progress: called with the number of calibration recordings done and of all, where a checkpoint is compiled.
        note: called with a sentence about a cache of compiled programs that could not be used, or an n-gram that has no
            mark or no scale.

    Raises:
        BadInput: the model, the device or the settings cannot be used, or do not fit each other.
        DeviceError: the device failed.
    """
    check_decoder(decoder, options, ngram, mode)  # before a model may have to be compiled
    folder = None if calibrate is None else Path(calibrate)
    program = open_model(model, device_config(device), calibration=folder, progress=progress, note=note)
    return Recogniser(
        program,
        device,
        decoder=decoder,
        options=options,
        ngram=ngram,
        mode=mode,
        head_offset_s=head_offset_s,
        tail_offset_s=tail_offset_s,
        note=note,
    )
