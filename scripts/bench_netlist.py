#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The netlist of the whole accelerator against the RTL, on a whole utterance of the demo model.

`python -m scripts.bench_netlist [--config C] [--frames N] [--mutants N]` synthesises gharial_onchip as `make synth`
does (a netlist of the same sources that is there already is taken), takes out of it what an image's build takes out,
and runs it behind the driver with models of ECP5's cells (sim/ecp5). Each completion, its results and its clocks must
be those of the RTL. Then a cell is changed at random, some times over: how many of these mistakes are noticed within
four frames. Exit codes: 0 equal, 1 not, or no mistake was noticed, 2 a tool is missing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sim.ecp5 import build, proof

import gharial
from gharial.devices.verilator import open_verilator
from gharial.devices.verilator.build import problem
from gharial.errors import GharialError
from gharial.isa.configs import config
from gharial.model import compile_model, demo_model
from gharial.program import Program
from scripts.bench import RECORDINGS
from scripts.rtl import tools

FEW = 4
"""Frames in which a mistake must show."""
PATIENCE = 1_000_000
"""Clocks within which they are done, loading included."""


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench_netlist", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--config", default="ecp5-85f")
    parser.add_argument("--frames", type=int, metavar="N", help="encoder steps of the recording (default: all)")
    parser.add_argument("--mutants", type=int, default=4, metavar="N", help="mistakes to try (4)")
    parser.add_argument("--seed", type=int, default=1, help="of the mistakes (1)")
    args = parser.parse_args(arguments)
    why = problem() or tools.lacking([tools.PYOSYS])
    if why is not None:
        raise gharial.BadInput("netlists cannot be simulated", found=why)
    own = config(args.config)
    tools.prepare()
    netlist = build.synthesised(args.config)
    program = compile_model(demo_model(), args.config)
    recording = sorted(RECORDINGS.glob("*.flac"))[0]
    features = proof.steps(program, recording)[: args.frames]
    expected = proof.decoded(open_verilator(own), program, features)
    began = time.process_time()
    found = proof.decoded(build.NetlistDevice(own, build.library(args.config, netlist)), program, features)
    took = time.process_time() - began
    wrong = [n for n, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b]
    tokens = sum(len(frame[0]) for frame in found)
    clocks = sum(frame[4] for frame in found)
    outcome = "differs from" if wrong else "equals"
    print(f"{args.config}, {recording.name}: the netlist {outcome} the RTL in completions, results and clocks")
    print(f"  {len(found)} frames, {tokens} tokens, {clocks} clocks; {took:.0f} s of CPU time")
    if wrong:
        print(f"  frames that differ: {wrong}")
    random = np.random.default_rng(args.seed)
    noticed = sum(
        _noticed(args.config, netlist, random, expected[:FEW], program, features[:FEW]) for _ in range(args.mutants)
    )
    print(f"  {noticed} of {args.mutants} changed cells noticed within {FEW} frames")
    return 1 if wrong or (args.mutants and not noticed) else 0


def _noticed(
    name: str,
    netlist: Path,
    random: np.random.Generator,
    expected: list[Any],
    program: Program,
    features: Sequence[np.ndarray],
) -> bool:
    """Whether a changed netlist is told from the RTL: by what comes out, or by an error."""
    changed = build.library(name, netlist, proof.inverted(str(random.choice(["LUT4", "CCU2C"])), random))
    device = build.NetlistDevice(config(name), changed)
    device.most = PATIENCE
    try:
        return proof.decoded(device, program, features) != expected
    except GharialError:
        return True
    finally:
        device.close()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
