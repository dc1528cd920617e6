# SPDX-License-Identifier: Apache-2.0
"""The regression: traffic, faults, and at the end whether everything has been seen that has to be."""

from __future__ import annotations

from pathlib import Path

import cocotb
import pyuvm

from sim.uvm.base_test import COVERAGE, BenchTest
from sim.uvm.coverage import report
from sim.uvm.sequences.faults import Faults
from sim.uvm.sequences.traffic import Traffic

MOST_MS = 300  # of simulated time: a test that still runs then waits for what will not come


@pyuvm.test(timeout_time=MOST_MS, timeout_unit="ms")
class TrafficTest(BenchTest):
    """Programs, batches and slots."""

    sequence = Traffic


@pyuvm.test(timeout_time=MOST_MS, timeout_unit="ms")
class FaultsTest(BenchTest):
    """What must be refused, what halts, and what is left then."""

    sequence = Faults


@cocotb.test()
async def coverage_closed(dut: object) -> None:
    """No hole in what the tests before have covered together."""
    report.write(COVERAGE, Path.cwd(), "Coverage of the pyuvm environment")  # the build folder
    text = report.text(COVERAGE)
    print(text)
    assert not report.holes(COVERAGE), "holes in the coverage:\n" + "\n".join(report.holes(COVERAGE))
