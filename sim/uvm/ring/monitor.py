# SPDX-License-Identifier: Apache-2.0
"""Watches what the accelerator does with the rings: descriptors that it reads, completions that it publishes."""

from __future__ import annotations

import zlib

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, ValueChange
from pyuvm import uvm_analysis_port, uvm_monitor

from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION, DESCRIPTOR
from sim.uvm.imp import Imp
from sim.uvm.memory.items import ReadBurst, WriteWord
from sim.uvm.registers.item import RegisterSeen
from sim.uvm.ring.items import Completed, Fetched

SOFT_RESET = 2


class RingMonitor(uvm_monitor):
    """Ports `fetched` and `completed`. It learns where the rings are from the registers, and sees their entries pass
    on the AXI4 port: nothing is taken from whoever made the commands."""

    def build_phase(self) -> None:
        self.accesses = Imp("accesses", self, self._access)
        self.reads = Imp("reads", self, self._read)
        self.writes = Imp("writes", self, self._write)
        self.fetched = uvm_analysis_port("fetched", self)
        self.completed = uvm_analysis_port("completed", self)
        self._rings = dict.fromkeys((reg.CMD_BASE_LO, reg.CMD_LOG2, reg.CPL_BASE_LO, reg.CPL_LOG2), 0)
        self.head = self.tail = self.told = 0
        self._entry: dict[int, int] = {}  # words of the next completion, by address

    async def run_phase(self) -> None:
        dut = cocotb.top
        await FallingEdge(dut.rst_i)
        while True:
            await ValueChange(dut.completions_o)
            index = int(dut.completions_o.value)
            if index == (self.tail + 1) & 0xFFFFFFFF:
                self._publish()
            else:
                assert index == 0, f"the completion index went from {self.tail} to {index}"
                self.tail = 0
                self._entry.clear()

    @property
    def sizes(self) -> tuple[int, int]:
        """Entries of the rings of commands and completions."""
        return 1 << self._rings[reg.CMD_LOG2], 1 << self._rings[reg.CPL_LOG2]

    @property
    def on_their_way(self) -> bool:
        """Whether commands have been fetched, or told of, that have not completed."""
        return self.told != self.tail

    def inside(self, address: int, completions: bool) -> bool:
        """Whether an address lies in one of the rings."""
        base, log2, size = self._ring(completions)
        return base <= address < base + (size << log2)

    def _ring(self, completions: bool) -> tuple[int, int, int]:
        names = (reg.CPL_BASE_LO, reg.CPL_LOG2) if completions else (reg.CMD_BASE_LO, reg.CMD_LOG2)
        return self._rings[names[0]], self._rings[names[1]], (COMPLETION if completions else DESCRIPTOR).bytes

    def _access(self, access: RegisterSeen) -> None:
        if access.is_write and access.register in self._rings:
            self._rings[access.register] = access.value
            self._entry.clear()
        elif access.is_write and access.register == reg.CONTROL and access.value & SOFT_RESET:
            self.head = self.told = 0
        elif access.is_write and access.register == reg.CMD_TAIL:
            self.told = access.value

    def _read(self, burst: ReadBurst) -> None:
        base, log2, size = self._ring(False)
        if burst.failed or not self.inside(burst.address, False):
            return
        expected = base + size * (self.head % (1 << log2))
        if burst.address != expected:  # something else that lies there: rings may be moved
            return
        assert burst.beats == DESCRIPTOR.words, f"a descriptor of {burst.beats} words"
        index, self.head = self.head, self.head + 1
        self.fetched.write(Fetched(index, np.array(burst.words, "<u4").tobytes()))

    def _write(self, written: WriteWord) -> None:
        if self.inside(written.address, True) and not written.failed:
            assert written.address not in self._entry, f"a word of a completion twice: {written.address:#x}"
            self._entry[written.address] = written.word

    def _publish(self) -> None:
        base, log2, size = self._ring(True)
        at = base + size * (self.tail % (1 << log2))
        addresses = [at + 4 * word for word in range(COMPLETION.words)]
        assert sorted(self._entry) == addresses, (
            f"completion {self.tail} was published, of which these words had been written: "
            f"{[hex(a) for a in sorted(self._entry)]}, expected {addresses[0]:#x} to {addresses[-1]:#x}"
        )
        raw = np.array([self._entry[address] for address in addresses], "<u4").tobytes()
        self._entry.clear()
        done = Completed(self.tail, raw)
        assert zlib.crc32(raw[:-4]) == done.fields["crc"], f"completion {self.tail}: CRC of {raw.hex()}"
        assert done.fields["index"] == self.tail, f"completion {self.tail} says that it is {done.fields['index']}"
        self.tail += 1
        self.completed.write(done)
