# SPDX-License-Identifier: Apache-2.0
"""Checks what Vivado would be given, as far as that goes without it: `python -m scripts.cards.check [CARD]...`.

For each card: the build's scripts run in a Tcl interpreter whose Vivado commands take notes (scripts/cards/tcl.py), the
block design has the ports that the top level connects, and slang elaborates the top level of the card's configuration
from the very list of files that Vivado gets, with the platform's ports and a model of the DSP block in place of the
vendor's. Verilator (-Wall) reads the top level of each platform. Exit codes: 0 nothing found, 1 faults were printed, 2
a tool is missing.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.cards import tcl, top
from scripts.cards.facts import PLATFORM, Card, cards
from scripts.rtl import sources, tools
from scripts.rtl.tools import BUILD, ROOT, ToolError

FOLDER = BUILD / "cards"
SMALL = "tiny-batch"
"""Configuration that Verilator reads a top level with: the buses are those of any, the machine is small."""


def scripts(card: Card, folder: Path) -> list[str]:
    """What is wrong with the scripts of a card, each in a line."""
    try:
        notes = tcl.rehearse(card, folder)
    except ToolError as error:
        return [str(error)]
    wanted = tcl.signals(card)
    found = [
        f"{card.key}: the top level connects {name}, the platform has no such port" for name in wanted - {*notes.ports}
    ]
    found += [
        f"{card.key}: the platform's port {name} is not connected by the top level" for name in {*notes.ports} - wanted
    ]
    return found + [f"{card.key}: the platform's port {name} leads nowhere" for name in {*notes.ports} - {*notes.wires}]


def elaborates(card: Card, folder: Path) -> bool:
    """Whether slang elaborates the card's top level from the files that Vivado gets; what it says is printed."""
    from pyslang import driver

    run = driver.Driver()
    run.addStandardArgs()
    given = [
        *tcl.files(card, folder),
        folder / "stub" / f"{PLATFORM}_wrapper.sv",
        sources.SIM / "primitives" / "DSP48E2.sv",
    ]
    options = ["--top", top.TOP, "-Wnone"]
    line = " ".join(f'"{part}"' for part in ["slang", *options, *map(str, given)])
    if not (run.parseCommandLine(line) and run.processOptions() and run.parseAllSources()):
        return False
    run.reportCompilation(run.createCompilation(), True)
    return bool(run.reportDiagnostics(True))


def read_by_verilator(card: Card, folder: Path) -> bool:
    """Whether Verilator has nothing to say about the card's top level, of a small configuration."""
    small = dataclasses.replace(card, config=SMALL)
    tcl.write(small, folder)
    looked_in = [folder, folder / "stub", *sources.folders()]
    command = ["verilator", "--lint-only", "--quiet", "-Wall", "--timing", "--top-module", top.TOP]
    command += sources.library(looked_in)
    command += map(str, [sources.WAIVERS, *sources.packages(SMALL), folder / f"{top.TOP}.sv"])
    return subprocess.run(command, env=tools.environment(), cwd=ROOT).returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of this file."""
    named = list(sys.argv[1:] if arguments is None else arguments)
    problem = tools.lacking([tools.VERILATOR, tools.PYSLANG])
    if problem or not {*named} <= {*cards()}:
        print(f"cards: {problem or f'unknown card; known: {list(cards())}'}", file=sys.stderr)
        return 2
    tools.prepare()
    good = True
    read: set[str] = set()
    for key in named or cards():
        card = cards()[key]
        folder = FOLDER / key
        tcl.write(card, folder)
        for fault in scripts(card, folder):
            print(fault)
            good = False
        good &= elaborates(card, folder)
        if card.platform not in read:
            good &= read_by_verilator(card, FOLDER / f"{key}-{SMALL}")
            read.add(card.platform)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
