# SPDX-License-Identifier: Apache-2.0
"""Sizes of an RNN-T as its tensors' shapes give them, and the work they mean.

Sizes are voted for: each tensor that shows a size has a vote, so that one misshapen tensor is named as such instead of
turning every other one into a mismatch.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

Shape = tuple[int, ...]

MAX_LAYERS = 64
"""Layers of one LSTM group; it bounds what a layer number in a tensor's name can ask for."""

PRE, POST, PREDICTION = "encoder.pre_rnn", "encoder.post_rnn", "prediction.dec_rnn"
GROUPS = (PRE, POST, PREDICTION)
"""The three stacks of LSTM layers, as prefixes of tensor names."""

_LSTM_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@dataclass(frozen=True)
class ModelDims:
    """Sizes of a model; all are positive but `post_layers`, which may be 0.

    Attributes:
        features: inputs of the encoder a time step (mel bins times stacked frames).
        hidden: units of each encoder LSTM layer.
        pre_layers: encoder layers before time is stacked.
        post_layers: encoder layers after it; without any, joint_enc takes the stacked outputs itself.
        stack: outputs of the first part that are joined to one input of the second.
        pred_hidden: units of the prediction network, and length of an embedding.
        pred_layers: its LSTM layers.
        joint: units of the joint network.
        classes: outputs, blank (the last) included; the vocabulary has one less.
    """

    features: int
    hidden: int
    pre_layers: int
    post_layers: int
    stack: int
    pred_hidden: int
    pred_layers: int
    joint: int
    classes: int

    @property
    def vocabulary(self) -> int:
        """Number of tokens, blank excluded."""
        return self.classes - 1

    @property
    def encoded(self) -> int:
        """Inputs of joint_enc."""
        return self.hidden if self.post_layers else self.stack * self.hidden

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return sum(math.prod(shape) for shape in self.shapes().values())

    @property
    def encode_macs(self) -> int:
        """Multiply-accumulates of one encoder step, joint_enc included: `stack` time steps of the first part."""
        first = 4 * self.hidden * (self.features + self.hidden + (self.pre_layers - 1) * 2 * self.hidden)
        second = 0
        if self.post_layers:
            second = 4 * self.hidden * ((self.stack + 1) * self.hidden + (self.post_layers - 1) * 2 * self.hidden)
        return self.stack * first + second + self.encoded * self.joint

    @property
    def joint_macs(self) -> int:
        """Multiply-accumulates of one joint evaluation (the output layer)."""
        return self.joint * self.classes

    @property
    def prediction_macs(self) -> int:
        """Multiply-accumulates of one step of the prediction network, joint_pred included."""
        return self.pred_layers * 8 * self.pred_hidden**2 + self.pred_hidden * self.joint

    def lstm(self, group: str) -> tuple[int, int, int]:
        """(layers, inputs of the first layer, units) of one of `GROUPS`."""
        if group == PRE:
            return self.pre_layers, self.features, self.hidden
        if group == POST:
            return self.post_layers, self.stack * self.hidden, self.hidden
        return self.pred_layers, self.pred_hidden, self.pred_hidden

    def shapes(self) -> dict[str, Shape]:
        """Name and shape of every tensor, in the order of computation."""
        joint, pred = self.joint, self.pred_hidden
        return {
            **dict(self._lstm_shapes(PRE)),
            **dict(self._lstm_shapes(POST)),
            "joint_enc.weight": (joint, self.encoded),
            "joint_enc.bias": (joint,),
            "prediction.embed.weight": (self.vocabulary, pred),
            **dict(self._lstm_shapes(PREDICTION)),
            "joint_pred.weight": (joint, pred),
            "joint_pred.bias": (joint,),
            "joint_net.2.weight": (self.classes, joint),
            "joint_net.2.bias": (self.classes,),
        }

    def _lstm_shapes(self, group: str) -> Iterator[tuple[str, Shape]]:
        layers, inputs, units = self.lstm(group)
        for k in range(layers):
            yield f"{group}.lstm.weight_ih_l{k}", (4 * units, inputs if k == 0 else units)
            yield f"{group}.lstm.weight_hh_l{k}", (4 * units, units)
            yield f"{group}.lstm.bias_ih_l{k}", (4 * units,)
            yield f"{group}.lstm.bias_hh_l{k}", (4 * units,)


@dataclass(frozen=True)
class Misfit:
    """Differences between a checkpoint's tensors and the ones a model of some size has.

    Attributes:
        missing: (name, shape) of tensors that are not there.
        unexpected: (name, shape) of tensors that the model has no use for.
        misshapen: (name, shape found, shape expected).
    """

    missing: tuple[tuple[str, Shape], ...]
    unexpected: tuple[tuple[str, Shape], ...]
    misshapen: tuple[tuple[str, Shape, Shape], ...]

    @property
    def count(self) -> int:
        """Number of tensors that differ."""
        return len(self.missing) + len(self.unexpected) + len(self.misshapen)


def compare(shapes: Mapping[str, Shape], dims: ModelDims) -> Misfit:
    """How the tensors `shapes` differ from those of a model of size `dims`."""
    expected = dims.shapes()
    return Misfit(
        tuple((name, shape) for name, shape in expected.items() if name not in shapes),
        tuple((name, shape) for name, shape in shapes.items() if name not in expected),
        tuple(
            (name, shapes[name], shape) for name, shape in expected.items() if name in shapes and shapes[name] != shape
        ),
    )


def from_shapes(shapes: Mapping[str, Shape]) -> ModelDims | None:
    """Sizes that most tensors agree on, or None where no tensor shows one of them.

    At least one layer of each group is looked for: tensors that are missing are to be named as such, and a model
    without `post_layers` is one whose configuration says so.
    """
    votes: dict[str, list[int]] = {field.name: [] for field in fields(ModelDims)}
    layers = dict.fromkeys(GROUPS, 0)
    for name, shape in shapes.items():
        match = re.fullmatch(r"(.+)\.lstm\.(\w+?)_l(\d{1,3})", name, re.ASCII)
        if match and match[1] in GROUPS and match[2] in _LSTM_PARTS and int(match[3]) < MAX_LAYERS:
            layers[match[1]] = max(layers[match[1]], int(match[3]) + 1)
            unit_vote = votes["pred_hidden" if match[1] == PREDICTION else "hidden"]
            if match[2] == "weight_hh" and len(shape) == 2:
                unit_vote.append(shape[1])
            elif shape and shape[0] % 4 == 0:
                unit_vote.append(shape[0] // 4)
    for name, axis, size in (
        (f"{PRE}.lstm.weight_ih_l0", 1, "features"),
        ("joint_enc.weight", 0, "joint"),
        ("joint_enc.weight", 1, "hidden"),
        ("joint_enc.bias", 0, "joint"),
        ("prediction.embed.weight", 1, "pred_hidden"),
        ("joint_pred.weight", 0, "joint"),
        ("joint_pred.weight", 1, "pred_hidden"),
        ("joint_pred.bias", 0, "joint"),
        ("joint_net.2.weight", 0, "classes"),
        ("joint_net.2.weight", 1, "joint"),
        ("joint_net.2.bias", 0, "classes"),
    ):
        if axis < len(shapes.get(name, ())):
            votes[size].append(shapes[name][axis])
    if shapes.get("prediction.embed.weight"):
        votes["classes"].append(shapes["prediction.embed.weight"][0] + 1)
    sizes = {name: Counter(found).most_common(1)[0][0] for name, found in votes.items() if found}
    sizes |= {"pre_layers": layers[PRE], "post_layers": layers[POST], "pred_layers": layers[PREDICTION]}
    joined = shapes.get(f"{POST}.lstm.weight_ih_l0", ())
    if len(joined) == 2 and sizes.get("hidden"):
        # Rounded so that a misshapen tensor still gives a size to be compared with.
        sizes["stack"] = max(1, round(joined[1] / sizes["hidden"]))
    if len(sizes) < len(votes) or min(sizes.values()) < 1 or sizes["classes"] < 2:
        return None
    return ModelDims(**sizes)
