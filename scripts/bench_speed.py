#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how many times faster than real time the demo model runs on the emulated device and on the RTL in simulation.

All is done on one CPU core. The audio is ten minutes joined of the shipped recordings, for the RTL half a minute. Each
row is a way of calling; its runs are spread over the whole measurement, and minimum, median and maximum are shown: by
the clock on the wall, and by the CPU time used, which a busy machine disturbs less. OMP_NUM_THREADS=1 keeps NumPy from
threads that would only wait for the one core.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import soundfile

import gharial
from gharial.audio import SAMPLE_RATE, open_audio, read_all

RECORDINGS = Path(__file__).resolve().parent.parent / "host" / "gharial" / "data" / "recordings"
SECONDS = 600
RTL_SECONDS = 30
RTL = "verilator:ecp5-85f"
PUSH = SAMPLE_RATE * 60 // 1000  # samples of an encoder step
BATCH = 8  # the streams that the demo model's configuration holds
BEAM = "emulator:u50"  # which holds as many with a beam


def long_recording(folder: Path) -> tuple[Path, np.ndarray]:
    """The shipped recordings, again and again; the file and its int16 samples."""
    parts = []
    for path in sorted(RECORDINGS.glob("*.flac")):
        with open_audio(path) as source:
            parts.append(read_all(source))
    once = np.concatenate(parts)
    samples = np.resize(once, SECONDS * SAMPLE_RATE)
    soundfile.write(folder / "long.wav", samples, SAMPLE_RATE)
    return folder / "long.wav", samples


Way = tuple[str, Callable[[], object], float]


def pushed(recogniser: gharial.Recogniser, samples: np.ndarray) -> None:
    """One stream, a step at a time."""
    with recogniser.stream() as stream:
        for at in range(0, len(samples), PUSH):
            stream.push(samples[at : at + PUSH])
        stream.finish()


def many(recogniser: gharial.Recogniser, samples: np.ndarray) -> None:
    """Pieces side by side."""
    for outcome in recogniser.transcribe_many(np.array_split(samples, BATCH), BATCH):
        if isinstance(outcome, gharial.GharialError):
            raise outcome


def ways(recogniser: gharial.Recogniser, beam: gharial.Recogniser, file: Path, samples: np.ndarray) -> Iterator[Way]:
    """Name, call, and seconds of audio of each way to transcribe the recording."""
    command = [sys.executable, "-m", "gharial", "transcribe", "--json", str(file)]
    yield "one stream, 60 ms at a time (Stream.push)", lambda: pushed(recogniser, samples), SECONDS
    yield "one file (Recogniser.transcribe)", lambda: recogniser.transcribe(file), SECONDS
    yield (
        "one file (gharial transcribe, start of the process included)",
        lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL),
        SECONDS,
    )
    yield f"{BATCH} files at a time (Recogniser.transcribe_many)", lambda: many(recogniser, samples), SECONDS
    yield f"one stream, 60 ms at a time, beam of 4 ({BEAM})", lambda: pushed(beam, samples), SECONDS
    yield f"{BATCH} files at a time, beam of 4 ({BEAM})", lambda: many(beam, samples), SECONDS


def on_the_rtl(recogniser: gharial.Recogniser, samples: np.ndarray) -> Way:
    """The way through the RTL."""
    piece = samples[: RTL_SECONDS * SAMPLE_RATE]
    return f"one recording on the RTL ({RTL})", lambda: recogniser.transcribe(piece), RTL_SECONDS


def cpu_seconds() -> float:
    """CPU time of this process and of the children it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def measure(call: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Times real time, by the wall and by the CPU."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    call()
    return seconds / (time.perf_counter() - wall), seconds / (cpu_seconds() - cpu)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", metavar="N", type=int, default=5, help="runs of each way (5)")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with (
        tempfile.TemporaryDirectory() as folder,
        gharial.load() as recogniser,
        gharial.load(device=BEAM, decoder="beam") as beam,
        gharial.load(device=RTL) as rtl,
    ):
        file, samples = long_recording(Path(folder))
        calls = [*ways(recogniser, beam, file, samples), on_the_rtl(rtl, samples)]
        runs = [[measure(call, seconds) for _, call, seconds in calls] for _ in range(args.runs)]
    print(f"| {'times real time, demo model, one core':<60} | by the wall: min, median, max | by CPU time         |")
    print(f"|{'-' * 62}|{'-' * 31}|{'-' * 21}|")
    for (name, *_), found in zip(calls, zip(*runs, strict=True), strict=True):
        wall, cpu = (
            f"{min(kind):.0f}, {statistics.median(kind):.0f}, {max(kind):.0f}" for kind in zip(*found, strict=True)
        )
        print(f"| {name:<60} | {wall:<29} | {cpu:<19} |")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
