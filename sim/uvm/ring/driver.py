# SPDX-License-Identifier: Apache-2.0
"""The host's end of the rings."""

from __future__ import annotations

import random

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, First, RisingEdge, Timer, ValueChange
from pyuvm import uvm_driver, uvm_sequencer

from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION, DESCRIPTOR
from sim.common.bench import PERIOD_NS
from sim.uvm.memory.model import DeviceMemory
from sim.uvm.ring.command_item import CommandItem
from sim.uvm.ring.control_items import BellItem, FlushItem, SetupItem, SoftResetItem
from sim.uvm.ring.items import Fields
from sim.uvm.send import read, write

ENABLE, SOFT_RESET = 1, 2
BUSY = 2
MASK = 0xFFFFFFFF
PATIENCE = 400_000
"""Clocks without a completion after which a command counts as lost: many times what the longest takes."""


class RingDriver(uvm_driver):
    """Posts commands, rings the bell and takes completions.

    Attributes:
        memory: the device memory; set before the run.
        registers: sequencer of the registers; set before the run.
        rng: of its choices; set before the run.
        tail, rung, taken: commands posted, told and completed.
    """

    memory: DeviceMemory
    registers: uvm_sequencer
    rng: random.Random

    def build_phase(self) -> None:
        self.tail = self.rung = self.taken = 0
        self.rings = SetupItem(0, 0, 0, 0)

    async def run_phase(self) -> None:
        while True:
            item = await self.seq_item_port.get_next_item()
            if isinstance(item, CommandItem):
                await self._post(item)
            elif isinstance(item, FlushItem):
                await self._flush(item)
            elif isinstance(item, SetupItem):
                await self._setup(item)
            elif isinstance(item, BellItem):
                self.rung = self.tail  # as far as it is known: an overrun is not taken back
                await write(self.registers, reg.CMD_TAIL, (self.tail + item.ahead) & MASK)
            elif isinstance(item, SoftResetItem):
                await self._soft_reset()
            self.seq_item_port.item_done()

    async def _setup(self, item: SetupItem) -> None:
        self.rings = item
        self.tail = self.rung = self.taken = 0
        for register, value in (
            (reg.CMD_BASE_LO, item.command_base),
            (reg.CMD_BASE_HI, 0),
            (reg.CMD_LOG2, item.command_log2),
            (reg.CPL_BASE_LO, item.completion_base),
            (reg.CPL_BASE_HI, 0),
            (reg.CPL_LOG2, item.completion_log2),
            (reg.CONTROL, ENABLE),
        ):
            await write(self.registers, register, value)

    async def _post(self, item: CommandItem) -> None:
        size = 1 << self.rings.command_log2
        if self.tail - self.taken >= size:
            await self._bell()
            await self._take(self.tail - size + 1, FlushItem())
        at = self.rings.command_base + DESCRIPTOR.bytes * (self.tail % size)
        self.memory.host_write(at, item.descriptor)
        self.tail += 1
        if item.ring:
            await self._bell()

    async def _bell(self) -> None:
        if self.rung != self.tail:
            self.rung = self.tail
            await write(self.registers, reg.CMD_TAIL, self.rung, self.rng.choice((0, 0, 3)))

    async def _flush(self, item: FlushItem) -> None:
        await self._bell()
        await self._take(self.tail, item)

    async def _take(self, until: int, item: FlushItem) -> None:
        """Take completions up to that index; fewer if the device halts."""
        while self.taken < until:
            there = await self._notice(item)
            if there == self.taken:
                item.halted = True
                return
            while self.taken < there:
                item.completions.append(self._completion(self.taken))
                self.taken += 1
                if self.rng.random() < 0.7 or self.taken == there:  # several places may be given back at once
                    await write(self.registers, reg.CPL_HEAD, self.taken)

    def _completion(self, index: int) -> Fields:
        at = self.rings.completion_base + COMPLETION.bytes * (index % (1 << self.rings.completion_log2))
        return COMPLETION.unpack(np.frombuffer(self.memory.host_read(at, COMPLETION.bytes), "<u4"))

    async def _notice(self, item: FlushItem) -> int:
        """Wait for completions that have not been taken, or for the halt; the completion index."""
        dut = cocotb.top
        left = PATIENCE
        while int(dut.completions_o.value) == self.taken and not dut.halted_o.value:
            assert left > 0, f"command {self.taken} of {self.tail} is lost: no completion in {PATIENCE} clocks"
            if item.notice == "poll":
                await ClockCycles(dut.clk_i, 150)
                left -= 150
                if await read(self.registers, reg.CPL_TAIL) != self.taken:
                    break
            elif item.notice == "interrupt":
                await First(RisingEdge(dut.irq_o), ValueChange(dut.halted_o), Timer(4000 * PERIOD_NS, "ns"))
                left -= 4000
                if dut.irq_o.value:
                    await write(self.registers, reg.IRQ_STATUS, await read(self.registers, reg.IRQ_STATUS))
            else:
                patience = Timer(PATIENCE * PERIOD_NS, "ns")
                fired = await First(ValueChange(dut.completions_o), ValueChange(dut.halted_o), patience)
                left = 0 if fired is patience else left
            await RisingEdge(dut.clk_i)
        if dut.halted_o.value:
            await ClockCycles(dut.clk_i, 2000)  # what still ends in order ends now
        return int(dut.completions_o.value)

    async def _soft_reset(self) -> None:
        await write(self.registers, reg.CONTROL, SOFT_RESET)
        for _ in range(100):
            if not await read(self.registers, reg.STATUS) & BUSY:
                break
            await ClockCycles(cocotb.top.clk_i, 100)
        else:
            raise AssertionError("a soft reset does not end")
        for register in (reg.CMD_TAIL, reg.CMD_HEAD, reg.CPL_TAIL, reg.CPL_HEAD, reg.CONTROL, reg.FAULT_DETAIL):
            assert await read(self.registers, register) == 0, f"{register.name} after a soft reset"
