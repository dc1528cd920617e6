# SPDX-License-Identifier: Apache-2.0
"""A description of a file: facts for a script, and the same as text."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gharial.errors import BadInput
from gharial.files import open_regular

Rows = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Description:
    """What a file is.

    Attributes:
        facts: to be written as JSON; file, kind, good and problem (None, or the parts of a BadInput: what, where,
            found, expected, remedy) are always there.
        text: lines for a person; the first names file, kind, and good or BAD.
    """

    facts: dict[str, Any]
    text: str

    @property
    def good(self) -> bool:
        """Whether the file is a good one of its kind."""
        return bool(self.facts["good"])


def good(file: str, kind: str, facts: dict[str, Any], rows: Rows) -> Description:
    """A good file: its facts, and some of them as (label, text) for a person. Size and digest are added."""
    every = {"file": file, "kind": kind, "good": True, "problem": None, **identity(file), **facts}
    lines = [
        f"{file}: {kind}, good",
        *aligned([("size", f"{every['bytes']:,} bytes"), ("SHA-256", every["sha256"]), *rows]),
    ]
    return Description(every, "\n".join(lines))


def bad(file: str, kind: str, error: BadInput, **facts: Any) -> Description:
    """A file that is not what it should be, and why."""
    parts = {part: getattr(error, part) for part in ("what", "where", "found", "expected", "remedy")}
    problem = {part: None if value is None else str(value) for part, value in parts.items()}
    lines = [f"{file}: {kind}, BAD", *(f"  {line}" for line in str(error).split("\n"))]
    return Description({"file": file, "kind": kind, "good": False, "problem": problem, **facts}, "\n".join(lines))


def identity(file: str) -> dict[str, Any]:
    """Size and SHA-256 of a file.

    Raises:
        BadInput: it cannot be read.
    """
    with open_regular(file, "a file") as opened:
        return {
            "bytes": os.fstat(opened.fileno()).st_size,
            "sha256": hashlib.file_digest(opened, "sha256").hexdigest(),
        }


def aligned(rows: Rows) -> list[str]:
    """Rows with their labels in a column."""
    every = list(rows)
    width = max((len(label) for label, _ in every), default=0)
    return [f"  {label:<{width}}  {text}" for label, text in every]
