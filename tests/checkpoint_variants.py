# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of every version and variant, made from the demo model: the keys, names and types that each has."""

from __future__ import annotations

import numpy as np
import torch

from gharial.checkpoint.dims import POST, PRE, PREDICTION

State = dict[str, torch.Tensor]
UNITS = 64
LAYERS = {PRE: 2, POST: 2, PREDICTION: 1}


def normalised(state: State, groups: tuple[str, ...], random: np.random.Generator) -> State:
    """The demo's weights as the batch-norm variant names them, with norms drawn at random."""
    result: State = {}
    for name, tensor in state.items():
        group = next((g for g in groups if name.startswith(f"{g}.lstm.")), None)
        if group is None:
            result[name] = tensor
        else:
            part, layer = name.removeprefix(f"{group}.lstm.").rsplit("_l", 1)
            result[f"{group}.lstms.{layer}.{part}_l0"] = tensor
    for group in groups:
        for k in range(LAYERS[group]):
            head = f"{group}.batch_norms.{k}"
            sign = random.choice([-1.0, 1.0], UNITS)
            result[f"{head}.weight"] = torch.tensor(sign * random.uniform(0.3, 2.0, UNITS), dtype=torch.float32)
            result[f"{head}.bias"] = torch.tensor(random.normal(0, 0.5, UNITS), dtype=torch.float32)
            result[f"{head}.running_mean"] = torch.tensor(random.normal(0, 0.3, UNITS), dtype=torch.float32)
            result[f"{head}.running_var"] = torch.tensor(random.uniform(0.01, 2.0, UNITS), dtype=torch.float32)
            result[f"{head}.num_batches_tracked"] = torch.tensor(1234)
    return result
