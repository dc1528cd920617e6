# SPDX-License-Identifier: Apache-2.0
"""A board's whole image as a program: LiteX's part, the accelerator and models of vendor cells, by Verilator.

Two boards are simulated. `serial`: the ULX3S, but for its configuration, `tiny`, and the bridge's rate: a bit of the
serial line lasts 8 clocks, and the 100 ms after which the bridge forgets a command are 16 000. `ethernet`: the ECPIX-5,
but for its PHY (network.py) and, unless told otherwise, its configuration. Programs are kept in build/sim/board.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from scripts.board import hashes, soc
from scripts.board.boards import Board, board
from scripts.rtl import sources, tools
from scripts.rtl.tools import BUILD, ROOT, ToolError

from sim.board import network
from sim.runtime import alone

BIT_CLOCKS = 8
BAUD = 20_000
"""What the bridge takes the line's rate for."""
_CELLS = ("EHXPLLL", "FD1S3BX", "MULT18X18D")
HERE = Path(__file__).resolve().parent
_OPTIONS = ["--cc", "--exe", "--build", "-j", "1", "-O3", "--x-assign", "fast", "--x-initial", "unique", "--assert"]
_OPTIONS += ["--no-timing", "--quiet", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--output-split", "0"]


def simulated() -> Board:
    """The ULX3S as it is simulated."""
    return dataclasses.replace(board("ulx3s-85f"), config="tiny", uart_baud=BAUD)


def networked(config: str = "tiny") -> Board:
    """The ECPIX-5 as it is simulated."""
    return dataclasses.replace(board("ecpix5-85f"), config=config)


def program() -> Path:
    """The program of the ULX3S, built if it is not there or of other sources.

    Raises:
        ToolError: it does not build.
    """
    return _built(simulated(), "serial", lambda wanted, folder: soc.write(wanted, folder, BAUD * BIT_CLOCKS))


def ethernet(config: str = "tiny") -> Path:
    """The program of the ECPIX-5; otherwise as `program`."""
    return _built(networked(config), "ethernet", network.write)


def _built(wanted: Board, name: str, write: Callable[[Board, Path], object]) -> Path:
    tools.prepare()
    folder = BUILD / "sim" / "board" / f"{name}-{wanted.config}"
    with alone(folder):
        made, stamp = folder / name, folder / "stamp"
        own = [path.read_bytes() for path in sorted(HERE.iterdir()) if path.suffix == ".py" or path.stem == name]
        own += [(sources.SIM / "primitives" / f"{cell}.sv").read_bytes() for cell in _CELLS]
        key = hashes.source_hash(hashes.files(wanted)) + hashlib.sha256(b"".join(own)).hexdigest()
        if made.is_file() and stamp.is_file() and stamp.read_text() == key:
            return made
        stamp.unlink(missing_ok=True)
        write(wanted, folder)
        command = ["verilator", *_OPTIONS, "--top-module", soc.TOP, "--prefix", "Vgharial_board"]
        command += ["--Mdir", str(folder / "obj"), "-o", str(made), "-CFLAGS", "-O1 -Wall"]
        command += sources.library(sources.folders())
        command += [str(path) for path in (sources.WAIVERS, *sources.packages(wanted.config))]
        command += [str(folder / f"{soc.TOP}.v"), str(HERE / f"{name}.cpp")]
        log = folder / "build.log"
        with log.open("wb") as output:
            # Verilog's $readmemh looks in the folder that the program runs in: it is run in this one.
            done = subprocess.run(command, cwd=ROOT, env=tools.environment(os.environ), stdout=output, stderr=output)
        if done.returncode != 0:
            raise ToolError(f"the board's image does not compile for simulation; all of it: {log}")
        stamp.write_text(key)
        return made
