#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run `gharial bench rtl` on the full sizes and keep what it gives: `python -m scripts.bench_batches [CASE]...`.

Each case writes docs/measured/CASE.json, with the commit that it was taken at. All of them take half an hour and more;
most of it is simulation, one core.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from gharial.bench.rtl_streams import bench_streams
from gharial.cli.terminal import Progress
from gharial.isa.configs import config

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "docs" / "measured"

CASES: dict[str, dict[str, Any]] = {
    "u50-base-mix": {"config": "u50", "model": "base", "batch": 16, "workload": "mix"},
    "u50-large-mix": {"config": "u50", "model": "large", "batch": 16, "workload": "mix"},
    "kv260-base-48": {"config": "kv260", "model": "base", "batch": 48, "workload": "encode", "batches": 4},
    "kv260-base-1": {"config": "kv260", "model": "base", "batch": 1, "workload": "encode", "batches": 6},
    "u55c-base-mix": {"config": "u55c", "model": "base", "batch": 16, "workload": "mix"},
    "u50-base-ragged": {"config": "u50", "model": "base", "batch": 13, "workload": "ragged", "batches": 5},
    "u50-large-ragged": {"config": "u50", "model": "large", "batch": 13, "workload": "ragged", "batches": 5},
    "kv260-base-ragged": {"config": "kv260", "model": "base", "batch": 37, "workload": "ragged", "batches": 5},
}


def commit() -> str:
    """The checkout's commit, with a mark if files other than measurements have changed since."""
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    status = ["git", "status", "--porcelain", "-uno", "--", ".", ":!docs/measured"]
    changed = subprocess.run(status, cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() + (" with changes" if changed.stdout.strip() else "")


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 measured, 2 no such case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("case", nargs="*", help=f"of {', '.join(CASES)} (default: all)")
    args = parser.parse_args(argv)
    unknown = [name for name in args.case if name not in CASES]
    if unknown:
        print(f"bench_batches: no case {unknown[0]}; there are {', '.join(CASES)}", file=sys.stderr)
        return 2
    MEASURED.mkdir(exist_ok=True)
    for name in args.case or CASES:
        case = dict(CASES[name])
        progress = Progress(f"{name}, clocks simulated")
        try:
            found = bench_streams(config(case.pop("config")), case.pop("model"), progress=progress, **case)
        finally:
            progress.close()
        place = MEASURED / f"{name}.json"
        place.write_text(json.dumps({"commit": commit(), **found}, indent=1) + "\n")
        print(
            f"{name}: {found['cycles']:,} clocks, utilisation {found['utilisation']:.3f}, encoder alone "
            f"{found['encode_utilisation']:.3f}, {found['roofline_ratio']:.3f} of the roofline",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
