#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hours of audio in one stream: `python -m scripts.bench_hours` writes docs/measured/hours.json.

The shipped recordings over and over, in pieces of 100 ms, on the emulator, greedily and with a beam. Each quarter of it
is told apart: memory of the process (less the tokens that a stream keeps), steps that a push left behind, time. Exit
code 1 where memory or time grow, or a step was left behind.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from gharial.audio import open_audio, read_all
from gharial.recognise import load
from scripts.bench_batches import MEASURED, commit
from scripts.bench_ngram import private_bytes

RECORDINGS = Path(__file__).resolve().parents[1] / "host" / "gharial" / "data" / "recordings"
QUARTERS = 4
PIECE = 1600  # samples
TOKEN_BYTES = 500  # a kept token with its texts takes some 350
LIMIT = 2 << 20


def hear(decoder: str, hours: float) -> dict[str, Any]:
    """One stream of so many hours."""
    parts = []
    for path in sorted(RECORDINGS.glob("*.flac")):
        with open_audio(path) as source:
            parts.append(read_all(source))
    audio = np.concatenate(parts)
    quarters: list[dict[str, Any]] = []
    with load(decoder=decoder) as recogniser, recogniser.stream() as stream:
        at, longest, behind = 0, 0, 0
        for quarter in range(1, QUARTERS + 1):
            began = time.process_time()
            while stream.audio_s < hours * 3600 * quarter / QUARTERS:
                stream.push(audio[at : at + PIECE])
                at = (at + PIECE) % len(audio)
                longest = max(longest, len(stream.partial))
                behind = max(behind, stream.backlog)
            seconds = time.process_time() - began
            gc.collect()
            found: dict[str, Any] = {
                "seconds": round(seconds, 1),
                "private_bytes": private_bytes(),
                "tokens": len(stream.tokens),
            }
            engine: Any = recogniser.engine
            if decoder == "beam":
                found["pools"] = {name: every for name, (_, every) in engine.search.pools.items()}
            quarters.append(found)
        heard = stream.finish().audio_s
    return {
        "hours": round(heard / 3600, 2),
        "longest_partial": longest,
        "most_steps_behind": behind,
        "quarters": quarters,
    }


def sound(found: dict[str, Any]) -> bool:
    """Whether nothing has grown since the first quarter but the tokens."""
    first, last = found["quarters"][0], found["quarters"][-1]
    tokens = (last["tokens"] - first["tokens"]) * TOKEN_BYTES
    return (
        last["private_bytes"] - first["private_bytes"] < LIMIT + tokens
        and last["seconds"] < 2 * first["seconds"]
        and first.get("pools") == last.get("pools")
        and found["most_steps_behind"] == 0
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 nothing grew, 1 something did."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hours", type=float, default=4.0, help="of audio (4)")
    parser.add_argument("--decoder", choices=("greedy", "beam"), action="append", help="one of them alone")
    args = parser.parse_args(argv)
    results = {decoder: hear(decoder, args.hours) for decoder in args.decoder or ("greedy", "beam")}
    for decoder, found in results.items():
        first, last = found["quarters"][0], found["quarters"][-1]
        print(
            f"{decoder}: {found['hours']} h, {last['tokens']} tokens; private memory {first['private_bytes'] >> 20} MiB"
            f" after a quarter, {last['private_bytes'] >> 20} MiB at the end; {first['seconds']} s the first quarter,"
            f" {last['seconds']} s the last; {'fine' if sound(found) else 'GREW'}"
        )
    good = all(map(sound, results.values()))
    if good and not args.decoder and args.hours >= 4:
        (MEASURED / "hours.json").write_text(json.dumps({"commit": commit(), **results}, indent=1) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
