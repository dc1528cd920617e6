# SPDX-License-Identifier: Apache-2.0
"""Puts a synthesised design between registers, so that its clock rate can be told before it is on a board.

On a board the ports of a design lead to other logic on the device, not to pads, which would draw its registers to the
edges. So each input bit but the clock comes from a register of a chain, and each output bit goes to one, mixed with the
register before; the ends of the chain are the only pads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

CLOCK = "clk_i"
# A string of digits needs a blank behind it: it would be a number otherwise.
_FF = {"CLKMUX": "CLK", "CEMUX": "1 ", "LSRMUX": "LSR", "REGSET": "RESET", "GSR": "DISABLED"}
_XOR = "0110011001100110"  # of A and B


def wrap(netlist: Path, wrapped: Path) -> int:
    """Write the netlist of Yosys' write_json with its ports on a chain; the number of bits on it.

    Args:
        netlist: a flattened design for ECP5 whose clock is `clk_i`.
        wrapped: where the new one goes; its ports are `clk_i`, `chain_i` and `chain_o`.
    """
    design = json.loads(netlist.read_text())
    (top,) = (m for m in design["modules"].values() if int(m.get("attributes", {}).get("top", "0"), 2))
    used = (b for cell in top["cells"].values() for bits in cell["connections"].values() for b in bits)
    fresh = count(1 + max(b for b in used if isinstance(b, int)))
    (clock,) = top["ports"][CLOCK]["bits"]
    first = next(fresh)
    end, length = first, 0
    for bit in _bits(top, "input"):
        _register(top, f"chain_{length}", clock, end, bit)
        end, length = bit, length + 1
    for bit in _bits(top, "output"):
        mixed, kept = next(fresh), next(fresh)
        _cell(top, f"chain_mix_{length}", "LUT4", {"INIT": _XOR}, {"A": end, "B": bit, "C": "0", "D": "0", "Z": mixed})
        _register(top, f"chain_{length}", clock, mixed, kept)
        end, length = kept, length + 1
    top["ports"] = {
        CLOCK: top["ports"][CLOCK],
        "chain_i": {"direction": "input", "bits": [first]},
        "chain_o": {"direction": "output", "bits": [end]},
    }
    wrapped.write_text(json.dumps(design))
    return length


def _bits(top: dict[str, Any], direction: str) -> Iterator[int]:
    """Bits of the ports of a direction, but the clock; constants left out."""
    for name, port in top["ports"].items():
        if port["direction"] == direction and name != CLOCK:
            yield from (bit for bit in port["bits"] if isinstance(bit, int))


def _register(top: dict[str, Any], name: str, clock: int, d: int, q: int) -> None:
    _cell(top, name, "TRELLIS_FF", _FF, {"CLK": clock, "LSR": "0", "DI": d, "Q": q})


def _cell(
    top: dict[str, Any], name: str, kind: str, parameters: dict[str, str], connections: dict[str, int | str]
) -> None:
    top["cells"][name] = {
        "hide_name": 0,
        "type": kind,
        "parameters": parameters,
        "attributes": {},
        "port_directions": {port: "output" if port in ("Q", "Z") else "input" for port in connections},
        "connections": {port: [bit] for port, bit in connections.items()},
    }
