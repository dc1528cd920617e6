# SPDX-License-Identifier: Apache-2.0
"""Sequencer, responder and monitor of the AXI4 port."""

from __future__ import annotations

from pyuvm import uvm_agent, uvm_sequencer

from sim.uvm.memory.driver import MemoryDriver
from sim.uvm.memory.monitor import MemoryMonitor


class MemoryAgent(uvm_agent):
    """A reactive agent: the monitor's samples are what the driver answers."""

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = MemoryDriver("driver", self)
        self.monitor = MemoryMonitor("monitor", self)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)
        self.monitor.samples.connect(self.driver.samples)
