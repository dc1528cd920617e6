# SPDX-License-Identifier: Apache-2.0
"""Takes constants out of a netlist that nextpnr would route: one net over the whole device, with thousands of ends.

nextpnr knows constants at inputs of LUTs, flip-flops and carry cells without any wire. It routes them to three other
places, where they can be had otherwise:

- the beginning of a carry chain: a carry cell before it makes the constant, as nextpnr itself puts one there, but from
  a constant input instead of a wire;
- address bits of distributed RAM that has fewer than 16 words: they repeat a bit that is used, in both addresses
  alike, so that the words lie at other places and are found there;
- clocks of a multiplier that no register of it uses: they are its clock, which is there anyway.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
_CONSTANT = ("0", "1")
_CLOCKS = ("CLK1", "CLK2", "CLK3")
# Carry out of the first half: A0; the second half lets it through.
_FEED = {"INIT0": "0000000000001010", "INIT1": "1111111111111111", "INJECT1_0": "NO", "INJECT1_1": "YES"}


def take_out(netlist: Path) -> Counter[str]:
    """Rewrite the netlist; how often each of the three was done: "carries", "addresses", "clocks".

    Args:
        netlist: of Yosys' write_json, flattened, for ECP5.
    """
    design = json.loads(netlist.read_text())
    (top,) = (m for m in design["modules"].values() if int(m.get("attributes", {}).get("top", "0"), 2))
    cells: dict[str, Cell] = top["cells"]
    used = (bit for cell in cells.values() for bits in cell["connections"].values() for bit in bits)
    fresh = count(1 + max((bit for bit in used if isinstance(bit, int)), default=1))
    done: Counter[str] = Counter()
    for name, cell in list(cells.items()):
        if cell["type"] == "CCU2C" and cell["connections"].get("CIN", ["x"])[0] in _CONSTANT:
            carry = next(fresh)
            cells[f"{name}$feed"] = _feed(cell["connections"]["CIN"][0], carry)
            cell["connections"]["CIN"] = [carry]
            done["carries"] += 1
        elif cell["type"] == "TRELLIS_DPR16X4":
            done["addresses"] += _repeat_addresses(cell)
        elif cell["type"] == "MULT18X18D":
            done["clocks"] += _tie_clocks(cell)
    netlist.write_text(json.dumps(design))
    return done


def _feed(constant: str, carry: int) -> Cell:
    """A carry cell whose carry out is a constant."""
    connections: dict[str, list[int | str]] = {f"{letter}{half}": ["1"] for half in "01" for letter in "ABCD"}
    connections |= {"A0": [constant], "CIN": ["x"], "COUT": [carry]}
    directions = {port: "output" if port == "COUT" else "input" for port in connections}
    return {
        "hide_name": 0,
        "type": "CCU2C",
        "parameters": dict(_FEED),
        "attributes": {},
        "port_directions": directions,
        "connections": connections,
    }


def _repeat_addresses(ram: Cell) -> int:
    """Let constant bits of both addresses repeat one that is used; how many there were. Contents must be undefined."""
    read, write = ram["connections"]["RAD"], ram["connections"]["WAD"]
    if set(ram["parameters"].get("INITVAL", "x")) != {"x"}:
        return 0
    unused = [n for n in range(len(read)) if read[n] in _CONSTANT and read[n] == write[n]]
    kept = [n for n in range(len(read)) if read[n] not in _CONSTANT and write[n] not in _CONSTANT]
    if not kept:
        return 0
    for n in unused:
        read[n], write[n] = read[kept[-1]], write[kept[-1]]
    return len(unused)


def _tie_clocks(multiplier: Cell) -> int:
    """Let clocks that are constant, since nothing uses them, be the first one; how many there were."""
    connections = multiplier["connections"]
    taken = {str(value) for value in multiplier["parameters"].values()}
    idle = [port for port in _CLOCKS if connections.get(port, ["x"])[0] in _CONSTANT and port not in taken]
    for port in idle:
        connections[port] = list(connections["CLK0"])
    return len(idle)
