# SPDX-License-Identifier: Apache-2.0
"""Samples registers, and what they tell: counters, interrupts, halts, soft resets."""

from __future__ import annotations

from gharial.isa import _registers as reg
from gharial.isa.faults import Fault
from sim.uvm.coverage.group import CoverGroup
from sim.uvm.coverage.plan import COUNTERS
from sim.uvm.registers.item import RegisterSeen
from sim.uvm.ring.monitor import RingMonitor

SOFT_RESET = 2
HALTED = 4


class RegisterCoverage:
    """Groups on registers, stalls, interrupts, recovery, and faults that only STATUS tells.

    Args:
        groups: all groups.
        rings: knows indices and sizes.
    """

    def __init__(self, groups: dict[str, CoverGroup], rings: RingMonitor) -> None:
        self._groups, self._rings = groups, rings
        self._halt: Fault | None = None
        self._taken = 0
        self._asked: set[bool] = set()  # how commands with an interrupt ended since it was cleared
        self.failed_at = 0  # where the latest error of the bus was

    def access(self, seen: RegisterSeen) -> None:
        """One access."""
        name = seen.register.name
        if seen.is_write:
            if seen.register.access != "ro":
                self._groups["registers"].hit(f"written, {name}")
            self._written(seen)
        else:
            self._groups["registers"].hit(f"read, {name}")
            self._read(seen)

    def _written(self, seen: RegisterSeen) -> None:
        rings = self._rings
        if seen.register == reg.CPL_HEAD:
            if rings.tail - self._taken == rings.sizes[1] and rings.head > rings.tail:
                self._groups["stalls"].hit("completion ring full")
            self._taken = seen.value
        if seen.register == reg.IRQ_STATUS and seen.value & 1:
            self._asked.clear()
        if seen.register == reg.CONTROL and seen.value & SOFT_RESET:
            self._asked.clear()
            busy = "commands on their way" if rings.on_their_way else "nothing"
            self._groups["recovery"].hit(f"halt by, {self._halt.name}" if self._halt else busy)
            self._halt, self._taken = None, 0

    def interrupting(self, done: bool) -> None:
        """A command with an interrupt has completed."""
        self._asked.add(done)

    def _read(self, seen: RegisterSeen) -> None:
        if seen.register == reg.IRQ_STATUS:
            for bit, name in enumerate(("completion", "halt")):
                if seen.value >> bit & 1:
                    self._groups["interrupts"].hit(name)
            if seen.value & 1 and self._asked == {False}:
                self._groups["interrupts"].hit("completion of one that failed")
        if seen.register == reg.STATUS and seen.value & HALTED:
            fault = Fault(seen.value >> 8 & 0xFF)
            self._groups["faults"].hit(fault.name)
            self._halt = fault
            if fault == Fault.BUS_READ and self._rings.inside(self.failed_at, False):
                self._groups["fault sites"].hit("BUS_READ, descriptor")
            if fault == Fault.BUS_WRITE and self._rings.inside(self.failed_at, True):
                self._groups["fault sites"].hit("BUS_WRITE, completion")

    def counters(self, values: dict[str, int]) -> None:
        """All counters, as they were read."""
        for name in COUNTERS:
            if values[name.upper()]:
                self._groups["stalls"].hit(f"clocks, {name}")
