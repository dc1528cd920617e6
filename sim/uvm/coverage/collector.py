# SPDX-License-Identifier: Apache-2.0
"""Brings what the monitors see to the groups."""

from __future__ import annotations

from collections.abc import Mapping

from pyuvm import uvm_component

from gharial.isa import _registers as reg
from gharial.isa.commands import Flag
from gharial.isa.configs import config
from sim.uvm.coverage.bus_coverage import BusCoverage
from sim.uvm.coverage.command_coverage import CommandCoverage
from sim.uvm.coverage.fault_coverage import FaultCoverage
from sim.uvm.coverage.group import CoverGroup
from sim.uvm.coverage.job_coverage import JobCoverage
from sim.uvm.coverage.limit_coverage import LimitCoverage
from sim.uvm.coverage.program_coverage import ProgramCoverage
from sim.uvm.coverage.register_coverage import RegisterCoverage
from sim.uvm.coverage.slot_coverage import SlotCoverage
from sim.uvm.imp import Imp
from sim.uvm.memory.items import ReadBurst, WriteWord
from sim.uvm.program.drawn import DrawnProgram
from sim.uvm.registers.item import RegisterSeen
from sim.uvm.ring.finished import Finished
from sim.uvm.ring.items import Completed, Fetched
from sim.uvm.ring.monitor import RingMonitor


class CoverageCollector(uvm_component):
    """Subscribes to all monitors, and to nobody who makes stimulus.

    Attributes:
        groups: of the whole run; set before the build, as are `library` and, before the run, `rings`.
    """

    groups: dict[str, CoverGroup]
    library: Mapping[str, DrawnProgram]
    rings: RingMonitor

    def build_phase(self) -> None:
        self.finished = Imp("finished", self, self._finished)
        self.fetched = Imp("fetched", self, self._fetched)
        self.completed = Imp("completed", self, self._completed)
        self.reads = Imp("reads", self, self._read)
        self.writes = Imp("writes", self, self._write)
        self.accesses = Imp("accesses", self, self._access)
        self.products = Imp("products", self, lambda job: self._jobs.product(job))
        self.others = Imp("others", self, lambda job: self._jobs.other(job))
        self.counters = Imp("counters", self, lambda values: self._registers.counters(values))

    def end_of_elaboration_phase(self) -> None:
        groups, tiny = self.groups, config("tiny")
        self._commands = CommandCoverage(groups)
        self._slots = SlotCoverage(groups["slots"])
        self._programs = ProgramCoverage(groups, tiny, self.library)
        self._limits = LimitCoverage(groups["limits"], tiny)
        self._jobs = JobCoverage(groups, tiny)
        self._bus = BusCoverage(groups["bus"])
        self._registers = RegisterCoverage(groups, self.rings)
        self._faults = FaultCoverage(groups, self._slots)

    def _finished(self, command: Finished) -> None:
        self._commands.finished(command)
        self._faults.finished(command)
        self._slots.finished(command)
        self._limits.finished(command)
        if command.whole and command.descriptor["flags"] & Flag.INTERRUPT:
            self._registers.interrupting(command.done)
        if self._programs.finished(command):
            program = self._programs.current
            assert program is not None
            header = program.header
            self._slots.forget()
            self._slots.stack = self._commands.stack = header["vectors"]
            self._commands.classes = header["classes"]
            self._limits.header = header
            self._faults.program = program
            self._jobs.pad_unit = program.manifest["pad"]["embedding_unit"]

    def _fetched(self, fetched: Fetched) -> None:
        if fetched.index >= self.rings.sizes[0]:
            self.groups["rings"].hit("commands wrapped")

    def _completed(self, done: Completed) -> None:
        size = self.rings.sizes[1]
        if done.index >= size:
            self.groups["rings"].hit("completions wrapped")
        self.groups["rings"].hit("one entry" if size == 1 else "several entries")

    def _read(self, burst: ReadBurst) -> None:
        self._bus.read(burst)
        if burst.failed:
            self._registers.failed_at = burst.address

    def _write(self, word: WriteWord) -> None:
        self._bus.written(word)
        if word.failed:
            self._registers.failed_at = word.address

    def _access(self, seen: RegisterSeen) -> None:
        self._registers.access(seen)
        numbers = list(self._faults.slot_numbers)
        if not seen.is_write and seen.register in (reg.ENC_SLOTS, reg.PRED_SLOTS):
            numbers[seen.register == reg.PRED_SLOTS] = seen.value
            self._faults.slot_numbers = (numbers[0], numbers[1])
            self._commands.prediction_slots = numbers[1]
