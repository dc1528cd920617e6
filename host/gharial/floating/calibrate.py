# SPDX-License-Identifier: Apache-2.0
"""Ranges of every tensor over a set of recordings, decoded greedily along the network's own output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gharial.errors import BadInput
from gharial.floating.lstm import LstmOutput
from gharial.floating.magnitudes import Magnitude, MagnitudeHistogram
from gharial.floating.network import MAX_SYMBOLS, FloatNetwork, PredictionState
from gharial.floating.path import LatticePath, babbles, drawn_path

# Recordings run together: the recurrent weights are read once a step for all of them.
_BATCH = 16
# Feature vectors of a batch, padding included: all of its tensors are held at once, some 120 kB a vector of base.
_BATCH_VECTORS = 8192


@dataclass(frozen=True)
class Ranges:
    """How large each tensor became, in absolute value.

    Attributes:
        recordings: recordings run.
        encoder_steps: encoder steps of all of them.
        joint_evaluations: joint evaluations of all of them.
        features: normalised feature vectors.
        pre: pre-activations of each layer, by layer name (`encoder.pre_rnn.0`, ..., `prediction.0`, ...).
        h: outputs of each layer.
        c: cell states of each layer.
        joint_enc: outputs of joint_enc.
        joint_pred: outputs of joint_pred.
        joint: the joint after its ReLU.
        logits: logits before any softmax.
    """

    recordings: int
    encoder_steps: int
    joint_evaluations: int
    features: Magnitude
    pre: Mapping[str, Magnitude]
    h: Mapping[str, Magnitude]
    c: Mapping[str, Magnitude]
    joint_enc: Magnitude
    joint_pred: Magnitude
    joint: Magnitude
    logits: Magnitude


class RangeCollector:
    """Histograms of every tensor; those of parts of a set merge into those of the whole.

    Args:
        where: name of the model, for errors.
    """

    def __init__(self, where: str | None = None) -> None:
        self._where = where
        self.recordings = 0
        self.encoder_steps = 0
        self.joint_evaluations = 0
        self.histograms: dict[str, MagnitudeHistogram] = {}

    def add(self, name: str, values: np.ndarray) -> None:
        """Count a tensor's values under its trace name.

        Raises:
            BadInput: one is not finite.
        """
        try:
            self.histograms.setdefault(name, MagnitudeHistogram()).add(values)
        except ValueError as error:
            raise BadInput(
                f"{error}, so no range can be measured",
                name if self._where is None else f"{self._where}: {name}",
                "NaN or infinity",
                "finite values",
                "check the recordings and the checkpoint's weights",
            ) from error

    def empty(self) -> RangeCollector:
        """Another of the same model, in which nothing is counted yet."""
        return RangeCollector(self._where)

    def merge(self, other: RangeCollector) -> None:
        """Take over everything that `other` counted."""
        self.recordings += other.recordings
        self.encoder_steps += other.encoder_steps
        self.joint_evaluations += other.joint_evaluations
        for name, histogram in other.histograms.items():
            self.histograms.setdefault(name, MagnitudeHistogram()).merge(histogram)

    def ranges(self) -> Ranges:
        """The figures; a tensor that was never computed has a count of 0."""

        def one(name: str) -> Magnitude:
            return self.histograms.get(name, MagnitudeHistogram()).summary()

        def layers(kind: str) -> dict[str, Magnitude]:
            return {name.removesuffix(kind): one(name) for name in self.histograms if name.endswith(kind)}

        return Ranges(
            recordings=self.recordings,
            encoder_steps=self.encoder_steps,
            joint_evaluations=self.joint_evaluations,
            features=one("features"),
            pre=layers(".pre"),
            h=layers(".h"),
            c=layers(".c"),
            joint_enc=one("joint_enc"),
            joint_pred=one("joint_pred"),
            joint=one("joint"),
            logits=one("logits"),
        )


def calibrate_ranges(
    network: FloatNetwork,
    recordings: Iterable[np.ndarray],
    progress: Callable[[int], object] | None = None,
    prefix: Sequence[int] = (),
    others: Iterable[Sequence[int]] = (),
    talk: float | None = None,
    where: str | None = None,
) -> Ranges:
    """Run recordings through the network and measure the range of every tensor.

    Decoding is greedy along the network's own output, at most MAX_SYMBOLS tokens a step; where that babbles, along
    drawn tokens (`collect`). The prediction network's start is counted once a recording.

    Args:
        network: the checkpoint's network.
        recordings: one (T2, F) float array of feature vectors each; taken a few at a time, so a generator will do.
        progress: called with the number of recordings finished since the last call.
        prefix: tokens that the prediction network hears after the start of each recording.
        others: prefixes that the network may hear instead; what they leave in it is counted once each.
        talk: as in `collect`.
        where: name of the model, for errors.

    Raises:
        BadInput: there is no recording with at least one feature vector, an array has the wrong width, or a value
            became infinite or not a number.
    """
    collector = RangeCollector(where)
    for other in others:
        _start(network, 1, other, collector)
    for batch in _batches(recordings):
        collect(network, batch, collector, prefix, talk)
        if progress is not None:
            progress(len(batch))
    if collector.encoder_steps == 0:
        raise BadInput(
            "nothing to calibrate with",
            found=f"{collector.recordings} recordings without a single feature vector",
            remedy="give recordings of speech, some minutes in all",
        )
    return collector.ranges()


def collect(
    network: FloatNetwork,
    batch: Sequence[np.ndarray],
    collector: RangeCollector,
    prefix: Sequence[int] = (),
    talk: float | None = None,
) -> list[list[tuple[int, int]]]:
    """Decode some recordings together, after a prefix, and count every tensor.

    Args:
        network: the checkpoint's network.
        batch: (T2, F) feature vectors of each recording.
        collector: where they are counted.
        prefix: tokens that the prediction network hears after the start.
        talk: most tokens that a recording has had, MAX_SYMBOLS aside, for each of its encoder steps: once there are
            more, its step ends as if a blank had come. Speech has 0.15 tokens a step; a network that babbles, as
            untrained ones do, is not listened to for minutes. As it says the same few tokens over and over, what the
            prediction network and the joint make of these is no measure of what they make of others: such a recording
            is counted along drawn tokens (`drawn_path`). None: no such limit, and every recording is counted along its
            own path.

    Returns:
        For each recording its greedy path: (encoder step, token id) for each token, in order.
    """
    encoded = network.encode_many(batch)
    first = collector.recordings
    collector.recordings += len(batch)
    for features, tensors in zip(batch, encoded, strict=True):
        collector.add("features", features)
        collector.encoder_steps += len(tensors["joint_enc"])
        for name, values in tensors.items():
            collector.add(name, values)
    rows = [tensors["joint_enc"] for tensors in encoded]
    said = collector.empty()
    paths = decode_greedily(network, rows, said, prefix, talk)
    babbling = [talk is not None and babbles(path, len(row), talk) for path, row in zip(paths, rows, strict=True)]
    if any(babbling):
        said = collector.empty()
        quiet = [row for row, loud in zip(rows, babbling, strict=True) if not loud]
        if quiet:
            decode_greedily(network, quiet, said, prefix, talk)
        numbers = [number for number, loud in enumerate(babbling) if loud]
        drawn = [drawn_path(first + number, len(rows[number]), network.blank) for number in numbers]
        decode_greedily(network, [rows[number] for number in numbers], said, prefix, drawn=drawn)
    collector.merge(said)
    return paths


def decode_greedily(
    network: FloatNetwork,
    encoded: Sequence[np.ndarray],
    collector: RangeCollector,
    prefix: Sequence[int] = (),
    talk: float | None = None,
    drawn: Sequence[LatticePath] | None = None,
) -> list[list[tuple[int, int]]]:
    """Greedy decoding of several recordings in lockstep, one encoder step after the other.

    Args:
        network: the checkpoint's network.
        encoded: `joint_enc` of each recording, (T, J).
        collector: where the tensors of prediction network and joint are counted.
        prefix, talk: as in `collect`.
        drawn: for each recording, the path to follow in place of the network's own, at most one token an encoder step.

    Returns:
        As `collect`.
    """
    paths: list[list[tuple[int, int]]] = [[] for _ in encoded]
    given = None if drawn is None else [dict(path) for path in drawn]
    state = _start(network, len(encoded), prefix, collector)
    lengths = np.array([len(rows) for rows in encoded])
    for step in range(int(lengths.max(initial=0))):
        active = np.flatnonzero(lengths > step)
        for _ in range(MAX_SYMBOLS):
            enc = np.stack([encoded[int(row)][step] for row in active])
            hidden, logits = network.joint(enc, state.output[active])
            collector.add("joint", hidden)
            collector.add("logits", logits)
            collector.joint_evaluations += len(active)
            best = logits.argmax(axis=1)
            if given is not None:
                best[:] = [given[row].pop(step, network.blank) for row in active]
            emitted = best != network.blank
            if talk is not None:
                most = MAX_SYMBOLS + talk * (step + 1)
                emitted &= np.array([len(paths[row]) < most for row in active])
            active, chosen = active[emitted], best[emitted]
            if active.size == 0:
                break
            for row, token in zip(active, chosen, strict=True):
                paths[row].append((step, int(token)))
            after, outputs = network.predict(chosen, state.rows(active))
            _count_prediction(outputs, after.output, collector)
            state = state.replaced(active, after)
    return paths


def _start(network: FloatNetwork, batch: int, prefix: Sequence[int], collector: RangeCollector) -> PredictionState:
    """The prediction network's state before the first joint evaluation, for that many recordings."""
    state, outputs = network.predict(None, batch=batch)
    _count_prediction(outputs, state.output, collector)
    for token in prefix:
        state, outputs = network.predict(np.full(batch, token), state)
        _count_prediction(outputs, state.output, collector)
    return state


def _count_prediction(outputs: Sequence[LstmOutput], joint_pred: np.ndarray, collector: RangeCollector) -> None:
    for index, output in enumerate(outputs):
        collector.add(f"prediction.{index}.pre", output.pre)
        collector.add(f"prediction.{index}.c", output.c)
        collector.add(f"prediction.{index}.h", output.h)
    collector.add("joint_pred", joint_pred)


def _batches(recordings: Iterable[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """As many at a time as the limits allow, at least one."""
    batch: list[np.ndarray] = []
    for recording in recordings:
        longest = max([len(recording), *map(len, batch)])
        if batch and (len(batch) == _BATCH or (len(batch) + 1) * longest > _BATCH_VECTORS):
            yield batch
            batch = []
        batch.append(recording)
    if batch:
        yield batch
