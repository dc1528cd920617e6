# SPDX-License-Identifier: Apache-2.0
"""How text that came out of a file is shown to a person.

Such text may hold terminal escapes or be megabytes long, so every error message passes it through here.
"""

from __future__ import annotations

from collections.abc import Iterable

_SHOWN = 80


def shown(value: object, limit: int = _SHOWN) -> str:
    """`value` as printable ASCII of at most `limit` characters; bytes are read as Latin-1.

    Only str, bytes and numbers are expanded; of anything else the type's name is given, because the printed form of a
    nested value can be far larger than the value.
    """
    if isinstance(value, bytes):
        value = value[: limit + 1].decode("latin-1")
    if isinstance(value, str):
        text = value[: limit + 1]
    elif value is None or isinstance(value, (bool, int, float)):
        # An integer of a pickle has at most 255 bytes, so its decimal form is short enough to make.
        text = str(value)
    else:
        text = f"a {type(value).__name__}"
    escaped = "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode("ascii") for c in text)
    return escaped if len(escaped) <= limit else escaped[: limit - 3] + "..."


def listed(parts: Iterable[str], limit: int = 12) -> str:
    """The parts joined by commas, the first `limit` of them, and the number of those left out."""
    every = list(parts)
    rest = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + rest
