# SPDX-License-Identifier: Apache-2.0
"""From a netlist of Yosys to the table that netlist.cpp reads: words of 32 bits, the cells of each kind after another.

Cells are taken as sim/ecp5/cells.h knows them. One that is set up in a way that is not modelled there, or has another
clock, is refused by its name.
"""

from __future__ import annotations

import array
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from scripts.rtl.tools import ToolError

from gharial.files import write_atomically

MAGIC = 0x4C4E4847
CLOCK = "clk_i"
_CONSTANTS = {"0": 0, "1": 1, "x": 0, "z": 0}  # what is not defined is taken for 0

Cell = Mapping[str, Any]
# What parameters of a cell must be, where it has them: all else is not modelled.
_FIXED: dict[str, dict[str, tuple[str, ...]]] = {
    "LUT4": {},
    "PFUMX": {},
    "L6MUX21": {},
    "CCU2C": {},
    "TRELLIS_FF": {
        "GSR": ("DISABLED",),
        "CLKMUX": ("CLK",),
        "LSRMUX": ("LSR",),
        "SRMODE": ("LSR_OVER_CE",),
        "CEMUX": ("CE", "INV", "1"),
        "REGSET": ("SET", "RESET"),
    },
    "TRELLIS_DPR16X4": {"WCKMUX": ("WCK",), "WREMUX": ("WRE",)},
    "DP16KD": {
        "GSR": ("DISABLED",),
        "REGMODE_A": ("NOREG",),
        "REGMODE_B": ("NOREG",),
        "CLKAMUX": ("CLKA",),
        "CLKBMUX": ("CLKB",),
        "CSDECODE_A": ("0b000",),
        "CSDECODE_B": ("0b000",),
        "WRITEMODE_A": ("READBEFOREWRITE",),
        "WRITEMODE_B": ("READBEFOREWRITE",),
    },
    "MULT18X18D": {
        "GSR": ("DISABLED",),
        "REG_INPUTA_CLK": ("CLK0",),
        "REG_INPUTB_CLK": ("CLK0",),
        "REG_INPUTC_CLK": ("NONE",),
        "REG_PIPELINE_CLK": ("CLK0",),
        "REG_OUTPUT_CLK": ("CLK0",),
        "RESETMODE": ("SYNC",),
    },
}
# Inputs that must be constant, and their value.
_TIED: dict[str, dict[str, int]] = {
    "DP16KD": dict.fromkeys(("WEB", "RSTA", "RSTB", *(f"CS{port}{n}" for port in "AB" for n in range(3))), 0),
    "MULT18X18D": {
        **{f"CE{n}": 1 for n in range(4)},
        **dict.fromkeys(("SOURCEA", "SOURCEB", *(f"RST{n}" for n in range(4))), 0),
    },
}
_CLOCKS = {"TRELLIS_FF": ("CLK",), "TRELLIS_DPR16X4": ("WCK",), "DP16KD": ("CLKA", "CLKB"), "MULT18X18D": ("CLK0",)}
_WIDTHS = (1, 2, 4, 9, 18, 36)


def write(netlist: Path, table: Path) -> dict[str, int]:
    """Write the table of a netlist.

    Args:
        netlist: what Yosys' write_json wrote: flattened, for ECP5, its clock `clk_i`.
        table: the new file.

    Returns:
        Cells of each kind.

    Raises:
        ToolError: a cell that is not modelled.
    """
    design = json.loads(netlist.read_text())
    (top,) = (m for m in design["modules"].values() if int(m.get("attributes", {}).get("top", "0"), 2))
    words = _Words(top)
    write_atomically(table, iter([words.all()]))
    return {kind: len(cells) for kind, cells in words.cells.items()}


class _Words:
    """The words of a top module."""

    def __init__(self, top: Mapping[str, Any]) -> None:
        (self._clock,) = top["ports"][CLOCK]["bits"]
        self._ports = top["ports"]
        self.cells: dict[str, list[Cell]] = {kind: [] for kind in _FIXED}
        highest = 1
        for name, cell in top["cells"].items():
            self._check(name, cell)
            self.cells[cell["type"]].append(cell)
            highest = max([highest, *(b for bits in cell["connections"].values() for b in bits if isinstance(b, int))])
        of_ports = [b for port in self._ports.values() for b in port["bits"] if isinstance(b, int)]
        self._nowhere = 1 + max([highest, *of_ports])
        self._words = array.array("I")

    def all(self) -> bytes:
        """All of them, little-endian."""
        self._put(MAGIC, self._nowhere + 1, len(self._ports))
        for name, port in self._ports.items():
            self._put(len(name), *name.encode(), len(port["bits"]), *map(self._net, port["bits"]))
        kinds: tuple[tuple[tuple[str, ...], Callable[[Cell], Iterable[int]]], ...] = (
            (("LUT4",), self._lut),
            (("PFUMX", "L6MUX21"), self._mux),
            (("CCU2C",), self._carry),
            (("TRELLIS_FF",), self._flip_flop),
            (("TRELLIS_DPR16X4",), self._distributed),
            (("DP16KD",), self._block_ram),
            (("MULT18X18D",), self._multiplier),
        )
        for names, encode in kinds:
            self._put(sum(len(self.cells[name]) for name in names))
            for name in names:
                for cell in self.cells[name]:
                    self._put(*encode(cell))
        return self._words.tobytes()

    def _put(self, *words: int) -> None:
        self._words.extend(words)

    def _net(self, bit: int | str) -> int:
        return bit if isinstance(bit, int) else _CONSTANTS[bit]

    def _in(self, cell: Cell, *pins: str) -> list[int]:
        found = cell["connections"]
        return [self._net(bit) for pin in pins for bit in found.get(pin, ["0"])]

    def _out(self, cell: Cell, *pins: str) -> list[int]:
        """Nets that outputs drive; those that drive nothing all get one that nobody reads."""
        found = [bit for pin in pins for bit in cell["connections"].get(pin, ["x"])]
        return [bit if isinstance(bit, int) else self._nowhere for bit in found]

    def _lut(self, cell: Cell) -> list[int]:
        return [*self._in(cell, *"ABCD"), *self._out(cell, "Z"), int(cell["parameters"]["INIT"], 2)]

    def _mux(self, cell: Cell) -> list[int]:
        pins = ("BLUT", "ALUT", "C0") if cell["type"] == "PFUMX" else ("D0", "D1", "SD")
        return [*self._in(cell, *pins), *self._out(cell, "Z")]

    def _carry(self, cell: Cell) -> list[int]:
        own = cell["parameters"]
        halves = int(own["INIT1"], 2) << 16 | int(own["INIT0"], 2)
        injected = (own["INJECT1_0"] == "YES") + 2 * (own["INJECT1_1"] == "YES")
        pins = ("CIN", "A0", "B0", "C0", "D0", "A1", "B1", "C1", "D1")
        return [*self._in(cell, *pins), *self._out(cell, "S0", "S1", "COUT"), halves, injected]

    def _flip_flop(self, cell: Cell) -> list[int]:
        enable = {"CE": 0, "INV": 1, "1": 2}[cell["parameters"]["CEMUX"].strip()]
        begins = int(cell["parameters"]["REGSET"] == "SET")
        return [*self._in(cell, "LSR", "CE", "DI"), *self._out(cell, "Q"), enable, begins]

    def _distributed(self, cell: Cell) -> list[int]:
        return [*self._in(cell, "RAD"), *self._out(cell, "DO"), *self._in(cell, "WRE", "WAD", "DI")]

    def _block_ram(self, cell: Cell) -> list[int]:
        width = int(cell["parameters"]["DATA_WIDTH_A"], 2)
        outputs = [self._out(cell, *(f"DO{port}{n}" for n in range(18))) for port in "AB"]
        reads = width != 36 and any(net != self._nowhere for net in outputs[0])
        addresses = self._in(cell, *(f"AD{port}{n}" for port in "AB" for n in range(14)))
        data = self._in(cell, *(f"DI{port}{n}" for port in "AB" for n in range(18)))
        return [width, *self._in(cell, "CEA", "CEB", "WEA"), *addresses, *data, *outputs[0], *outputs[1], int(reads)]

    def _multiplier(self, cell: Cell) -> list[int]:
        operands = self._in(cell, "SIGNEDA", "SIGNEDB", *(f"{port}{n}" for port in "AB" for n in range(18)))
        return [*operands, *self._out(cell, *(f"P{n}" for n in range(36)))]

    def _check(self, name: str, cell: Cell) -> None:
        kind, own, pins = cell["type"], cell["parameters"], cell["connections"]
        if kind not in _FIXED:
            raise ToolError(f"{name}: no model of a cell {kind}")
        for parameter, allowed in _FIXED[kind].items():
            if parameter in own and own[parameter].strip() not in allowed:
                raise ToolError(f"{name}: {kind} with {parameter} {own[parameter]}, modelled: {', '.join(allowed)}")
        for parameter, value in own.items():
            if parameter.startswith("INITVAL") and set(value) - {"x", "0"}:
                raise ToolError(f"{name}: {kind} with contents at power-on is not modelled")
        for pin, value in _TIED.get(kind, {}).items():
            if self._in(cell, pin) != [value] and pin in pins:
                raise ToolError(f"{name}: {kind} with {pin} not tied to {value} is not modelled")
        for pin in _CLOCKS.get(kind, ()):
            if pins[pin] != [self._clock]:
                raise ToolError(f"{name}: {kind} has another clock than {CLOCK}")
        if kind == "DP16KD":
            widths = {int(own[f"DATA_WIDTH_{port}"], 2) for port in "AB"}
            if len(widths) > 1 or not widths <= {*_WIDTHS}:
                raise ToolError(
                    f"{name}: {kind} with widths {sorted(widths)}, modelled: {_WIDTHS}, the same at both ports"
                )
