# SPDX-License-Identifier: Apache-2.0
"""Whole LSTM layers in integers against torch.nn.LSTM in double precision.

Both get the same int8 inputs, so the differences are those of the weights and of the integer arithmetic. The bounds are
signal-to-noise ratios of h and c over a sequence, and the largest difference of h in its own units of 2^-qh.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from reference_quantiser import (
    Float,
    FloatLstm,
    Int,
    choose_qc,
    choose_qh,
    half_up,
    lstm_layer,
    multiplier,
    run_layer,
    tables,
)

from gharial.checkpoint import load_hardware

TABLES = tables()
FEATURE_UNIT = 2.0**-4


def torch_layer(weights: FloatLstm, x: Float) -> tuple[Float, Float]:
    """h and c over time, (T, H), of nn.LSTM from zero states."""
    lstm = torch.nn.LSTM(weights.w_x.shape[1], weights.w_h.shape[1], dtype=torch.float64)
    lstm.load_state_dict(
        {
            "weight_ih_l0": torch.from_numpy(weights.w_x.copy()),
            "weight_hh_l0": torch.from_numpy(weights.w_h.copy()),
            "bias_ih_l0": torch.from_numpy(weights.b.copy()),
            "bias_hh_l0": torch.zeros(len(weights.b), dtype=torch.float64),
        }
    )
    state, hs, cs = None, [], []
    with torch.no_grad():
        for row in torch.from_numpy(x):
            out, state = lstm(row[None], state)
            hs.append(out[0].numpy())
            cs.append(state[1][0].numpy())
    return np.array(hs), np.array(cs)


def snr(found: Float, exact: Float) -> float:
    """Decibels."""
    return float(10 * np.log10((exact**2).sum() / ((found - exact) ** 2).sum()))


def random_lstm(rng: np.random.Generator, inputs: int, units: int, gain: float) -> FloatLstm:
    """PyTorch's own initialisation times a gain."""
    r = gain / np.sqrt(units)
    return FloatLstm(*(rng.uniform(-r, r, shape) for shape in ((4 * units, inputs), (4 * units, units), 4 * units)))


def checked_stack(layers: list[FloatLstm], x8: Int, unit: float, h_snr: float, c_snr: float, h_most: float) -> None:
    """Run layers one on the other, each against its float twin, whose own inputs are never rounded.

    What lies beyond the range of int8 is clipped by choice (section 11); the largest deviation is that within it.
    """
    x = x8 * unit
    for index, weights in enumerate(layers):
        x, c = torch_layer(weights, x)
        qc, qh = choose_qc(c), choose_qh(x)
        x8, c_found = run_layer(lstm_layer(weights, unit, qc, qh), TABLES, x8)
        unit = 2.0**-qh
        figures = (
            snr(x8 * unit, x),
            snr(c_found * 2.0**-qc, c),
            float(np.abs(x8 - np.clip(x / unit, -127, 127)).max()),
        )
        print(
            f"layer {index}: qc {qc}, qh {qh}, h {figures[0]:.1f} dB, c {figures[1]:.1f} dB, h off by {figures[2]:.1f}"
        )
        assert figures[0] >= h_snr
        assert figures[1] >= c_snr
        assert figures[2] <= h_most


# Larger weights make the recurrence itself enlarge every difference.
@pytest.mark.parametrize(("gain", "h_snr", "c_snr", "h_most"), [(1.0, 31, 36, 3), (3.0, 27, 30, 16)])
def test_random_weights(gain: float, h_snr: float, c_snr: float, h_most: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs, units = (int(n) for n in rng.integers(16, 80, 2))
    layers = [random_lstm(rng, inputs, units, gain), random_lstm(rng, units, units, gain)]
    x8 = np.clip(half_up(rng.normal(0, 16, (40, inputs))), -127, 127)
    checked_stack(layers, x8, FEATURE_UNIT, h_snr, c_snr, h_most)


def test_small_weights_need_a_finer_h(seed: int) -> None:
    """A layer whose h is tiny: the calibrated 2^-qh keeps what a fixed 2^-7 would lose."""
    rng = np.random.default_rng(seed)
    layer = random_lstm(rng, 32, 32, 0.05)
    x8 = np.clip(half_up(rng.normal(0, 16, (40, 32))), -127, 127)
    h, c = torch_layer(layer, x8 * FEATURE_UNIT)
    qc, qh = choose_qc(c), choose_qh(h)
    assert qh > 9
    fine, coarse = (run_layer(lstm_layer(layer, FEATURE_UNIT, qc, q), TABLES, x8)[0] * 2.0**-q for q in (qh, 7))
    assert snr(fine, h) >= 30
    assert snr(coarse, h) <= snr(fine, h) - 10


def checkpoint_stack(state: Mapping[str, np.ndarray], prefix: str) -> list[FloatLstm]:
    """All layers below a prefix."""
    layers: list[FloatLstm] = []
    while f"{prefix}.weight_ih_l{len(layers)}" in state:
        w_x, w_h, b_x, b_h = (
            state[f"{prefix}.{name}_l{len(layers)}"].astype(np.float64)
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        layers.append(FloatLstm(w_x, w_h, b_x + b_h))
    return layers


@pytest.mark.parametrize("clip", ["u100", "u113", "u131"])
@pytest.mark.parametrize("model", ["demo-small", "demo-medium"])
def test_trained_encoder(data_dir: Path, model: str, clip: str) -> None:
    """pre_rnn on the features of recordings, post_rnn on what pre_rnn makes of them in float."""
    state = load_hardware(data_dir / "models" / f"{model}.hw.pt").state
    features = np.load(data_dir / "golden" / "decode_features.npz")[clip].astype(np.float64)
    x8 = np.clip(half_up(features / FEATURE_UNIT), -127, 127)
    pre = checkpoint_stack(state, "encoder.pre_rnn.lstm")
    checked_stack(pre, x8, FEATURE_UNIT, h_snr=37, c_snr=38, h_most=20)

    x = x8 * FEATURE_UNIT
    for weights in pre:
        x, _ = torch_layer(weights, x)
    stacked = x[: len(x) // 2 * 2].reshape(-1, 2 * x.shape[1])
    x8 = np.clip(half_up(stacked * 2**7), -127, 127)
    checked_stack(checkpoint_stack(state, "encoder.post_rnn.lstm"), x8, 2.0**-7, h_snr=39, c_snr=46, h_most=8)


@pytest.mark.parametrize("model", ["demo-small", "demo-medium"])
def test_trained_prediction_network(data_dir: Path, model: str) -> None:
    """The start of a sequence, then the tokens of 40 recordings, each from zero states.

    On random tokens, which it never met, a trained network can be chaotic: no bound would hold there.
    """
    state = load_hardware(data_dir / "models" / f"{model}.hw.pt").state
    (weights,) = checkpoint_stack(state, "prediction.dec_rnn.lstm")
    embedding = state["prediction.embed.weight"].astype(np.float64)
    unit = np.abs(embedding).max() / 127
    spoken = json.loads((data_dir / "golden" / "decode.json").read_text(encoding="utf-8"))["greedy"].values()
    inputs = [
        np.concatenate([np.zeros((1, embedding.shape[1]), np.int64), half_up(embedding[entry["tokens"]] / unit)])
        for entry in spoken
    ]
    exact = [torch_layer(weights, x8 * unit) for x8 in inputs]
    qh = choose_qh(np.concatenate([h for h, _ in exact]))
    qc = choose_qc(np.concatenate([c for _, c in exact]))
    found = [run_layer(lstm_layer(weights, unit, qc, qh), TABLES, x8) for x8 in inputs]
    figures = [
        snr(np.concatenate([pair[of] for pair in found]) * 2.0**-q, np.concatenate([pair[of] for pair in exact]))
        for of, q in ((0, qh), (1, qc))
    ]
    print(f"qc {qc}, qh {qh}, h {figures[0]:.1f} dB, c {figures[1]:.1f} dB")
    assert figures[0] >= 40
    assert figures[1] >= 46


def test_extreme_inputs(seed: int) -> None:
    """All +127, all -127, and both in turn: gates saturate, the state stays right."""
    rng = np.random.default_rng(seed)
    layers = [random_lstm(rng, 48, 32, 1.0)]
    x8 = np.stack([np.full(48, 127 * sign) for sign in (1, -1, 1, -1, -1, -1, 1, 1, 1, 1)])
    checked_stack(layers, x8, FEATURE_UNIT, h_snr=26, c_snr=28, h_most=24)


def test_zero_input(seed: int) -> None:
    """Nothing but biases and the recurrence."""
    rng = np.random.default_rng(seed)
    checked_stack([random_lstm(rng, 24, 32, 1.0)], np.zeros((30, 24), np.int64), FEATURE_UNIT, 34, 42, 3)


def test_bias_only(seed: int) -> None:
    """Weights of zero: rows with m = 0 and k = 0, and the biases alone drive the cell."""
    rng = np.random.default_rng(seed)
    layer = FloatLstm(np.zeros((64, 8)), np.zeros((64, 16)), rng.normal(0, 1, 64))
    integer = lstm_layer(layer, FEATURE_UNIT, 11, 7)
    for part in integer.product.parts:
        assert not part.m.any()
        assert not part.k.any()
    checked_stack([layer], np.full((30, 8), 127), FEATURE_UNIT, h_snr=34, c_snr=60, h_most=1)


def test_all_zero() -> None:
    layer = lstm_layer(FloatLstm(np.zeros((64, 8)), np.zeros((64, 16)), np.zeros(64)), FEATURE_UNIT, 11, 7)
    h, c = run_layer(layer, TABLES, np.full((5, 8), 127))
    assert not h.any()
    assert not c.any()


def test_a_tiny_column_block_with_its_own_scale_survives(seed: int) -> None:
    """x 64 times finer than h: with a row scale of its own each part keeps its weights."""
    rng = np.random.default_rng(seed)
    layer = random_lstm(rng, 32, 32, 1.0)
    layer.w_x *= 64
    x8 = np.clip(half_up(rng.normal(0, 16, (30, 32))), -127, 127)
    checked_stack([layer], x8, FEATURE_UNIT / 64, h_snr=31, c_snr=38, h_most=6)


@pytest.mark.parametrize("exponent", range(-50, 9))
def test_multiplier_and_shift(exponent: int, seed: int) -> None:
    """m * 2^-(k + 17) is the ratio to 17 bits, or to the output's resolution where k would pass 23."""
    ratio = float(np.random.default_rng(seed).uniform(0.5, 1.0)) * 2.0**exponent
    m, k = multiplier(ratio)
    assert -8 <= k <= 23
    assert 0 <= m < 1 << 17
    tolerance = 2.0**-17 * ratio if exponent >= -23 else 2.0**-40
    assert abs(m * 2.0 ** -(k + 17) - ratio) <= tolerance


def test_multiplier_at_the_ends() -> None:
    assert multiplier(1 - 2.0**-20) == (1 << 16, -1)
    assert multiplier(2.0**-60) == (0, 23)
    with pytest.raises(ValueError, match="too large"):
        multiplier(256.0)
