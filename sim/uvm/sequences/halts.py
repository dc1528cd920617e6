# SPDX-License-Identifier: Apache-2.0
"""What ends work before its time, each time followed by a soft reset, a look at every slot, and work as before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from gharial.isa import _registers as reg
from gharial.isa.commands import Kind, Operation
from sim.uvm.ring.command_item import CommandItem
from sim.uvm.sequences.base import BenchSequence

ENCODERS, PREDICTIONS = 5, 7
HALTED = 4


class Halts(BenchSequence):
    """Base of sequences that halt the accelerator. Slots 0 to 4 and 0 to 6 hold random states before each."""

    async def fill(self) -> None:
        """Random states in all slots that are looked at."""
        for prediction, count in ((False, ENCODERS), (True, PREDICTIONS)):
            size = count * self.host.slot_bytes(prediction)
            image = self.rng.integers(-90, 90, size).astype("i1").tobytes()
            await self.post(self.host.slots(Operation.RESTORE, list(range(count)), prediction, image))
        await self.flush()

    def greedy(self, slot: int, **fields: int) -> CommandItem:
        """A step of one stream."""
        entry: dict[str, Any] = {"slot": slot, "prediction": slot, "features": self.features(self.full)}
        return self.host.steps(Operation.GREEDY, [entry], **fields)

    def encode(self, slots: tuple[int, ...]) -> CommandItem:
        """A step of several streams."""
        return self.host.steps(Operation.ENCODE, [{"slot": n, "features": self.features(self.full)} for n in slots])

    def decode(self, kind: Kind, slot: int, **fields: int) -> CommandItem:
        """A decode entry in place."""
        return self.host.decode([{"slot": slot, "kind": kind, "source": slot, "destination": slot}], **fields)

    @property
    def full(self) -> int:
        """Vectors of a full step."""
        return self.host.header["vectors"]

    async def behind(self) -> None:
        """Commands behind the one that halts."""
        for number in range(self.number(0, 3)):
            await self.post(self.greedy(3 + number % 2))

    async def halted(self) -> bool:
        """Wait for the end; whether it is a halt, of which all is read that there is."""
        found = await self.flush()
        if found.halted or await self.read(reg.STATUS) & HALTED:
            for register in (reg.STATUS, reg.FAULT_DETAIL, reg.FAULT_TAG, reg.IRQ_STATUS):
                await self.read(register)
            return True
        return False

    async def recover(self) -> None:
        """Soft reset; then all slots are looked at, and streams go on."""
        await self.no_error()
        await self.soft_reset()
        await self.setup()
        await self.census(ENCODERS, PREDICTIONS)
        await self.fill()
        await self.post(self.greedy(0))
        await self.post(self.encode((1, 2)))
        await self.post(self.decode(Kind.TOKEN, 1))
        await self.flush()
        await self.census(ENCODERS, PREDICTIONS)

    async def each(self, causes: list[Callable[[], Awaitable[object]]]) -> None:
        """Every cause in turn, at a pace of its own; each has to halt."""
        for cause in causes:
            await self.fill()
            await self.pace()
            await cause()
            await self.behind()
            assert await self.halted(), f"{cause} did not halt the accelerator"
            await self.recover()
