# SPDX-License-Identifier: Apache-2.0
"""Plain data and tensors as a pickle of protocol 2, the way `torch.save` writes them, without torch.

Every instruction used is one that `torch.load(weights_only=True)` of any version knows, and `gharial.checkpoint.load`.
The same data give the same bytes: nothing depends on object identity, addresses or time.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np

_PROTO2, _STOP = b"\x80\x02", b"."
_MARK, _TUPLE, _REDUCE, _PERSISTENT = b"(", b"t", b"R", b"Q"
_EMPTY_TUPLE, _EMPTY_LIST, _EMPTY_DICT = b")", b"]", b"}"
_APPENDS, _SETITEMS = b"e", b"u"
_NONE, _TRUE, _FALSE = b"N", b"\x88", b"\x89"


def pickled(tree: Any) -> tuple[bytes, list[np.ndarray]]:
    """The pickle of `tree`, and the tensors that it refers to.

    Args:
        tree: dict, OrderedDict, list, tuple, str, bytes, int, float, bool, None and float32 arrays, nested. An array
            becomes a torch tensor of its shape, on storage K of its own.

    Returns:
        The bytes of `data.pkl`; the arrays in the order of their storages 0, 1, ..., each to be written in C order.

    Raises:
        TypeError: something else in the tree.
    """
    writer = _Writer()
    body = b"".join(writer.value(tree))
    return _PROTO2 + body + _STOP, writer.tensors


class _Writer:
    """One pickle; `tensors` grows as arrays are met."""

    def __init__(self) -> None:
        self.tensors: list[np.ndarray] = []

    def value(self, value: Any) -> Iterable[bytes]:
        """Instructions that leave `value` on the stack."""
        kind = type(value)
        if value is None:
            yield _NONE
        elif kind is bool:
            yield _TRUE if value else _FALSE
        elif kind is int:
            yield _integer(value)
        elif kind is float:
            yield b"G" + struct.pack(">d", value)
        elif kind is str:
            yield _text(value)
        elif kind is bytes:
            # Protocol 2 has no bytes; this is what Python's own pickle writes in their place.
            yield _named("_codecs", "encode") + _tuple(_text(value.decode("latin-1")), _text("latin1")) + _REDUCE
        elif kind is OrderedDict:
            yield _ordered_dict()
            yield from self._items(value)
        elif kind is dict:
            yield _EMPTY_DICT
            yield from self._items(value)
        elif kind is list:
            yield _EMPTY_LIST
            yield from self._group(value, _APPENDS)
        elif kind is tuple:
            yield from self._group(value, _TUPLE, always=True)
        elif isinstance(value, np.ndarray) and value.dtype == np.float32:
            yield self._tensor(value)
        else:
            raise TypeError(f"cannot be pickled as plain data: {kind.__name__}")

    def _items(self, items: dict[Any, Any]) -> Iterable[bytes]:
        yield from self._group([part for item in items.items() for part in item], _SETITEMS)

    def _group(self, values: Iterable[Any], end: bytes, always: bool = False) -> Iterable[bytes]:
        parts = [part for value in values for part in self.value(value)]
        if parts or always:
            yield _MARK
            yield from parts
            yield end

    def _tensor(self, array: np.ndarray) -> bytes:
        key = str(len(self.tensors))
        self.tensors.append(array)
        numel = _integer(array.size)
        storage = _tuple(_text("storage"), _named("torch", "FloatStorage"), _text(key), _text("cpu"), numel)
        strides = [1]
        for size in reversed(array.shape[1:]):
            strides.insert(0, strides[0] * size)
        shape = _tuple(*map(_integer, array.shape))
        steps = _tuple(*map(_integer, strides[len(strides) - array.ndim :]))
        view = _tuple(storage + _PERSISTENT, _integer(0), shape, steps, _FALSE, _ordered_dict())
        return _named("torch._utils", "_rebuild_tensor_v2") + view + _REDUCE


def _integer(value: int) -> bytes:
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + struct.pack("<B", len(data)) + data


def _text(value: str) -> bytes:
    data = value.encode("utf-8")
    return b"X" + struct.pack("<I", len(data)) + data


def _named(module: str, name: str) -> bytes:
    return b"c" + module.encode("ascii") + b"\n" + name.encode("ascii") + b"\n"


def _tuple(*items: bytes) -> bytes:
    return _MARK + b"".join(items) + _TUPLE


def _ordered_dict() -> bytes:
    return _named("collections", "OrderedDict") + _EMPTY_TUPLE + _REDUCE
