# SPDX-License-Identifier: Apache-2.0
"""The environment: agents around the accelerator, scoreboard and coverage, and how they are connected."""

from __future__ import annotations

import random

from pyuvm import uvm_env

from gharial.isa.configs import config
from sim.common import bench
from sim.uvm.coverage.collector import CoverageCollector
from sim.uvm.coverage.group import CoverGroup
from sim.uvm.job.monitor import JobMonitor
from sim.uvm.memory.agent import MemoryAgent
from sim.uvm.memory.model import DeviceMemory
from sim.uvm.program.drawn import DrawnProgram
from sim.uvm.registers.agent import RegisterAgent
from sim.uvm.ring.agent import RingAgent
from sim.uvm.ring.finished import CommandCollector
from sim.uvm.scoreboard.scoreboard import Scoreboard


class Environment(uvm_env):
    """Everything but the stimulus.

    Attributes:
        groups: coverage of the whole run; set before the build.
        device_memory: the memory.
        library: programs that may be loaded, by key.
        rng: of what the agents choose by themselves.
    """

    groups: dict[str, CoverGroup]

    def build_phase(self) -> None:
        self.device_memory = DeviceMemory(config("tiny").window_bytes)
        self.library: dict[str, DrawnProgram] = {}
        self.rng = random.Random(int(bench.rng(self.get_full_name()).integers(1 << 32)))
        self.registers = RegisterAgent("registers", self)
        self.memory = MemoryAgent("memory", self)
        self.ring = RingAgent("ring", self)
        self.jobs = JobMonitor("jobs", self)
        self.commands = CommandCollector("commands", self)
        self.scoreboard = Scoreboard("scoreboard", self)
        self.scoreboard.memory, self.scoreboard.library = self.device_memory, self.library
        self.coverage = CoverageCollector("coverage", self)
        self.coverage.groups, self.coverage.library = self.groups, self.library

    def connect_phase(self) -> None:
        self.memory.driver.model, self.memory.driver.rng = self.device_memory, self.rng
        driver = self.ring.driver
        driver.memory, driver.registers, driver.rng = self.device_memory, self.registers.sequencer, self.rng
        # The monitor of the rings first: the others ask it where the rings are.
        rings = self.ring.monitor
        self.coverage.rings = self.scoreboard.rings = rings
        for port, subscribers in (
            (self.registers.monitor.requests, (self.scoreboard.requests,)),
            (self.registers.monitor.accesses, (self.coverage.accesses, rings.accesses, self.scoreboard.accesses)),
            (self.memory.monitor.reads, (self.commands.reads, self.coverage.reads, self.scoreboard.reads, rings.reads)),
            (self.memory.monitor.writes, (rings.writes, self.commands.writes, self.coverage.writes,
                                          self.scoreboard.writes)),
            (rings.fetched, (self.commands.fetched, self.coverage.fetched)),
            (rings.completed, (self.scoreboard.completions, self.coverage.completed, self.commands.completed)),
            (self.commands.finished, (self.coverage.finished,)),
            (self.jobs.products, (self.coverage.products,)),
            (self.jobs.others, (self.coverage.others,)),
            (self.scoreboard.counters, (self.coverage.counters,)),
        ):  # fmt: skip
            for subscriber in subscribers:
                port.connect(subscriber)
