# SPDX-License-Identifier: Apache-2.0
"""The memory's end of the AXI4 port: takes addresses and words, offers words and responses, at its own pace."""

from __future__ import annotations

import random
from collections import deque

import cocotb
from pyuvm import uvm_driver

from sim.uvm.imp import Imp
from sim.uvm.memory.item import MemoryItem
from sim.uvm.memory.items import OKAY, SLAVE_ERROR
from sim.uvm.memory.model import DeviceMemory
from sim.uvm.memory.profile import PROFILES, Profile
from sim.uvm.memory.sample import Sample


class MemoryDriver(uvm_driver):
    """Answers what the monitor sees; items from its sequencer change how.

    Attributes:
        model: the memory; set before the run.
        rng: of all choices; set before the run.
    """

    model: DeviceMemory
    rng: random.Random

    def build_phase(self) -> None:
        self.samples = Imp("samples", self, self.clock)
        self.profile: Profile = PROFILES[0]
        self._errors: list[MemoryItem] = []
        self._now = 0
        self._burst: deque[tuple[int, int, bool]] = deque()  # word, response, last
        self._burst_due = 0
        self._addresses: deque[int] = deque()
        self._words: deque[int] = deque()
        self._responses: deque[tuple[int, int]] = deque()  # due, response
        self._driven: dict[str, int] = {}

    async def run_phase(self) -> None:
        for name in ("arready", "rvalid", "rdata", "rresp", "rlast", "awready", "wready", "bvalid", "bresp"):
            self._drive(name, 0)
        while True:
            item: MemoryItem = await self.seq_item_port.get_next_item()
            if item.profile is not None:
                self.profile = item.profile
            if item.forget:
                self._errors.clear()
            if item.error:
                self._errors.append(item)
            self.seq_item_port.item_done()

    def clock(self, sample: Sample) -> None:
        """What passed in this clock; then what is offered in the next."""
        self._now += 1
        if sample.r:
            self._burst.popleft()
        if sample.ar:
            self._fetch(sample.read_address, sample.read_beats)
        if sample.b:
            self._responses.popleft()
        if sample.aw:
            self._addresses.append(sample.write_address)
        if sample.w:
            self._words.append(sample.write_word)
        while self._addresses and self._words:
            self._store(self._addresses.popleft(), self._words.popleft())
        self._offer(sample)

    def _offer(self, sample: Sample) -> None:
        profile, chance = self.profile, self.rng.random
        self._drive("arready", chance() < profile.ar)
        # One address ahead of its word, or the other way round: the accelerator writes words one by one.
        self._drive("awready", chance() < profile.aw)
        self._drive("wready", chance() < profile.w)
        offered = self._driven["rvalid"] and not sample.r
        if not offered:
            valid = bool(self._burst) and self._now >= self._burst_due and chance() < profile.r
            self._drive("rvalid", valid)
            if valid:
                word, response, last = self._burst[0]
                self._drive("rdata", word)
                self._drive("rresp", response)
                self._drive("rlast", last)
        if not (self._driven["bvalid"] and not sample.b):
            valid = bool(self._responses) and self._now >= self._responses[0][0]
            self._drive("bvalid", valid)
            if valid:
                self._drive("bresp", self._responses[0][1])

    def _fetch(self, address: int, beats: int) -> None:
        inside = self.model.holds(address, beats)
        wrong = self._error("read", address, 4 * beats)
        at = self.rng.randrange(beats) if wrong else -1
        for beat in range(beats):
            word = self.model.word(address + 4 * beat) if inside else self.rng.getrandbits(32)
            response = SLAVE_ERROR if not inside or beat == at else OKAY
            self._burst.append((word, response, beat == beats - 1))
        self._burst_due = self._now + self.rng.randint(0, self.profile.read_latency)

    def _store(self, address: int, word: int) -> None:
        failed = not self.model.holds(address) or self._error("write", address, 4)
        if not failed:
            self.model.put_word(address, word)
        due = self._now + self.rng.randint(0, self.profile.write_latency)
        self._responses.append((due, SLAVE_ERROR if failed else OKAY))

    def _error(self, kind: str, address: int, count: int) -> bool:
        """Whether an error was ordered for this access; it happens once."""
        for item in self._errors:
            if item.error == kind and address < item.high and item.low < address + count:
                self._errors.remove(item)
                return True
        return False

    def _drive(self, name: str, value: int) -> None:
        if self._driven.get(name) != int(value):
            self._driven[name] = int(value)
            getattr(cocotb.top, f"axi_{name}_i").value = int(value)
