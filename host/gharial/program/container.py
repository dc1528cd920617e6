# SPDX-License-Identifier: Apache-2.0
"""The bytes of a program file (docs/program.md): head, manifest, sections. What they mean is checked elsewhere.

Nothing is allocated before its size has been held against the size of the file and against a limit.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from gharial.errors import BadInput
from gharial.files import LFS_POINTER, open_regular
from gharial.program.schema import shown

MAGIC = b"GHARIAL\0"
VERSION = 1
ALIGN = 64
MANIFEST_LIMIT = 4 << 20
HEAD = struct.Struct("<8sII32s")
AGAIN = "compile again with this version"


class ProgramFile:
    """A program file opened for reading. Use as a context manager.

    Raises:
        BadInput: missing, not a regular file, empty, truncated, not a program, of another container version, or its
            manifest does not match its digest or is no JSON object.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file = open_regular(self.path, "a program file")
        try:
            self.size = os.fstat(self._file.fileno()).st_size
            self.manifest = self._manifest()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> ProgramFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _manifest(self) -> dict[str, Any]:
        if self.size == 0:
            raise BadInput("the file is empty", self.path, remedy="copy or compile the program again")
        head = self._file.read(HEAD.size)
        if not head.startswith(MAGIC[: len(head)]):
            remedy = "fetch the file itself with: git lfs pull" if head.startswith(LFS_POINTER[: len(head)]) else None
            raise BadInput("not a Gharial program", self.path, f"a file that begins with {head[:8]!r}", None, remedy)
        if len(head) < HEAD.size:
            raise self._truncated(HEAD.size)
        _, version, length, digest = HEAD.unpack(head)
        if version != VERSION:
            raise BadInput("program file of another container version", self.path, version, VERSION, AGAIN)
        if length > MANIFEST_LIMIT:
            raise BadInput("the manifest is too long", self.path, f"{length} bytes", f"at most {MANIFEST_LIMIT}")
        if self.size < HEAD.size + length:
            raise self._truncated(HEAD.size + length)
        data = self._read(length)
        if hashlib.sha256(data).digest() != digest:
            raise self._damaged("manifest")
        return parse_manifest(data, self.path)

    def sections(self, table: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
        """All sections of the table {name: {offset, bytes, sha256}}, whose types have been checked.

        Raises:
            BadInput: a section out of place or order, outside the file, or with another digest; bytes that belong to
                no section.
        """
        found: dict[str, bytes] = {}
        at = self._file.tell()
        last = max((entry["offset"] + entry["bytes"] for entry in table.values()), default=at)
        if last > self.size:
            raise self._truncated(last)
        for name, entry in sorted(table.items(), key=lambda item: (item[1]["offset"], item[1]["bytes"])):
            start = _aligned(at)
            if entry["offset"] != start:
                raise BadInput("a section is out of place", f"{self.path}: {name}", entry["offset"], start)
            if any(self._read(start - at)):
                raise BadInput("there are bytes between two sections", f"{self.path}: before {name}")
            data = self._read(entry["bytes"])
            if hashlib.sha256(data).hexdigest() != entry["sha256"]:
                raise self._damaged(f"section {name}")
            found[name] = data
            at = start + len(data)
        if at != self.size:
            raise BadInput("there are bytes behind the last section", self.path, f"{self.size} bytes", f"{at} bytes")
        return found

    def _read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) != count:  # the file shrank while it was read
            raise self._truncated(self._file.tell() + count - len(data))
        return data

    def _truncated(self, expected: int) -> BadInput:
        return BadInput(
            "the file is truncated",
            self.path,
            f"{self.size} bytes",
            f"at least {expected}",
            "copy or compile the program again",
        )

    def _damaged(self, what: str) -> BadInput:
        return BadInput(
            f"{what} does not match its digest",
            self.path,
            "a file changed after it was written",
            None,
            "copy or compile the program again",
        )


def parse_manifest(data: bytes, path: str) -> dict[str, Any]:
    """The manifest's JSON object; duplicate keys, NaN and infinities are refused.

    Raises:
        BadInput: it is not such an object.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError("a key that stands twice in one object")
        return result

    def constant(name: str) -> float:
        raise ValueError(f"{name}, which JSON does not know")

    try:
        result = json.loads(data.decode("utf-8"), object_pairs_hook=once, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise BadInput("the manifest is not JSON", path, shown(str(error))) from None
    if not isinstance(result, dict):
        raise BadInput("the manifest is not a JSON object", path, shown(result))
    return result


def chunks(manifest: Mapping[str, Any], sections: Mapping[str, bytes]) -> Iterator[bytes]:
    """The bytes of a program file, piece by piece; the manifest's `sections` is made anew."""
    table = {
        name: {"offset": 0, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in sections.items()
    }
    # Offsets depend on the manifest's length and it on their digits; both only grow, so this ends.
    encoded = b""
    while True:
        at = HEAD.size + len(encoded)
        for name, data in sections.items():
            table[name]["offset"] = _aligned(at)
            at = _aligned(at) + len(data)
        text = json.dumps({**manifest, "sections": table}, sort_keys=True, separators=(",", ":"), allow_nan=False)
        if len(text) == len(encoded):
            break
        # ensure_ascii is json's default: one byte a character
        encoded = text.encode("ascii")
    encoded = text.encode("ascii")
    if len(encoded) > MANIFEST_LIMIT:
        raise BadInput("the manifest is too long", None, f"{len(encoded)} bytes", f"at most {MANIFEST_LIMIT}")
    yield HEAD.pack(MAGIC, VERSION, len(encoded), hashlib.sha256(encoded).digest())
    yield encoded
    at = HEAD.size + len(encoded)
    for data in sections.values():
        yield bytes(_aligned(at) - at)
        yield data
        at = _aligned(at) + len(data)


def _aligned(at: int) -> int:
    return -(-at // ALIGN) * ALIGN
