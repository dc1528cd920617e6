# SPDX-License-Identifier: Apache-2.0
"""What a configuration with weights in memory takes of its UltraScale+ device: part by part, multiplied and added.

Yosys does not get through such a machine in one piece. So each module of PARTS is synthesised by itself, once for each
set of parameters, with the other parts in it as boxes; what a part takes counts as often as there are instances of it,
those of the parts around it multiplied. What is not in a part of its own is in the one around it: nothing is left out.
Written to build/synth/CONFIG/report.json. Faults, as for ECP5: a latch, a divider, a memory of more than 512 bits in
flip-flops, a cell that is not the device's, and more of anything than the device has (rtl/devices.toml).
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from gharial.isa import configs
from scripts.rtl import netlist, ultrascale
from scripts.rtl.tools import BUILD, ROOT
from scripts.rtl.ultrascale import Part

TOP = "gharial_memory"
MULTIPLIER = "DSP48E2"
DEVICES = ROOT / "rtl" / "devices.toml"
# Modules that are synthesised by themselves, and what the report calls them.
PARTS = {
    TOP: "between the blocks",
    "command_block": "command block",
    "seater": "seater",
    "batch_engine": "between the units",
    "batch_sequencer": "sequencer",
    "weight_stream": "weight stream, without its ports",
    "stream_port": "a port of the weight stream",
    "array_unit": "array, without its rows",
    "array_rows": "eight rows of the array",
    "finish_unit": "finish unit, without its lanes",
    "finish_lane": "a lane of the finish unit",
    "slice_sums": "sums and biases",
    "rank_unit": "rank unit",
    "seat_logits": "logits",
    "batch_seats": "between the seats' users",
    "batch_aux": "aux unit",
    "state_mover": "state mover",
    "seat_activations": "activations",
    "seat_cells": "cells",
}
Synthesis = Callable[[Part], tuple[dict[str, int], Counter[Part], list[str]]]
"""Cells of a part, the parts below it, faults."""


def device(config: str) -> dict[str, Any]:
    """The device that `config` is for: its name, and how much of each number it has (a test configuration: nothing)."""
    table = tomllib.loads(DEVICES.read_text(encoding="utf-8"))
    return dict(table.get(config, {}))


def walk(top: Part, synthesise: Synthesis) -> tuple[dict[Part, tuple[dict[str, int], list[str]]], Counter[Part]]:
    """All parts of `top`: cells and faults of each, and how many of it there are."""
    found: dict[Part, tuple[dict[str, int], list[str]]] = {}
    below: dict[Part, Counter[Part]] = {}
    count: Counter[Part] = Counter()
    left = [top]
    while left:
        part = left.pop(0)
        if part not in found:
            cells, below[part], faults = synthesise(part)
            found[part] = cells, faults
            left += below[part]

    def add(part: Part, times: int) -> None:
        count[part] += times
        for inner, number in below[part].items():
            add(inner, times * number)

    add(top, 1)
    return found, count


def total(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Sum of what all parts take."""
    return {name: sum(row["instances"] * row["each"][name] for row in rows) for name in ultrascale.NUMBERS}


def report(config: str, top: Part, synthesise: Synthesis) -> dict[str, Any]:
    """What goes to report.json: `parts` in the order of PARTS, each with `instances` and `each`; `sum`; `device`."""
    found, count = walk(top, synthesise)
    order = list(PARTS)
    rows = [
        {
            "module": part.module,
            "what": PARTS[part.module],
            "parameters": dict(part.parameters),
            "instances": count[part],
            "each": ultrascale.numbers(found[part][0]),
            "cells": found[part][0],
            "faults": found[part][1],
        }
        for part in sorted(found, key=lambda part: order.index(part.module))
    ]
    whole = total(rows)
    has = device(config)
    return {
        "config": config,
        "top": top.module,
        "products_per_cycle": configs.config(config).rows * configs.config(config).cols,
        "clock_mhz": configs.config(config).clock_mhz,
        "parts": rows,
        "sum": whole,
        "device": has,
    }


def run(config: str, top: str = TOP, given: Mapping[str, str] | None = None) -> list[str]:
    """Synthesise `top` in `config`, print and write what it takes; the faults found.

    Raises:
        ToolError: Yosys refused a part, or did not come to an end.
    """
    folder = BUILD / "synth" / config

    def synthesise(part: Part) -> tuple[dict[str, int], Counter[Part], list[str]]:
        own = folder / part.name()
        print(f"  {part.name()}", flush=True)
        cells, below = ultrascale.synthesise(part, config, PARTS, own, netlist.FORBIDDEN)
        found = netlist.forbidden_cells(own) + ultrascale.unknown(cells)
        found += netlist.faults(cells, {}, netlist.flip_flop_memories(own), {})
        return cells, below, found

    parameters = dict(given or {})
    if "Multiplier" in ultrascale.parameter_names(top):
        parameters.setdefault("Multiplier", f'"{MULTIPLIER}"')
    print(f"{top}, {config}:")
    done = report(config, Part(top, tuple(parameters.items())), synthesise)
    path = folder / ("report.json" if top == TOP else f"report-{top}.json")
    path.write_text(json.dumps(done, indent=2) + "\n")
    print("\n".join(table(done)))
    found = [f"{row['module']}: {fault}" for row in done["parts"] for fault in row["faults"]]
    most = {name: number for name, number in done["device"].items() if name in done["sum"]}
    found += netlist.faults({}, done["sum"], {}, most)
    for fault in found:
        print(f"  fault: {fault}")
    return found


def table(done: Mapping[str, Any]) -> list[str]:
    """Lines that show a report."""
    names = list(ultrascale.NUMBERS)
    rows = [
        (f"{row['instances']} x {row['what']}", {name: row["instances"] * row["each"][name] for name in names})
        for row in done["parts"]
    ]
    rows.append(("sum", done["sum"]))
    if done["device"]:
        rows.append((done["device"]["name"], done["device"]))
        shares = {name: 100 * done["sum"][name] / done["device"][name] for name in names}
        rows.append(("%", {name: round(share, 1) for name, share in shares.items()}))
    width = max(len(what) for what, _ in rows)
    lines = [" " * width + "".join(f"{name:>12}" for name in names)]
    return lines + [f"{what:{width}}" + "".join(f"{row[name]:12.10g}" for name in names) for what, row in rows]
