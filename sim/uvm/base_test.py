# SPDX-License-Identifier: Apache-2.0
"""What all tests share: clock, reset, environment, and the coverage of the run."""

from __future__ import annotations

import logging
import warnings

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from pyuvm import uvm_test

from sim.common import bench
from sim.uvm.coverage.plan import groups
from sim.uvm.env import Environment
from sim.uvm.sequences.base import BenchSequence, new_host

warnings.filterwarnings("ignore", category=DeprecationWarning, module="cocotbext")

COVERAGE = groups()
"""Of all tests of a run."""


class BenchTest(uvm_test):
    """Resets the accelerator and runs `sequence` on it."""

    sequence: type[BenchSequence]

    def build_phase(self) -> None:
        logging.getLogger("cocotb.uvm_top").setLevel(logging.WARNING)
        self.env = Environment("env", self)
        self.env.groups = COVERAGE

    async def run_phase(self) -> None:
        self.raise_objection()
        dut = cocotb.top
        Clock(dut.clk_i, bench.PERIOD_NS, unit="ns").start(start_high=False)
        dut.rst_i.value = 1
        await ClockCycles(dut.clk_i, 4)
        dut.rst_i.value = 0
        await ClockCycles(dut.clk_i, 4)
        sequence = self.sequence(self.env, new_host(self.env), bench.rng(type(self).__name__))
        await sequence.start()
        await ClockCycles(dut.clk_i, 20)
        self.drop_objection()
