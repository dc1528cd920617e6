# SPDX-License-Identifier: Apache-2.0
"""Programs with an instruction that cannot run: undefined ones halt, operands outside their space fail the command."""

from __future__ import annotations

from gharial.isa import _registers as reg
from gharial.isa.commands import Kind, Operation
from gharial.isa.faults import Fault
from gharial.isa.header import ProgramSpace
from sim.uvm.program.damage import damaged
from sim.uvm.program.drawn import SECTIONS
from sim.uvm.sequences.halts import ENCODERS, PREDICTIONS, Halts

CODE = (ProgramSpace.CODE,)


class BadCode(Halts):
    """Begins and ends with the program that is current."""

    async def body(self) -> None:
        program = self.host.program
        assert program is not None
        for section in SECTIONS:
            for fault in (Fault.BAD_OPCODE, Fault.ADDRESS):
                await self.load(damaged(program, section, fault, self.rng), CODE)
                await self.fill()
                await self.pace()
                await self._meet(section)
                if fault == Fault.BAD_OPCODE:
                    await self.behind()
                    assert await self.halted(), f"{section} with an undefined instruction did not halt"
                    await self.no_error()
                    await self.soft_reset()
                    await self.setup()
                else:
                    await self._go_on(section)
                await self.census(ENCODERS, PREDICTIONS)
        await self.load(program, CODE)
        await self.fill()

    async def _meet(self, section: str) -> None:
        """A command that runs the section, two entries of it where it may."""
        if section == "encode":
            await self.post(self.encode((0, 2)))
        elif section == "predict":
            none = {"kind": Kind.NONE, "source": 0, "destination": 0}
            token = {"kind": Kind.TOKEN, "token": 0, "source": 1, "destination": 2}
            await self.post(self.host.decode([none, token, token | {"source": 3, "destination": 3}], k=2))
        else:
            start = {"kind": Kind.START, "destination": 4, "no_joint": 1}
            await self.post(self.host.decode([start, {"kind": Kind.NONE, "source": 1, "destination": 1}]))

    async def _go_on(self, section: str) -> None:
        """Nothing halts: those behind run, or find their slots free."""
        await self.post(self.host.slots(Operation.COPY, [(5, 6)], True, ring=True))
        if section != "encode":
            await self.post(self.encode((0,)))
            none = {"kind": Kind.NONE, "source": 2 if section == "predict" else 1}
            await self.post(self.host.decode([none | {"destination": none["source"], "no_joint": 1}]))
        else:
            await self.post(self.decode(Kind.START, 1))
            await self.post(self.host.slots(Operation.SAVE, [0]))
        assert not (await self.flush()).halted
        await self.read(reg.STATUS)
