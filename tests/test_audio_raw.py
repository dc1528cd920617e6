# SPDX-License-Identifier: Apache-2.0
"""Raw audio from a stream, cut anywhere."""

from __future__ import annotations

import io
import os
import threading

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from gharial.audio import PcmDecoder, open_raw, read_all
from gharial.errors import BadInput


def _noise(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-32768, 32768, count, dtype=np.int16)


class _Pieces(io.RawIOBase):
    """A stream that gives its bytes in pieces of the lengths asked for, as a pipe might."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = list(pieces)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._pieces:
            return b""
        piece = self._pieces.pop(0)
        if len(piece) > size:
            self._pieces.insert(0, piece[size:])
        return piece[:size]


def _split(data: bytes, lengths: list[int]) -> list[bytes]:
    pieces, start = [], 0
    for length in lengths:
        pieces.append(data[start : start + length])
        start += length
    pieces.append(data[start:])
    return [piece for piece in pieces if piece]


@given(
    st.lists(st.integers(-32768, 32767), min_size=1, max_size=200),
    st.lists(st.integers(1, 50), max_size=30),
    st.booleans(),
)
def test_any_cut_gives_the_samples(values, lengths, odd):
    samples = np.array(values, np.int16)
    data = samples.astype("<i2").tobytes() + (b"\x55" if odd else b"")
    audio = open_raw(_Pieces(_split(data, lengths)))
    blocks = list(audio.blocks())
    assert all(block.dtype == np.int16 and len(block) for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), samples)
    assert len(audio.notes) == odd
    assert audio.duration_s == len(samples) / 16000


def test_what_a_raw_source_says_of_itself(seed):
    samples = _noise(seed, 100000)
    with open_raw(io.BytesIO(samples.astype("<i2").tobytes())) as audio:
        assert (audio.path, audio.source_rate, audio.channels, audio.duration_s) == ("-", 16000, 1, None)
        np.testing.assert_array_equal(read_all(audio), samples)
        assert audio.notes == []


def test_a_live_pipe_is_not_held_up():
    reading, writing = os.pipe()
    sent = threading.Event()

    def send() -> None:
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            pipe.write(bytes(1920))
            sent.wait(30)
            pipe.write(bytes(1920))

    sender = threading.Thread(target=send)
    sender.start()
    with os.fdopen(reading, "rb") as stream:
        blocks = open_raw(stream).blocks()
        # The first block is here although the second half was not sent yet and never would be without it.
        assert len(next(blocks)) == 960
        sent.set()
        assert sum(len(block) for block in blocks) == 960
    sender.join()


def test_trailing_odd_byte_is_noted():
    audio = open_raw(io.BytesIO(b"\x01\x00\x02\x00\x03"))
    np.testing.assert_array_equal(read_all(audio), [1, 2])
    assert audio.notes == ["the raw audio ended in the middle of a sample; its last byte was dropped"]


@pytest.mark.parametrize("data", [b"", b"\x01"])
def test_no_sample_at_all(data):
    with pytest.raises(BadInput, match="no audio came in") as caught:
        read_all(open_raw(io.BytesIO(data)))
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize("container", ["WAV", "FLAC", "OGG", "AIFF", "RF64"])
@pytest.mark.parametrize("first", [1, 3, 4, 1000])
def test_an_audio_file_sent_as_samples_is_refused(seed, container, first):
    file = io.BytesIO()
    soundfile.write(file, _noise(seed, 5000), 16000, format=container)
    data = file.getvalue()
    with pytest.raises(BadInput) as caught:
        read_all(open_raw(_Pieces([data[:first], data[first:]])))
    text = str(caught.value)
    assert len(text.splitlines()) == 3
    assert ("WAV" if container == "RF64" else container) in text
    assert "by its name" in text


def test_header_alone_is_refused():
    with pytest.raises(BadInput, match="RIFF"):
        read_all(open_raw(io.BytesIO(b"RIFF")))


def test_riff_later_in_the_stream_is_sound():
    data = b"\x00\x00RIFF\x00\x00"
    assert len(read_all(open_raw(io.BytesIO(data)))) == 4


def test_a_stream_that_does_not_wait_is_refused():
    class NonBlocking(io.RawIOBase):
        def read(self, size: int = -1) -> None:
            return None

    with pytest.raises(BadInput, match="does not wait"):
        read_all(open_raw(NonBlocking()))


def test_decoder_takes_every_kind_of_bytes():
    decoder = PcmDecoder()
    got = [decoder.push(kind(b"\x01\x02\x03")) for kind in (bytes, bytearray, memoryview)]
    assert [len(part) for part in got] == [0, 3, 1]
    np.testing.assert_array_equal(np.concatenate(got), np.frombuffer(b"\x01\x02\x03" * 3, "<i2", count=4))
    rest, odd = decoder.finish()
    assert (len(rest), odd) == (0, True)


def test_decoder_gives_the_little_it_held_back():
    decoder = PcmDecoder()
    assert len(decoder.push(b"\x01\x00")) == 0
    rest, odd = decoder.finish()
    assert (rest.tolist(), odd) == ([1], False)


def test_stream_stays_open():
    stream = io.BytesIO(bytes(10))
    with open_raw(stream) as audio:
        read_all(audio)
    assert not stream.closed
