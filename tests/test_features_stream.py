# SPDX-License-Identifier: Apache-2.0
"""A stream's features do not depend on how it is cut, on other streams, or on the process it runs in."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gharial.errors import BadInput
from gharial.features import FeatureSpec, FeatureStream, LogMelStream, logmel
from gharial.features.filters import mel_filters

MEANS = np.linspace(-17, -12, 80)
VARIANCES = np.linspace(12, 18, 80)


def _spec(**changes) -> FeatureSpec:
    return FeatureSpec(**{"melmeans": MEANS, "melvars": VARIANCES, **changes})


def _noise(seed: int, count: int) -> np.ndarray:
    # Loud and soft stretches, so that every magnitude of feature occurs.
    rng = np.random.default_rng(seed)
    level = 10.0 ** rng.uniform(0, 4.3, -(-count // 500)).repeat(500)[:count]
    return np.clip(rng.standard_normal(count) * level, -32768, 32767).astype(np.int16)


def _cut(samples: np.ndarray, lengths: Iterable[int]) -> list[np.ndarray]:
    pieces, start = [], 0
    for length in lengths:
        if start >= len(samples):
            break
        pieces.append(samples[start : start + length])
        start += length
    return pieces


def _features(stream: FeatureStream, pieces: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([*[stream.push(piece) for piece in pieces], stream.finish()])


VARIANTS = {
    "base": {},
    "20ms": {"window": 320},
    "adaptive": {"melalpha": 0.001},
    "dithered": {"dither": 1e-5},
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("length", [1, 7, 159, 160, 161, 480, 960, 16000, 16001])
def test_any_chunk_length_gives_the_same_bits(seed, variant, length):
    samples = _noise(seed, 4_003 if length < 100 else 40_003)
    spec = _spec(**VARIANTS[variant])
    whole = _features(FeatureStream(spec), [samples])
    assert whole.shape == (spec.vectors(len(samples)), 240)
    assert whole.dtype == np.float32
    cut = _features(FeatureStream(spec), _cut(samples, cycle([length])))
    assert cut.tobytes() == whole.tobytes()


@pytest.mark.parametrize("variant", VARIANTS)
@given(lengths=st.lists(st.integers(0, 1500), min_size=1, max_size=12), noise=st.integers(0, 1000))
def test_random_chunks_give_the_same_bits(variant, lengths, noise):
    samples = _noise(noise, sum(lengths))
    spec = _spec(**VARIANTS[variant])
    whole = _features(FeatureStream(spec), [samples])
    assert _features(FeatureStream(spec), _cut(samples, lengths)).tobytes() == whole.tobytes()


def test_vectors_come_as_soon_as_their_samples_are_there():
    # Vector i ends with frame 3i + 2, whose last sample is number 480 (i + 1).
    stream = FeatureStream(_spec())
    assert len(stream.push(np.ones(479, np.int16))) == 0
    assert len(stream.push(np.ones(1, np.int16))) == 1
    assert len(stream.push(np.ones(959, np.int16))) == 1
    assert len(stream.push(np.ones(1, np.int16))) == 1


def test_interleaved_streams_do_not_touch_each_other(seed):
    rng = np.random.default_rng(seed)
    specs = [_spec(**VARIANTS[name]) for name in VARIANTS for _ in range(3)]
    sounds = [_noise(seed + i, int(rng.integers(0, 9000))) for i in range(len(specs))]
    alone = [_features(FeatureStream(spec), [sound]) for spec, sound in zip(specs, sounds, strict=True)]
    streams = [FeatureStream(spec) for spec in specs]
    got: list[list[np.ndarray]] = [[] for _ in specs]
    places = [0] * len(specs)
    open_streams = set(range(len(specs)))
    while open_streams:
        i = int(rng.choice(sorted(open_streams)))
        length = int(rng.integers(0, 1200))
        got[i].append(streams[i].push(sounds[i][places[i] : places[i] + length]))
        places[i] += length
        if places[i] >= len(sounds[i]):
            got[i].append(streams[i].finish())
            open_streams.remove(i)
    for ours, theirs in zip(got, alone, strict=True):
        assert np.concatenate(ours).tobytes() == theirs.tobytes()


def test_threads_do_not_touch_each_other(seed):
    spec = _spec()
    sounds = [_noise(seed + i, 16000) for i in range(8)]
    alone = [_features(FeatureStream(spec), [sound]).tobytes() for sound in sounds]
    with ThreadPoolExecutor(8) as pool:
        together = list(
            pool.map(lambda sound: _features(FeatureStream(spec), _cut(sound, cycle([333]))).tobytes(), sounds)
        )
    assert together == alone


_ELSEWHERE = """
import hashlib, sys
import numpy as np
from gharial.features import FeatureSpec, FeatureStream
spec = FeatureSpec(melmeans=np.linspace(-17, -12, 80), melvars=np.linspace(12, 18, 80))
stream = FeatureStream(spec)
samples = np.frombuffer(sys.stdin.buffer.read(), np.int16)
print(hashlib.sha256(stream.push(samples).tobytes() + stream.finish().tobytes()).hexdigest())
"""


@pytest.mark.parametrize("threads", ["1", "4"])
def test_another_process_with_other_library_threads_gives_the_same_bits(seed, threads):
    samples = _noise(seed, 20000)
    here = hashlib.sha256(_features(FeatureStream(_spec()), [samples]).tobytes()).hexdigest()
    env = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE], input=samples.tobytes(), capture_output=True, env=env, check=True
    )
    assert done.stdout.decode().strip() == here


def test_float_samples_give_the_bits_of_the_integers_they_are(seed):
    samples = _noise(seed, 5000)
    floats = (samples / 32768).astype(np.float32)
    assert (
        _features(FeatureStream(_spec()), [samples]).tobytes() == _features(FeatureStream(_spec()), [floats]).tobytes()
    )


@pytest.mark.parametrize("count", [0, 1, 159, 160, 319, 320, 480, 481, 960])
def test_number_of_vectors_and_the_zeros_of_the_last(count):
    spec = _spec()
    vectors = _features(FeatureStream(spec), [np.full(count, 1000, np.int16)])
    frames = (240 + count + 3840 - 400) // 160 + 1
    assert vectors.shape == (-(-frames // 3), 240)
    flat = vectors.reshape(-1, 80)
    assert np.all(flat[frames:] == 0)
    assert np.all(flat[:frames].any(axis=1))


def test_an_empty_stream_is_its_tail():
    vectors = _features(FeatureStream(_spec()), [])
    silence = ((np.log(1e-20) - MEANS) / np.sqrt(VARIANCES)).astype(np.float32)
    np.testing.assert_array_equal(vectors, np.tile(silence, (8, 3)))


def test_the_tail_is_the_same_as_samples_of_zero(seed):
    samples = _noise(seed, 3000)
    zeros = np.zeros(3840, np.int16)
    tailed = _features(FeatureStream(_spec()), [samples])
    longer = _features(FeatureStream(_spec()), [samples, zeros])
    frames = _spec().frames(3000)
    np.testing.assert_array_equal(tailed.reshape(-1, 80)[:frames], longer.reshape(-1, 80)[:frames])


def test_stream_is_logmel_normalised_and_stacked(seed):
    samples = _noise(seed, 7777)
    spec = _spec()
    frames = ((logmel(samples, spec, spec.tail) - MEANS) / np.sqrt(VARIANCES)).astype(np.float32)
    stacked = np.zeros((-(-len(frames) // 3), 3, 80), np.float32)
    for t, frame in enumerate(frames):
        stacked[t // 3, t % 3] = frame
    np.testing.assert_array_equal(_features(FeatureStream(spec), [samples]), stacked.reshape(-1, 240))


def test_statistics_follow_the_stream_when_asked(seed):
    alpha = 0.02
    samples = _noise(seed, 9000)
    spec = _spec(melalpha=alpha)
    frames = logmel(samples, spec, spec.tail)
    expected = np.zeros((spec.vectors(len(samples)) * 3, 80))
    for channel in range(80):
        m, v = MEANS[channel], VARIANCES[channel]
        for t, x in enumerate(frames[:, channel]):
            d = x - m
            m = m + alpha * d
            v = (1 - alpha) * (v + alpha * d * d)
            expected[t, channel] = (x - m) / np.sqrt(v)
    got = _features(FeatureStream(spec), [samples])
    np.testing.assert_allclose(got, expected.reshape(-1, 240), rtol=1e-5, atol=1e-6)
    fixed = _features(FeatureStream(_spec()), [samples])
    assert np.abs(got - fixed).max() > 0.1


@pytest.mark.parametrize("variant", VARIANTS)
def test_reset_starts_anew(seed, variant):
    samples = _noise(seed, 5000)
    stream = FeatureStream(_spec(**VARIANTS[variant]))
    first = _features(stream, [samples])
    stream.reset()
    stream.push(samples[:1234])
    stream.reset()
    assert _features(stream, [samples]).tobytes() == first.tobytes()


def test_dither_depends_on_the_seed_and_lifts_silence(seed):
    spec = _spec(dither=1e-5)
    silence = np.zeros(3200, np.int16)
    one, other = (_features(FeatureStream(spec, seed=s), [silence]) for s in (seed, seed + 1))
    assert not np.array_equal(one, other)
    # White noise of variance 1e-10 through pre-emphasis, the window (sum of squares 150) and the filters. The lowest
    # channels are left out: there the window leaks across pre-emphasis's steep slope.
    energies = np.exp(logmel(np.zeros(160000, np.int16), spec)).mean(axis=0)
    gain = np.abs(1 - 0.97 * np.exp(-2j * np.pi * np.arange(257) / 512)) ** 2
    expected = 1e-10 * 150 * (gain @ mel_filters(16000, 512, 80))
    np.testing.assert_allclose(energies[10:], expected[10:], rtol=0.25)


@pytest.mark.parametrize("kind", [FeatureStream, LogMelStream])
def test_use_after_the_end_is_refused(kind):
    stream = kind(_spec())
    stream.finish()
    with pytest.raises(RuntimeError, match="reset"):
        stream.push(np.zeros(1, np.int16))
    with pytest.raises(RuntimeError, match="reset"):
        stream.finish()


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(10),
        np.zeros(10, np.int32),
        np.zeros((10, 1), np.int16),
        np.array(1, np.int16),
        [0, 1],
        np.array([0, np.nan], np.float32),
        np.array([0, -np.inf], np.float32),
        np.array([0, -(2.0**20) - 1], np.float32),
    ],
)
def test_unusable_samples_are_refused_and_leave_the_stream_whole(seed, samples):
    good = _noise(seed, 2000)
    stream = FeatureStream(_spec())
    first = stream.push(good)
    with pytest.raises(BadInput):
        stream.push(samples)
    assert np.concatenate((first, stream.finish())).tobytes() == _features(FeatureStream(_spec()), [good]).tobytes()


def test_samples_are_not_kept(seed):
    # A caller that reuses its buffer must not change what is still to come.
    samples = _noise(seed, 2000)
    expected = _features(FeatureStream(_spec()), [samples])
    stream = FeatureStream(_spec())
    buffer = np.empty(100, np.int16)
    got = []
    for start in range(0, 2000, 100):
        buffer[:] = samples[start : start + 100]
        got.append(stream.push(buffer))
        buffer[:] = -1
    assert np.concatenate([*got, stream.finish()]).tobytes() == expected.tobytes()


def test_an_open_stream_holds_little_memory():
    # Thousands are open at once: what a stream keeps is the samples of an unfinished group, not the last push.
    spec = _spec()
    chunk = np.ones(16000, np.int16)
    FeatureStream(spec).push(chunk)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    streams = [FeatureStream(spec) for _ in range(20)]
    for stream in streams:
        stream.push(chunk)
    held = (tracemalloc.get_traced_memory()[0] - before) / len(streams)
    tracemalloc.stop()
    assert held < 16 * 1024
