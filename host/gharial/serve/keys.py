# SPDX-License-Identifier: Apache-2.0
"""API keys: a file of names and hashes, from which no key can be had.

A line is `NAME SHA256`, the hash in hexadecimal; `#` begins a comment. A key is 32 random bytes, so that a plain hash
keeps it. The file is read again when it has changed: keys come and go without a restart.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from gharial.errors import BadInput, GharialError
from gharial.files import open_regular

PARAMETER = "api_key"
"""The query parameter that holds a key, for clients that cannot send headers."""

_BEARER = "bearer "
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_EXPECTED = "a name and a SHA-256 in 64 hexadecimal digits"
_REMEDY = "gharial serve --new-key NAME makes a line"


def new_key(name: str) -> tuple[str, str]:
    """A key, and the file's line for it.

    Raises:
        BadInput: the name is empty, or holds white space or a comment's mark.
    """
    if not name or any(mark.isspace() or mark == "#" or not mark.isprintable() for mark in name):
        raise BadInput("is no name of a key", "--new-key", name, "a word without spaces or #")
    key = secrets.token_urlsafe(32)
    return key, f"{name} {_hash(key)}"


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class Keys:
    """The keys that are good.

    Args:
        path: the file.
        tell: called with a sentence when a changed file is taken, or cannot be and the keys stay as they were.

    Raises:
        BadInput: the file cannot be used, or holds no key.
    """

    def __init__(self, path: str, tell: Callable[[str], object] = lambda sentence: None) -> None:
        self._path, self._tell = path, tell
        self._state = self._look()
        self._keys = _read(path)

    def __len__(self) -> int:
        return len(self._keys)

    def name(self, authorization: str | None, query: str | None) -> str | None:
        """Whose key a request has; None for nobody's.

        Args:
            authorization: its header of that name.
            query: the value of its parameter `api_key`.
        """
        self._refresh()
        key = query
        if authorization is not None and authorization[: len(_BEARER)].lower() == _BEARER:
            key = authorization[len(_BEARER) :].strip()
        if not key:
            return None
        digest, found = _hash(key), None
        for known, name in self._keys.items():  # all of them: how long it takes says nothing
            if hmac.compare_digest(known, digest):
                found = name
        return found

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = Path(self._path).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _refresh(self) -> None:
        state = self._look()
        if state == self._state:
            return
        self._state = state
        try:
            self._keys = _read(self._path)
        except GharialError as error:
            self._tell(f"the keys stay as they were: {error}")
        else:
            self._tell(f"{self._path}: {len(self._keys)} keys")


def _read(path: str) -> Mapping[str, str]:
    """Names by hash."""
    with open_regular(path, "a file of API keys", _REMEDY) as file:
        text = file.read().decode("utf-8-sig", "replace")
    keys: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or not _HASH.fullmatch(words[1]):
            # What stands there may be a key, so it is not shown.
            raise BadInput("is no line of a key", f"{path}:{number}", f"{len(words)} words", _EXPECTED, _REMEDY)
        name, digest = words[0], words[1].lower()
        if digest in keys:
            raise BadInput("is the same key twice", f"{path}:{number}", f"{keys[digest]} and {name}", "one name a key")
        keys[digest] = name
    if not keys:
        raise BadInput("holds no key", path, "none", _EXPECTED, _REMEDY)
    return keys
