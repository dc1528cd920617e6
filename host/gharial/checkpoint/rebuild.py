# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint's pickle may call, each as plain data: the allow-list of names and their effect.

The names are the ones `torch.save` writes for tensors, parameters, ordered dicts and (pickle protocol 2) bytes, and one
that training checkpoints of CAIMAN-ASR 1.13 and later hold. Nothing is imported or called for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from gharial.checkpoint.tensors import STORAGE_TYPES, StorageRef, StorageType, TensorRef, view_fault
from gharial.checkpoint.text import shown
from gharial.errors import BadInput

StorageCheck = Callable[[StorageRef], None]
"""Raises BadInput if the archive does not hold the storage as described."""

_MAX_VIEWED = 8
"""Views of a checkpoint may add up to this many times its storages (EMA and tied weights share storages)."""

_VIEWED_FLOOR = 1 << 20


@dataclass(frozen=True)
class Global:
    """An allowed name; `storage` is set for torch's storage classes."""

    name: str
    storage: StorageType | None = None


_ORDERED_DICT = Global("collections.OrderedDict")
_TENSOR = Global("torch._utils._rebuild_tensor_v2")
_PARAMETER = Global("torch._utils._rebuild_parameter")
_ENCODE = Global("_codecs.encode")
_BYTES = Global("builtins.bytes")
_ENUM = Global("caiman_asr_train.data.unk_handling.UnkHandling")

GLOBALS: dict[tuple[str, str], Global] = {
    ("collections", "OrderedDict"): _ORDERED_DICT,
    ("torch._utils", "_rebuild_tensor_v2"): _TENSOR,
    ("torch._utils", "_rebuild_parameter"): _PARAMETER,
    # Protocol 2 has no bytes: Python writes them as Latin-1 text to encode, and b"" as bytes().
    ("_codecs", "encode"): _ENCODE,
    ("__builtin__", "bytes"): _BYTES,
    ("builtins", "bytes"): _BYTES,
    # In `tokenizer_kw` of training checkpoints: an enumeration, of which the value is kept.
    ("caiman_asr_train.data.unk_handling", "UnkHandling"): _ENUM,
    **{("torch", name): Global(f"torch.{name}", kind) for name, kind in STORAGE_TYPES.items()},
}
"""(module, name) of everything that a checkpoint may name."""


class _Fail(Protocol):
    def __call__(self, what: str, found: object = None, expected: object = None, remedy: str = ...) -> BadInput: ...


def _is_int(value: object) -> bool:
    return type(value) is int


class Rebuilder:
    """Carries out the calls of one pickle.

    Args:
        fail: makes the BadInput that says where in the file the fault lies.
        check_storage: compares a storage with the archive.
        size: bytes of the pickle: all that it encodes cannot be more, for each text to encode is in it once.
    """

    def __init__(self, fail: _Fail, check_storage: StorageCheck, size: int) -> None:
        self._fail = fail
        self._check_storage = check_storage
        self._storages: dict[str, StorageRef] = {}
        self._stored = 0
        self._viewed = 0
        self._to_encode = size

    def call(self, function: Global, arguments: tuple[Any, ...]) -> Any:
        """Value of `function(*arguments)`; BadInput if the arguments are not those that torch writes."""
        if function is _TENSOR:
            return self._tensor(arguments)
        if function is _PARAMETER:
            return self._parameter(arguments)
        if function is _ENCODE:
            return self._encoded(arguments)
        if function is _ENUM and len(arguments) == 1 and type(arguments[0]) is str:
            return arguments[0]
        if function in (_ORDERED_DICT, _BYTES) and not arguments:
            return OrderedDict() if function is _ORDERED_DICT else b""
        expected = "one text" if function is _ENUM else "none"
        raise self._fail(f"calls {function.name} with arguments", f"{len(arguments)} arguments", expected)

    def storage(self, identity: Any) -> StorageRef:
        """Storage that a persistent id names: ("storage", class, key, location, numel). The location is of no use."""
        if type(identity) is not tuple or len(identity) != 5 or identity[0] != "storage":
            raise self._fail("refers to something outside itself that is no storage", shown(identity))
        _, kind, key, _, numel = identity
        if not isinstance(kind, Global) or kind.storage is None:
            raise self._fail("has a storage without an element type", shown(kind))
        if type(key) is not str or not _is_int(numel) or numel < 0:
            raise self._fail("has a damaged storage", f"key {shown(key)}, {shown(numel)} elements")
        ref = StorageRef(key, kind.storage, numel)
        earlier = self._storages.setdefault(key, ref)
        if earlier != ref:
            raise self._fail(
                f"describes storage {shown(key)} in two ways",
                f"{numel} of {ref.kind.name}",
                f"{earlier.numel} of {earlier.kind.name}",
            )
        if earlier is ref:
            self._check_storage(ref)
            self._stored += numel * kind.storage.dtype.itemsize
        return earlier

    def _tensor(self, arguments: tuple[Any, ...]) -> TensorRef:
        if len(arguments) not in (6, 7) or not isinstance(arguments[0], StorageRef):
            raise self._fail("has a damaged tensor", f"{len(arguments)} arguments", "a storage and its view")
        storage, offset, shape, strides, _, hooks, *metadata = arguments
        if type(shape) is not tuple or type(strides) is not tuple or not all(map(_is_int, (offset, *shape, *strides))):
            raise self._fail("has a damaged tensor", "an offset, size or stride that is no integer")
        if hooks or any(metadata):
            raise self._fail("has a tensor with hooks or metadata", remedy="save the plain weights (state_dict) again")
        fault = view_fault(storage, offset, shape, strides)
        if fault is not None:
            raise self._fail("has a tensor that does not fit its storage", fault)
        ref = TensorRef(storage, offset, shape, strides)
        self._viewed += ref.nbytes
        if self._viewed > _MAX_VIEWED * self._stored + _VIEWED_FLOOR:
            raise self._fail("views its storages again and again", f"tensors of {self._viewed} bytes")
        return ref

    def _parameter(self, arguments: tuple[Any, ...]) -> TensorRef:
        if len(arguments) != 3 or not isinstance(arguments[0], TensorRef) or arguments[2]:
            raise self._fail("has a damaged parameter", f"{len(arguments)} arguments", "a tensor without hooks")
        return arguments[0]

    def _encoded(self, arguments: tuple[Any, ...]) -> bytes:
        if len(arguments) != 2 or type(arguments[0]) is not str or arguments[1] != "latin1":
            raise self._fail("encodes what is not bytes written as Latin-1")
        # A text that is fetched and encoded again and again would take memory each time.
        self._to_encode -= len(arguments[0])
        if self._to_encode < 0:
            raise self._fail("encodes its texts again and again", "more bytes than the pickle has")
        try:
            return arguments[0].encode("latin-1")
        except UnicodeEncodeError:
            raise self._fail("encodes text that is not Latin-1") from None
