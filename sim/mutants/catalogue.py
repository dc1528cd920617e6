# SPDX-License-Identifier: Apache-2.0
"""The mutants: what each has wrong, and who must notice. They are read from *.toml, a file for each folder of rtl/."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
KEYS = {"wrong", "file", "text", "replacement", "killed_by"}


class Stale(Exception):
    """The text that a mutant replaces is not in its file exactly once: the RTL has changed."""


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Args:
        name: unique; says where and what.
        wrong: what is wrong, in a line.
        file: path from the root of the checkout.
        text: what is replaced; it occurs in the file exactly once.
        replacement: what it is replaced by.
        killed_by: benches as `bench/config[/variant]`, of which `:test` picks the tests whose name matches, and tests
            as pytest names them; one of them must fail.
    """

    name: str
    wrong: str
    file: str
    text: str
    replacement: str
    killed_by: tuple[str, ...]

    @property
    def benches(self) -> tuple[str, ...]:
        """Those that are benches."""
        return tuple(name for name in self.killed_by if "::" not in name)

    @property
    def tests(self) -> tuple[str, ...]:
        """Those that are tests of pytest."""
        return tuple(name for name in self.killed_by if "::" in name)

    def of(self, source: str) -> str:
        """The file with the mistake, from the file without.

        Raises:
            Stale: the text is not in it exactly once.
        """
        count = source.count(self.text)
        if count != 1:
            raise Stale(f"{self.file}: found the text to replace {count} times, wanted once")
        return source.replace(self.text, self.replacement)


def read(folder: Path = FOLDER) -> list[Mutant]:
    """All mutants, by file and in its order.

    Raises:
        ValueError: a table lacks a key or has an unknown one, changes nothing, or shares its name with another.
    """
    found: list[Mutant] = []
    for file in sorted(folder.glob("*.toml")):
        for name, entry in tomllib.loads(file.read_text(encoding="utf-8")).items():
            if entry.keys() != KEYS:
                raise ValueError(f"{file}: {name}: keys {sorted(entry)}, wanted {sorted(KEYS)}")
            if entry["text"] == entry["replacement"] or not entry["text"] or not entry["killed_by"]:
                raise ValueError(f"{file}: {name}: changes nothing, or nothing is to notice it")
            found.append(Mutant(name, **{**entry, "killed_by": tuple(entry["killed_by"])}))
    names = [mutant.name for mutant in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"mutants share a name: {', '.join(sorted(twice))}")
    return found


def table(mutants: Sequence[Mutant]) -> str:
    """The mutants as the rows of a table in Markdown."""
    lines = ["| mutant | in | wrong |", "|---|---|---|"]
    lines += [f"| `{mutant.name}` | `{mutant.file.removeprefix('rtl/')}` | {mutant.wrong} |" for mutant in mutants]
    return "\n".join(lines)
