# SPDX-License-Identifier: Apache-2.0
"""Audio files of any format, rate and channel count, read block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
import soundfile

from gharial.audio.convert import MonoConverter
from gharial.audio.probe import not_audio, open_recording, short_by_header
from gharial.audio.source import SAMPLE_RATE
from gharial.errors import BadInput
from gharial.features.logmel import MAX_SAMPLE

MIN_RATE = 1000
MAX_RATE = 768000
MAX_CHANNELS = 64

_BLOCK_FRAMES = 8192

# libsndfile's count for a length that the header leaves open is 2^63 - 1.
_UNKNOWN_FRAMES = 1 << 62

# Encodings that hold nothing but 16-bit integers, so that reading as int16 loses nothing.
_INT16_SUBTYPES = frozenset({"PCM_16", "ALAC_16"})

# A file longer than this that gives no sample holds more than a header.
_HEADER_BYTES = 4096

# An MP3 without an index has its length estimated, to a frame or two of 1152 samples.
_MP3_SLACK_FRAMES = 2 * 1152


class _Sequential(soundfile.SoundFile):  # type: ignore[misc]
    """A SoundFile that is never sought in.

    The base class seeks to where it already is after every read, which costs a resync in compressed formats and fails
    at the end of a FLAC file whose header leaves the length open.
    """

    def seekable(self) -> bool:
        return False


class AudioFile:
    """An `AudioSource` over a file; made by `open_audio`.

    Attributes:
        path: name of the file.
        source_rate: its sample rate in Hz.
        channels: its channels.
        duration_s: seconds by its header, None where that leaves it open; after the last block, what was read.
        notes: remarks for the user. After the last block also: cut short, or damaged.
    """

    def __init__(self, path: str, file: BinaryIO, sound: _Sequential, rate: int) -> None:
        self.path = path
        self.source_rate: int = sound.samplerate
        self.channels: int = sound.channels
        self.notes: list[str] = []
        self._file = file
        self._sound = sound
        self._started = False
        self._frames = 0
        self._promised: int | None = sound.frames if sound.frames < _UNKNOWN_FRAMES else None
        self.duration_s: float | None = None if self._promised is None else self._promised / self.source_rate
        self._converter = MonoConverter(self.source_rate, rate)
        exact = self.channels == 1 and self.source_rate == rate and sound.subtype in _INT16_SUBTYPES
        self._buffer = np.empty((_BLOCK_FRAMES, self.channels), np.int16 if exact else np.float32)
        if self.source_rate != rate:
            self.notes.append(f"resampled from {self.source_rate} Hz")
        if self.channels > 1:
            self.notes.append(f"{self.channels} channels mixed to one")
        short = short_by_header(sound.extra_info)
        if short is not None:
            self._cut_short(f"its header promises {short[0]} bytes, {short[1]} are there")
        # Read ahead by one block: a file without a usable sample is then refused at once, whatever its header says.
        self._first = self._read()
        if len(self._first) == 0:
            raise self._no_samples()

    def blocks(self) -> Iterator[np.ndarray]:
        """Mono blocks at the rate asked for, none empty; the file is closed after the last.

        Returns:
            (n,) blocks, all int16 (a mono file of 16-bit integers at that rate: its very samples), or all float32 with
            full scale 1. Floats can lie outside -1 to 1 where the file's do or the resampler overshoots.

        Raises:
            BadInput: a sample is not finite or beyond 2^20, or the whole file turned out shorter than one sample at the
                new rate.
            RuntimeError: the blocks were read already.
        """
        if self._started:
            raise RuntimeError(f"{self.path} was read already: open it again")
        self._started = True
        given = 0
        block = self._first
        while len(block):
            mono = self._converter.push(self._checked(block))
            given += len(mono)
            if len(mono):
                # The read buffer is used again, so what leaves must not share its memory.
                yield mono.copy() if np.shares_memory(mono, self._buffer) else mono
            block = self._read()
        self._end()
        last = self._converter.finish()
        if len(last):
            yield last
        elif given == 0:
            raise BadInput("holds no samples after resampling", where=self.path, found=f"{self._frames} samples")

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._sound.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> np.ndarray:
        """Next block (n, channels) in the read buffer, n = 0 at the end. Damage is noted and read over."""
        try:
            count = len(self._sound.read(dtype=self._buffer.dtype.name, out=self._buffer))
        except soundfile.LibsndfileError:
            # The frames read before the fault are in the buffer, and the position tells how many they are. A decoder
            # that found its way again goes on from there; one that did not gives none, which ends the file.
            count = self._sound.tell() - self._frames
            note = f"damaged near {(self._frames + count) / self.source_rate:.2f} s: what could be read was used"
            if not any(known.startswith("damaged") for known in self.notes):
                self.notes.append(note)
        self._frames += count
        return self._buffer[:count]

    def _checked(self, block: np.ndarray) -> np.ndarray:
        if block.dtype != np.float32:
            return block
        finite = np.isfinite(block).all(axis=1)
        usable = finite & (np.abs(block) <= MAX_SAMPLE).all(axis=1)
        if not usable.all():
            row = int(np.argmin(usable))
            at = (self._frames - len(block) + row) / self.source_rate
            raise BadInput(
                f"sample at {at:.3f} s is {'out of its range' if finite[row] else 'not a number'}",
                where=self.path,
                found=block[row].tolist()[:4],
                expected="numbers of about -1 to 1" if finite[row] else None,
                remedy="write the file again from its source",
            )
        return block

    def _no_samples(self) -> BadInput:
        size = os.fstat(self._file.fileno()).st_size
        remedy = None
        if size > _HEADER_BYTES:
            remedy = "if the recorder was stopped before it wrote the length, try: sox --ignore-length FILE out.wav"
        return BadInput("holds no samples", where=self.path, found=f"none in {size} bytes", remedy=remedy)

    def _end(self) -> None:
        slack = _MP3_SLACK_FRAMES if self._sound.format == "MP3" else 0
        if self._promised is not None and self._frames + slack < self._promised:
            promised_s, there_s = self._promised / self.source_rate, self._frames / self.source_rate
            self._cut_short(f"its header promises {promised_s:.2f} s, {there_s:.2f} s are there")
        self.duration_s = self._frames / self.source_rate
        self.close()

    def _cut_short(self, how: str) -> None:
        if not any(note.startswith("cut short") for note in self.notes):
            self.notes.append(f"cut short: {how}")


def open_audio(path: str | os.PathLike[str], rate: int = SAMPLE_RATE) -> AudioFile:
    """Open an audio file to be read as mono blocks.

    Memory does not depend on the length of the file. A file that ends before its header says, or that is damaged, is
    used as far as it can be read, with a note.

    Args:
        path: a plain file in a format that libsndfile reads; its contents decide, not its extension.
        rate: Hz of the blocks.

    Raises:
        BadInput: no such file, a directory, not audio, no samples, or a rate or channel count out of range.
    """
    name = os.fspath(path)
    file = open_recording(name)
    try:
        try:
            sound = _Sequential(file.fileno(), closefd=False)
        except soundfile.LibsndfileError as error:
            raise not_audio(name, file, str(error.error_string).rstrip(".")) from error
        try:
            _check_header(name, sound)
            return AudioFile(name, file, sound, rate)
        except BaseException:
            sound.close()
            raise
    except BaseException:
        file.close()
        raise


def _check_header(path: str, sound: _Sequential) -> None:
    if not MIN_RATE <= sound.samplerate <= MAX_RATE:
        raise BadInput(
            "sample rate is not supported",
            where=path,
            found=f"{sound.samplerate} Hz",
            expected=f"{MIN_RATE} to {MAX_RATE} Hz",
            remedy="the header is probably wrong: write the file again with the right rate",
        )
    if sound.channels > MAX_CHANNELS:
        raise BadInput(
            "too many channels",
            where=path,
            found=sound.channels,
            expected=f"1 to {MAX_CHANNELS}",
            remedy="take out the channels to transcribe first: sox FILE out.wav remix 1",
        )
