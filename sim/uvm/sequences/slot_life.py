# SPDX-License-Identifier: Apache-2.0
"""Slots used one time after another: ended, begun anew, copied, saved, restored, freed, lost to a fault."""

from __future__ import annotations

from gharial.isa.commands import Kind, Operation
from sim.uvm.ring.command_item import CommandItem
from sim.uvm.sequences.base import BenchSequence


class SlotLife(BenchSequence):
    """Directed; needs a program with at least two vectors a step."""

    async def body(self) -> None:
        await self._ends()
        await self._copies()
        await self._images()
        await self._lost()
        await self.flush()

    def _step(self, slot: int, vectors: int, **fields: int) -> CommandItem:
        return self.host.steps(Operation.ENCODE, [{"slot": slot, "features": self.features(vectors), **fields}])

    async def _ends(self) -> None:
        """A short step ends a slot: it can be decoded and copied, not continued or saved; it can be begun anew."""
        full = self.host.header["vectors"]
        await self.post(self._step(0, full, reset=1))
        await self.post(self._step(0, full, reset=1, bank=1))
        await self.post(self._step(0, full - 1))
        await self.post(self.host.decode([{"slot": 0, "kind": Kind.START, "destination": 0}]))
        await self.post(self._step(0, full))  # BAD_SLOT
        await self.post(self.host.slots(Operation.SAVE, [0]))  # BAD_SLOT
        await self.post(self.host.slots(Operation.COPY, [(0, 1)]))
        await self.post(self.host.decode([{"slot": 1, "kind": Kind.NONE, "source": 0, "destination": 0}]))
        await self.post(self._step(0, full, reset=1))
        await self.post(self._step(0, full))
        await self.flush()

    async def _copies(self) -> None:
        """A copy and its original go their own ways."""
        token = {"kind": Kind.TOKEN, "token": 0}
        await self.post(self.host.slots(Operation.COPY, [(0, 1), (0, 2)], True))
        await self.post(self.host.decode([token | {"source": n, "destination": n, "token": n // 2} for n in range(3)]))
        await self.post(self.host.slots(Operation.COPY, [(1, 1)], True))
        await self.post(self.host.slots(Operation.COPY, [(0, 0)]))
        await self.flush()
        await self.census(3, 4)

    async def _images(self) -> None:
        """What is saved and restored elsewhere goes on as the original does."""
        for prediction in (False, True):
            item = await self.post(self.host.slots(Operation.SAVE, [0], prediction))
            found = await self.flush()
            assert not found.completions[-1]["status"]
            low, high = item.places["image"]
            image = self.host.memory.host_read(low, high - low)
            await self.post(self.host.slots(Operation.RESTORE, [0, 3], prediction, image + image))
        full = self.host.header["vectors"]
        features = self.features(full)
        for slot in (0, 3):
            entry = {"slot": slot, "prediction": slot, "features": features}
            await self.post(self.host.steps(Operation.GREEDY, [entry], k=3))
        await self.post(self.host.slots(Operation.FREE, [3], True))
        await self.post(self.host.slots(Operation.SAVE, [3], True))  # BAD_SLOT
        await self.flush()

    async def _lost(self) -> None:
        """A fault on the way frees the command's slots; those behind that need one fail, others do not notice."""
        full = self.host.header["vectors"]
        await self.post(self._step(2, full, reset=1))
        await self.post(self._step(4, full, reset=1))
        bad = [{"slot": 2, "features": self.features(full)}, {"slot": 3, "features": self.features(full), "crc": 1}]
        await self.post(self.host.steps(Operation.ENCODE, bad))
        await self.post(self._step(2, full))
        await self.post(self._step(4, full))
        await self.post(self._step(2, full, reset=1))
        await self.flush()
        await self.census()
