# SPDX-License-Identifier: Apache-2.0
"""Everything that can go wrong, on one program."""

from __future__ import annotations

from sim.common import bench
from sim.uvm.program.making import EDGES, make
from sim.uvm.sequences.bad_code import BadCode
from sim.uvm.sequences.bad_programs import BadPrograms
from sim.uvm.sequences.base import BenchSequence
from sim.uvm.sequences.bus_errors import BusErrors
from sim.uvm.sequences.interruptions import Interruptions
from sim.uvm.sequences.refused import Refused
from sim.uvm.sequences.rings import Rings


class Faults(BenchSequence):
    """Each kind of fault by its own sequence; between them the device is as it was."""

    async def body(self) -> None:
        await self.setup()
        for dims in EDGES[1:2] if bench.short() else EDGES[1:]:
            await self.load(make(self.number(0, 1 << 30), dims))
            for kind in (Rings, Refused, BadPrograms, BadCode, BusErrors, Interruptions):
                self.env.scoreboard.logger.info(f"{kind.__name__} on {dims}")
                await self.pace()
                await self.also(kind).start()
        await self.soft_reset()
