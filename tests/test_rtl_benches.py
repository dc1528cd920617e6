# SPDX-License-Identifier: Apache-2.0
"""The benches of the RTL, each in its short form; `make sim BENCH=name` runs the full one, and shows more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from conftest import ROOT
from sim import benches
from sim.run import needs

RUNS = benches.runs()
LIMIT = 1800  # seconds: a simulator that hangs must not outlive the test


@pytest.mark.parametrize("name", [run.name for run in RUNS])
def test_bench(name: str, seed: int) -> None:
    problem = needs()
    if problem:
        pytest.skip(problem)
    with subprocess.Popen(
        [sys.executable, "-m", "sim.run", "--short", "--log", name],
        cwd=ROOT,
        env={**os.environ, "GHARIAL_SEED": str(seed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=LIMIT)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, said


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
