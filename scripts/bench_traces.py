#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare everything that the emulator, the reference model and the RTL compute, on whole utterances.

Each utterance is decoded greedily on each of the three, and every tensor of docs/numerics.md, section 12, must be equal
to the bit: features, h and c of every layer and step, joint inputs, logits, log-sum-exps, tokens. The demo model runs
on the recordings of the set sc_speakers, looked for in the folder that GHARIAL_DATA names, else in shared/data beside
the checkout; where there is none, on the shipped ones, and then on each of these from its middle on.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from tqdm import tqdm

import gharial
from gharial.audio import SAMPLE_RATE, open_audio, read_all
from gharial.bench.manifest import read_set
from gharial.devices.open import device_config
from gharial.devices.verilator.build import problem
from gharial.model import demo_model, open_model
from gharial.program import Program
from gharial.trace import trace_recording
from scripts.bench import RECORDINGS, data_folder

CONFIGS = ("tiny", "ecp5-85f")
WITNESSES = ("emulator", "reference", "verilator")


def utterances(count: int, folder: Path) -> list[Path]:
    """So many recordings; those that have to be made are written to the folder."""
    data = data_folder()
    if data is not None and (data / "sets" / "sc_speakers").is_dir():
        found = [utterance.path for utterance in read_set(data / "sets" / "sc_speakers")]
        return found[:: max(1, len(found) // count)][:count]
    shipped = [utterance.path for utterance in read_set(RECORDINGS)]
    return [*shipped, *_second_halves(shipped, folder)][:count]


def _second_halves(recordings: Sequence[Path], folder: Path) -> Iterator[Path]:
    for path in recordings:
        with open_audio(path) as source:
            samples = read_all(source)
        half = folder / f"{path.stem}-second-half.wav"
        soundfile.write(half, samples[len(samples) // 2 :], SAMPLE_RATE)
        yield half


def compared(program: Program, recording: Path) -> dict[str, Any]:
    """One utterance on the three; which tensors differ, and the seconds that each took."""
    traces: dict[str, dict[str, np.ndarray]] = {}
    seconds: dict[str, float] = {}
    for kind in WITNESSES:
        started = time.process_time()
        traces[kind] = trace_recording(program, recording, f"{kind}:{program.config.name}")
        seconds[kind] = time.process_time() - started
    first = traces[WITNESSES[0]]
    differ = [
        f"{name} ({kind})"
        for kind in WITNESSES[1:]
        for name in sorted(first.keys() | traces[kind].keys())
        if not _same(first.get(name), traces[kind].get(name))
    ]
    return {
        "config": program.config.name,
        "recording": recording.name,
        "steps": len(first["joint_enc"]),
        "tokens": len(first["tokens"]),
        "tensors": len(first),
        "values": sum(tensor.size for tensor in first.values()),
        "differ": differ,
        "cpu_s": seconds,
    }


def _same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a, b)


def summary(results: Sequence[dict[str, Any]]) -> list[str]:
    """Lines: one a configuration, then one for each utterance that differs."""
    lines = []
    for config in dict.fromkeys(result["config"] for result in results):
        own = [result for result in results if result["config"] == config]
        steps, tokens, values = (sum(result[key] for result in own) for key in ("steps", "tokens", "values"))
        equal = sum(not result["differ"] for result in own)
        cpu = ", ".join(f"{kind} {sum(result['cpu_s'][kind] for result in own):.1f} s" for kind in WITNESSES)
        lines.append(
            f"{config}: {equal} of {len(own)} utterances equal in all {own[0]['tensors']} tensors "
            f"({steps} encoder steps, {tokens} tokens, {values:,} values; CPU: {cpu})"
        )
    lines += [
        f"  {result['config']}, {result['recording']}: {', '.join(result['differ'])}"
        for result in results
        if result["differ"]
    ]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="utterances (20)")
    parser.add_argument("--config", choices=CONFIGS, action="append", help="configuration (all); may be repeated")
    parser.add_argument("--model", metavar="M", help="checkpoint or program; default: the demo model")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the results")
    args = parser.parse_args(arguments)
    why = problem()
    if why is not None:
        raise gharial.BadInput("the RTL cannot be simulated", found=why)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        recordings = utterances(args.limit, Path(folder))
        for config in args.config or CONFIGS:
            program = open_model(args.model or demo_model(), device_config(f"verilator:{config}"))
            shown = tqdm(recordings, desc=f"traces, {config}", unit="utterance", disable=None)
            results += [compared(program, recording) for recording in shown]
    print("\n".join(summary(results)))
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if any(result["differ"] for result in results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
