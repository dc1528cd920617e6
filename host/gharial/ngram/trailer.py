# SPDX-License-Identifier: Apache-2.0
"""The mark behind a KenLM binary: which SentencePiece model the n-gram was made for (docs/ngram.md).

The one place that knows a mark's bytes. A mark of another make is one more entry in `LAYOUTS`.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from gharial.errors import BadInput

MAGIC = b"GHNGRAM\0"
VERSION = 1
ALGORITHM = "sha256"
"""With which marks are written."""

LONGEST = 4096
"""Bytes at a file's end that a mark can take, at most."""

_ALGORITHMS = ("sha256",)
_BODY = struct.Struct("<32s8s")
_FOOT = struct.Struct("<III8s")  # CRC-32, version, length, magic: in this place in every version
LENGTH = _BODY.size + _FOOT.size


@dataclass(frozen=True)
class Mark:
    """Whom an n-gram file is for.

    Attributes:
        algorithm: hash algorithm, as hashlib names it.
        digest: hash of the bytes of the SentencePiece `.model` file.
        layout: name of the layout it was written in.
        length: bytes that it takes at the file's end.
    """

    algorithm: str
    digest: bytes
    layout: str
    length: int

    def fits(self, sentencepiece: bytes) -> bool:
        """Whether it is the mark of this SentencePiece model (the bytes of its file)."""
        return hashlib.new(self.algorithm, sentencepiece).digest() == self.digest

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.digest.hex()}"


def digest_text(sentencepiece: bytes, algorithm: str = ALGORITHM) -> str:
    """How the digest of a SentencePiece model is shown beside `str(mark)`."""
    return f"{algorithm}:{hashlib.new(algorithm, sentencepiece).hexdigest()}"


def encode(sentencepiece: bytes) -> bytes:
    """The mark, as it stands in a file, for a SentencePiece model's bytes."""
    body = _BODY.pack(hashlib.new(ALGORITHM, sentencepiece).digest(), ALGORITHM.encode())
    foot = _FOOT.pack(0, VERSION, LENGTH, MAGIC)
    return body + struct.pack("<I", zlib.crc32(body + foot[4:-8])) + foot[4:]


def _own(tail: bytes, where: str) -> Mark | None:
    if not tail.endswith(MAGIC):
        return None
    if len(tail) < _FOOT.size:
        raise _damaged(where, f"{len(tail)} bytes", f"{LENGTH} bytes")
    crc, version, length, _ = _FOOT.unpack(tail[-_FOOT.size :])
    if version != VERSION:
        raise BadInput(
            "the mark is of another version", where, version, VERSION, "read it with a newer gharial, or mark it again"
        )
    if length != LENGTH or len(tail) < LENGTH:
        raise _damaged(where, f"{min(length, len(tail))} bytes", f"{LENGTH} bytes")
    body = tail[-LENGTH : -_FOOT.size]
    digest, name = _BODY.unpack(body)
    if zlib.crc32(body + tail[4 - _FOOT.size : -8]) != crc:
        raise _damaged(where, "bytes that do not match their CRC-32")
    algorithm = name.rstrip(b"\0").decode("ascii", "backslashreplace")
    if algorithm not in _ALGORITHMS:
        known, remedy = ", ".join(_ALGORITHMS), "read it with a newer gharial, or mark it again with --force"
        raise BadInput("the mark is by another hash", where, algorithm, known, remedy)
    return Mark(algorithm, digest, "gharial", LENGTH)


def _damaged(where: str, found: str, expected: str | None = None) -> BadInput:
    return BadInput("the mark is damaged", where, found, expected, "copy the file again, or mark it again with --force")


Layout = Callable[[bytes, str], Mark | None]
"""From the last bytes of a file, as many as lie behind the KenLM data and `LONGEST` at most, and the file's name for
errors: the mark that they end with, or None if it is none of this layout. Raises BadInput for a damaged one."""

LAYOUTS: dict[str, Layout] = {"gharial": _own}
"""By name, in the order in which they are tried."""


def decode(tail: bytes, where: str) -> Mark | None:
    """The mark that a file ends with, None if it ends with none that is known.

    Args:
        tail: what lies behind the KenLM data, its last `LONGEST` bytes if it is longer.
        where: the file, for errors.

    Raises:
        BadInput: a mark that is damaged, or of a version or hash that is not known.
    """
    for layout in LAYOUTS.values():
        mark = layout(tail, where)
        if mark is not None:
            return mark
    return None
