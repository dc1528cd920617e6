# SPDX-License-Identifier: Apache-2.0
"""Audio files that can be read: exact samples, mixing, resampling, blocks."""

from __future__ import annotations

import shutil
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from gharial.audio import open_audio, read_all
from gharial.audio.convert import MonoConverter

LOSSLESS = [("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("AIFF", "PCM_16"), ("W64", "PCM_16"), ("RF64", "PCM_16")]
LOSSY = [("OGG", "VORBIS", 0.1), ("OGG", "OPUS", 0.1), ("MP3", "MPEG_LAYER_III", 0.1)]


def _noise(seed: int, frames: int, channels: int = 1) -> np.ndarray:
    samples = np.random.default_rng(seed).integers(-32768, 32768, (frames, channels), dtype=np.int16)
    return samples[:, 0] if channels == 1 else samples


def _tone(rate: int, seconds: float, hz: float = 440.0) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hz * np.arange(round(rate * seconds)) / rate)


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(("container", "subtype"), LOSSLESS)
@pytest.mark.parametrize("frames", [1, 8191, 8192, 8193, 40000])
def test_sixteen_bit_mono_is_its_very_samples(tmp_path, seed, container, subtype, frames):
    samples = _noise(seed, frames)
    path = tmp_path / "a.bin"  # the contents decide what it is, not the name
    soundfile.write(path, samples, 16000, format=container, subtype=subtype)
    with open_audio(path) as audio:
        assert (audio.path, audio.source_rate, audio.channels) == (str(path), 16000, 1)
        assert audio.duration_s == frames / 16000
        got = read_all(audio)
        assert audio.notes == []
    assert got.dtype == np.int16
    np.testing.assert_array_equal(got, samples)


@pytest.mark.parametrize("subtype", ["FLOAT", "PCM_24", "PCM_U8", "DOUBLE"])
def test_other_encodings_come_as_floats(tmp_path, seed, subtype):
    # Multiples of 1/128 are exact in all of them.
    samples = (np.random.default_rng(seed).integers(-128, 128, 20000) / 128).astype(np.float32)
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, 16000, subtype=subtype)
    got = read_all(open_audio(path))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, samples)


@pytest.mark.parametrize("channels", [2, 3, 64])
def test_channels_are_mixed_by_their_mean(tmp_path, seed, channels):
    samples = _noise(seed, 9000, channels)
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, 16000)
    audio = open_audio(path)
    got = read_all(audio)
    assert audio.channels == channels
    assert audio.notes == [f"{channels} channels mixed to one"]
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, samples.mean(axis=1) / 32768, rtol=0, atol=1e-7)


def test_opposite_channels_cancel(tmp_path):
    tone = _tone(16000, 0.2)
    path = tmp_path / "a.wav"
    soundfile.write(path, np.stack([tone, -tone], axis=1), 16000, subtype="FLOAT")
    assert np.all(read_all(open_audio(path)) == 0)


@pytest.mark.parametrize("rate", [1000, 8000, 11025, 22050, 44100, 48000, 192000, 768000])
def test_resampling_keeps_pitch_time_and_length(tmp_path, rate):
    path = tmp_path / "a.wav"
    soundfile.write(path, _tone(rate, 1.5, 200.0), rate, subtype="FLOAT")
    audio = open_audio(path)
    assert audio.notes == [f"resampled from {rate} Hz"]
    assert audio.duration_s == pytest.approx(1.5, abs=1e-3)
    got = read_all(audio)
    assert abs(len(got) - 24000) <= 1
    middle = slice(2000, 22000)
    np.testing.assert_allclose(got[middle], _tone(16000, 1.5, 200.0)[middle], rtol=0, atol=1e-3)


def test_resampling_removes_what_does_not_fit(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, _tone(48000, 1.0, 9000.0), 48000, subtype="FLOAT")
    got = read_all(open_audio(path))
    assert np.abs(got[500:-500]).max() < 1e-4


@pytest.mark.parametrize("rate", [8000, 44100])
def test_resampling_by_blocks_is_resampling_at_once(tmp_path, seed, rate):
    samples = _noise(seed, 50001, 2)
    path = tmp_path / "a.flac"
    soundfile.write(path, samples, rate)
    audio = open_audio(path)
    blocks = list(audio.blocks())
    assert len(blocks) > 3
    assert all(len(block) for block in blocks)
    mono = (samples.astype(np.float64) / 32768).mean(axis=1).astype(np.float32)
    np.testing.assert_allclose(np.concatenate(blocks), soxr.resample(mono, rate, 16000, "HQ"), rtol=0, atol=1e-6)
    assert audio.notes == [f"resampled from {rate} Hz", "2 channels mixed to one"]


def test_another_rate_can_be_asked_for(tmp_path):
    samples = _noise(0, 5000)
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, 8000)
    np.testing.assert_array_equal(read_all(open_audio(path, rate=8000)), samples)


@pytest.mark.parametrize(("container", "subtype", "tolerance"), LOSSY)
def test_lossy_formats(tmp_path, container, subtype, tolerance):
    path = tmp_path / "a.bin"
    soundfile.write(path, np.stack([_tone(48000, 1.0)] * 2, axis=1), 48000, format=container, subtype=subtype)
    audio = open_audio(path)
    got = read_all(audio)
    assert audio.notes == ["resampled from 48000 Hz", "2 channels mixed to one"]
    assert audio.duration_s == pytest.approx(len(got) / 16000, abs=1e-3)
    assert abs(len(got) - 16000) <= 1200
    middle = slice(4000, 12000)
    np.testing.assert_allclose(got[middle], _tone(16000, 1.0)[middle], rtol=0, atol=tolerance)


def test_blocks_may_be_kept(tmp_path, seed):
    samples = _noise(seed, 30000)
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, 16000)
    blocks = list(open_audio(path).blocks())
    np.testing.assert_array_equal(np.concatenate(blocks), samples)
    blocks[0][:] = 0
    np.testing.assert_array_equal(np.concatenate(blocks[1:]), samples[len(blocks[0]) :])


def test_blocks_are_read_once(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, _noise(0, 100), 16000)
    audio = open_audio(path)
    read_all(audio)
    with pytest.raises(RuntimeError, match="open it again"):
        read_all(audio)


def test_memory_does_not_grow_with_the_file(tmp_path):
    peaks = []
    for seconds in (10, 80):
        path = tmp_path / f"{seconds}.wav"
        soundfile.write(path, np.zeros((44100 * seconds, 2), np.int16), 44100)
        tracemalloc.start()
        for block in open_audio(path).blocks():
            assert len(block) < 16000
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.5


def test_files_are_closed(tmp_path):
    good, bad = tmp_path / "good.wav", tmp_path / "bad.wav"
    soundfile.write(good, _noise(0, 20000), 16000)
    bad.write_text("not audio")
    before = _open_files()
    finished = open_audio(good)
    read_all(finished)
    assert _open_files() == before
    with open_audio(good) as left:
        assert _open_files() == before + 1
        next(left.blocks())
    left.close()
    kept = []
    for _ in range(5):
        with pytest.raises(Exception, match="not an audio file") as caught:
            open_audio(bad)
        kept.append(caught)
    assert _open_files() == before


def test_a_wav_of_unknown_length_is_read_to_its_end_without_a_remark(tmp_path, seed):
    samples = _noise(seed, 20000)
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, 16000)
    content = bytearray(path.read_bytes())
    assert content[36:40] == b"data"
    for size in (0xFFFFFFFF, 0xFFFFFFFF - 36, 0x7FFFFFFF, 0x7FFFFFFF - 36):
        content[40:44] = struct.pack("<I", size)
        path.write_bytes(content)
        audio = open_audio(path)
        np.testing.assert_array_equal(read_all(audio), samples)
        assert audio.notes == []
        assert audio.duration_s == 1.25


def test_a_flac_of_unknown_length_is_read_to_its_end_without_a_remark(tmp_path, seed):
    samples = _noise(seed, 20000)
    path = tmp_path / "a.flac"
    soundfile.write(path, samples, 16000)
    content = bytearray(path.read_bytes())
    content[21] &= 0xF0  # the 36-bit sample count of STREAMINFO
    content[22:26] = bytes(4)
    path.write_bytes(content)
    audio = open_audio(path)
    assert audio.duration_s is None
    np.testing.assert_array_equal(read_all(audio), samples)
    assert audio.notes == []
    assert audio.duration_s == 1.25


def test_a_link_is_followed(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, _noise(0, 100), 16000)
    (tmp_path / "link").symlink_to(path)
    assert len(read_all(open_audio(tmp_path / "link"))) == 100


def test_an_extension_that_means_raw_elsewhere_does_not_matter(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, _noise(0, 100), 16000)
    renamed = Path(shutil.copy(path, tmp_path / "a.raw"))
    assert len(read_all(open_audio(renamed))) == 100


def test_converter_gives_nothing_for_nothing():
    for converter in (MonoConverter(16000, 16000), MonoConverter(8000, 16000)):
        assert len(converter.push(np.empty((0, 1), np.float32))) == 0
        assert len(converter.finish()) == 0
