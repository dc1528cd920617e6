# SPDX-License-Identifier: Apache-2.0
"""Rings of all sizes, full and empty; interrupts; every register."""

from __future__ import annotations

from gharial.isa import _registers as reg
from gharial.isa.commands import Flag, Operation
from sim.uvm.sequences.base import BenchSequence
from sim.uvm.sequences.host import TINY

FREE_TO_WRITE = (reg.CMD_BASE_HI, reg.CPL_BASE_HI, reg.WATCHDOG, reg.IRQ_ENABLE, reg.CMD_BASE_LO, reg.CPL_BASE_LO)
COMPLETION, HALT = 1, 2


class Rings(BenchSequence):
    """Needs a program; leaves rings of eight entries."""

    async def body(self) -> None:
        await self._registers()
        for command_log2, completion_log2 in ((0, 0), (0, 3), (3, 0), (1, 2)):
            await self.soft_reset()
            await self.setup(command_log2, completion_log2)
            for _ in range(5):
                await self.post(self.host.command(Operation.NOP, ring=self.chance(0.5)))
            await self.flush("poll")
        await self._held_back()
        await self._interrupts()

    async def _registers(self) -> None:
        """Those that are read only stay as they are; the others keep what is written, and the accelerator is idle."""
        await self.write(reg.CONTROL, 0)
        for register in reg.REGISTERS:
            if register.access == "ro":
                await self.write(register, self.number(0, 1 << 32))
        for register in FREE_TO_WRITE:
            await self.write(register, 3 if register == reg.IRQ_ENABLE else self.number(0, 1 << 26) << 6)
        for register in reg.REGISTERS:
            if register.access != "wo":
                await self.read(register)
        for register in FREE_TO_WRITE:
            await self.write(register, 0)
        await self.soft_reset()
        await self.setup()

    async def _held_back(self) -> None:
        """More commands than the ring of completions has room for: nothing is lost, and the wait is counted."""
        await self.soft_reset()
        await self.setup(3, 1)
        full = self.host.header["vectors"]
        for number in range(7):
            entry = {"slot": 0, "reset": int(not number), "prediction": 0, "features": self.features(full)}
            await self.post(self.host.steps(Operation.GREEDY, [entry], True, k=1))
        await self.wait(9000)
        assert await self.read(reg.CPL_TAIL) == 2, "a full ring of completions did not hold back"
        await self.counters()
        await self.flush()
        await self.counters()
        await self.soft_reset()
        await self.setup()

    async def _interrupts(self) -> None:
        """A command's interrupt with and without its enable; a halt's."""
        for enable in (0, COMPLETION, COMPLETION | HALT):
            await self.write(reg.IRQ_ENABLE, enable)
            await self.post(self.host.command(Operation.NOP))
            await self.post(self.host.command(Operation.NOP, flags=int(Flag.INTERRUPT)))
            await self.flush("interrupt" if enable else "pins")
            await self.read(reg.IRQ_STATUS)
            await self.write(reg.IRQ_STATUS, COMPLETION)
            await self.read(reg.IRQ_STATUS)
        await self.bell(ahead=TINY.max_entries)  # an overrun
        await self.flush()
        await self.read(reg.IRQ_STATUS)
        await self.write(reg.IRQ_STATUS, HALT)
        await self.read(reg.IRQ_STATUS)
        await self.write(reg.IRQ_ENABLE, 0)
        await self.soft_reset()
        await self.setup()
