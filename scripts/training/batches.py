# SPDX-License-Identifier: Apache-2.0
"""Batches of features and labels, made anew from a seed and a number: training goes on without end.

Strings go through the front end that serves (`gharial.features`), its zeros before and after included.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gharial.features import FeatureSpec, FeatureStream
from scripts.training.augment import TRAINING, Variation, vary
from scripts.training.recordings import read_noises, read_words
from scripts.training.strings import PLAIN, VARIED, Mixture, StringMaker, between

_STEP_S = 0.06  # an encoder step
_AHEAD = 4  # batches a process
_USES = 2  # of a string, its features varied anew for each; what is done to sound costs as much as an update


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of strings.

    Attributes:
        features: (T2, B, 240) float32, T2 even; zeros behind a string's end.
        lengths: (B,) int64, feature vectors of each string.
        labels: (B, U) int64 token ids, zeros behind a string's end.
        tokens: (B,) int64, labels of each string.
        texts: what is said.
    """

    features: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray
    tokens: np.ndarray
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What the batches of a training are.

    Attributes:
        seed: starts everything random.
        strings: strings of a batch where they have one word; where they have n, this over the root of n.
        longest: most words of a string; a batch's strings are about of one length, each length equally often.
        easy: batches over which the most words of a string grow from 1 to `longest`.
        ramp: batches over which mixture and variation grow to what they are in the end.
        mixture: how strings are joined in the end; at first as `PLAIN` has it.
        variation: how their features are varied in the end; at first not at all.
    """

    seed: int
    strings: int
    longest: int
    easy: int
    ramp: int
    mixture: Mixture = VARIED
    variation: Variation = TRAINING

    def words_at(self, number: int) -> int:
        """Most words of a string of batch `number`."""
        return self.longest if number >= self.easy else 1 + self.longest * number // self.easy

    def share_at(self, number: int) -> float:
        """How much of the mixture and variation batch `number` has, 0 to 1."""
        return min(1.0, number / self.ramp) if self.ramp else 1.0


def vectors_of(samples: np.ndarray, spec: FeatureSpec) -> np.ndarray:
    """Feature vectors of a whole recording, (T2, 240) float32, as a stream gives them."""
    stream = FeatureStream(spec)
    return np.concatenate((stream.push(samples), stream.finish()))


def collate(vectors: Sequence[np.ndarray], labels: Sequence[Sequence[int]], texts: Sequence[str]) -> Batch:
    """A batch of strings of different lengths."""
    lengths = np.array([len(array) for array in vectors])
    tokens = np.array([len(ids) for ids in labels])
    longest = int(lengths.max())
    features = np.zeros((longest + longest % 2, len(vectors), vectors[0].shape[1]), np.float32)
    padded = np.zeros((len(labels), int(tokens.max())), np.int64)
    for row, (array, ids) in enumerate(zip(vectors, labels, strict=True)):
        features[: len(array), row] = array
        padded[row, : len(ids)] = ids
    return Batch(features, lengths, padded, tokens, tuple(texts))


class BatchMaker:
    """Makes the batches of a plan.

    Args:
        plan: see there.
        maker: makes the strings.
        spec: the front end, mel statistics included.
        encode: token ids of a text.
    """

    def __init__(
        self, plan: Plan, maker: StringMaker, spec: FeatureSpec, encode: Callable[[str], Sequence[int]]
    ) -> None:
        self._plan, self._maker, self._spec, self._encode = plan, maker, spec, encode
        self._held: tuple[int, list[tuple[np.ndarray, str]]] = (-1, [])
        self._quiet = vectors_of(np.zeros(2 * spec.window, np.float32), spec)[0, : spec.n_mels]

    def make(self, number: int) -> Batch:
        """Batch `number`, the same whenever it is asked for."""
        variation = self._plan.variation.at(self._plan.share_at(number))
        random = np.random.default_rng((self._plan.seed, number, 1))
        strings = self._strings(number - number % _USES)
        return collate(
            [vary(vectors, self._quiet, random, variation) for vectors, _ in strings],
            [self._encode(text) for _, text in strings],
            [text for _, text in strings],
        )

    def _strings(self, number: int) -> list[tuple[np.ndarray, str]]:
        """Features, not varied yet, and texts of the strings of batch `number` and the next ones, `_USES` in all."""
        if self._held[0] != number:
            plan = self._plan
            random = np.random.default_rng((plan.seed, number, 0))
            words = int(random.integers(1, plan.words_at(number) + 1))
            mixture = between(PLAIN, plan.mixture, plan.share_at(number))
            strings = []
            for _ in range(max(1, round(plan.strings / words**0.5))):
                samples, text = self._maker.make(random, max(1, words - int(random.integers(2))), mixture)
                strings.append((vectors_of(samples, self._spec), text))
            self._held = (number, strings)
        return self._held[1]


def string_maker(data: Path, which: str) -> StringMaker:
    """A maker of strings of one set's speakers, from the recordings in `data`/speech_commands."""
    folder = data / "speech_commands"
    return StringMaker(read_words(folder, which), read_noises(folder))


def encoder(sentencepiece: bytes) -> Callable[[str], list[int]]:
    """The function from a text to token ids of a SentencePiece model."""
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=sentencepiece)

    def encode(text: str) -> list[int]:
        ids: list[int] = processor.encode(text)
        return ids

    return encode


def class_shares(words: Sequence[Sequence[int]], classes: int) -> list[float]:
    """How often each class comes among the edges of a path, (classes,), blank last, where all words are as frequent.

    Args:
        words: token ids of each word; a word is taken to last a second.
        classes: number of classes; those of no word are taken to come once in a million steps.
    """
    steps = len(words) / _STEP_S
    counts = np.full(classes, 1e-6 * steps)
    for ids in words:
        np.add.at(counts, list(ids), 1.0)
    counts[-1] = steps
    shares: list[float] = (counts / counts.sum()).tolist()
    return shares


# What a process that makes batches holds.
_own: list[BatchMaker] = []


def _prepare(plan: Plan, data: Path, spec: FeatureSpec, sentencepiece: bytes) -> None:
    _own[:] = [BatchMaker(plan, string_maker(data, "train"), spec, encoder(sentencepiece))]


def _make(numbers: Sequence[int]) -> list[Batch]:
    return [_own[0].make(number) for number in numbers]


def batches(
    plan: Plan, data: Path, spec: FeatureSpec, sentencepiece: bytes, first: int, end: int, processes: int
) -> Iterator[Batch]:
    """Batches `first` to `end` - 1 in order, made ahead by other processes; by this one where `processes` is 0."""
    # Batches of the same strings are one process's work.
    groups = [
        [number for number in range(start, start + _USES) if first <= number < end]
        for start in range(first - first % _USES, end, _USES)
    ]
    if processes == 0:
        _prepare(plan, data, spec, sentencepiece)
        for group in groups:
            yield from _make(group)
        return
    # Not forked: PyTorch's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _prepare, (plan, data, spec, sentencepiece)) as pool:
        ahead = _AHEAD * processes
        waiting = deque(pool.apply_async(_make, (group,)) for group in groups[:ahead])
        for number in range(len(groups)):
            made = waiting.popleft().get()
            if number + ahead < len(groups):
                waiting.append(pool.apply_async(_make, (groups[number + ahead],)))
            yield from made
