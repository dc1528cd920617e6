# SPDX-License-Identifier: Apache-2.0
"""Where two traces part: the first step and tensor that differ, in the order of the machine (docs/numerics.md, 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gharial.errors import BadInput
from gharial.floating.network import MAX_SYMBOLS
from gharial.trace.keys import decoder_layers, encoder_layers

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Place:
    """One step of one tensor.

    Attributes:
        tensor: key of the tensor.
        index: along its first axis.
        step: encoder step it belongs to, None for features and prefix.
    """

    tensor: str
    index: int
    step: int | None

    def __str__(self) -> str:
        at = f"{self.tensor}[{self.index}]"
        return at if self.step is None else f"encoder step {self.step}, {at}"


@dataclass(frozen=True)
class Difference:
    """The first place where two traces differ.

    Attributes:
        place: where.
        element: index of the first element that differs within the step, () for a single number; None where one of
            the traces has no such step.
        a, b: its values, None where there is none.
        count: elements of the step that differ.
        total: elements of the step.
        tensors: for every tensor that differs anywhere: elements that differ, and the largest difference.
    """

    place: Place
    element: tuple[int, ...] | None
    a: int | None
    b: int | None
    count: int
    total: int
    tensors: dict[str, tuple[int, int]]

    def as_json(self) -> dict[str, Any]:
        """The difference as `gharial trace diff --json` prints it."""
        return {
            "same": False,
            "tensor": self.place.tensor,
            "index": self.place.index,
            "step": self.place.step,
            "element": None if self.element is None else list(self.element),
            "a": self.a,
            "b": self.b,
            "differing": self.count,
            "elements": self.total,
            "tensors": {name: {"differing": n, "largest": most} for name, (n, most) in self.tensors.items()},
        }


def first_difference(a: Arrays, b: Arrays) -> Difference | None:
    """Compare two traces in the order of the machine; None if they are the same.

    Raises:
        BadInput: they hold other tensors, or tensors of other sizes: traces of different models.
    """
    _comparable(a, b)
    differing = {name: found for name in a if (found := _summary(a[name], b[name])) is not None}
    if not differing:
        return None
    for place in _order(a, b):
        difference = _compare(a[place.tensor], b[place.tensor], place, differing)
        if difference is not None:
            return difference
    # What is left are steps that the order, taken from the tokens of `a`, does not reach.
    name = next(name for name in _all_keys(a) if name in differing)
    steps = min(len(a[name]), len(b[name]))
    where = next((i for i in range(steps) if not np.array_equal(a[name][i], b[name][i])), steps)
    difference = _compare(a[name], b[name], Place(name, where, None), differing)
    assert difference is not None
    return difference


def _comparable(a: Arrays, b: Arrays) -> None:
    missing = sorted(set(a) ^ set(b))
    if missing:
        raise BadInput("the traces are of different models", found=f"only one of them has {', '.join(missing[:4])}")
    for name in a:
        if a[name].shape[1:] != b[name].shape[1:] or a[name].dtype != b[name].dtype:
            found = f"{a[name].dtype} {a[name].shape[1:]} and {b[name].dtype} {b[name].shape[1:]} a step"
            raise BadInput("the traces are of different models", name, found)


def _summary(a: np.ndarray, b: np.ndarray) -> tuple[int, int] | None:
    """Elements that differ, steps that only one has counted whole, and the largest difference; None if equal."""
    steps = min(len(a), len(b))
    gap = np.abs(a[:steps].astype(np.int64) - b[:steps].astype(np.int64))
    extra = abs(len(a) - len(b)) * int(np.prod(a.shape[1:], dtype=np.int64))
    count = int(np.count_nonzero(gap)) + extra
    return (count, int(gap.max(initial=0))) if count else None


def _compare(a: np.ndarray, b: np.ndarray, place: Place, differing: dict[str, tuple[int, int]]) -> Difference | None:
    total = int(np.prod(a.shape[1:], dtype=np.int64))
    there = place.index < len(a), place.index < len(b)
    if there == (True, True):
        unequal = np.atleast_1d(a[place.index] != b[place.index])
        if not unequal.any():
            return None
        at = tuple(int(i) for i in np.argwhere(unequal)[0])
        element = at if a.ndim > 1 else ()
        values = int(a[place.index][element]), int(b[place.index][element])
        return Difference(place, element, *values, int(np.count_nonzero(unequal)), total, differing)
    if there == (False, False):
        return None
    return Difference(place, None, None, None, total, total, differing)


def _order(a: Arrays, b: Arrays) -> Iterator[Place]:
    """Every step of every tensor: prefix, features, the encoder step by step, then the decoding step by step.

    Tokens say which prediction step and joint belong to which encoder step. Those of `a` are taken: as long as nothing
    has differed, those of `b` are the same.
    """
    for place in range(max(len(a["prefix"]), len(b["prefix"]))):
        yield Place("prefix", place, None)
    vectors = max(len(a["features"]), len(b["features"]))
    steps = max(len(a["joint_enc"]), len(b["joint_enc"]))
    for vector in range(vectors):
        yield Place("features", vector, None)
    pre, post = encoder_layers(a)
    stack = -(-vectors // steps) if steps else 1
    for step in range(steps):
        for vector in range(step * stack, min(vectors, (step + 1) * stack)):
            for tensor in pre:
                yield Place(tensor, vector, step)
        for tensor in (*post, "joint_enc"):
            yield Place(tensor, step, step)
    yield from _decoding(a, steps)


def _decoding(a: Arrays, steps: int) -> Iterator[Place]:
    prediction = decoder_layers(a)
    emitted = np.bincount(a["steps"].astype(np.int64), minlength=steps)
    predicted, joint, token = len(a["prefix"]), 0, 0
    for index in range(predicted + 1):  # the start, then the prefix
        for tensor in prediction:
            yield Place(tensor, index, 0)
    for step in range(steps):
        for count in range(min(int(emitted[step]) + 1, MAX_SYMBOLS)):
            for tensor in ("joint", "logits", "lse"):
                yield Place(tensor, joint, step)
            joint += 1
            if count < emitted[step]:
                for tensor in ("tokens", "steps"):
                    yield Place(tensor, token, step)
                token += 1
                predicted += 1
                for tensor in prediction:
                    yield Place(tensor, predicted, step)


def _all_keys(a: Arrays) -> list[str]:
    pre, post = encoder_layers(a)
    first = [
        "prefix",
        "features",
        *pre,
        *post,
        "joint_enc",
        *decoder_layers(a),
        "joint",
        "logits",
        "lse",
        "tokens",
        "steps",
    ]
    return [*first, *(name for name in a if name not in first)]
