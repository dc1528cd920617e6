# SPDX-License-Identifier: Apache-2.0
"""The NumPy network against the PyTorch yardstick, which shares no code with it, and against torch.nn.LSTM itself."""

from __future__ import annotations

import dataclasses
from importlib.resources import as_file, files

import numpy as np
import pytest
import torch
from random_checkpoint import LESS_BLANK, SMALL, random_checkpoint, random_features

from gharial.checkpoint import HardwareCheckpoint, ModelDims, load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.errors import BadInput
from gharial.features import FeatureSpec
from gharial.floating import FloatNetwork, RangeCollector
from gharial.floating.calibrate import collect
from gharial.floating.lstm import sigmoid
from gharial.floating.yardstick import TorchRnnt

WIDE = ModelDims(
    features=5, hidden=6, pre_layers=1, post_layers=3, stack=3, pred_hidden=4, pred_layers=1, joint=8, classes=20
)
BARE = dataclasses.replace(WIDE, post_layers=0)
# Both in float64: they differ by the order of sums alone.
CLOSE = 1e-9


def paths(checkpoint: HardwareCheckpoint, batch: list[np.ndarray]) -> list[list[tuple[int, int]]]:
    return collect(FloatNetwork(checkpoint, np.float64), batch, RangeCollector())


@pytest.mark.parametrize("dims", [SMALL, WIDE, BARE], ids=["stack2", "stack3", "no second part"])
@pytest.mark.parametrize("vectors", [0, 1, 2, 3, 4, 7, 12])
def test_encoder_equals_yardstick(seed: int, dims: ModelDims, vectors: int) -> None:
    checkpoint = random_checkpoint(seed, dims, pad=True)
    features = random_features(seed + 1, vectors, dims)
    found = FloatNetwork(checkpoint, np.float64).encode(features)["joint_enc"]
    wanted = TorchRnnt(checkpoint, "float64").encode(features)
    assert found.shape == wanted.shape == (-(-vectors // dims.stack), dims.joint)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE)


def test_pad_matters_only_where_a_stack_is_incomplete(seed: int) -> None:
    padded = random_checkpoint(seed, pad=True)
    plain = dataclasses.replace(padded, post_pad=np.zeros_like(padded.post_pad))
    for vectors, same in ((6, True), (7, False)):
        features = random_features(seed + 1, vectors)
        a, b = (FloatNetwork(checkpoint).encode(features)["joint_enc"] for checkpoint in (padded, plain))
        np.testing.assert_array_equal(a[: vectors // 2], b[: vectors // 2])
        assert np.array_equal(a, b) == same


def test_layer_tensors_equal_torch_lstm(seed: int) -> None:
    checkpoint = random_checkpoint(seed)
    features = random_features(seed + 1, 9)
    tensors = FloatNetwork(checkpoint, np.float64).encode(features)
    x = torch.tensor(features, dtype=torch.float64)
    for layer in range(SMALL.pre_layers):
        lstm = torch.nn.LSTM(x.shape[1], SMALL.hidden, dtype=torch.float64)
        prefix = "encoder.pre_rnn.lstm."
        lstm.load_state_dict(
            {
                f"{part}_l0": torch.tensor(checkpoint.state[f"{prefix}{part}_l{layer}"])
                for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            }
        )
        with torch.inference_mode():
            x, (_, last_c) = lstm(x)
        name = f"encoder.pre_rnn.{layer}"
        np.testing.assert_allclose(tensors[f"{name}.h"], x, rtol=0, atol=CLOSE)
        np.testing.assert_allclose(tensors[f"{name}.c"][-1], last_c[0], rtol=0, atol=CLOSE)
        # What `pre` means: the cell's equations from it give c and h.
        pre, c = tensors[f"{name}.pre"], tensors[f"{name}.c"]
        assert pre.shape == (9, SMALL.hidden, 4)
        i, f, g, o = sigmoid(pre[..., 0]), sigmoid(pre[..., 1]), np.tanh(pre[..., 2]), sigmoid(pre[..., 3])
        before = np.concatenate([np.zeros((1, SMALL.hidden)), c[:-1]])
        np.testing.assert_allclose(f * before + i * g, c, rtol=0, atol=CLOSE)
        np.testing.assert_allclose(o * np.tanh(c), tensors[f"{name}.h"], rtol=0, atol=CLOSE)


def test_recordings_of_a_batch_do_not_touch_one_another(seed: int) -> None:
    network = FloatNetwork(random_checkpoint(seed, pad=True), np.float64)
    batch = [random_features(seed + index, vectors) for index, vectors in enumerate((5, 0, 12, 1, 6))]
    for together, features in zip(network.encode_many(batch), batch, strict=True):
        alone = network.encode(features)
        assert together.keys() == alone.keys()
        for name, values in together.items():
            assert values.shape == alone[name].shape
            np.testing.assert_allclose(values, alone[name], rtol=0, atol=CLOSE, err_msg=name)


def test_greedy_path_equals_yardstick(seed: int) -> None:
    emitted = 0
    for blank_bias in (LESS_BLANK, 0.0, 2.0):
        checkpoint = random_checkpoint(seed, pad=True, blank_bias=blank_bias)
        yardstick = TorchRnnt(checkpoint, "float64")
        batch = [random_features(seed + index, vectors) for index, vectors in enumerate((14, 1, 0, 9, 4))]
        found = paths(checkpoint, batch)
        assert found == [yardstick.greedy(features).path for features in batch]
        emitted += sum(map(len, found))
    assert emitted > 0


def test_greedy_path_of_the_demo_model() -> None:
    """Trained weights, where blanks and tokens take turns."""
    data = files("gharial") / "data"
    with as_file(data / "demo" / "demo-small.hw.pt") as path:
        checkpoint = load_hardware(path)
    with as_file(data / "recordings") as folder:
        recordings = sorted(folder.glob("*.flac"))
        batch = [audio_features(path, FeatureSpec.from_checkpoint(checkpoint)) for path in recordings]
    found = paths(checkpoint, batch)
    yardstick = TorchRnnt(checkpoint, "float64")
    assert found == [yardstick.greedy(features).path for features in batch]
    assert len(batch) == 12 and all(0 < len(path) < len(features) for path, features in zip(found, batch, strict=True))


def test_a_step_ends_at_thirty_symbols(seed: int) -> None:
    checkpoint = random_checkpoint(seed, blank_bias=-1e3)
    features = random_features(seed + 1, 5)
    (path,) = paths(checkpoint, [features])
    assert [step for step, _ in path] == [step for step in range(3) for _ in range(30)]
    decoded = TorchRnnt(checkpoint, "float64").greedy(features)
    assert decoded.path == path
    assert all(token != SMALL.classes - 1 for token in decoded.tokens)


@pytest.mark.parametrize(("hard_sigmoid", "hard_tanh"), [(True, True), (True, False), (False, True)])
def test_hard_activations(seed: int, hard_sigmoid: bool, hard_tanh: bool) -> None:
    checkpoint = random_checkpoint(seed, hard_sigmoid=hard_sigmoid, hard_tanh=hard_tanh, blank_bias=LESS_BLANK)
    features = random_features(seed + 1, 21)
    soft = FloatNetwork(random_checkpoint(seed), np.float64).encode(features)["joint_enc"]
    found = FloatNetwork(checkpoint, np.float64).encode(features)["joint_enc"]
    yardstick = TorchRnnt(checkpoint, "float64")
    np.testing.assert_allclose(found, yardstick.encode(features), rtol=0, atol=CLOSE)
    assert np.abs(found - soft).max() > 1e-3
    assert paths(checkpoint, [features]) == [yardstick.greedy(features).path]


def test_float32_stays_near_float64(seed: int) -> None:
    checkpoint = random_checkpoint(seed)
    features = random_features(seed + 1, 24)
    single, double = (FloatNetwork(checkpoint, dtype).encode(features) for dtype in (np.float32, np.float64))
    for name, values in single.items():
        assert values.dtype == np.float32, name
        np.testing.assert_allclose(values, double[name], rtol=1e-3, atol=1e-3, err_msg=name)


def test_one_token_at_a_time(seed: int) -> None:
    """`predict` and `joint` with the arguments that a caller without a batch has."""
    checkpoint = random_checkpoint(seed)
    network = FloatNetwork(checkpoint, np.float64)
    features = random_features(seed + 1, 2)
    enc = network.encode(features)["joint_enc"][0]
    state, outputs = network.predict(None)
    assert len(outputs) == SMALL.pred_layers
    rows = [network.joint(enc, state.output[0])]
    for token in (3, 0):
        state, _ = network.predict(token, state)
        rows.append(network.joint(enc, state.output[0]))
    wanted = TorchRnnt(checkpoint, "float64").forced_logits(features, [(0, 3), (0, 0)])
    np.testing.assert_allclose([logits for _, logits in rows], wanted, rtol=0, atol=CLOSE)
    assert all((hidden >= 0).all() and hidden.shape == (SMALL.joint,) for hidden, _ in rows)


@pytest.mark.parametrize("shape", [(3, 11), (12,), (3, 4, 12)])
def test_wrong_features_are_refused(shape: tuple[int, ...]) -> None:
    checkpoint = random_checkpoint(1)
    for call in (FloatNetwork(checkpoint).encode, TorchRnnt.from_checkpoint(checkpoint).encode):
        with pytest.raises(BadInput, match="features have the wrong shape"):
            call(np.zeros(shape, np.float32))
