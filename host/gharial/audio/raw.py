# SPDX-License-Identifier: Apache-2.0
"""Audio without a header: signed 16-bit little-endian mono samples at 16 kHz."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from gharial.audio.source import SAMPLE_RATE
from gharial.errors import BadInput

# First bytes of the containers that people pipe in by mistake. As samples each would be a loud click pair that no
# recording starts with by more than a chance of 1 in 4 billion.
_CONTAINERS = {b"RIFF": "WAV", b"RF64": "WAV", b"fLaC": "FLAC", b"OggS": "OGG", b"FORM": "AIFF", b"ID3\x03": "MP3"}
_CONTAINERS |= {b"ID3\x02": "MP3", b"ID3\x04": "MP3"}
_MAGIC_BYTES = 4

# Bytes asked for at a time. A pipe gives what it has, so a live stream is not held up by this.
_READ_BYTES = 32768


class PcmDecoder:
    """Bytes of s16le audio, cut anywhere, to samples.

    Args:
        where: name of the source, for error messages.
    """

    def __init__(self, where: str = "raw audio") -> None:
        self._where = where
        self._held = b""
        self._checked = False

    def push(self, data: bytes | bytearray | memoryview) -> np.ndarray:
        """Samples that became whole with `data`: (n,) int16, n may be 0. An odd byte waits for its other half.

        Raises:
            BadInput: the stream begins with the header of an audio file.
        """
        data = self._held + bytes(data)
        if not self._checked:
            if len(data) < _MAGIC_BYTES:
                self._held = data
                return np.empty(0, np.int16)
            self._check(data[:_MAGIC_BYTES])
        whole = len(data) & ~1
        self._held = data[whole:]
        return _samples(data[:whole])

    def finish(self) -> tuple[np.ndarray, bool]:
        """End of the stream: the samples still held (n,) int16, and whether a lone byte had to be dropped."""
        data, self._held = self._held, b""
        whole = len(data) & ~1
        return _samples(data[:whole]), whole != len(data)

    def _check(self, magic: bytes) -> None:
        self._checked = True
        container = _CONTAINERS.get(magic)
        if container is not None:
            raise BadInput(
                "a file was sent where raw samples are read",
                where=self._where,
                found=f"the header of a {container} file ({magic[:_MAGIC_BYTES]!r})",
                expected=f"s16le mono samples at {SAMPLE_RATE} Hz without a header",
                remedy="give the file by its name, or send its samples alone: sox FILE -t s16 -r 16k -c 1 -",
            )


class RawAudio:
    """An `AudioSource` over a binary stream of s16le mono samples at 16 kHz; made by `open_raw`."""

    def __init__(self, stream: BinaryIO, path: str) -> None:
        self.path = path
        self.source_rate = SAMPLE_RATE
        self.channels = 1
        self.duration_s: float | None = None
        self.notes: list[str] = []
        self._stream = stream

    def blocks(self) -> Iterator[np.ndarray]:
        """Blocks of int16 samples, each as soon as the stream has given its bytes.

        Raises:
            BadInput: the stream holds no sample, begins with an audio file's header, or is in non-blocking mode.
        """
        decoder = PcmDecoder(self.path)
        # read1 gives what has arrived; read would wait for the full number of bytes and hold up a live stream.
        read = getattr(self._stream, "read1", self._stream.read)
        count = 0
        while data := self._next(read(_READ_BYTES)):
            samples = decoder.push(data)
            count += len(samples)
            if len(samples):
                yield samples
        samples, odd = decoder.finish()
        count += len(samples)
        if odd:
            self.notes.append("the raw audio ended in the middle of a sample; its last byte was dropped")
        if count == 0:
            raise BadInput(
                "no audio came in",
                where=self.path,
                found="one byte" if odd else "an empty stream",
                expected=f"s16le mono samples at {SAMPLE_RATE} Hz",
            )
        self.duration_s = count / SAMPLE_RATE
        if len(samples):
            yield samples

    def close(self) -> None:
        """Nothing: the stream belongs to whoever opened it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next(self, data: bytes | None) -> bytes:
        if data is None:
            raise BadInput("the stream does not wait for its data", where=self.path, expected="a blocking stream")
        return data


def open_raw(stream: BinaryIO, path: str = "-") -> RawAudio:
    """Audio from a binary stream of s16le mono samples at 16 kHz, cut anywhere.

    Nothing is read before the first block is asked for.

    Args:
        stream: open in binary mode (`sys.stdin.buffer`); left open.
        path: name of the stream, for messages.
    """
    return RawAudio(stream, path)


def _samples(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<i2").astype(np.int16)
