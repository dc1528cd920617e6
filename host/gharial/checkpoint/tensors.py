# SPDX-License-Identifier: Apache-2.0
"""Tensors as a checkpoint describes them, before a byte of their data is read.

The pickle of a torch archive names storages (archive members) and views on them. Both are checked here against the
archive's directory, so that a description can be trusted when memory is given out for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

MAX_DIMENSIONS = 8
_MAX_EXTENT = 1 << 40


@dataclass(frozen=True)
class StorageType:
    """Element type of a storage.

    Attributes:
        name: torch's name of the element type, "float32" for example.
        dtype: little-endian numpy type the bytes are read as. bfloat16 has none and is read as uint16.
    """

    name: str
    dtype: np.dtype

    @property
    def widened(self) -> bool:
        """True for bfloat16, which arrives as float32: numpy has no such type and the widening is exact."""
        return self.name == "bfloat16"


STORAGE_TYPES = {
    "DoubleStorage": StorageType("float64", np.dtype("<f8")),
    "FloatStorage": StorageType("float32", np.dtype("<f4")),
    "HalfStorage": StorageType("float16", np.dtype("<f2")),
    "BFloat16Storage": StorageType("bfloat16", np.dtype("<u2")),
    "LongStorage": StorageType("int64", np.dtype("<i8")),
    "IntStorage": StorageType("int32", np.dtype("<i4")),
    "ShortStorage": StorageType("int16", np.dtype("<i2")),
    "CharStorage": StorageType("int8", np.dtype("i1")),
    "ByteStorage": StorageType("uint8", np.dtype("u1")),
    "BoolStorage": StorageType("bool", np.dtype("?")),
}
"""Storage classes of the module `torch` that may be named, all others being refused."""


@dataclass(frozen=True)
class StorageRef:
    """A storage: `numel` elements of type `kind` in the archive member data/`key`."""

    key: str
    kind: StorageType
    numel: int


@dataclass(frozen=True)
class TensorRef:
    """A view on a storage; offset and strides count elements."""

    storage: StorageRef
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def dtype_name(self) -> str:
        """torch's name of the element type."""
        return self.storage.kind.name

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that a copy of the tensor takes, in the type it is delivered in."""
        kind = self.storage.kind
        return self.numel * (4 if kind.widened else kind.dtype.itemsize)


def view_fault(storage: StorageRef, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> str | None:
    """What is wrong with the view, or None if every element lies inside the storage.

    Besides running out of bounds, a view may not have more elements than its storage: with strides of 0 a few bytes
    would stand for a tensor of any size.
    """
    if len(shape) > MAX_DIMENSIONS or len(shape) != len(strides):
        return f"{len(shape)} dimensions and {len(strides)} strides"
    if offset < 0 or any(n < 0 for n in shape) or any(n < 0 for n in strides):
        return "a negative size, stride or offset"
    if math.prod(max(n, 1) for n in shape) > _MAX_EXTENT or max((*strides, offset), default=0) > _MAX_EXTENT:
        return "a size, stride or offset beyond any storage"
    numel = math.prod(shape)
    if numel == 0:
        return None if offset <= storage.numel else f"offset {offset} in a storage of {storage.numel} elements"
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if last >= storage.numel or numel > storage.numel:
        return f"{numel} elements up to index {last} in a storage of {storage.numel}"
    return None


def materialise(ref: TensorRef, read_storage: Callable[[StorageRef], bytes | memoryview]) -> np.ndarray:
    """The tensor as a read-only array of its shape; bfloat16 becomes float32. `read_storage` gives the data bytes.

    The array is a view on those bytes (no copy) except for bfloat16.
    """
    kind = ref.storage.kind
    size = kind.dtype.itemsize
    # numpy checks offset, shape and strides against the buffer once more.
    if ref.numel == 0:
        array = np.zeros(ref.shape, kind.dtype)
    else:
        array = np.ndarray(
            ref.shape,
            kind.dtype,
            buffer=read_storage(ref.storage),
            offset=ref.offset * size,
            strides=tuple(n * size for n in ref.strides),
        )
    if kind.widened:
        array = np.left_shift(np.atleast_1d(array), 16, dtype=np.uint32).view(np.float32).reshape(ref.shape)
    array.flags.writeable = False
    return array
