# SPDX-License-Identifier: Apache-2.0
"""Traces as files."""

from __future__ import annotations

import io
import os
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from io import BufferedReader

import numpy as np

from gharial.checkpoint.ziparchive import ZipArchive
from gharial.errors import BadInput
from gharial.files import open_regular, write_atomically
from gharial.trace.keys import decoder_layers, encoder_layers

# What NumPy and zipfile raise for files that are no archives of arrays, or damaged ones.
_DAMAGED = (
    OSError,
    MemoryError,  # a size that is claimed, and not there
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,  # encrypted; NotImplementedError, an unknown compression, is one too
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


_FLOOR_BYTES = 64 << 20
_MOST_TIMES = 100
"""Unpacked, a trace has at most so many times the file's bytes, or `_FLOOR_BYTES`: an archive can claim gigabytes."""


def write_trace(path: str | os.PathLike[str], tensors: Mapping[str, np.ndarray]) -> None:
    """Write a trace as a NumPy archive, whole or not at all; the same trace always gives the same bytes.

    Raises:
        BadInput: the path cannot be an output file.
        GharialError: writing failed.
    """
    data = io.BytesIO()
    np.savez_compressed(data, allow_pickle=False, **dict(tensors))
    write_atomically(path, iter([data.getvalue()]))


def read_trace(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The tensors of a trace file.

    Raises:
        BadInput: it cannot be read, or is no trace.
    """
    name = os.fspath(path)
    try:
        with open_regular(name, "a trace") as file:
            if file.peek(2).startswith(b"PK"):
                # Before NumPy, which reads the whole directory whatever its size.
                _check_directory(file, name)
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise _no_trace(name, "a single array")
            unpacked = sum(member.file_size for member in zipfile.ZipFile(file).infolist())
            if unpacked > max(_FLOOR_BYTES, _MOST_TIMES * os.fstat(file.fileno()).st_size):
                raise _no_trace(name, f"an archive that unpacks to {unpacked:,} bytes")
            arrays = {key: archive[key] for key in archive.files}
    except _DAMAGED as error:
        raise _no_trace(name, (str(error).split("\n") or [""])[0][:80]) from None
    pre, post = encoder_layers(arrays)
    needed = {
        "features",
        "joint_enc",
        "joint",
        "logits",
        "lse",
        "tokens",
        "steps",
        *pre,
        *post,
        *decoder_layers(arrays),
    }
    arrays.setdefault("prefix", np.zeros(0, np.int32))  # traces were written without before there were prefixes
    missing = sorted(needed - set(arrays))
    if missing or not pre or not post:
        raise _no_trace(name, f"no tensor {missing[0]}" if missing else "no encoder layers")
    for key, array in arrays.items():
        if array.ndim < 1 or array.dtype.kind != "i":
            raise _no_trace(name, f"{key} of type {array.dtype} {array.shape}")
    at = arrays["steps"]
    steps = len(arrays["joint_enc"])
    if at.ndim != 1 or at.shape != arrays["tokens"].shape or (at < 0).any() or (at >= steps).any():
        raise _no_trace(name, "tokens at steps that there are not")
    return arrays


def _check_directory(file: BufferedReader, name: str) -> None:
    try:
        ZipArchive(file, os.fstat(file.fileno()).st_size, name)
    except BadInput as error:
        raise _no_trace(name, error.what) from None
    file.seek(0)


def _no_trace(name: str, found: str) -> BadInput:
    return BadInput("this is no trace", name, found, "what gharial trace wrote")
