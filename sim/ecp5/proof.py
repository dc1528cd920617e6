# SPDX-License-Identifier: Apache-2.0
"""What is compared between a netlist and the RTL: completions, results and clocks of an utterance."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gharial.compiler.calibrate import audio_features
from gharial.devices.base import Device
from gharial.driver import Driver, GreedyEntry
from gharial.features import quantise_features
from gharial.model import front_end
from gharial.program import Program

SECONDS = 3600.0
"""A netlist takes its time."""


def steps(program: Program, recording: Path) -> list[np.ndarray]:
    """Features of each encoder step of a recording, int8 (1..stack, features)."""
    found = quantise_features(audio_features(recording, front_end(program)), program.manifest["features"]["frac_bits"])
    stack = program.header["vectors"]
    return [found[at : at + stack] for at in range(0, len(found), stack)]


def decoded(device: Device, program: Program, features: Sequence[np.ndarray]) -> list[Any]:
    """Greedy steps one after the other: tokens, logits, log-sum-exps, clocks and counts of each."""
    found = []
    with Driver(device, program, timeout=SECONDS) as driver:
        for n, step in enumerate(features):
            ticket = driver.greedy([GreedyEntry(0, step, n & 1, reset=n == 0, prediction=0)])
            (r,) = ticket.result()
            results = r.tokens.tolist(), r.logits.tolist(), r.lse.tolist(), r.capped
            found.append((*results, ticket.cycles, ticket.predictions, ticket.joints))
    return found


def inverted(kind: str, random: np.random.Generator) -> Callable[[Path], str]:
    """A mistake for a netlist: a LUT4 or CCU2C has the complement of its function. Tells the cell's name."""
    parameter = {"LUT4": "INIT", "CCU2C": "INIT0"}[kind]

    def change(netlist: Path) -> str:
        design = json.loads(netlist.read_text())
        (top,) = (m for m in design["modules"].values() if int(m.get("attributes", {}).get("top", "0"), 2))
        names = sorted(name for name, cell in top["cells"].items() if cell["type"] == kind)
        name = str(random.choice(names))
        own = top["cells"][name]["parameters"]
        own[parameter] = own[parameter].translate(str.maketrans("01", "10"))
        netlist.write_text(json.dumps(design))
        return name

    return change
