# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that are sound and yet cannot be compiled: the file is named, and sizes come first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoint_files import saved
from recordings import FOLDER

from gharial.checkpoint import ModelDims
from gharial.checkpoint.weights import size_keys
from gharial.errors import BadInput
from gharial.model import compile_model

Checkpoint = dict[str, Any]
WEIGHT = "encoder.pre_rnn.lstm.weight_hh_l1"


def of_sizes(folder: Path, **sizes: int) -> Path:
    """The demo checkpoint with other sizes, and small weights drawn at random."""
    dims = ModelDims(**{**vars(ModelDims(240, 64, 2, 2, 2, 64, 1, 64, 256)), **sizes})

    def change(top: Checkpoint) -> None:
        torch.manual_seed(1)
        top["state_dict"] = {name: torch.randn(shape) / 8 for name, shape in dims.shapes().items()}
        top["rnnt_config"]["rnnt"] = size_keys(dims)

    return saved(folder, change)


def large(top: Checkpoint) -> None:
    top["state_dict"][WEIGHT][3, 5] = 1e30


def endless(top: Checkpoint) -> None:
    """Finite as they are, but not what comes of them."""
    top["state_dict"]["joint_net.2.weight"].fill_(3e38)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the command line keeps NumPy's to itself
@pytest.mark.parametrize(
    ("change", "part"),
    [
        (large, f"{WEIGHT}: weights are too large for the fixed-point format"),
        (endless, "logits: a value is not finite, so no range can be measured\nfound NaN or infinity, expected finite"),
    ],
)
def test_the_file_is_named(tmp_path: Path, change: Callable[[Checkpoint], None], part: str) -> None:
    path = saved(tmp_path, change)
    with pytest.raises(BadInput) as caught:
        compile_model(path, "tiny", FOLDER)
    told = str(caught.value)
    assert told.startswith(f"{path}: ") and part in told
    assert len(told.splitlines()) == 3


@pytest.mark.parametrize(
    ("sizes", "config", "part"),
    [
        ({"pred_hidden": 2100, "hidden": 8}, "u50", "a state slot needs"),
        ({"joint": 5000}, "u50", "a bank of joint_enc needs"),
        ({"stack": 5}, "u50", "stack-time factor not supported"),
        ({"stack": 5}, None, "stack-time factor not supported"),
    ],
)
def test_what_cannot_fit_is_found_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], config: str | None, part: str
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("measured a model that does not fit")

    monkeypatch.setattr("gharial.model.compiling.calibrate", never)
    path = of_sizes(tmp_path, **sizes)
    with pytest.raises(BadInput, match="does not fit configuration") as caught:
        compile_model(path, config)
    told = str(caught.value)
    assert told.startswith(f"{path}: ") and part in told
    assert caught.value.remedy is not None
