# SPDX-License-Identifier: Apache-2.0
"""Every operation behind every other, on the same slots, before the older one is done."""

from __future__ import annotations

from gharial.isa.commands import Kind, Operation
from sim.uvm.ring.command_item import CommandItem
from sim.uvm.sequences.base import BenchSequence


class Pipeline(BenchSequence):
    """All pairs of ENCODE, DECODE, GREEDY and a slot command in one ring of the bell."""

    async def body(self) -> None:
        makers = (self._encode, self._decode, self._greedy, self._copy)
        await self.post(self._step(Operation.GREEDY, 1))
        await self.flush()
        for older in makers:
            for younger in makers:
                for maker in (older, younger, older):
                    await self.post(maker())
                await self.flush()

    def _step(self, operation: Operation, reset: int = 0) -> CommandItem:
        entry = {"slot": 1, "reset": reset, "bank": self.number(0, 2)}
        entry |= {"prediction": 2} if operation == Operation.GREEDY else {}
        features = self.features(self.host.header["vectors"])
        return self.host.steps(operation, [entry | {"features": features}], k=2)

    def _encode(self) -> CommandItem:
        entry = {"slot": 1, "bank": self.number(0, 2), "features": self.features(self.host.header["vectors"])}
        return self.host.steps(Operation.ENCODE, [entry])

    def _greedy(self) -> CommandItem:
        return self._step(Operation.GREEDY)

    def _decode(self) -> CommandItem:
        token = self.number(0, self.host.header["tokens"])
        entry = {
            "slot": 1,
            "bank": self.number(0, 2),
            "kind": Kind.TOKEN,
            "token": token,
            "source": 2,
            "destination": 2,
        }
        return self.host.decode([entry])

    def _copy(self) -> CommandItem:
        return self.host.slots(Operation.COPY, [(2, 3)], True)
