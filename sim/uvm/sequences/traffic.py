# SPDX-License-Identifier: Apache-2.0
"""Programs of many sizes, each with all kinds of commands on it."""

from __future__ import annotations

from sim.common import bench
from sim.uvm.program.drawn import DrawnProgram
from sim.uvm.program.making import EDGES, draw_dims, heated, lively, make
from sim.uvm.sequences.base import BenchSequence
from sim.uvm.sequences.pipeline import Pipeline
from sim.uvm.sequences.random_commands import RandomCommands
from sim.uvm.sequences.shapes import Shapes
from sim.uvm.sequences.slot_life import SlotLife


class Traffic(BenchSequence):
    """Programs at the edges of tiles, then random ones: directed batches, then random commands, at any pace."""

    async def body(self) -> None:
        random_programs, rounds = (2, 1) if bench.short() else (8, 3)
        self.env.scoreboard.logger.info("program: lively")
        await self._program(lively(), rounds)
        for number, dims in enumerate([*EDGES, *(draw_dims(self.rng) for _ in range(random_programs))]):
            self.env.scoreboard.logger.info(f"program: {dims}")
            program = make(self.number(0, 1 << 30), dims, float(self.rng.uniform(-1, 3)))
            await self._program(heated(program, self.rng) if number % 2 else program, rounds)

    async def _program(self, program: DrawnProgram, rounds: int) -> None:
        await self.setup(3, 3)
        await self.pace()
        await self.load(program)
        await self.also(Shapes).start()
        await self.counters()
        await self.also(Pipeline).start()
        await self.counters()
        if self.host.header["vectors"] > 1:
            await self.also(SlotLife).start()
        for _ in range(rounds):
            await self.pace()
            await self.soft_reset()
            await self.setup(self.number(0, 4), self.number(0, 4))
            await self.also(RandomCommands).start()
            await self.census()
            await self.counters()
        await self.soft_reset()
