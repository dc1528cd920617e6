# SPDX-License-Identifier: Apache-2.0
"""From the sources to a netlist for ECP5: LiteX's Verilog around the accelerator's SystemVerilog."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from scripts.board import constants, floorplan
from scripts.board.boards import Board
from scripts.rtl import sources, tools
from scripts.rtl.netlist import FORBIDDEN, forbidden_cells
from scripts.rtl.synth import CELLS
from scripts.rtl.tools import ROOT, ToolError

NETLIST = "netlist.json"
# All paths are relative: names of cells and nets hold some of them, and the order of names decides the placement.
_SCRIPT = """\
read_slang -j 1 {cells} --top gharial_onchip -G Multiplier="ECP5" {library} {files}
read_verilog {verilog}
hierarchy -top {top}
proc -noopt
setattr -set keep 1 a:keep %ci1:+[Q] t:$*dff* %i
synth_ecp5 -top {top} -run begin:map_ffram
{forbidden}
synth_ecp5 -top {top} -run map_ffram:
setattr -unset src
delete t:$scopeinfo
tee -q -o {folder}/stat.json stat -json
write_json {folder}/{netlist}
"""


def synthesise(board: Board, top: str, folder: Path) -> dict[str, int]:
    """Run Yosys on what soc.write left in the folder; the number of cells of each kind.

    Args:
        board: for its configuration.
        top: module and file name of LiteX's part.
        folder: holds that, and gets NETLIST.

    Raises:
        ToolError: Yosys refused the design, or left a latch, a divider or a cell that the device does not have; or
            the floorplan is of another design.
    """
    looked_in = [_relative(path) for path in sources.folders()]
    here = _relative(folder)
    for kind in FORBIDDEN:
        (folder / f"{kind}.txt").unlink(missing_ok=True)
    script = folder / "synth.ys"
    script.write_text(
        _SCRIPT.format(
            cells=" ".join(f"--blackboxed-module {name}" for name in CELLS),
            library=" ".join(sources.library(looked_in)),
            files=" ".join(
                str(_relative(path))
                for path in [*sources.packages(board.config), sources.find("gharial_onchip", sources.folders())]
            ),
            verilog=here / f"{top}.v",
            top=top,
            folder=here,
            netlist=NETLIST,
            forbidden="\n".join(f"tee -q -o {here}/{kind}.txt select -list {what}" for kind, what in FORBIDDEN.items()),
        )
    )
    log = folder / "yosys.log"
    command = ["yosys", "-l", str(log), "-s", str(_relative(script))]
    done = subprocess.run(command, cwd=ROOT, env=tools.environment(), stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()][-20:]
        raise ToolError("\n".join([f"{board.key}: Yosys stopped; all of it: {log}", *said]))
    stat = json.loads((folder / "stat.json").read_text())
    cells = {name: int(count) for name, count in stat["design"]["num_cells_by_type"].items()}
    wrong = forbidden_cells(folder) + [
        f"{count} cells {name} have no counterpart in the device" for name, count in cells.items() if name[0] == "$"
    ]
    if wrong:
        raise ToolError("\n".join([f"{board.key}: a netlist that no device has", *wrong]))
    constants.take_out(folder / NETLIST)
    floorplan.fix(folder / NETLIST)
    return cells


def _relative(path: Path) -> Path:
    return Path(os.path.relpath(path, ROOT))
