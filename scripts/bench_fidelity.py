# SPDX-License-Identifier: Apache-2.0
"""Compile models of the sizes that CAIMAN-ASR trains, with random weights, and see how near the integers come to float.

Each is compiled by the command line, in a process of its own whose time and memory are measured; then program and
PyTorch model are led along the same fixed labels through five seconds of speech.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import gharial
from gharial.bench.random_model import SHAPES
from gharial.checkpoint import ModelDims, load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.features import FeatureSpec, quantise_features
from gharial.fidelity.compare import Choices
from gharial.fidelity.forced import IntegerRun, units_of
from gharial.fidelity.noise import TensorNoise
from gharial.floating.yardstick import TorchRnnt
from gharial.program import Program
from scripts import random_models
from scripts.bench import RECORDINGS

SECONDS = 5.0
EVERY = 3  # encoder steps from one label to the next
SPARSER = (8, 16)  # speech has one in seven; fewer labels leave less in the logits that changes
LEAST_DB = 25.0
LEAST_AGREEMENT = 0.98
LIMITS = {"base": (60, 4 << 30), "large": (150, 8 << 30)}
"""Seconds and bytes that compiling may take on two cores."""


def speech(spec: FeatureSpec, seconds: float = SECONDS) -> np.ndarray:
    """Features of the shipped recordings one after the other, float32 (T2, F)."""
    files = sorted(RECORDINGS.glob("*.flac"))
    vectors = np.concatenate([audio_features(file, spec) for file in files[:6]])
    return vectors[: int(seconds / spec.vector_seconds)]


def labels(features: np.ndarray, dims: ModelDims, every: int = EVERY) -> list[tuple[int, int]]:
    """A fixed label sequence: (encoder step, token), a token every few steps."""
    random = np.random.default_rng(random_models.SEED)
    steps = -(-len(features) // dims.stack)
    return [(step, int(random.integers(0, dims.classes - 1))) for step in range(1, steps, every)]


def fidelity(program: Program, checkpoint: Path, every: int = EVERY) -> dict[str, Any]:
    """The logits of a program beside those of its checkpoint in PyTorch, along the fixed labels."""
    loaded = load_hardware(checkpoint)
    features = speech(FeatureSpec.from_checkpoint(loaded))
    path = labels(features, loaded.dims, every)
    exact = TorchRnnt(loaded).forced_logits(features, path)
    with IntegerRun(program) as run:
        found = run.tensors(quantise_features(features, program.manifest["features"]["frac_bits"]), path)["logits"]
    unit = units_of(program)["logits"]
    noise, choices = TensorNoise(unit, -32768, 32767), Choices()
    noise.add(exact, found)
    choices.add(exact.astype(np.float64), found * unit)
    counted = choices.counted()
    return {
        "evaluations": len(exact),
        "labels": len(path),
        "sqnr_db": noise.sqnr,
        "sqnr_changes_db": noise.sqnr_changes,
        "decisive": counted.decisive,
        "decisive_agreeing": counted.decisive_agreeing,
        "agreeing": counted.agreeing,
    }


def compiled(checkpoint: Path, output: Path) -> dict[str, Any]:
    """Compile by the command line; seconds by the clock and of CPU, and the most memory that was taken, in bytes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "gharial", "compile", str(checkpoint), "-o", str(output), "--json"],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # The most of any child so far: children are measured in the order of their size.
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(cpu, 1),
        "peak_bytes": after.ru_maxrss * 1024,
    }


def measure(name: str, folder: Path) -> dict[str, Any]:
    """All figures of one size."""
    checkpoint = random_models.named(folder, name)
    output = folder / f"{name}.gprog"
    found = {"model": name, "seed": random_models.SEED, **compiled(checkpoint, output)}
    program = Program.read(output)
    found |= {"config": program.config.name, "version": gharial.__version__} | fidelity(program, checkpoint)
    sparser = {str(every): fidelity(program, checkpoint, every)["sqnr_changes_db"] for every in SPARSER}
    return found | {"sqnr_changes_db_every": sparser}


def faults(found: dict[str, Any]) -> list[str]:
    """What does not hold of a size's figures."""
    seconds, most = LIMITS[found["model"]]
    sparser = found["sqnr_changes_db_every"].values()
    share = found["decisive_agreeing"] / max(1, found["decisive"])
    checks = {
        f"compiling took {found['seconds']} s, at most {seconds} wanted": found["seconds"] < seconds,
        f"compiling took {found['peak_bytes']} bytes, at most {most} wanted": found["peak_bytes"] < most,
        f"logits at {found['sqnr_db']:.1f} dB": found["sqnr_db"] >= LEAST_DB,
        f"changes of logits at {found['sqnr_changes_db']:.1f} dB": found["sqnr_changes_db"] >= LEAST_DB,
        f"changes of logits with fewer labels at {min(sparser):.1f} dB": min(sparser) >= LEAST_DB,
        f"best class the same in {share:.3f} of decisive steps": found["decisive"] and share >= LEAST_AGREEMENT,
    }
    return [f"{found['model']}: {text}" for text, good in checks.items() if not good]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="DIR", type=Path, help="also write MODEL-fidelity.json files into a folder")
    parser.add_argument("models", metavar="MODEL", nargs="*", help=f"of {', '.join(LIMITS)} (both)")
    args = parser.parse_args()
    print("| model | compile, wall | CPU   | peak memory | logits  | changes | decisive steps the same |")
    print("|-------|---------------|-------|-------------|---------|---------|-------------------------|")
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.models or LIMITS:
            if name not in SHAPES:
                raise gharial.BadInput("no such size", "MODEL", name, ", ".join(LIMITS))
            found = measure(name, Path(folder))
            print(
                f"| {name:<5} | {found['seconds']:>11.1f} s | {found['cpu_seconds']:>3.0f} s "
                f"| {found['peak_bytes'] / 1e9:>8.2f} GB | {found['sqnr_db']:>4.1f} dB "
                f"| {found['sqnr_changes_db']:>4.1f} dB "
                f"| {found['decisive_agreeing']} of {found['decisive']:<17} |",
                flush=True,
            )
            wrong += faults(found)
            if args.json is not None:
                text = json.dumps(found, indent=1) + "\n"
                (args.json / f"{name}-fidelity.json").write_text(text, encoding="utf-8")
    for text in wrong:
        print(f"bench: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
