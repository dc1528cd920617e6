# SPDX-License-Identifier: Apache-2.0
"""Tries all mutants of the RTL, or those named: `python -m sim.mutants [--jobs N] [--keep] [MUTANT]...`.

First the tests must pass without any mistake. Logs lie in build/mutants/MUTANT, the outcome in
build/mutants/report.json.
Exit codes: 0 all were killed; 1 one was not, or the tests fail anyway; 2 usage, or a tool is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from scripts.rtl.tools import BUILD, ROOT

from gharial.devices.verilator.build import problem
from sim.mutants import catalogue
from sim.mutants.catalogue import Mutant
from sim.mutants.trial import Commands, Court, Outcome, Verdict
from sim.run import needs


def baseline(court: Court, mutants: Sequence[Mutant], pool: ThreadPoolExecutor) -> list[str]:
    """Run what the mutants name without a mistake: what does not pass."""
    jobs: dict[str, list[str]] = {}
    for mutant in mutants:
        for name in mutant.benches:
            bench = name.partition(":")[0]  # with all its tests
            jobs.setdefault(f"none-{bench.replace('/', '-')}", [bench])
        for test in mutant.tests:
            jobs.setdefault("none-tests", []).append(test)
    # The longest first.
    order = sorted(jobs, key=lambda name: name != "none-tests")
    futures = [pool.submit(court.without, name, sorted(set(jobs[name]))) for name in order]
    return [found for future in futures if (found := future.result()) is not None]


def trials(court: Court, mutants: Sequence[Mutant], pool: ThreadPoolExecutor) -> list[Outcome]:
    """Try the mutants, a line on each as it ends; outcomes in the order of the mutants."""
    futures = [pool.submit(court.trial, mutant) for mutant in mutants]
    width = max(len(mutant.name) for mutant in mutants)
    for number, future in enumerate(as_completed(futures), 1):
        found = future.result()
        print(
            f"[{number:2}/{len(mutants)}] {found.verdict:9} {found.name:{width}} {found.seconds:5.0f} s  {found.by}",
            flush=True,
        )
    return [future.result() for future in futures]


def report(court: Court, mutants: Sequence[Mutant], outcomes: Sequence[Outcome], seconds: float) -> None:
    """Write the outcome as JSON, and say what it comes to."""
    entries = [
        {
            "name": mutant.name,
            "wrong": mutant.wrong,
            "file": mutant.file,
            "verdict": outcome.verdict.value,
            "by": outcome.by,
            "seconds": round(outcome.seconds, 1),
        }
        for mutant, outcome in zip(mutants, outcomes, strict=True)
    ]
    file = court.place / "report.json"
    file.write_text(
        json.dumps({"seed": court.seed, "seconds": round(seconds, 1), "mutants": entries}, indent=2) + "\n",
        encoding="utf-8",
    )
    others = [outcome for outcome in outcomes if outcome.verdict != Verdict.KILLED]
    for outcome in others:
        print(f"{outcome.verdict}: {outcome.name}: {outcome.by}; {court.place / outcome.name}", file=sys.stderr)
    killed = len(outcomes) - len(others)
    print(f"{killed} of {len(outcomes)} mutants killed in {seconds / 60:.1f} minutes; {file}", flush=True)


def main(argv: Sequence[str] | None = None, root: Path = ROOT, folder: Path = catalogue.FOLDER) -> int:
    """See the head of this file.

    Args:
        argv: the command line.
        root: checkout to make copies of.
        folder: where the mutants are read from.
    """
    parser = argparse.ArgumentParser(prog="python -m sim.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mutant", nargs="*", help="only these")
    parser.add_argument("--list", action="store_true", help="list them, as docs/mutants.md has them")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--keep", action="store_true", help="leave the copies with the mistakes there")
    args = parser.parse_args(argv)
    mutants = catalogue.read(folder)
    unknown = set(args.mutant) - {mutant.name for mutant in mutants}
    if unknown:
        print(f"mutants: no mutant {', '.join(sorted(unknown))}; --list lists them", file=sys.stderr)
        return 2
    mutants = [mutant for mutant in mutants if not args.mutant or mutant.name in args.mutant]
    if args.list:
        print(catalogue.table(mutants))
        return 0
    missing = needs() or problem()
    if missing:
        print(f"mutants: {missing}", file=sys.stderr)
        return 2
    commands = Commands()
    seed = int(os.environ.get("GHARIAL_SEED") or secrets.randbits(32))
    court = Court(root, root / BUILD.relative_to(ROOT) / "mutants", seed, commands, keep=args.keep)
    print(f"seed: GHARIAL_SEED={seed}", flush=True)
    start = time.monotonic()
    with ThreadPoolExecutor(args.jobs) as pool:
        try:
            wrong = baseline(court, mutants, pool)
            for fault in wrong:
                print(f"mutants: fails without any mistake: {fault}", file=sys.stderr)
            if wrong:
                return 1
            print(f"without a mistake all tests pass ({time.monotonic() - start:.0f} s)", flush=True)
            outcomes = trials(court, mutants, pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            commands.stop()
            raise
    report(court, mutants, outcomes, time.monotonic() - start)
    return int(any(outcome.verdict != Verdict.KILLED for outcome in outcomes))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
