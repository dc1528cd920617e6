# SPDX-License-Identifier: Apache-2.0
"""One item for a sequencer, from a sequence or a driver that speaks to several."""

from __future__ import annotations

from typing import Any

from pyuvm import uvm_sequence, uvm_sequencer

from gharial.isa import _registers as reg
from sim.uvm.registers.item import RegisterItem


class OneItem(uvm_sequence):
    """A sequence of one item."""

    def __init__(self, item: Any) -> None:
        super().__init__("one item")
        self.item = item

    async def body(self) -> None:
        await self.start_item(self.item)
        await self.finish_item(self.item)


async def send(sequencer: uvm_sequencer, item: Any) -> Any:
    """Have an item done; the item."""
    await OneItem(item).start(sequencer)
    return item


async def write(sequencer: uvm_sequencer, register: reg.Reg, value: int, hold: int = 0) -> None:
    """Write a register."""
    await send(sequencer, RegisterItem(register, value, hold))


async def read(sequencer: uvm_sequencer, register: reg.Reg, hold: int = 0) -> int:
    """Read a register."""
    return int((await send(sequencer, RegisterItem(register, None, hold))).value)
