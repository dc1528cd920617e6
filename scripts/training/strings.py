# SPDX-License-Identifier: Apache-2.0
"""Strings of words, joined from recordings of single ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import soxr

from gharial.audio import SAMPLE_RATE
from scripts.training.recordings import Recording

_FADE = 80  # samples, 5 ms, at both ends of a recording
_PEAK = 0.98
_SLOPE = 0.97  # of the low-pass that makes the coloured noise


@dataclass(frozen=True)
class Mixture:
    """How strings are joined; pairs are ranges that values are drawn from evenly.

    Attributes:
        one_speaker: share of the strings whose words are all one speaker's.
        margin_s: kept of a recording before and after the speech.
        whole: share of the words whose recording is kept whole.
        gap_s: mean of the gap between two words (exponentially distributed), at most `longest_gap_s`.
        longest_gap_s: longest gap.
        edge_s: silence before the first and after the last word.
        speed: factor of rate and pitch together, drawn once a string.
        word_speed: a further factor, drawn once a word.
        gain_db: drawn once a string.
        word_gain_db: a further gain, drawn once a word.
        noise_share: share of the strings that get noise over their whole length.
        noise_db: speech's level over the noise's.
        hiss_db: level of the white noise that every string gets, full scale 0 dB.
    """

    one_speaker: float
    margin_s: tuple[float, float]
    whole: float
    gap_s: float
    longest_gap_s: float
    edge_s: tuple[float, float]
    speed: tuple[float, float]
    word_speed: tuple[float, float]
    gain_db: tuple[float, float]
    word_gain_db: tuple[float, float]
    noise_share: float
    noise_db: tuple[float, float]
    hiss_db: tuple[float, float]


VARIED = Mixture(
    one_speaker=0.5,
    margin_s=(0.0, 0.15),
    whole=0.15,
    gap_s=0.12,
    longest_gap_s=0.6,
    edge_s=(0.0, 0.3),
    speed=(0.88, 1.14),
    word_speed=(0.96, 1.04),
    gain_db=(-10.0, 8.0),
    word_gain_db=(-3.0, 3.0),
    noise_share=0.6,
    noise_db=(8.0, 40.0),
    hiss_db=(-90.0, -55.0),
)
"""What is trained on in the end."""

PLAIN = Mixture(
    one_speaker=0.5,
    margin_s=(0.03, 0.1),
    whole=0.1,
    gap_s=0.12,
    longest_gap_s=0.5,
    edge_s=(0.0, 0.2),
    speed=(1.0, 1.0),
    word_speed=(1.0, 1.0),
    gain_db=(-3.0, 3.0),
    word_gain_db=(-1.0, 1.0),
    noise_share=0.5,
    noise_db=(20.0, 40.0),
    hiss_db=(-80.0, -60.0),
)
"""What is tested on, and trained on at first: the recordings as they are, but for gaps and light noise."""


def between(first: Mixture, last: Mixture, share: float) -> Mixture:
    """A mixture between two: `first` at a share of 0, `last` at 1."""

    def mixed(a: Any, b: Any) -> Any:
        return tuple(map(mixed, a, b)) if isinstance(a, tuple) else a + share * (b - a)

    return Mixture(*map(mixed, astuple(first), astuple(last)))


class StringMaker:
    """Makes strings of a set's recordings.

    Args:
        recordings: of one set.
        noises: background noise, each (n,) with a root mean square of 1; may be empty.
    """

    def __init__(self, recordings: Sequence[Recording], noises: Sequence[np.ndarray]) -> None:
        self._noises = noises
        self._by_word: dict[str, list[Recording]] = defaultdict(list)
        self._by_speaker: dict[str, dict[str, list[Recording]]] = defaultdict(lambda: defaultdict(list))
        for recording in recordings:
            self._by_word[recording.word].append(recording)
            self._by_speaker[recording.speaker][recording.word].append(recording)
        self._words = sorted(self._by_word)
        self._speakers = sorted(self._by_speaker)
        # A speaker of a hundred recordings is drawn more often than one of ten, but not ten times as often.
        counts = np.array([sum(map(len, self._by_speaker[speaker].values())) for speaker in self._speakers], float)
        self._shares = np.sqrt(counts) / np.sqrt(counts).sum()

    def make(self, random: np.random.Generator, words: int, mixture: Mixture) -> tuple[np.ndarray, str]:
        """A string.

        Args:
            random: where every choice comes from.
            words: number of words, 1 or more.
            mixture: how they are joined.

        Returns:
            (n,) float32 samples, full scale 1, 16 kHz, and what is said.
        """
        chosen = self._choose(random, words, mixture.one_speaker)
        speed = random.uniform(*mixture.speed)
        pieces = [_silence(random.uniform(*mixture.edge_s))]
        for index, recording in enumerate(chosen):
            if index:
                pieces.append(_silence(min(random.exponential(mixture.gap_s), mixture.longest_gap_s)))
            pieces.append(_word(random, recording, speed, mixture))
        pieces.append(_silence(random.uniform(*mixture.edge_s)))
        samples = np.concatenate(pieces)
        level = float(np.sqrt(np.mean(np.square(samples))))
        if random.random() < mixture.noise_share:
            samples += self._noise(random, len(samples)) * np.float32(level * _gain(-random.uniform(*mixture.noise_db)))
        samples *= np.float32(_gain(random.uniform(*mixture.gain_db)))
        samples += random.standard_normal(len(samples), np.float32) * np.float32(
            _gain(random.uniform(*mixture.hiss_db))
        )
        peak = float(np.abs(samples).max())
        if peak > _PEAK:
            samples *= np.float32(_PEAK / peak)
        return samples, " ".join(recording.word for recording in chosen)

    def _choose(self, random: np.random.Generator, words: int, one_speaker: float) -> list[Recording]:
        """Recordings of a string: each word is drawn first, then who says it."""
        own = None
        if random.random() < one_speaker:
            own = self._by_speaker[self._speakers[random.choice(len(self._speakers), p=self._shares)]]
        chosen = []
        for _ in range(words):
            names = self._words if own is None else sorted(own)
            word = names[random.integers(len(names))]
            takes = (self._by_word if own is None else own)[word]
            chosen.append(takes[random.integers(len(takes))])
        return chosen

    def _noise(self, random: np.random.Generator, length: int) -> np.ndarray:
        """Noise of a root mean square of about 1: a recording's, repeated, or white or coloured noise."""
        kind = random.integers(3)
        if kind == 0 and self._noises:
            noise = self._noises[int(random.integers(len(self._noises)))]
            start = int(random.integers(len(noise)))
            return np.take(noise, np.arange(start, start + length), mode="wrap")
        white = random.standard_normal(length, np.float32)
        if kind == 1:
            return white
        # Falls by 6 dB an octave from some 100 Hz on; by blocks of the filter's response, which dies within 256.
        response = (_SLOPE ** np.arange(256)).astype(np.float32) * np.float32(np.sqrt(1.0 - _SLOPE**2))
        return np.convolve(white, response)[:length]


def _word(random: np.random.Generator, recording: Recording, speed: float, mixture: Mixture) -> np.ndarray:
    first, end = recording.speech
    before, after = (int(random.uniform(*mixture.margin_s) * SAMPLE_RATE) for _ in range(2))
    if random.random() < mixture.whole:
        samples = recording.samples.copy()
    else:
        samples = recording.samples[max(0, first - before) : end + after].copy()
    factor = speed * random.uniform(*mixture.word_speed)
    if factor != 1.0:
        samples = soxr.resample(samples, SAMPLE_RATE * factor, SAMPLE_RATE).astype(np.float32)
    fade = min(_FADE, len(samples) // 2)
    ramp = np.linspace(0.0, 1.0, fade, dtype=np.float32)
    samples[:fade] *= ramp
    samples[len(samples) - fade :] *= ramp[::-1]
    samples *= np.float32(_gain(random.uniform(*mixture.word_gain_db)))
    return samples


def _silence(seconds: float) -> np.ndarray:
    return np.zeros(int(seconds * SAMPLE_RATE), np.float32)


def _gain(decibels: float) -> float:
    return float(10.0 ** (decibels / 20.0))
