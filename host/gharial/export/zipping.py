# SPDX-License-Identifier: Apache-2.0
"""The zip container of a torch checkpoint, written piece by piece: the counterpart of `gharial.checkpoint.ziparchive`.

Members are stored, their data at multiples of 64 bytes as torch has them (its readers may map them), and dated 1980, so
that equal content gives equal bytes. Format: PKWARE APPNOTE 6.3, without zip64: 4 GiB at most.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gharial.errors import BadInput
from gharial.export.pickling import pickled

Piece = bytes | memoryview

ALIGNMENT = 64
MAX_BYTES = (1 << 32) - (1 << 20)
"""Largest file: five times the large model; beyond it the format needs wider fields."""

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_FOLDER = "archive"
_NEEDS = 20  # version 2.0 of the format
_DAY_ONE = 0x21  # 1 January 1980
_PADDING = 0x4246  # "FB": the extra field that torch pads with


def checkpoint_pieces(tree: Any, where: object) -> Iterator[Piece]:
    """The bytes of a torch zip file that holds `tree`, as pieces for `gharial.files.write_atomically`.

    Args:
        tree: as in `gharial.export.pickling.pickled`.
        where: the file's name, for messages.

    Raises:
        BadInput: the file would be larger than `MAX_BYTES`.
    """
    data, tensors = pickled(tree)
    members: list[tuple[str, Piece]] = [("data.pkl", data), ("byteorder", b"little")]
    members += [(f"data/{key}", _bytes_of(array)) for key, array in enumerate(tensors)]
    members.append(("version", b"3\n"))
    total = sum(memoryview(content).nbytes + 256 for _, content in members)
    if total > MAX_BYTES:
        found, remedy = f"{total:,} bytes", "train a smaller model"
        raise BadInput("the checkpoint would be too large", where, found, f"at most {MAX_BYTES:,}", remedy)
    return _pieces(members)


def _bytes_of(array: np.ndarray) -> Piece:
    # An array of no elements has nothing to view.
    return np.ascontiguousarray(array, "<f4").reshape(-1).view(np.uint8).data if array.size else b""


def _pieces(members: Sequence[tuple[str, Piece]]) -> Iterator[Piece]:
    directory = b""
    at = 0
    for short_name, content in members:
        name = f"{_FOLDER}/{short_name}".encode("ascii")
        crc, size = zlib.crc32(content), memoryview(content).nbytes
        extra = _extra(at + _LOCAL.size + len(name))
        sizes = (0, _DAY_ONE, crc, size, size, len(name))
        local = _LOCAL.pack(b"PK\3\4", _NEEDS, 0, 0, *sizes, len(extra)) + name + extra
        directory += _CENTRAL.pack(b"PK\1\2", _NEEDS, _NEEDS, 0, 0, *sizes, 0, 0, 0, 0, 0, at) + name
        yield local
        yield content
        at += len(local) + size
    yield directory
    yield _END.pack(b"PK\5\6", 0, 0, len(members), len(members), len(directory), at, 0)


def _extra(at: int) -> bytes:
    """An extra field behind which the data begin at a multiple of `ALIGNMENT`."""
    padding = -(at + 4) % ALIGNMENT
    return struct.pack("<2H", _PADDING, padding) + b"Z" * padding
