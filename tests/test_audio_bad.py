# SPDX-License-Identifier: Apache-2.0
"""Audio files that are not usable, or only in part."""

from __future__ import annotations

import os
import re
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile

from gharial.audio import open_audio, read_all
from gharial.errors import BadInput


def _refused(path: os.PathLike[str] | str) -> str:
    with pytest.raises(BadInput) as caught:
        read_all(open_audio(path))
    text = str(caught.value)
    assert 1 <= len(text.splitlines()) <= 3
    assert str(path) in text
    assert caught.value.exit_code == 2
    return text


def _wav(path: Path, frames: int = 16000, rate: int = 16000) -> bytearray:
    soundfile.write(path, np.full(frames, 1000, np.int16), rate)
    content = bytearray(path.read_bytes())
    assert content[36:40] == b"data"
    return content


def test_missing_file(tmp_path):
    assert "no such file" in _refused(tmp_path / "nothing.wav")


def test_empty_file(tmp_path):
    path = tmp_path / "a.wav"
    path.touch()
    assert "empty" in _refused(path)


@pytest.mark.parametrize("container", ["WAV", "AIFF", "W64", "OGG", "AU"])
def test_header_alone(tmp_path, container):
    path = tmp_path / "a.bin"
    soundfile.write(path, np.empty(0, np.int16), 16000, format=container)
    assert "holds no samples" in _refused(path)


def test_header_that_was_never_finished(tmp_path):
    path = tmp_path / "a.wav"
    content = _wav(path)
    content[40:44] = bytes(4)
    path.write_bytes(content)
    assert "ignore-length" in _refused(path)


@pytest.mark.parametrize("name", ["a.wav", "a.mp3", "a.flac", "a"])
def test_text(tmp_path, name):
    path = tmp_path / name
    path.write_text("Not a sound.\nSecond line.\n" * 100)
    assert "text ('Not a sound." in _refused(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "git lfs pull"),
        (b"\0\0\0\x20ftypM4A " + bytes(100), "M4A"),
        (b"\x1a\x45\xdf\xa3" + bytes(100), "WebM"),
        (b"PK\x03\x04" + bytes(100), "zip"),
        (b"\x1f\x8b\x08" + bytes(100), "gzip"),
    ],
)
def test_other_files_are_named(tmp_path, content, said):
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    assert said in _refused(path)


def test_random_bytes(tmp_path, seed):
    path = tmp_path / "a.wav"
    path.write_bytes(b"\x80" + np.random.default_rng(seed).bytes(50000))
    assert "not an audio file" in _refused(path)


@pytest.mark.parametrize("rate", [0, 1, 999, 768001, 2**31 - 1, 2**32 - 1])
def test_absurd_rate(tmp_path, rate):
    path = tmp_path / "a.wav"
    content = _wav(path)
    content[24:28] = struct.pack("<I", rate)
    path.write_bytes(content)
    text = _refused(path)
    if 0 < rate < 2**31:
        assert f"found {rate} Hz, expected 1000 to 768000 Hz" in text


@pytest.mark.parametrize("channels", [0, 65, 1024, 65535])
def test_absurd_channels(tmp_path, channels):
    path = tmp_path / "a.wav"
    content = _wav(path)
    content[22:24] = struct.pack("<H", channels)
    path.write_bytes(content)
    text = _refused(path)
    if 64 < channels <= 1024:
        assert f"found {channels}, expected 1 to 64" in text


@pytest.mark.parametrize("at", [4, 11, 12, 20, 30, 43])
def test_cut_inside_the_header(tmp_path, at):
    path = tmp_path / "a.wav"
    content = _wav(path)
    path.write_bytes(content[:at])
    _refused(path)


@pytest.mark.parametrize("container", ["WAV", "AIFF", "AU", "W64", "RF64"])
def test_truncated_file_is_used_with_a_note(tmp_path, container):
    path = tmp_path / "a.bin"
    samples = np.arange(20000, dtype=np.int16)
    soundfile.write(path, samples, 16000, format=container)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    audio = open_audio(path)
    assert len(audio.notes) == 1
    assert re.fullmatch(r"cut short: its header promises 40\d{3} bytes, (19|20)\d{3} are there", audio.notes[0])
    got = read_all(audio)
    assert 9900 < len(got) <= 10000
    np.testing.assert_array_equal(got, samples[: len(got)])
    assert len(audio.notes) == 1
    assert audio.duration_s == len(got) / 16000


def test_truncated_flac_is_used_to_its_last_whole_frame(tmp_path, seed):
    path = tmp_path / "a.flac"
    samples = np.random.default_rng(seed).integers(-9000, 9000, 48000, dtype=np.int16)
    soundfile.write(path, samples, 16000)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 6 // 10])
    audio = open_audio(path)
    assert audio.duration_s == 3.0
    got = read_all(audio)
    assert 0.5 < len(got) / 48000 <= 0.6
    np.testing.assert_array_equal(got, samples[: len(got)])
    assert audio.duration_s == len(got) / 16000
    assert [note.split()[0] for note in audio.notes] == ["damaged", "cut"]


def test_truncated_mp3_is_used_with_a_note(tmp_path):
    path = tmp_path / "a.mp3"
    soundfile.write(path, 0.3 * np.sin(np.arange(64000) / 9), 16000)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    audio = open_audio(path)
    got = read_all(audio)
    assert 0.3 < len(got) / 64000 < 0.6
    assert audio.notes[0].startswith("cut short: its header promises 4.00 s")


@pytest.mark.parametrize("damage", [1, 20])
def test_lightly_damaged_flac_is_read_over(tmp_path, seed, damage):
    path = tmp_path / "a.flac"
    # A random walk: the decoder finds the next frame of predicted samples again, but not that of verbatim ones (noise).
    samples = (20 * np.random.default_rng(seed).standard_normal(48000).cumsum()).astype(np.int16)
    soundfile.write(path, samples, 16000)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    for i in range(middle, middle + damage):
        content[i] ^= 0xFF
    path.write_bytes(content)
    audio = open_audio(path)
    got = read_all(audio)
    assert len(got) == 48000
    np.testing.assert_array_equal(got[:16000], samples[:16000])
    np.testing.assert_array_equal(got[-16000:], samples[-16000:])
    assert len(audio.notes) == 1
    assert audio.notes[0].startswith("damaged near 1.")


def test_badly_damaged_flac_is_used_up_to_there(tmp_path, seed):
    path = tmp_path / "a.flac"
    samples = np.random.default_rng(seed).integers(-9000, 9000, 48000, dtype=np.int16)
    soundfile.write(path, samples, 16000)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle:] = bytes(len(content) - middle)
    path.write_bytes(content)
    audio = open_audio(path)
    got = read_all(audio)
    assert 16000 < len(got) < 25000
    np.testing.assert_array_equal(got, samples[: len(got)])
    assert [note.split()[0] for note in audio.notes] == ["damaged", "cut"]


@pytest.mark.parametrize("claim", [1 << 20, 1 << 30, 0xFFFFFFFE])
def test_a_huge_claim_takes_no_memory(tmp_path, claim):
    path = tmp_path / "a.wav"
    content = _wav(path, frames=1000)
    content[40:44] = struct.pack("<I", claim & ~1)
    path.write_bytes(content)
    tracemalloc.start()
    got = read_all(open_audio(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(got) == 1000
    assert peak < 1 << 20


def test_a_huge_claim_of_a_flac_takes_no_memory(tmp_path):
    path = tmp_path / "a.flac"
    soundfile.write(path, np.full(1000, 7, np.int16), 16000)
    content = bytearray(path.read_bytes())
    content[21] |= 0x0F
    content[22:26] = b"\xff" * 4
    path.write_bytes(content)
    tracemalloc.start()
    audio = open_audio(path)
    got = read_all(audio)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(got, np.full(1000, 7))
    assert peak < 1 << 20
    assert audio.duration_s == 1000 / 16000
    assert audio.notes[0].startswith("cut short")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers(tmp_path, value):
    path = tmp_path / "a.wav"
    samples = np.zeros((20000, 2), np.float32)
    samples[12000, 1] = value
    soundfile.write(path, samples, 16000, subtype="FLOAT")
    assert "sample at 0.750 s is not a number" in _refused(path)


@pytest.mark.parametrize("value", [2e6, -1e30])
def test_values_that_are_no_samples(tmp_path, value):
    path = tmp_path / "a.wav"
    samples = np.zeros((20000, 2), np.float32)
    samples[12000, 1] = value
    soundfile.write(path, samples, 16000, subtype="FLOAT")
    assert "sample at 0.750 s is out of its range" in _refused(path)


def test_shorter_than_one_sample_after_resampling(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.full(3, 0.5), 768000)
    assert "no samples after resampling" in _refused(path)
