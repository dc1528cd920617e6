# SPDX-License-Identifier: Apache-2.0
"""The prefix in float: PyTorch against NumPy, and both against tokens that the network emits itself."""

from __future__ import annotations

import numpy as np
from random_checkpoint import LESS_BLANK, SMALL, random_checkpoint, random_features

from gharial.floating import FloatNetwork, RangeCollector, calibrate_ranges
from gharial.floating.calibrate import collect
from gharial.floating.yardstick import TorchRnnt

PREFIX = (3, 9, 3)


def test_a_prefix_is_what_the_same_tokens_leave_behind(seed: int) -> None:
    """Logits after a prefix are those after tokens emitted at the first step."""
    checkpoint = random_checkpoint(seed, pad=True)
    features = random_features(seed + 1, 7)
    told = TorchRnnt(checkpoint, "float64", prefix=PREFIX).forced_logits(features, [(1, 4)])
    emitted = TorchRnnt(checkpoint, "float64").forced_logits(features, [(0, token) for token in PREFIX] + [(1, 4)])
    np.testing.assert_array_equal(told, emitted[len(PREFIX) :])


def test_decoding_and_its_path_agree(seed: int) -> None:
    yardstick = TorchRnnt(random_checkpoint(seed, blank_bias=LESS_BLANK), "float64", prefix=PREFIX)
    features = random_features(seed + 1, 12)
    decoded = yardstick.greedy(features)
    best = yardstick.forced(features, decoded.path)
    assert best[best != SMALL.classes - 1].tolist() == decoded.tokens


def test_numpy_network_equals_yardstick(seed: int) -> None:
    checkpoint = random_checkpoint(seed, blank_bias=LESS_BLANK)
    batch = [random_features(seed + index, vectors) for index, vectors in enumerate((14, 1, 0, 9))]
    found = collect(FloatNetwork(checkpoint, np.float64), batch, RangeCollector(), PREFIX)
    yardstick = TorchRnnt(checkpoint, "float64", prefix=PREFIX)
    assert found == [yardstick.greedy(features).path for features in batch]


def test_every_prediction_step_is_measured(seed: int) -> None:
    network = FloatNetwork(random_checkpoint(seed))
    batch = [random_features(seed + index, vectors) for index, vectors in enumerate((14, 1, 9))]
    emitted = sum(map(len, collect(network, batch, RangeCollector(), PREFIX)))
    ranges = calibrate_ranges(network, batch, prefix=PREFIX, others=[(1,), (2, 2)])
    steps = len(batch) * (1 + len(PREFIX)) + emitted + (1 + 1) + (1 + 2)
    assert ranges.joint_pred.count == steps * SMALL.joint
    assert ranges.h["prediction.0"].count == steps * SMALL.pred_hidden
