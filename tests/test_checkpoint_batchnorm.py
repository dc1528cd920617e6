# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation folded away: the folded model computes what the normalised one does in torch.

features ─ pre (lstms.0, norm, lstms.1, norm) ─ stack of 2, zero pad ─ post (…, norm) ─ joint_enc
tokens ─ embed ─ dec_rnn (lstms.0, norm) ─ joint_pred
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_files import refused, saved
from checkpoint_variants import LAYERS, UNITS, State, normalised

from gharial.checkpoint import HardwareCheckpoint, describe, load_hardware
from gharial.checkpoint.dims import GROUPS, POST, PRE, PREDICTION
from gharial.errors import BadInput


def run_group(state: State, group: str, x: torch.Tensor) -> torch.Tensor:
    """Output (T, units) of one stack of layers in float64, normalised where the state says so."""
    plain = f"{group}.lstm.weight_ih_l0" in state
    for k in range(LAYERS[group]):
        lstm = torch.nn.LSTM(x.shape[1], UNITS).double()
        for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            name = f"{group}.lstm.{part}_l{k}" if plain else f"{group}.lstms.{k}.{part}_l0"
            getattr(lstm, f"{part}_l0").data = state[name].double()
        x = lstm(x)[0]
        if not plain:
            norm = torch.nn.BatchNorm1d(UNITS).double().eval()
            head = f"{group}.batch_norms.{k}."
            norm.load_state_dict({n.removeprefix(head): t for n, t in state.items() if n.startswith(head)})
            x = norm(x)
    return x


def linear(state: State, name: str, x: torch.Tensor) -> torch.Tensor:
    return x @ state[f"{name}.weight"].double().t() + state[f"{name}.bias"].double()


def outputs(state: State, pad: torch.Tensor, features: torch.Tensor, tokens: torch.Tensor) -> list[torch.Tensor]:
    """joint_enc and joint_pred outputs; `pad` stands for the missing step of the last stack."""
    x = run_group(state, PRE, features).detach()
    if len(x) % 2:
        x = torch.cat([x, pad[None]])
    x = run_group(state, POST, x.reshape(len(x) // 2, 2 * UNITS))
    g = run_group(state, PREDICTION, state["prediction.embed.weight"].double()[tokens])
    return [linear(state, "joint_enc", x).detach(), linear(state, "joint_pred", g).detach()]


def as_torch(checkpoint: HardwareCheckpoint) -> State:
    return {name: torch.tensor(array) for name, array in checkpoint.state.items()}


@pytest.mark.parametrize("groups", [GROUPS, (PRE, POST), (PREDICTION,)], ids=["all", "encoder", "prediction"])
@pytest.mark.parametrize("steps", [12, 13])
def test_folded_equals_normalised(tmp_path: Path, seed: int, groups: tuple[str, ...], steps: int) -> None:
    folded_equals_normalised(tmp_path, seed, groups, steps, lambda _: None)


@pytest.mark.parametrize("steps", [12, 13])
def test_folded_into_joint_enc(tmp_path: Path, seed: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without post_rnn joint_enc reads the stacked outputs, and takes the normalisation for each of them."""
    monkeypatch.setitem(LAYERS, POST, 0)
    folded_equals_normalised(tmp_path, seed, (PRE, PREDICTION), steps, without_post)


def without_post(c: dict[str, Any]) -> None:
    """The demo without its post_rnn, joint_enc as wide as two outputs of pre_rnn."""
    state = c["state_dict"]
    state["joint_enc.weight"] = state[f"{POST}.lstm.weight_hh_l0"][:64].repeat(1, 2)
    c["state_dict"] = {name: tensor for name, tensor in state.items() if not name.startswith(POST)}
    c["rnnt_config"]["rnnt"]["enc_post_rnn_layers"] = 0


def test_missing_post_rnn(tmp_path: Path) -> None:
    """An encoder has no post_rnn where the configuration says so, and nowhere else."""
    bare = load_hardware(saved(tmp_path, without_post))
    assert (bare.dims.post_layers, bare.dims.stack, bare.dims.encoded) == (0, 2, 128)
    assert bare.dims.parameters == sum(array.size for array in bare.state.values())

    def silent(c: dict[str, Any]) -> None:
        without_post(c)
        c["rnnt_config"]["rnnt"]["enc_post_rnn_layers"] = 2

    refused(saved(tmp_path, silent), "missing: encoder.post_rnn.lstm.weight_ih_l0")

    def nowhere(c: dict[str, Any]) -> None:
        without_post(c)
        del c["rnnt_config"]

    refused(saved(tmp_path, nowhere), "no weights of an RNN-T")


def folded_equals_normalised(
    tmp_path: Path, seed: int, groups: tuple[str, ...], steps: int, edit: Callable[[dict[str, Any]], object]
) -> None:
    """Check for the demo model with random norms in these groups, edited before they are drawn."""
    random = np.random.default_rng(seed)
    original: State = {}
    plain = load_hardware(saved(tmp_path, edit))

    def change(c: dict[str, Any]) -> None:
        edit(c)
        c["state_dict"] = normalised(c["state_dict"], groups, random)
        original.update(c["state_dict"])

    checkpoint = load_hardware(saved(tmp_path, change))
    assert checkpoint.batch_norm
    assert list(checkpoint.state) == list(plain.state)
    features = torch.tensor(random.normal(size=(steps, 240)))
    tokens = torch.tensor(random.integers(0, 255, 7))
    truth = outputs(original, torch.zeros(UNITS, dtype=torch.float64), features, tokens)
    pad = torch.tensor(checkpoint.post_pad, dtype=torch.float64)
    ours = outputs(as_torch(checkpoint), pad, features, tokens)
    for mine, theirs in zip(ours, truth, strict=True):
        assert theirs.abs().max() > 1
        # Folded weights are rounded to float32 once.
        torch.testing.assert_close(mine, theirs, rtol=0, atol=2e-5 * float(theirs.abs().max()))
    if PRE in groups:
        assert pad.abs().min() > 0
        if steps % 2:
            # A pad of plain zeros, the mistake this guards against, is far off.
            wrong = outputs(as_torch(checkpoint), torch.zeros(UNITS, dtype=torch.float64), features, tokens)
            assert (wrong[0][-1] - truth[0][-1]).abs().max() > 1e-2
    else:
        assert not pad.any()


def edited(tmp_path: Path, edit: Any) -> Path:
    def change(c: dict[str, Any]) -> None:
        c["state_dict"] = normalised(c["state_dict"], GROUPS, np.random.default_rng(1))
        edit(c["state_dict"])

    return saved(tmp_path, change)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (f"{PRE}.batch_norms.1.weight", torch.cat([torch.zeros(1), torch.ones(63)]), "scale of 0.*units 0"),
        (f"{PRE}.batch_norms.0.running_var", torch.full((64,), -1.0), "variance is negative"),
        (f"{POST}.batch_norms.1.bias", torch.full((64,), float("nan")), "holds NaN"),
        (f"{PREDICTION}.batch_norms.0.weight", torch.full((64,), 3e38), "with batch normalisation folded in"),
        (f"{PRE}.batch_norms.1.weight", torch.full((64,), 1e-44), "the pad of the time stack"),
        (f"{POST}.batch_norms.0.bias", torch.zeros(63), r"misshapen: encoder.post_rnn.batch_norms.0.bias"),
        (f"{POST}.batch_norms.2.bias", torch.zeros(64), "unexpected: encoder.post_rnn.batch_norms.2.bias"),
        (f"{POST}.batch_norms.0.bias", None, "missing: encoder.post_rnn.batch_norms.0.bias"),
        (f"{POST}.lstms.0.weight_hh_l0", None, "missing: encoder.post_rnn.lstm.weight_hh_l0"),
    ],
)
def test_faults(tmp_path: Path, name: str, value: torch.Tensor | None, message: str) -> None:
    def edit(state: State) -> None:
        if value is None:
            del state[name]
        else:
            state[name] = value

    with pytest.raises(BadInput, match="(?s)" + message):
        load_hardware(edited(tmp_path, edit))


@pytest.mark.parametrize("group", GROUPS)
def test_names_of_the_variant_without_its_normalisations(tmp_path: Path, group: str) -> None:
    """They would be taken for a plain model's, and everything that comes of them would be wrong."""

    def edit(state: State) -> None:
        for name in [name for name in state if name.startswith(f"{group}.batch_norms.")]:
            del state[name]

    refused(edited(tmp_path, edit), f"missing: {group}.batch_norms.0.weight, {group}.batch_norms.0.bias")


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("key", ["enc_batch_norm", "pred_batch_norm"])
def test_what_the_configuration_says_of_it(tmp_path: Path, key: str, there: bool) -> None:
    def write(stated: bool | None) -> Path:
        def change(tree: dict[str, Any]) -> None:
            if there:
                tree["state_dict"] = normalised(tree["state_dict"], GROUPS, np.random.default_rng(3))
            tree["rnnt_config"]["rnnt"][key] = stated

        return saved(tmp_path, change)

    for stated in (there, None):
        assert load_hardware(write(stated)).batch_norm == there
    refused(write(not there), f"rnnt_config.rnnt.{key} contradicts the tensors", f"found {not there}, expected {there}")


def test_scale_of_zero_elsewhere_is_fine(tmp_path: Path) -> None:
    def edit(state: State) -> None:
        state[f"{PRE}.batch_norms.0.weight"] = torch.zeros(64)

    checkpoint = load_hardware(edited(tmp_path, edit))
    assert not checkpoint.state[f"{PRE}.lstm.weight_ih_l1"].any()


def test_a_pad_that_int8_does_not_hold_is_told(tmp_path: Path) -> None:
    def scaled(by: float) -> Path:
        def change(tree: dict[str, Any]) -> None:
            tree["state_dict"] = normalised(tree["state_dict"], (PRE,), np.random.default_rng(1))
            head = f"{PRE}.batch_norms.{LAYERS[PRE] - 1}"
            for part in ("running_mean", "bias"):
                tree["state_dict"][f"{head}.{part}"].zero_()
            tree["state_dict"][f"{head}.bias"][:3] = by
            tree["state_dict"][f"{head}.weight"][:] = 1.0
            tree["state_dict"][f"{head}.running_var"][:] = 1.0

        return saved(tmp_path, change)

    folded = "batch normalisation is folded into the weights"
    assert describe(scaled(0.9))["notes"] == [folded]
    first, second = describe(scaled(-1.1))["notes"]
    assert first == folded
    assert f"beyond 1 in 3 of {UNITS} units" in second
