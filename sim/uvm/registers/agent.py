# SPDX-License-Identifier: Apache-2.0
"""Sequencer, driver and monitor of the AXI4-Lite port."""

from __future__ import annotations

from pyuvm import uvm_agent, uvm_sequencer

from sim.uvm.registers.driver import RegisterDriver
from sim.uvm.registers.monitor import RegisterMonitor


class RegisterAgent(uvm_agent):
    """Registers, one access at a time."""

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = RegisterDriver("driver", self)
        self.monitor = RegisterMonitor("monitor", self)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)
