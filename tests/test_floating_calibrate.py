# SPDX-License-Identifier: Apache-2.0
"""Ranges and their histograms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from random_checkpoint import LESS_BLANK, SMALL, random_checkpoint, random_features

from gharial.errors import BadInput
from gharial.fidelity.forced import float_tensors
from gharial.floating import FloatNetwork, MagnitudeHistogram, RangeCollector, calibrate_ranges
from gharial.floating.calibrate import collect
from gharial.floating.path import babbles, drawn_path
from gharial.floating.yardstick import TorchRnnt


def test_percentile_is_just_above_the_exact_one(seed: int) -> None:
    values = np.exp(np.random.default_rng(seed).normal(0, 3, 50_000)).astype(np.float32)
    values[::3] *= -1
    histogram = MagnitudeHistogram()
    for part in np.array_split(values, [7, 20_000, 20_001]):
        histogram.add(part)
    assert histogram.count == 50_000
    assert histogram.maximum == float(np.abs(values).max())
    ordered = np.sort(np.abs(values).astype(np.float64))
    for percent in (0.01, 50.0, 99.9, 99.99, 100.0):
        exact = ordered[math.ceil(round(percent * 500, 6)) - 1]
        assert exact <= histogram.percentile(percent) <= exact * (1 + 1 / 128)


def test_percentile_counts_values_exactly() -> None:
    histogram = MagnitudeHistogram()
    histogram.add(np.array([1.0] * 40959 + [64.0] * 41))
    assert 1.0 <= histogram.percentile(99.9) <= 1.0 + 1 / 128
    assert histogram.percentile(99.91) == 64.0
    assert histogram.summary().p99_99 == 64.0


def test_merged_histograms_are_that_of_the_whole(seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(30_000)
    whole, left, right = MagnitudeHistogram(), MagnitudeHistogram(), MagnitudeHistogram()
    whole.add(values)
    left.add(values[:10])
    right.add(values[10:].reshape(2, -1))
    left.merge(right)
    assert left.summary() == whole.summary()
    assert [left.percentile(p) for p in range(1, 101)] == [whole.percentile(p) for p in range(1, 101)]


def test_histogram_of_nothing_and_of_zeros() -> None:
    histogram = MagnitudeHistogram()
    histogram.add(np.zeros((0, 3)))
    assert histogram.count == 0 and histogram.percentile(99.9) == 0.0 and histogram.maximum == 0.0
    histogram.add(np.array([0.0, -0.0]))
    assert histogram.count == 2 and histogram.percentile(99.9) == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e39])
def test_values_without_a_range_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        MagnitudeHistogram().add(np.array([1.0, bad]))


def test_ranges_are_those_of_the_tensors(seed: int) -> None:
    """Maxima against the encoder's arrays and against the yardstick's logits along the same path."""
    checkpoint = random_checkpoint(seed, blank_bias=LESS_BLANK)
    network = FloatNetwork(checkpoint, np.float64)
    features = random_features(seed + 1, 25)
    ranges = calibrate_ranges(network, [features])
    tensors = network.encode(features)
    for name in ("encoder.pre_rnn.0", "encoder.pre_rnn.1", "encoder.post_rnn.0", "encoder.post_rnn.1"):
        for found, kind in ((ranges.pre, "pre"), (ranges.h, "h"), (ranges.c, "c")):
            values = np.abs(tensors[f"{name}.{kind}"]).astype(np.float32)
            assert (found[name].count, found[name].maximum) == (values.size, float(values.max()))
    assert ranges.features.maximum == float(np.abs(features).max())
    assert ranges.joint_enc.maximum == pytest.approx(np.abs(tensors["joint_enc"]).max(), rel=1e-6)
    yardstick = TorchRnnt(checkpoint, "float64")
    decoded = yardstick.greedy(features)
    logits = yardstick.forced_logits(features, decoded.path)
    assert (ranges.recordings, ranges.encoder_steps, ranges.joint_evaluations) == (1, 13, len(logits))
    assert ranges.logits.count == logits.size
    assert ranges.logits.maximum == pytest.approx(np.abs(logits).max(), rel=1e-6)
    # The start is a step of the prediction network as well.
    steps = 1 + len(decoded.tokens)
    assert ranges.h["prediction.1"].count == steps * SMALL.pred_hidden
    assert ranges.joint_pred.count == steps * SMALL.joint
    assert ranges.joint.count == len(logits) * SMALL.joint
    assert 0 < ranges.joint.maximum <= ranges.joint_enc.maximum + ranges.joint_pred.maximum
    assert set(ranges.c) == {*(f"encoder.{part}_rnn.{k}" for part in ("pre", "post") for k in (0, 1)),
                             "prediction.0", "prediction.1"}  # fmt: skip


def test_many_recordings_are_taken_in_batches(seed: int) -> None:
    """More recordings than one batch, out of a generator, merged counts against single runs."""
    network = FloatNetwork(random_checkpoint(seed, blank_bias=LESS_BLANK), np.float64)
    recordings = [random_features(seed + index, index) for index in range(19)]
    seen: list[int] = []
    together = calibrate_ranges(network, iter(recordings), seen.append)
    assert sum(seen) == together.recordings == 19
    alone = RangeCollector()
    for features in recordings:
        part = RangeCollector()
        collect(network, [features], part)
        alone.merge(part)
    wanted = alone.ranges()
    assert together.joint_evaluations == wanted.joint_evaluations
    assert together.encoder_steps == wanted.encoder_steps
    for name, magnitude in wanted.h.items():
        assert together.h[name].count == magnitude.count
        assert together.h[name].maximum == pytest.approx(magnitude.maximum, rel=1e-6)


def test_long_recordings_are_taken_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = FloatNetwork(random_checkpoint(seed))
    monkeypatch.setattr("gharial.floating.calibrate._BATCH_VECTORS", 30)
    seen: list[int] = []
    lengths = [10, 10, 10, 1, 40, 8, 16, 5]
    calibrate_ranges(network, (random_features(seed, length) for length in lengths), seen.append)
    assert seen == [3, 1, 1, 1, 1, 1]


def test_nothing_to_calibrate_with() -> None:
    network = FloatNetwork(random_checkpoint(1))
    for recordings in ([], [np.zeros((0, SMALL.features), np.float32)]):
        with pytest.raises(BadInput, match="nothing to calibrate with"):
            calibrate_ranges(network, recordings)


def test_a_value_that_is_not_a_number_is_named() -> None:
    features = random_features(1, 4)
    features[2, 3] = np.nan
    with pytest.raises(BadInput, match="features: a value is not finite"):
        calibrate_ranges(FloatNetwork(random_checkpoint(1)), [features])


def test_babble_is_replaced_by_drawn_tokens(seed: int) -> None:
    """A network that never says blank, heard beside one recording that is too short to tell: each has its own path."""
    network = FloatNetwork(random_checkpoint(seed, blank_bias=-1000.0), np.float64)
    lengths = [24, 0, 15]
    recordings = [random_features(seed + index, length) for index, length in enumerate(lengths)]
    ranges = calibrate_ranges(network, recordings, talk=2.0)
    drawn = [drawn_path(index, -(-length // 2), network.blank) for index, length in enumerate(lengths)]
    assert [[step for step, _ in path] for path in drawn] == [list(range(0, 12, 2)), [], list(range(0, 8, 2))]
    led = [float_tensors(network, network.encode(x), path) for x, path in zip(recordings[::2], drawn[::2], strict=True)]
    for kind, found in (("h", ranges.h), ("c", ranges.c)):
        values = np.concatenate([tensors[f"prediction.1.{kind}"].ravel() for tensors in led])
        # The start of the empty recording is a step as well.
        assert found["prediction.1"].count == values.size + SMALL.pred_hidden
        assert found["prediction.1"].maximum == pytest.approx(np.abs(values).max(), rel=1e-6)
    logits = np.concatenate([tensors["logits"] for tensors in led])
    assert (ranges.joint_evaluations, ranges.logits.count) == (len(logits), logits.size)
    assert ranges.logits.maximum == pytest.approx(np.abs(logits).max(), rel=1e-6)
    assert ranges.encoder_steps == 20
    # Without the limit it is the network's own path, thirty tokens a step.
    assert calibrate_ranges(network, recordings).joint_evaluations == 30 * 20


def test_speech_is_no_babble(seed: int) -> None:
    """Recordings that are not babble are counted along their own paths, also beside one that is."""
    network = FloatNetwork(random_checkpoint(seed, blank_bias=LESS_BLANK))
    recordings = [random_features(seed + index, 30) for index in range(6)]
    own = [path for x in recordings for path in collect(network, [x], RangeCollector(), talk=2.0)]
    found = RangeCollector()
    assert collect(network, recordings, found, talk=2.0) == own
    wanted = 0
    for index, path in enumerate(own):
        led = drawn_path(index, 15, network.blank) if babbles(path, 15) else path
        wanted += 1 + len(led)
    assert found.ranges().joint_pred.count == wanted * SMALL.joint


def test_what_is_babble() -> None:
    assert not babbles([], 0) and not babbles([(0, 1)] * 6, 3)
    assert babbles([(0, 1)] * 7, 3) and babbles([(0, 1)] * 4, 3, talk=1.0)
    assert drawn_path(1, 9, 0) == [] and drawn_path(4, 9, 50) == drawn_path(4, 9, 50) != drawn_path(5, 9, 50)
