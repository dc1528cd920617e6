# SPDX-License-Identifier: Apache-2.0
"""Typed access to the dicts of a checkpoint (`rnnt_config` and the top level), every fault named by its key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gharial.checkpoint.text import shown
from gharial.errors import BadInput

_REMEDY = "export the checkpoint again with the configuration that it was trained with"


class Section:
    """A dict of a checkpoint; a key that is absent or None gives the default.

    Args:
        values: the dict, or None for an empty one.
        where: file and key of the dict, for messages.

    Raises:
        BadInput: `values` is neither.
    """

    def __init__(self, values: Any, where: str) -> None:
        if values is not None and not isinstance(values, Mapping):
            raise BadInput("this must be a dict", where, shown(values), "a dict", _REMEDY)
        self._values: Mapping[Any, Any] = values or {}
        self._where = where

    def section(self, key: str) -> Section:
        """The dict below `key`."""
        return Section(self._values.get(key), f"{self._where}.{key}")

    def maybe_integer(self, key: str, low: int = 0, high: int = 1 << 62) -> int | None:
        """Integer in [low, high], or None if absent."""
        value = self._values.get(key)
        if value is not None and (type(value) is not int or not low <= value <= high):
            raise self._fail(key, value, f"an integer from {low} to {high}")
        return value

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        """Integer in [low, high]."""
        value = self.maybe_integer(key, low, high)
        return default if value is None else value

    def maybe_number(self, key: str, low: float = -math.inf, high: float = math.inf) -> float | None:
        """Number in [low, high], NaN excluded, or None if absent."""
        value = self._values.get(key)
        if value is None:
            return None
        # An integer of a pickle can be too large for a float.
        sound = type(value) is float or (type(value) is int and value.bit_length() <= 1000)
        if not sound or not low <= value <= high:
            raise self._fail(key, value, f"a number from {low:g} to {high:g}")
        return float(value)

    def number(self, key: str, default: float, low: float, high: float) -> float:
        """Number in [low, high], NaN excluded."""
        value = self.maybe_number(key, low, high)
        return default if value is None else value

    def maybe_text(self, key: str, longest: int | None = None) -> str | None:
        """Text, of at most so many characters, or None if absent."""
        value = self._values.get(key)
        if value is not None and type(value) is not str:
            raise self._fail(key, value, "text")
        if value is not None and longest is not None and len(value) > longest:
            raise self._fail(key, value, f"at most {longest:,}", f"{len(value):,} characters")
        return value

    def maybe_flag(self, key: str) -> bool | None:
        """True or False, or None if absent."""
        value = self._values.get(key)
        if value is not None and type(value) is not bool:
            raise self._fail(key, value, "True or False")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """True or False."""
        value = self.maybe_flag(key)
        return default if value is None else value

    def maybe_bytes(self, key: str) -> bytes | None:
        """Bytes, at least one, or None if absent."""
        value = self._values.get(key)
        if value is not None and (type(value) is not bytes or not value):
            raise self._fail(key, value, "bytes", "no bytes" if type(value) is bytes else None)
        return value

    def _fail(self, key: str, value: Any, expected: str, found: str | None = None) -> BadInput:
        if found is None:
            # A number that came as text looks like one.
            found = f"the text '{shown(value)}'" if type(value) is str else shown(value)
        return BadInput(f"{key} has a value that is not usable", self._where, found, expected, _REMEDY)
