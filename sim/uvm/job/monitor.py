# SPDX-License-Identifier: Apache-2.0
"""Watches the jobs that the sequencer hands to matrix, vector and aux unit."""

from __future__ import annotations

import cocotb
from cocotb.triggers import FallingEdge, ValueChange
from pyuvm import uvm_analysis_port, uvm_monitor

from sim.uvm.job.items import AUX, MATRIX, VECTOR, unpack


class JobMonitor(uvm_monitor):
    """Port `products`: (matrix job, vector job) of a MATVEC; port `others`: the aux unit's jobs."""

    def build_phase(self) -> None:
        self.products = uvm_analysis_port("products", self)
        self.others = uvm_analysis_port("others", self)

    async def run_phase(self) -> None:
        await FallingEdge(cocotb.top.rst_i)
        cocotb.start_soon(self._others())
        dut, seen = cocotb.top, 0
        while True:
            await ValueChange(dut.jobs_o)
            seen += 1
            assert int(dut.jobs_o.value) == seen, "a job was missed"
            matrix, vector = int(dut.matrix_job_o.value), int(dut.vector_job_o.value)
            self.products.write((unpack(MATRIX, matrix), unpack(VECTOR, vector)))

    async def _others(self) -> None:
        dut = cocotb.top
        while True:
            await ValueChange(dut.aux_jobs_o)
            self.others.write(unpack(AUX, int(dut.aux_job_o.value)))
