# SPDX-License-Identifier: Apache-2.0
"""Sequencer, driver and monitor of the rings, on top of registers and memory."""

from __future__ import annotations

from pyuvm import uvm_agent, uvm_sequencer

from sim.uvm.ring.driver import RingDriver
from sim.uvm.ring.monitor import RingMonitor


class RingAgent(uvm_agent):
    """Commands in, completions out."""

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = RingDriver("driver", self)
        self.monitor = RingMonitor("monitor", self)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)
