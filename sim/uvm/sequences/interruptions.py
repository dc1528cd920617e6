# SPDX-License-Identifier: Apache-2.0
"""Ring overruns, the watchdog, and soft resets at any time."""

from __future__ import annotations

from gharial.isa import _registers as reg
from gharial.isa.commands import Kind, Operation
from sim.common import bench
from sim.uvm.sequences.halts import Halts


class Interruptions(Halts):
    """Needs a program."""

    async def body(self) -> None:
        rounds = 6 if bench.short() else 24
        for ahead in (9, 0x80000000, 0xFFFFFFFF):
            await self.fill()
            await self.bell(ahead)
            assert await self.halted()
            await self.recover()
        await self._overrun_behind_work()
        halts = 0
        for number in range(rounds):
            await self.fill()
            await self.pace()
            # The first is too short for anything, the last long enough for all.
            most = (2, 300, 1500, 6000, 20_000, 3_000_000)[number % 6]
            await self.write(reg.WATCHDOG, most if number < 6 else self.number(1, most))
            await self._work()
            halts += await self.halted()
            await self.write(reg.WATCHDOG, 0)
            await self.recover()
        assert halts
        for number in range(rounds):
            await self.fill()
            await self.pace()
            await self._work()
            await self.bell()
            await self.wait(self.number(1, (20, 200, 1000, 4000)[number % 4]))
            await self.recover()

    async def _overrun_behind_work(self) -> None:
        await self.fill()
        await self._work()
        await self.bell()
        await self.bell(ahead=77)
        assert await self.halted()
        await self.recover()

    async def _work(self) -> None:
        """Commands of any kind."""
        for _ in range(self.number(1, 6)):
            slot = self.number(0, 5)
            choice = self.number(0, 6)
            if choice < 2:
                await self.post(self.greedy(slot, k=self.number(1, 9)))
            elif choice == 2:
                await self.post(self.encode((slot, (slot + 1) % 5, (slot + 2) % 5)))
            elif choice == 3:
                await self.post(self.decode(Kind.START, slot, k=2))
            elif choice == 4:
                await self.post(self.host.slots(Operation.COPY, [(5, slot), (5, 6)], True))
            else:
                operation = Operation.SAVE if self.chance(0.5) else Operation.RESET
                await self.post(self.host.slots(operation, [slot], self.chance(0.5)))
