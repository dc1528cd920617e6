# SPDX-License-Identifier: Apache-2.0
"""Error responses of the memory, wherever the accelerator reads or writes."""

from __future__ import annotations

from gharial.isa.commands import COMPLETION, DESCRIPTOR, Kind, Mode, Operation
from gharial.isa.header import ProgramSpace
from sim.uvm.ring.command_item import CommandItem
from sim.uvm.sequences.halts import Halts


class BusErrors(Halts):
    """Needs a program."""

    async def body(self) -> None:
        await self.each([
            self._descriptor, self._completion, self._behind_work,
            lambda: self._at("read", "entries", self.encode((0, 1))),
            lambda: self._at("read", "entries", self.decode(Kind.TOKEN, 1)),
            lambda: self._at("read", "features", self.encode((0, 1))),
            lambda: self._at("read", "features", self.greedy(2)),
            lambda: self._at("read", "image", self._restore(False)),
            lambda: self._at("read", "image", self._restore(True)),
            lambda: self._at("write", "results", self.decode(Kind.TOKEN, 1, mode=Mode.ALL)),
            lambda: self._at("write", "results", self.greedy(2)),
            lambda: self._at("write", "image", self.host.slots(Operation.SAVE, [0, 1])),
            lambda: self._at("write", "image", self.host.slots(Operation.SAVE, [2], True)),
        ])  # fmt: skip
        await self._chunk()

    async def _at(self, kind: str, place: str, item: CommandItem) -> None:
        """The command meets an error somewhere in one of its places."""
        low, high = item.places[place]
        at = low if place == "results" else low + 4 * self.number(0, (high - low) // 4)
        await self.error(kind, at, at + 4)
        await self.post(item)

    def _restore(self, prediction: bool) -> CommandItem:
        image = self.rng.integers(-9, 9, 2 * self.host.slot_bytes(prediction)).astype("i1").tobytes()
        return self.host.slots(Operation.RESTORE, [1, 3], prediction, image)

    async def _descriptor(self) -> None:
        driver = self.env.ring.driver
        at = driver.rings.command_base + DESCRIPTOR.bytes * (driver.tail % (1 << driver.rings.command_log2))
        await self.error("read", at, at + DESCRIPTOR.bytes)
        await self.post(self.encode((0, 1)))

    async def _behind_work(self) -> None:
        """The descriptor behind a step that takes its time."""
        await self.post(self.greedy(0, k=9))
        await self._descriptor()

    async def _completion(self) -> None:
        driver = self.env.ring.driver
        at = driver.rings.completion_base + COMPLETION.bytes * (driver.tail % (1 << driver.rings.completion_log2))
        await self.error("write", at, at + COMPLETION.bytes)
        await self.post(self.encode((0, 1)))

    async def _chunk(self) -> None:
        """LOAD: the program is gone, and can be loaded again."""
        program = self.host.program
        assert program is not None
        await self._at("read", "chunk", self.host.chunk(ProgramSpace.BIASES, 0, program.images["biases"]))
        assert await self.halted()
        await self.no_error()
        await self.soft_reset()
        await self.setup()
        await self.load(program)
        await self.fill()
