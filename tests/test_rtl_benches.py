# SPDX-License-Identifier: Apache-2.0
"""The benches of the RTL, each in its short form; `make sim BENCH=name` runs the full one, and shows more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import ROOT
from sim import benches
from sim.run import needs

RUNS = benches.runs()


@pytest.mark.parametrize("name", [run.name for run in RUNS])
def test_bench(name: str, seed: int) -> None:
    problem = needs()
    if problem:
        pytest.skip(problem)
    done = subprocess.run(
        [sys.executable, "-m", "sim.run", "--short", "--log", name],
        cwd=ROOT,
        env={**os.environ, "GHARIAL_SEED": str(seed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_every_bench_has_its_tests() -> None:
    assert RUNS
    for run in RUNS:
        for module in run.modules:
            assert (ROOT / module.replace(".", "/")).with_suffix(".py").is_file(), module


def test_a_failing_bench_fails() -> None:
    """A bench that is not there, or runs no test, must not pass as a success."""
    problem = needs()
    if problem:
        pytest.skip(problem)
    command = [sys.executable, "-m", "sim.run", "--log"]
    unknown = subprocess.run([*command, "no_such_bench"], cwd=ROOT, capture_output=True, text=True)
    assert unknown.returncode == 2 and "no bench no_such_bench" in unknown.stderr
    none = subprocess.run([*command, "--test", "no_such_test", RUNS[0].name], cwd=ROOT, capture_output=True, text=True)
    assert none.returncode == 1, none
