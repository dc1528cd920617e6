# SPDX-License-Identifier: Apache-2.0
"""torch's zip checkpoint format, read without torch.

Members, below one folder of any name: `data.pkl` (the pickled object), `data/K` (the bytes of storage K), `version`
(format version, 3) and, since torch 2.1, `byteorder`. Files before torch 1.6 (bare pickle, tar) are refused.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import Any

import numpy as np

from gharial.checkpoint.recognise import GIVE, HEAD_BYTES, refusal
from gharial.checkpoint.tensors import StorageRef, TensorRef, materialise
from gharial.checkpoint.text import shown
from gharial.checkpoint.unpickle import unpickle
from gharial.checkpoint.ziparchive import ZipArchive
from gharial.errors import BadInput
from gharial.files import hollow, open_regular

MAX_FILE_BYTES = 8 << 30
"""Largest file that is opened: ten times the large model."""

_FORMAT_VERSIONS = range(1, 11)
_DAMAGED = "copy or download the file again: it is damaged"


def load(path: str | os.PathLike[str], select: Callable[[Any], Any] | None = None) -> Any:
    """The object that a checkpoint holds, with every tensor as a read-only numpy array.

    Args:
        path: file written by `torch.save` of torch 1.6 or later, pickle protocol 2 to 5.
        select: given the object with a `TensorRef` in place of each tensor, returns what is to be read (any part or
            rearrangement of it), or raises. Only storages of tensors that remain are read.

    Returns:
        dict, OrderedDict, list, tuple, str, bytes, int, float, bool and None as in the file; numpy arrays of the
        tensor's shape and type, bfloat16 widened to float32. Arrays may share memory where the tensors did.

    Raises:
        BadInput: the file is missing, is something else (told apart: Git LFS pointer, text, older torch formats,
            TorchScript), is damaged, would run code, or exceeds a bound. Memory is bounded by a small multiple of the
            file's size whatever it holds.
    """
    name = os.fspath(path)
    with open_checkpoint(name) as file:
        size = os.fstat(file.fileno()).st_size
        problem = refusal(file.read(HEAD_BYTES), size, name)
        if problem is not None:
            raise problem
        checkpoint = _Checkpoint(ZipArchive(file, size, name), name)
        tree = checkpoint.tree()
        return checkpoint.with_arrays(tree if select is None else select(tree))


@contextmanager
def open_checkpoint(name: str) -> Iterator[BufferedReader]:
    """`name` open for reading.

    Raises:
        BadInput: it is missing, is no plain file, is too large, is hollow (`gharial.files.hollow`), or cannot be read
            (now or in the `with` block).
    """
    with open_regular(name, "a checkpoint file", GIVE) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_FILE_BYTES:
            raise BadInput("the file is too large", name, f"{size} bytes", f"at most {MAX_FILE_BYTES}", GIVE)
        problem = hollow(file, name, "a checkpoint file")
        if problem is not None:
            raise problem
        try:
            yield file
        except OSError as error:
            raise BadInput("cannot be read", name, error.strerror, "a checkpoint file", "copy it again") from None


class _Checkpoint:
    """An archive read as a torch checkpoint."""

    def __init__(self, archive: ZipArchive, path: str) -> None:
        self._archive = archive
        self._path = path
        self._folder = self._find_folder()
        self._storages: dict[str, memoryview] = {}
        self._check_header()

    def tree(self) -> Any:
        """The pickled object, tensors as `TensorRef`."""
        member = f"{self._folder}/data.pkl"
        return unpickle(self._archive.read(member), f"{self._path}: {shown(member)}", self._check_storage)

    def with_arrays(self, tree: Any) -> Any:
        """`tree` rebuilt with an array for each `TensorRef`; one array for references that are one object."""
        arrays: dict[int, np.ndarray] = {}

        def convert(value: Any) -> Any:
            if isinstance(value, TensorRef):
                if id(value) not in arrays:
                    arrays[id(value)] = materialise(value, self._read_storage)
                return arrays[id(value)]
            if isinstance(value, dict):
                made: dict[Any, Any] = OrderedDict() if isinstance(value, OrderedDict) else {}
                made.update((key, convert(item)) for key, item in value.items())
                return made
            if isinstance(value, list):
                return [convert(item) for item in value]
            if isinstance(value, tuple):
                return tuple(convert(item) for item in value)
            return value

        return convert(tree)

    def _find_folder(self) -> str:
        folders = [match[1] for name in self._archive.members if (match := re.fullmatch(r"([^/]+)/data\.pkl", name))]
        if len(folders) != 1:
            raise BadInput(
                "this zip is no torch checkpoint",
                self._path,
                f"{len(folders)} members FOLDER/data.pkl among {len(self._archive.members)}",
                "one",
                GIVE,
            )
        if f"{folders[0]}/constants.pkl" in self._archive.members:
            raise BadInput(
                "this is a TorchScript archive, which holds code",
                self._path,
                f"member {shown(folders[0])}/constants.pkl",
                "a checkpoint of plain weights",
                "save the weights (state_dict) with torch.save, or export a hardware checkpoint",
            )
        return folders[0]

    def _check_header(self) -> None:
        version = self._small_member("version")
        if version is None or not re.fullmatch(r"[0-9]{1,3}\n?", version) or int(version) not in _FORMAT_VERSIONS:
            raise BadInput(
                "unknown version of torch's file format",
                f"{self._path}: version",
                "nothing" if version is None else shown(version),
                f"{_FORMAT_VERSIONS[0]} to {_FORMAT_VERSIONS[-1]}",
                "save the checkpoint with a current torch",
            )
        # Absent before torch 2.1, which wrote the machine's own order: little-endian on every machine in use.
        order = self._small_member("byteorder") or "little"
        if order != "little":
            raise BadInput(
                "the tensors' byte order is not supported",
                f"{self._path}: byteorder",
                shown(order),
                "little",
                "load and save the checkpoint on a little-endian machine",
            )

    def _small_member(self, name: str) -> str | None:
        member = self._archive.members.get(f"{self._folder}/{name}")
        if member is None:
            return None
        if member.size > 16:
            raise BadInput("the member is too long", f"{self._path}: {name}", member.size, "16 bytes", _DAMAGED)
        return self._archive.read(member.name).decode("latin-1")

    def _member_of(self, storage: StorageRef) -> str:
        return f"{self._folder}/data/{storage.key}"

    def _check_storage(self, storage: StorageRef) -> None:
        """Compares a storage's size with its member's before anything is read."""
        name = self._member_of(storage)
        member = self._archive.members.get(name)
        where = f"{self._path}: {shown(name)}"
        if member is None:
            raise BadInput("the data of a tensor are missing", where, "no such member", "the member", _DAMAGED)
        size = storage.numel * storage.kind.dtype.itemsize
        if member.size != size:
            raise BadInput(
                "the data of a tensor have the wrong size",
                where,
                f"{member.size} bytes",
                f"{size} bytes ({storage.numel} of {storage.kind.name})",
                _DAMAGED,
            )

    def _read_storage(self, storage: StorageRef) -> memoryview:
        data = self._storages.get(storage.key)
        if data is None:
            name = self._member_of(storage)
            data = memoryview(self._archive.read(name))
            if storage.kind.name == "bool" and np.frombuffer(data, np.uint8).max(initial=0) > 1:
                what, where = "a bool tensor holds other bytes", f"{self._path}: {shown(name)}"
                raise BadInput(what, where, f"bytes up to {max(data)}", "bytes 0 and 1", _DAMAGED)
            self._storages[storage.key] = data
        return data
