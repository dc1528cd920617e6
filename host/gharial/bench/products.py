# SPDX-License-Identifier: Apache-2.0
"""What there is to multiply: products of a model's layers in a piece of work, with and without padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gharial.isa.instructions import Opcode
from gharial.program import Program
from gharial.program.code import Instruction, decode

_GATES = 4


@dataclass(frozen=True)
class Product:
    """The matrix products of one layer.

    Attributes:
        name: of the layer.
        encoder: whether it is part of an encoder step.
        runs: how often it ran.
        macs: multiply-accumulates of all runs, from the shapes, without padding.
        array_cycles: clocks that the array multiplies for them: with padding, and with feature vectors that a last
            step does not have where an instruction takes them along.
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
    clocks = _array_cycles(program, [len(step) for step in steps], predictions, joints)
    found = []
    for name, layer in program.layers.items():
        if "parts" in layer:
            group = name.rpartition(".")[0] or name
            encoder = group.startswith("encoder.") or group == "joint_enc"
            rows = layer["units"] * (_GATES if layer["kind"] == "lstm" else 1)
            columns = sum(part["columns"] for part in layer["parts"])
            count = runs[group]
            found.append(Product(name, encoder, count, count * rows * columns, clocks[name]))
    return found


def _array_cycles(program: Program, vectors: Sequence[int], predictions: int, joints: int) -> dict[str, int]:
    """Clocks of the array by layer, from the instructions that run."""
    owner = {
        part["tile"]: name for name, layer in program.layers.items() for part in layer.get("parts", ())
    }  # a part begins at a tile of its own
    clocks = dict.fromkeys(owner.values(), 0)
    sections = decode(program)
    for instruction in sections["encode"]:
        _count(clocks, owner, instruction, sum(instruction.runs(count) for count in vectors))
    for section, times in (("predict", predictions), ("joint", joints)):
        for instruction in sections[section]:
            _count(clocks, owner, instruction, times)
    return clocks


def _count(clocks: dict[str, int], owner: Mapping[int, str], instruction: Instruction, times: int) -> None:
    if instruction.opcode == Opcode.MATVEC:
        tiles = instruction["row_groups"] * instruction["col_tiles"]
        clocks[owner[instruction["tile"]]] += times * tiles * instruction.vectors
