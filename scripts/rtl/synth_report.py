# SPDX-License-Identifier: Apache-2.0
"""Which parts of a synthesised design take what, and how that is shown."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

DEPTH = 3
"""Levels of instances that are told apart."""
REST = "(the rest)"
_INSTANCE = re.compile(r"(?:^|[$\\ ])(u_\w+(?:\.u_\w+)*)")


def parts(netlist: Path, numbers: Mapping[str, Mapping[str, int]], depth: int = DEPTH) -> dict[str, dict[str, int]]:
    """What each instance of a flattened netlist takes, largest first.

    Cells that synthesis made are named after the nets that they drive; logic that several instances share counts for
    one of them.

    Args:
        netlist: what Yosys' write_json wrote.
        numbers: for each number, the cells that count for it and their weights.
        depth: instances are told apart to so many levels.
    """
    modules = json.loads(netlist.read_text())["modules"].values()
    (top,) = (module for module in modules if int(module.get("attributes", {}).get("top", "0"), 2))
    found: dict[str, Counter[str]] = {}
    for name, cell in top["cells"].items():
        for number, weights in numbers.items():
            weight = weights.get(cell["type"], 0)
            if weight:
                found.setdefault(_instance(name, depth), Counter())[number] += weight
    order = sorted(found, key=lambda path: (-found[path].total(), path))
    return {path: {number: found[path][number] for number in numbers} for path in order}


def _instance(cell: str, depth: int) -> str:
    """Path of the instance that a cell belongs to; generate blocks end it."""
    match = _INSTANCE.search(cell)
    return ".".join(match[1].split(".")[:depth]) if match and "." in cell else REST


def table(found: Mapping[str, Mapping[str, int]], of: str, least: float = 0.01) -> list[str]:
    """Lines that show what parts take; those with less than `least` of the number `of` are left out, unless they have
    what few parts have."""
    rows = [(path, row) for path, row in found.items() if path != REST]
    total = sum(row[of] for row in found.values())
    names = [name for _, row in rows[:1] for name in row]
    common = {name for name in names if sum(row[name] > 0 for _, row in rows) > len(rows) / 2}
    rows = [(path, row) for path, row in rows if row[of] >= least * total or any(row[n] for n in {*names} - common)]
    width = max((len(path) for path, _ in rows), default=0)
    head = " " * width + "".join(f"{name:>13}" for name in names)
    return [head, *(f"{path:{width}}" + "".join(f"{row[name]:13}" for name in names) for path, row in rows)]
