# SPDX-License-Identifier: Apache-2.0
"""Where an image's multipliers and block RAMs lie (docs/fit.md, "The way to an image").

nextpnr's placer scatters these few large cells over the device before it knows what belongs to them, and leaves them
there: the way from a multiplier to the logic behind it is then 29 tiles on average, and a third of all wire is such
ways. Here they have fixed places: the multipliers of a lane of the matrix unit side by side in the order of its adder
tree, the block RAMs of its weights right below them, and what belongs to one unit together. The rest is left to the
placer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.rtl.tools import ToolError

# LFE5U-85F and LFE5UM5G-85F: thirteen blocks of nine columns; in a row of multipliers each holds four, in a row of
# block RAMs four as well.
_COLUMNS = (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114)
_MULTIPLIERS = (0, 1, 4, 5)  # columns within a block, which are their numbers too
_KINDS = ("MULT18X18D", "DP16KD")  # in rows 10, 34 and 58; 22, 46, 70 and 82
_PER_BLOCK = 4

# Row of multipliers, row of block RAMs and first block of each lane of the matrix unit: four blocks each. The middle is
# free for what their results go to.
_LANES = (
    *((10, 22, 0), (10, 22, 4), (10, 22, 8)),
    *((34, 46, 0), (34, 46, 8)),
    *((58, 70, 0), (58, 70, 4), (58, 70, 8)),
)
_ACCELERATOR = "gharial_onchip."  # its cells' names begin so
# Block RAM of LiteX's own is the Ethernet bridge's, whose pins are at the upper edge: it is wanted there, in 8 ns. The
# upper lanes make room for one block then.
_BRIDGE_ROW, _BRIDGE_BLOCK = 22, 4
_LANE_MULTIPLIER = re.compile(r"u_matrix\.gen_lane\[(\d+)\].*gen_pair\[(\d+)\].*gen_col\[(\d+)\]")
_LANE_RAM = re.compile(r"u_weights\.gen_group\[(\d+)\].*gen_bank\[(\d+)\].*\.mem\.0\.(\d+)$")


@dataclass(frozen=True)
class _Unit:
    """Cells whose names hold `name`, in the order of their names, from place `at` of a block on."""

    kind: str
    name: str
    row: int
    block: int
    at: int = 0


_UNITS = (
    _Unit("MULT18X18D", "u_vector.u_sums.", 34, 4),
    _Unit("MULT18X18D", "u_vector.u_cell.gen_gate", 34, 5),
    _Unit("MULT18X18D", "u_vector.u_cell.u_", 34, 6),
    _Unit("DP16KD", "u_vector.u_sums.", 46, 4),
    _Unit("DP16KD", "u_vector.u_cell.gen_gate", 46, 5),
    _Unit("DP16KD", "u_vector.u_cell.u_", 46, 6),
    _Unit("DP16KD", "u_program.u_biases.", 46, 7),
    _Unit("DP16KD", "u_window.", 82, 0),
    _Unit("DP16KD", "u_host.u_commands.u_desk.", 82, 2),
    _Unit("DP16KD", "u_host.u_commands.u_loader.", 82, 2, 1),
    _Unit("DP16KD", "u_program.u_code.", 82, 4),
    _Unit("DP16KD", "u_activations.", 82, 5),
    _Unit("DP16KD", "u_cells.", 82, 6),
    _Unit("DP16KD", "u_program.u_scales.", 82, 8),
    _Unit("DP16KD", "u_topk.", 82, 10, 1),
    _Unit("DP16KD", "u_program.u_embedding.", 82, 11),
)


def fix(netlist: Path) -> int:
    """Write the places into the netlist; how many cells have one.

    Args:
        netlist: of Yosys' write_json, flattened, for ECP5.

    Raises:
        ToolError: a multiplier or block RAM of the accelerator that the plan does not know, or one place for two: the
            plan is of another configuration, or the design has changed.
    """
    design = json.loads(netlist.read_text())
    (top,) = (m for m in design["modules"].values() if int(m.get("attributes", {}).get("top", "0"), 2))
    cells: dict[str, dict[str, Any]] = top["cells"]
    places = plan({name: cell["type"] for name, cell in cells.items() if cell["type"] in _KINDS})
    for name, place in places.items():
        cells[name].setdefault("attributes", {})["BEL"] = place
    netlist.write_text(json.dumps(design))
    return len(places)


def plan(cells: dict[str, str]) -> dict[str, str]:
    """nextpnr's name of the place of each cell.

    Args:
        cells: kinds, MULT18X18D or DP16KD, by name.

    Raises:
        ToolError: as for `fix`.
    """
    places: dict[str, str] = {}
    holders: dict[str, str] = {}
    counts = dict.fromkeys(_UNITS, 0)
    bridge = [name for name in sorted(cells, key=_natural) if not name.startswith(_ACCELERATOR)]
    for name in sorted(cells, key=_natural):
        kind = cells[name]
        found = _of_lane(kind, name, bool(bridge))
        if name in bridge:
            if kind != "DP16KD" or len(bridge) > _PER_BLOCK:
                raise ToolError(f"{name}: scripts/board/floorplan.py has room for {_PER_BLOCK} DP16KD of LiteX's own")
            found = _BRIDGE_ROW, _BRIDGE_BLOCK, bridge.index(name)
        elif found is None:
            units = [unit for unit in _UNITS if unit.kind == kind and unit.name in name]
            if len(units) != 1:
                raise ToolError(f"{name}: {len(units)} places in scripts/board/floorplan.py, 1 wanted for each {kind}")
            (unit,) = units
            found = unit.row, unit.block, unit.at + counts[unit]
            counts[unit] += 1
        place = _site(kind, *found, name)
        if place in holders:
            raise ToolError(f"{name}: scripts/board/floorplan.py has put {holders[place]} where it is to lie, {place}")
        holders[place] = name
        places[name] = place
    return places


def _of_lane(kind: str, name: str, bridge: bool) -> tuple[int, int, int] | None:
    """Row, first block and number from there on, for what belongs to a lane of the matrix unit."""
    found = (_LANE_MULTIPLIER if kind == "MULT18X18D" else _LANE_RAM).search(name)
    if found is None:
        return None
    lane, second, third = map(int, found.groups())
    if lane >= len(_LANES):
        raise ToolError(f"{name}: scripts/board/floorplan.py has {len(_LANES)} lanes")
    multipliers, rams, block = _LANES[lane]
    block += bridge and rams == _BRIDGE_ROW and block >= _BRIDGE_BLOCK
    if kind == "MULT18X18D":  # by column: both pairs of rows share their activation, neighbours are added first
        return multipliers, block, 2 * third + second
    row, half = divmod(second, 2)  # a bank is half a row of weights; its two block RAMs have two columns each
    return rams, block, 8 * half + 4 * third + row


def _site(kind: str, row: int, block: int, number: int, name: str) -> str:
    block, place = block + number // _PER_BLOCK, number % _PER_BLOCK
    if block >= len(_COLUMNS):
        raise ToolError(f"{name}: no place left in row {row} of {kind}, by scripts/board/floorplan.py")
    if kind == "MULT18X18D":
        return f"X{_COLUMNS[block] + _MULTIPLIERS[place]}/Y{row}/MULT18_{_MULTIPLIERS[place]}"
    return f"X{_COLUMNS[block] + 2 * place}/Y{row}/EBR{place}"


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
