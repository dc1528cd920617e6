# SPDX-License-Identifier: Apache-2.0
"""Tensors of a hardware checkpoint: each fault is named by tensor, with the shapes found and expected."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_files import DEMO, demo, refused, saved

from gharial.checkpoint import load_hardware

Checkpoint = dict[str, Any]

NAMES = list(demo()["state_dict"])


def test_prefixes_and_duplicates(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        state = c["state_dict"]
        state["joint_fc.weight"] = state["joint_net.2.weight"]
        state["joint_fc.bias"] = state["joint_net.2.bias"].clone()
        c["state_dict"] = OrderedDict((f"module.{name}", tensor) for name, tensor in state.items())

    ours, truth = load_hardware(saved(tmp_path, change)), load_hardware(DEMO)
    assert list(ours.state) == list(truth.state)
    for name, array in ours.state.items():
        np.testing.assert_array_equal(array, truth.state[name])


def test_prefix_that_makes_a_name_twice(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["state_dict"]["module.joint_enc.bias"] = c["state_dict"]["joint_enc.bias"]

    refused(saved(tmp_path, change), "two tensors have the name joint_enc.bias")


def test_endless_name(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["state_dict"]["module." * 100_000 + "joint_enc.bias"] = torch.zeros(64)

    refused(saved(tmp_path, change), "the name module.module.", "is too long")


def test_duplicate_that_differs(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["state_dict"]["joint_fc.weight"] = c["state_dict"]["joint_net.2.weight"] + 1

    refused(saved(tmp_path, change), "joint_fc.weight differs from joint_net.2.weight")


def test_duplicate_misshapen(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["state_dict"]["joint_fc.bias"] = torch.zeros(3)

    refused(
        saved(tmp_path, change), "misshapen: joint_fc.bias", "found joint_fc.bias (3,)", "expected joint_fc.bias (256,)"
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("config", [True, False])
def test_each_tensor_missing(tmp_path: Path, name: str, config: bool) -> None:
    shape = tuple(demo()["state_dict"][name].shape)

    def change(c: Checkpoint) -> None:
        del c["state_dict"][name]
        if not config:
            del c["rnnt_config"]

    path = saved(tmp_path, change)
    if not config and name in ("encoder.pre_rnn.lstm.weight_ih_l0", "encoder.post_rnn.lstm.weight_ih_l0"):
        # These alone show the number of inputs and the time stack.
        refused(path, "no weights of an RNN-T")
    else:
        refused(path, f"missing: {name}", f"expected {name} {shape}")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("config", [True, False])
def test_each_tensor_misshapen(tmp_path: Path, name: str, config: bool) -> None:
    shape = tuple(demo()["state_dict"][name].shape)
    wrong = (shape[0] + 4, *shape[1:])

    def change(c: Checkpoint) -> None:
        c["state_dict"][name] = torch.zeros(wrong)
        if not config:
            del c["rnnt_config"]

    error = refused(saved(tmp_path, change), f"misshapen: {name}", f"found {name} {wrong}", f"{name} {shape}")
    assert "," not in str(error.what).split("misshapen: ")[1], "one tensor is wrong, so one is named"


def test_transposed_matrix(tmp_path: Path) -> None:
    name = "encoder.post_rnn.lstm.weight_ih_l0"

    def change(c: Checkpoint) -> None:
        c["state_dict"][name] = c["state_dict"][name].t()

    refused(saved(tmp_path, change), f"{name} (128, 256)", f"{name} (256, 128)")


def test_strided_matrix_is_read_right(tmp_path: Path) -> None:
    name = "joint_enc.weight"

    def change(c: Checkpoint) -> None:
        c["state_dict"][name] = c["state_dict"][name].t().contiguous().t()

    np.testing.assert_array_equal(
        load_hardware(saved(tmp_path, change)).state[name], demo()["state_dict"][name].numpy()
    )


def test_several_faults_in_one_message(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        state = c["state_dict"]
        del state["joint_enc.bias"]
        state["encoder.extra"] = torch.zeros(7)
        state["joint_pred.weight"] = torch.zeros(64, 63)

    refused(
        saved(tmp_path, change),
        "missing: joint_enc.bias; unexpected: encoder.extra; misshapen: joint_pred.weight",
        "found encoder.extra (7,), joint_pred.weight (64, 63)",
        "expected joint_enc.bias (64,), joint_pred.weight (64, 64)",
    )


@pytest.mark.parametrize("layer", [2, 63, 64, 999, 10**9])
def test_layer_numbers(tmp_path: Path, layer: int) -> None:
    name = f"encoder.pre_rnn.lstm.weight_ih_l{layer}"

    def change(c: Checkpoint) -> None:
        c["state_dict"][name] = torch.zeros(256, 64)

    refused(saved(tmp_path, change), f"unexpected: {name}", f"found {name} (256, 64)")


def test_bidirectional_layer(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["state_dict"]["encoder.pre_rnn.lstm.weight_ih_l0_reverse"] = torch.zeros(256, 240)

    refused(saved(tmp_path, change), "unexpected: encoder.pre_rnn.lstm.weight_ih_l0_reverse")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int8, torch.int64])
def test_types(tmp_path: Path, dtype: torch.dtype) -> None:
    name = "joint_pred.weight"

    def change(c: Checkpoint) -> None:
        c["state_dict"][name] = c["state_dict"][name].to(dtype)

    refused(saved(tmp_path, change), f"not float32: {name}", str(dtype).removeprefix("torch."))


def test_bfloat16_is_widened(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["state_dict"] = {name: tensor.bfloat16() for name, tensor in c["state_dict"].items()}

    for name, array in load_hardware(saved(tmp_path, change)).state.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, demo()["state_dict"][name].bfloat16().float().numpy())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", ["encoder.pre_rnn.lstm.weight_hh_l1", "joint_net.2.bias"])
def test_values_that_are_not_finite(tmp_path: Path, value: float, name: str) -> None:
    def change(c: Checkpoint) -> None:
        c["state_dict"][name].view(-1)[5] = value

    index = "(0, 5)" if name.startswith("encoder") else "(5,)"
    refused(saved(tmp_path, change), f"{name} holds NaN or infinity", f"the first at {index}")


def test_missing_network(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["state_dict"] = {name: t for name, t in c["state_dict"].items() if not name.startswith("prediction")}

    refused(saved(tmp_path, change), "missing: prediction.embed.weight, prediction.dec_rnn.lstm.weight_ih_l0")
