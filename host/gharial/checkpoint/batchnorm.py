# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation folded into the weights that read a layer's output.

In the batch-norm variant each LSTM layer is a module of its own (`lstms.I.weight_ih_l0`) followed by
`batch_norms.I`, which acts on the layer's output and leaves its recurrent h alone. At inference it is an affine map
a*h + b per unit, with a = weight / sqrt(running_var + eps) and b = bias - a * running_mean, so a matrix W that reads
the output becomes W diag(a) and its bias gains W b. Readers: the next layer's input weights; the first layer after
time is stacked, or joint_enc where there is none (a and b repeated per stacked step); joint_enc and joint_pred behind
the last layers.

One thing is left over. When a stream ends in the middle of a stack the missing steps are zeros *behind* the
normalisation. Once folded, that zero is the value x with a*x + b = 0, so the pad becomes -b/a.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from gharial.checkpoint.dims import GROUPS, POST, PRE, PREDICTION
from gharial.checkpoint.text import listed, shown
from gharial.errors import BadInput

EPS = 1e-5
"""torch.nn.BatchNorm1d's default, which the models use."""

PARTS = ("weight", "bias", "running_mean", "running_var")
_LSTM = re.compile(rf"({'|'.join(map(re.escape, GROUPS))})\.lstms\.(\d{{1,3}})\.(\w+?)_l0", re.ASCII)
_NORM = re.compile(rf"({'|'.join(map(re.escape, GROUPS))})\.batch_norms\.(\d{{1,3}})\.(\w+)", re.ASCII)


def plain_name(name: str) -> str:
    """Name of an LSTM tensor of the batch-norm variant as the plain variant has it; any other name unchanged."""
    match = _LSTM.fullmatch(name)
    return f"{match[1]}.lstm.{match[3]}_l{int(match[2])}" if match else name


def variant_of(name: str) -> str | None:
    """The stack of layers whose variant with batch normalisation a tensor is named after, or None."""
    match = _LSTM.fullmatch(name)
    return match[1] if match else None


def is_norm(name: str) -> bool:
    """True for a tensor of a batch normalisation."""
    return _NORM.fullmatch(name) is not None


def is_counter(name: str) -> bool:
    """True for the count of training batches, an integer that plays no part at inference."""
    match = _NORM.fullmatch(name)
    return match is not None and match[3] == "num_batches_tracked"


def norm_shapes(group: str, layers: int, units: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the normalisations of one stack of layers."""
    return {f"{group}.batch_norms.{k}.{part}": (units,) for k in range(layers) for part in PARTS}


def fold(
    state: Mapping[str, np.ndarray], norms: Mapping[str, np.ndarray], stack: int, where: str
) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """Weights without batch normalisation that compute the same.

    Args:
        state: float32 tensors by plain name, complete and of the right shapes.
        norms: float32 tensors (units,) of the normalisations, complete for each stack of layers that has any.
        stack: time steps joined between the two parts of the encoder.
        where: file and key, for messages.

    Returns:
        The tensors, of the same names and shapes (computed in float64, rounded once to float32), and the pad (hidden,)
        float32 that stands for a missing step of a stack, or None where it is zero (no normalisation there).

    Raises:
        BadInput: a negative variance; a scale of 0 (in the last layer before the stack), for which no pad exists.
    """
    folded = dict(state)
    pad = None
    for group in GROUPS:
        layers = sorted({int(match[2]) for name in norms if (match := _NORM.fullmatch(name)) and match[1] == group})
        for k in layers:
            a, b = _affine({part: norms[f"{group}.batch_norms.{k}.{part}"] for part in PARTS}, where)
            if k != layers[-1]:
                _into(folded, f"{group}.lstm.weight_ih_l{k + 1}", f"{group}.lstm.bias_ih_l{k + 1}", a, b)
            elif group == PRE:
                pad = _pad(a, b, where)
                repeated = np.tile(a, stack), np.tile(b, stack)
                second = f"{POST}.lstm.weight_ih_l0", f"{POST}.lstm.bias_ih_l0"
                reader = second if second[0] in folded else ("joint_enc.weight", "joint_enc.bias")
                _into(folded, *reader, *repeated)
            else:
                dense = "joint_pred" if group == PREDICTION else "joint_enc"
                _into(folded, f"{dense}.weight", f"{dense}.bias", a, b)
    return folded, pad


def _affine(norm: Mapping[str, np.ndarray], where: str) -> tuple[np.ndarray, np.ndarray]:
    """Scale a and offset b of one normalisation, float64."""
    weight, bias, mean, var = (norm[part].astype(np.float64) for part in PARTS)
    if (var < 0).any():
        remedy = "the training went wrong, or the file is damaged: export it again"
        raise BadInput("a running variance is negative", where, shown(float(var.min())), "0 or more", remedy)
    a = weight / np.sqrt(var + EPS)
    return a, bias - a * mean


def _into(state: dict[str, np.ndarray], weight: str, bias: str, a: np.ndarray, b: np.ndarray) -> None:
    matrix = state[weight].astype(np.float64)
    # The caller checks the result: a value beyond float32 becomes infinite here.
    with np.errstate(over="ignore", invalid="ignore"):
        state[bias] = (state[bias] + matrix @ b).astype(np.float32)
        state[weight] = (matrix * a).astype(np.float32)


def _pad(a: np.ndarray, b: np.ndarray, where: str) -> np.ndarray:
    flat = np.flatnonzero(a == 0)
    if flat.size:
        raise BadInput(
            "batch normalisation with a scale of 0 before the time stack cannot be folded",
            where,
            f"units {listed(map(str, flat.tolist()))}",
            "scales other than 0",
            "prune those units, or set their batch_norms weight to a small number and export again",
        )
    with np.errstate(over="ignore"):
        return (-b / a).astype(np.float32)
