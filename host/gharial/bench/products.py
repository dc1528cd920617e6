# SPDX-License-Identifier: Apache-2.0
"""What there is to multiply: products of a model's layers in a piece of work, with and without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gharial.program import Program

_GATES = 4


@dataclass(frozen=True)
class Product:
    """The matrix products of one layer.

    Attributes:
        name: of the layer.
        encoder: whether it is part of an encoder step.
        runs: how often it ran.
        macs: multiply-accumulates of all runs, from the shapes, without padding.
        array_cycles: clocks that the array multiplies for them: with padding, and with the inputs of feature vectors
            that a last step does not have.
    """

    name: str
    encoder: bool
    runs: int
    macs: int
    array_cycles: int


def products(program: Program, steps: Sequence[np.ndarray], predictions: int, joints: int) -> list[Product]:
    """The products of an utterance, layer by layer.

    Args:
        program: the model.
        steps: feature vectors of each encoder step, (vectors, F) each.
        predictions: prediction steps.
        joints: joint evaluations.
    """
    runs = {
        "encoder.pre_rnn": sum(len(step) for step in steps),
        "encoder.post_rnn": len(steps),
        "joint_enc": len(steps),
        "prediction": predictions,
        "joint_pred": predictions,
        "logits": joints,
    }
    places = len(steps) * program.header["vectors"]
    found = []
    for name, layer in program.layers.items():
        if "parts" in layer:
            group = name.rpartition(".")[0] or name
            encoder = group.startswith("encoder.") or group == "joint_enc"
            of_inputs = places if group == "encoder.pre_rnn" else runs[group]
            found.append(_product(name, encoder, layer, runs[group], of_inputs, program.config.cols))
    return found


def _product(name: str, encoder: bool, layer: dict[str, Any], runs: int, of_inputs: int, cols: int) -> Product:
    rows = layer["units"] * (_GATES if layer["kind"] == "lstm" else 1)
    columns = sum(part["columns"] for part in layer["parts"])
    tiles = sum(part["padded"] // cols * (of_inputs if part["input"] == "x" else runs) for part in layer["parts"])
    return Product(name, encoder, runs, runs * rows * columns, layer["row_groups"] * tiles)
