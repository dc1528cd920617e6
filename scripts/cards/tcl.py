# SPDX-License-Identifier: Apache-2.0
"""What rtl/cards/build.tcl is told of a card, its pin constraints, and a run of the scripts without Vivado.

`rehearse` runs them in a Tcl interpreter whose Vivado commands do nothing but take notes: everything is named that is
used, every file is there, and the block design has the ports that the top level connects.
"""

from __future__ import annotations

import tkinter
from dataclasses import dataclass, field
from pathlib import Path

from scripts.board import hashes
from scripts.cards import top
from scripts.cards.facts import PLATFORM, SCRIPTS, Card
from scripts.rtl import sources
from scripts.rtl.tools import ROOT, ToolError

FACTS = "facts.tcl"
CONSTRAINTS = "pins.xdc"
BUILD_SCRIPT = SCRIPTS / "build.tcl"
ACCELERATOR = "gharial_memory"


def files(card: Card, folder: Path) -> list[Path]:
    """Sources of the image in compile order: packages, the accelerator's modules, the top level in the folder."""
    modules = sorted(hashes._modules(ACCELERATOR))
    csr = sorted(path for path in sources.packages(card.config)[-1].parent.glob("*.sv") if "pkg" not in path.name)
    return [*sources.packages(card.config), *modules, *csr, folder / f"{top.TOP}.sv"]


def write(card: Card, folder: Path) -> Path:
    """Write top level, constraints and facts of a card into the folder; the facts' file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{top.TOP}.sv").write_text(top.top(card))
    (folder / "stub").mkdir(exist_ok=True)
    (folder / "stub" / f"{PLATFORM}_wrapper.sv").write_text(top.stub(card))
    (folder / CONSTRAINTS).write_text(_constraints(card))
    config = card.build
    named = {
        "folder": folder,
        "part": card.part,
        "board_part": card.board_part,
        "top": top.TOP,
        "design": PLATFORM,
        "clock_mhz": f"{config.clock_mhz or 0:g}",
        "ports": config.ports,
        "port_bits": 8 * config.port_bytes,
        "hbm": card.hbm or "",
        "lanes": card.lanes,
        "constraints": folder / CONSTRAINTS,
        "common": SCRIPTS / "common.tcl",
        "platform_script": card.script,
    }
    lines = [f"set {name} {{{value}}}" for name, value in named.items()]
    lines += ["set sources {", *(f"  {{{path}}}" for path in files(card, folder)), "}"]
    (folder / FACTS).write_text("\n".join([f"# Of {card.key}, by scripts/cards/tcl.py.", *lines, ""]))
    return folder / FACTS


def _constraints(card: Card) -> str:
    lines = ["# Pins of rtl/cards.yaml; by scripts/cards/tcl.py."]
    for port, (pin, standard) in card.pins.items():
        lines.append(f"set_property PACKAGE_PIN {pin} [get_ports {port}]")
        if standard:
            lines.append(f"set_property IOSTANDARD {standard} [get_ports {port}]")
        if port.endswith("refclk_clk_p"):
            lines.append(f"create_clock -period 10.000 -name {port.removesuffix('_clk_p')} [get_ports {port}]")
    if card.hbm:
        lines += ["set_property PULLDOWN true [get_ports hbm_cattrip]"]
    lines += [
        "# The first of the registers that take the interrupt over.",
        "set_false_path -to [get_pins {irq_q_reg[0]/D}]",
    ]
    return "\n".join([*lines, ""])


@dataclass
class Notes:
    """What a rehearsal took down.

    Attributes:
        cells: names of the block design's cells.
        ports: its ports, and interface ports with their mode.
        wires: how often each pin or port was connected.
    """

    cells: set[str] = field(default_factory=set)
    ports: dict[str, str] = field(default_factory=dict)
    wires: dict[str, int] = field(default_factory=dict)


_QUIET = """create_project add_files create_bd_design validate_bd_design save_bd_design generate_target make_wrapper
update_compile_order launch_runs wait_on_run open_run report_utilization report_timing_summary assign_bd_address
apply_bd_automation current_project current_fileset get_runs get_timing_paths get_bd_addr_spaces get_bd_addr_segs
set_property"""


def rehearse(card: Card, folder: Path) -> Notes:
    """Run the build's scripts without Vivado.

    Args:
        card: which.
        folder: where `write` has been.

    Raises:
        ToolError: a script stops, names a file that is not there, or something that it has not made.
    """
    notes = Notes()
    tcl = tkinter.Tcl()

    def known(kind: str, name: str) -> str:
        cell = name.split("/")[0]
        there = notes.cells if kind in ("pins", "cells") else notes.ports
        if cell not in there:
            raise ToolError(f"{card.script.name}: {name} is used, and was not made")
        return name

    def cell(*arguments: str) -> str:
        notes.cells.add(arguments[-1])
        return arguments[-1]

    def port(*arguments: str) -> str:
        options = dict(zip(arguments[:-1:2], arguments[1:-1:2], strict=True))
        notes.ports[arguments[-1]] = options.get("-mode", options.get("-dir", ""))
        return arguments[-1]

    def connect(*ends: str) -> str:
        for end in ends:
            notes.wires[end] = notes.wires.get(end, 0) + 1
        return ""

    def get_files(names: str) -> str:
        for name in tcl.splitlist(names):
            if not name.endswith(".bd") and not Path(name).is_file():
                raise ToolError(f"{BUILD_SCRIPT.name}: no file {name}")
        return names

    commands = {
        "create_bd_cell": cell,
        "create_bd_port": port,
        "create_bd_intf_port": port,
        "connect_bd_net": connect,
        "connect_bd_intf_net": connect,
        "get_files": get_files,
        "get_property": lambda name, *_: "0.1" if name == "SLACK" else "100%",
    }
    commands |= {name: (lambda *_: "") for name in _QUIET.split()}
    for kind in ("pins", "ports", "cells"):
        for name in (kind, f"intf_{kind}"):
            commands[f"get_bd_{name}"] = lambda name, kind=kind: known(kind, name)
    failure: list[ToolError] = []
    for name, command in commands.items():

        def guarded(*arguments: str, command: object = command) -> str:
            try:
                return str(command(*arguments))  # type: ignore[operator]
            except ToolError as error:
                failure.append(error)
                raise

        tcl.createcommand(name, guarded)
    tcl.eval("rename file _file; proc file args {if {[lindex $args 0] ne {copy}} {return [_file {*}$args]}}")
    tcl.eval("proc puts args {}")
    try:
        tcl.call("set", "argv", str(folder / FACTS))
        tcl.call("source", str(BUILD_SCRIPT))
    except tkinter.TclError as error:
        raise (failure[0] if failure else ToolError(f"{card.key}: the build script stops: {error}")) from error
    return notes


def signals(card: Card) -> set[str]:
    """Interface ports and ports that the top level connects."""
    names = {name for _, name, _ in top.platform_ports(card)}
    grouped = {name.rsplit("_", 1)[0] for name in names if name.startswith(("CSR_", "HOST_", "STATE_", "WEIGHTS_"))}
    grouped |= {name.removesuffix("_clk_p") for name in names if name.endswith("_clk_p")}
    grouped |= {"pcie_mgt"} if any(name.startswith("pcie_mgt_") for name in names) else set()
    own = {
        n for n in names if not n.startswith(("CSR_", "HOST_", "STATE_", "WEIGHTS_", "pcie_mgt_")) and "refclk" not in n
    }
    return grouped | own


__all__ = ["FACTS", "ROOT", "Notes", "files", "rehearse", "signals", "write"]
