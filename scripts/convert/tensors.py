# SPDX-License-Identifier: Apache-2.0
"""Float tensors out of TensorFlow frozen graphs and ONNX models, read without the frameworks that wrote them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from gharial.errors import BadInput
from gharial.files import open_regular
from scripts.convert.protobuf import Malformed, integers, submessages, text

T = TypeVar("T")

_OWN = "give the file that this converter is for, as it was published"
LARGEST = 1 << 30
"""Bytes of a file, at most."""

_FLOAT = 1  # the code of float32 in both formats


class Tensors:
    """The tensors of one file.

    Args:
        path: the file, for messages.
        found: float32 arrays by name.
    """

    def __init__(self, path: str, found: Mapping[str, np.ndarray]) -> None:
        self._path, self._found = path, found

    def take(self, name: str, *shape: int | None) -> np.ndarray:
        """The tensor of that name; None stands for any size of an axis.

        Raises:
            BadInput: there is none, or it has another shape.
        """
        wanted = f"({', '.join('any' if size is None else str(size) for size in shape)})"
        array = self._found.get(name)
        if array is None:
            known = ", ".join(sorted(self._found)) or "no tensors"
            raise BadInput(f"the tensor {name} is missing", self._path, known, f"{name} {wanted}", _OWN)
        fits = array.ndim == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=True))
        if not fits:
            raise BadInput(f"the tensor {name} has another shape", self._path, array.shape, wanted, _OWN)
        return array


def read_tensors(path: str | os.PathLike[str], parse: Callable[[bytes], dict[str, np.ndarray]]) -> Tensors:
    """The tensors of a file in the format that `parse` reads.

    Raises:
        BadInput: the file cannot be read, is too large, or is not of that format.
    """
    with open_regular(path, "a model") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise BadInput("the file is too large", path, "more bytes", f"at most {LARGEST:,} bytes", _OWN)
    try:
        return Tensors(os.fspath(path), parse(data))
    except Malformed as error:
        what, expected = "this is no such model, or it is damaged", "a whole file of that kind"
        raise BadInput(what, path, error, expected, _OWN) from None


def graph_constants(data: bytes) -> dict[str, np.ndarray]:
    """Float constants of a TensorFlow GraphDef (node 1; NodeDef: name 1, op 2, attr 5; AttrValue: tensor 8)."""
    constants = {}
    for node in submessages(data, 1):
        if text(node, 2) != "Const":
            continue
        for attribute in submessages(node, 5):
            if text(attribute, 1) != "value":
                continue
            tensor = _only(submessages(_only(submessages(attribute, 2)), 8))
            if integers(tensor, 1) == [_FLOAT]:
                # TensorProto: dtype 1, shape 2 (dim 2, size 1), tensor_content 4, float_val 5.
                shape = [_only(integers(dim, 1)) for part in submessages(tensor, 2) for dim in submessages(part, 2)]
                constants[text(node, 1)] = _floats([*submessages(tensor, 4), *submessages(tensor, 5)], shape)
    return constants


def onnx_initialisers(data: bytes) -> dict[str, np.ndarray]:
    """Float initialisers of an ONNX model (graph 7; initializer 5: dims 1, type 2, floats 4, name 8, raw 9)."""
    tensors = {}
    for tensor in submessages(_only(submessages(data, 7)), 5):
        if integers(tensor, 2) == [_FLOAT]:
            raw = [*submessages(tensor, 4), *submessages(tensor, 9)]
            tensors[text(tensor, 8)] = _floats(raw, integers(tensor, 1))
    return tensors


def _only(items: Iterable[T]) -> T:
    iterator: Iterator[T] = iter(items)
    for item in iterator:
        if next(iterator, None) is None:
            return item
    raise Malformed("a field that is there once is missing, or there twice")


def _floats(parts: Iterable[memoryview], shape: list[int]) -> np.ndarray:
    raw = b"".join(parts)
    if len(raw) != 4 * math.prod(shape):
        raise Malformed(f"{len(raw)} bytes in a tensor of shape {shape}")
    return np.frombuffer(raw, "<f4").reshape(shape)
