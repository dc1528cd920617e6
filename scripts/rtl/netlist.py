# SPDX-License-Identifier: Apache-2.0
"""What no netlist of ours may have, whatever the device: latches, dividers, memories in flip-flops, cells unmapped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

FLIP_FLOP_MEMORY_BITS = 512
# Found as such before they become logic.
FORBIDDEN = {"latch": "t:$dlatch t:$adlatch t:$dlatchsr", "divider": "t:$div t:$mod t:$divfloor t:$modfloor"}


def flip_flop_memories(folder: Path) -> dict[str, int]:
    """Memories that become flip-flops: name and bits."""
    text = (folder / "memories.txt").read_text()
    cells = re.findall(r'\\MEMID "(.*)"\n.*\\WIDTH (\d+)\n(?:.*\n)*?.*\\SIZE (\d+)\n', text)
    return {name.removeprefix("\\\\"): int(width) * int(size) for name, width, size in cells}


def forbidden_cells(folder: Path) -> list[str]:
    """Latches and dividers, as far as they have been looked for, each as a fault."""
    files = {kind: folder / f"{kind}.txt" for kind in FORBIDDEN}
    return [f"{kind} {name}" for kind, file in files.items() if file.is_file() for name in file.read_text().split()]


def faults(
    cells: Mapping[str, int], numbers: Mapping[str, float], memories: Mapping[str, int], most: Mapping[str, float]
) -> list[str]:
    """What is wrong, each in a line."""
    found = [f"{name}: {bits} bits in flip-flops" for name, bits in memories.items() if bits > FLIP_FLOP_MEMORY_BITS]
    found += [f"{count} latches {name}" for name, count in cells.items() if "LATCH" in name.upper()]
    found += [
        f"{count} cells {name} have no counterpart in the device" for name, count in cells.items() if name[0] == "$"
    ]
    for name, number in numbers.items():
        limit = most.get(name)
        if limit is not None and (number < limit if name == "mhz" else number > limit):
            found.append(f"{name}: {number:g}, {'at least' if name == 'mhz' else 'at most'} {limit:g} wanted")
    return found
