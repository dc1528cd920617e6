# SPDX-License-Identifier: Apache-2.0
"""What the demo model is trained on: sets without a common speaker, strings, batches that can be made again."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import training_data
from scripts.training.augment import TRAINING, vary
from scripts.training.batches import BatchMaker, Plan, batches, encoder, string_maker, vectors_of
from scripts.training.recordings import (
    HELD_OUT,
    SETS,
    WORDS,
    Recording,
    read,
    read_noises,
    read_words,
    set_of,
    speaker_of,
    speech_bounds,
)
from scripts.training.strings import PLAIN, VARIED, StringMaker

from gharial.bench.manifest import read_set
from gharial.checkpoint import load_hardware
from gharial.errors import BadInput
from gharial.features import FeatureSpec
from gharial.model import demo_model

PLAN = Plan(seed=5, strings=6, longest=4, easy=0, ramp=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return training_data.write(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(scope="module")
def encode():
    return encoder(load_hardware(demo_model()).sentencepiece)


def test_no_speaker_is_in_two_sets(folder):
    found = {which: {item.speaker for item in read_words(folder / "speech_commands", which)} for which in SETS}
    assert all(len(speakers) == 2 for speakers in found.values())
    assert len(set.union(*found.values())) == 6


def test_a_speaker_s_set_is_fixed_for_good():
    """Figures of a training mean nothing once a speaker has changed sets."""
    expected = {"022cd682": "held out", "0bac8a71": "train", "0fa1e7a9": "dev", "4845bb10": "dev", "18f8afd5": "test"}
    assert {name: set_of(name) for name in expected} == expected
    names = [f"{number:08x}" for number in range(5000)]
    shares = [sum(set_of(name) == which for name in names) / len(names) for which in SETS]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.02)


def test_no_speaker_of_the_recordings_is_in_two_sets(data_dir):
    paths = [path for word in WORDS for path in (data_dir / "speech_commands" / word).glob("*.flac")]
    sets = {which: {speaker_of(path) for path in paths if set_of(speaker_of(path)) == which} for which in SETS}
    assert all(sets.values())
    everyone = {speaker_of(path) for path in paths}
    assert everyone > HELD_OUT
    assert sum(map(len, sets.values())) == len(everyone) - len(HELD_OUT)


def test_no_recording_of_sc_speakers_is_in_a_set(data_dir):
    """By their samples: the strings of one word beside each recording of that word, at a quarter of the rate."""
    strings = [one for one in read_set(data_dir / "sets" / "sc_speakers") if len(one.transcript.split()) == 1][::4]
    known = 0
    for string in strings:
        heard = np.fft.rfft(read(string.path)[::4], 1 << 14)
        found = {}
        for path in (data_dir / "speech_commands" / string.transcript).glob("*.flac"):
            spoken = np.fft.rfft(read(path)[::4], 1 << 14)
            product = np.abs(np.fft.irfft(heard * spoken.conj())).max()
            energies = [np.square(np.fft.irfft(part)).sum() for part in (heard, spoken)]
            found[path] = product / np.sqrt(energies[0] * energies[1])
        same = [path for path, likeness in found.items() if likeness > 0.95]
        known += bool(same)
        assert all(set_of(speaker_of(path)) not in SETS for path in same), string.path
    assert known >= len(strings) // 2


def test_a_name_that_tells_no_speaker_is_refused(folder, tmp_path):
    with pytest.raises(BadInput, match="does not tell the speaker"):
        speaker_of(Path("yes/recording.flac"))
    with pytest.raises(BadInput, match="no recordings of 'down'"):
        read_words(tmp_path, "train")


def test_speech_is_found_by_its_level():
    samples = np.zeros(8000, np.float32)
    samples[3200:4800] = 0.5
    samples[6400:6560] = 0.005  # 40 dB below
    assert speech_bounds(samples) == (3200, 4800)
    assert speech_bounds(np.zeros(1000, np.float32)) == (0, 1000)
    assert speech_bounds(np.zeros(3, np.float32)) == (0, 3)


def test_noise_has_a_level_of_one_and_silence_is_left_out(folder):
    noises = read_noises(folder / "speech_commands")
    assert len(noises) == 1
    assert np.sqrt(np.mean(np.square(noises[0]))) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("mixture", [VARIED, PLAIN])
def test_a_string_is_what_it_says_and_within_full_scale(seed, folder, mixture):
    maker = string_maker(folder, "train")
    random = np.random.default_rng(seed)
    for words in (1, 2, 7):
        samples, text = maker.make(random, words, mixture)
        assert samples.dtype == np.float32 and samples.ndim == 1
        assert 0.0 < np.abs(samples).max() <= 0.981
        assert len(text.split()) == words and set(text.split()) <= set(WORDS)
        # A quarter of a second a word, sped up by a quarter at most.
        assert len(samples) > words * 0.25 * 16000 / 1.3


def test_a_string_s_words_come_in_its_text_s_order(seed):
    """Recordings of one value each, joined plainly, are found again in the samples."""
    values = {"go": 0.2, "no": 0.4, "up": 0.6}
    recordings = [
        Recording(word, "somebody", np.full(4000, value, np.float32), (0, 4000)) for word, value in values.items()
    ]
    plain = replace(
        PLAIN, gain_db=(0, 0), word_gain_db=(0, 0), noise_share=0.0, hiss_db=(-200, -200), gap_s=0.1, edge_s=(0.01, 0.1)
    )
    samples, text = StringMaker(recordings, []).make(np.random.default_rng(seed), 6, plain)
    at = [values[word] for word in text.split()]
    # The middle of each: levels that last. Between two of them there is a fade, so never two words without a dip.
    held = np.flatnonzero(np.abs(np.diff(samples)) > 0)
    runs = [float(samples[start + 1]) for start, end in pairwise(held) if end - start > 1000]
    assert [round(value, 3) for value in runs if value > 0.1] == [round(value, 3) for value in at]


def test_features_are_those_of_the_front_end_where_nothing_is_varied(seed):
    spec = FeatureSpec(melmeans=np.full(80, -10.0), melvars=np.full(80, 9.0))
    random = np.random.default_rng(seed)
    vectors = vectors_of(0.1 * random.standard_normal(8000).astype(np.float32), spec)
    quiet = vectors_of(np.zeros(800, np.float32), spec)[0, :80]
    still = replace(TRAINING, response=0.0, warp=0.0, bands=0, times=0)
    np.testing.assert_array_equal(vary(vectors, quiet, random, still), vectors)
    varied = vary(vectors, quiet, random, TRAINING)
    assert varied.shape == vectors.shape and varied.dtype == np.float32 and np.isfinite(varied).all()
    # The digital silence of the tail (0.24 s) is nobody's voice.
    np.testing.assert_array_equal(varied[-5:], vectors[-5:])


def test_a_batch_is_the_same_whenever_it_is_made(folder, encode):
    spec = FeatureSpec()
    make = BatchMaker(PLAN, string_maker(folder, "train"), spec, encode).make
    first = {number: make(number) for number in (0, 1, 2, 3)}
    for number in (3, 0, 2, 1):
        again = make(number)
        assert again.texts == first[number].texts
        np.testing.assert_array_equal(again.features, first[number].features)
    # The same strings twice, varied another way; then others.
    assert first[0].texts == first[1].texts != first[2].texts
    assert not np.array_equal(first[0].features, first[1].features)


def test_a_batch_has_what_the_network_takes(folder, encode):
    batch = BatchMaker(PLAN, string_maker(folder, "train"), FeatureSpec(), encode).make(1)
    steps, strings, width = batch.features.shape
    assert width == 240 and steps % 2 == 0 and steps - batch.lengths.max() in (0, 1)
    assert batch.labels.shape == (strings, batch.tokens.max())
    for row, text in enumerate(batch.texts):
        assert list(batch.labels[row, : batch.tokens[row]]) == encode(text)
        assert not batch.features[batch.lengths[row] :, row].any()


def test_batches_taken_up_in_the_middle_are_those_of_the_whole(folder):
    model = load_hardware(demo_model()).sentencepiece
    whole = list(batches(PLAN, folder, FeatureSpec(), model, 0, 4, 0))
    rest = list(batches(PLAN, folder, FeatureSpec(), model, 1, 4, 1))  # made by another process
    assert len(whole) == 4 and len(rest) == 3
    for a, b in zip(whole[1:], rest, strict=True):
        assert a.texts == b.texts
        np.testing.assert_array_equal(a.features, b.features)
