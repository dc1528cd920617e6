# SPDX-License-Identifier: Apache-2.0
"""What all sequences can do: they are virtual ones, which send items to the sequencers of several agents."""

from __future__ import annotations

from collections.abc import Iterable

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles
from pyuvm import uvm_sequence

from gharial.isa import _registers as reg
from gharial.isa.commands import Operation
from gharial.isa.header import ProgramSpace
from sim.uvm.env import Environment
from sim.uvm.memory.item import MemoryItem
from sim.uvm.memory.profile import PROFILES, Profile
from sim.uvm.program.drawn import DrawnProgram
from sim.uvm.ring.command_item import CommandItem
from sim.uvm.ring.control_items import BellItem, FlushItem, SetupItem, SoftResetItem
from sim.uvm.scoreboard.counter_checks import WORDS
from sim.uvm.send import read, send, write
from sim.uvm.sequences.host import TINY, Host

RINGS = 8 * 64 + 8 * 32  # most bytes of both, at the beginning of the memory


class BenchSequence(uvm_sequence):
    """A sequence on the environment.

    Args:
        env: the environment.
        host: lays commands out; shared by all sequences of a test.
        rng: of all choices.
    """

    def __init__(self, env: Environment, host: Host, rng: np.random.Generator) -> None:
        super().__init__(type(self).__name__)
        self.env, self.host, self.rng = env, host, rng

    def also(self, kind: type[BenchSequence]) -> BenchSequence:
        """Another sequence of the same test."""
        return kind(self.env, self.host, self.rng)

    def chance(self, p: float) -> bool:
        """True with that probability."""
        return bool(self.rng.random() < p)

    def number(self, low: int, high: int) -> int:
        """low .. high - 1."""
        return int(self.rng.integers(low, high))

    # Ring

    async def post(self, item: CommandItem) -> CommandItem:
        """Post a command; where the heap becomes too full for another one, it is waited for."""
        await send(self.env.ring.sequencer, item)
        if self.host.crowded:
            await self.flush()
        return item

    async def flush(self, notice: str = "pins") -> FlushItem:
        """Until all commands have completed, or the device has halted."""
        found: FlushItem = await send(self.env.ring.sequencer, FlushItem(notice))
        self.host.forget()
        return found

    async def run(self, item: CommandItem) -> dict[str, int]:
        """Post one command and wait for it; its completion."""
        await self.post(item)
        return (await self.flush()).completions[-1]

    async def bell(self, ahead: int = 0) -> None:
        """Ring the bell; for commands that are not there, with time to notice that where nothing else is to be done."""
        await send(self.env.ring.sequencer, BellItem(ahead))
        if ahead:
            await self.wait(200)

    async def setup(self, command_log2: int = 3, completion_log2: int = 3) -> None:
        """Rings at the beginning of the memory, and enable."""
        await send(self.env.ring.sequencer, SetupItem(command_log2, completion_log2, 0, 64 << command_log2))

    async def soft_reset(self) -> None:
        """Soft reset."""
        await send(self.env.ring.sequencer, SoftResetItem())
        self.host.forget()

    # Memory and registers

    async def pace(self, profile: Profile | None = None) -> None:
        """The memory's profile, any if none is given."""
        chosen = profile or PROFILES[self.number(0, len(PROFILES))]
        await send(self.env.memory.sequencer, MemoryItem(chosen))

    async def error(self, kind: str, low: int, high: int) -> None:
        """The first access of that kind in the range gets an error response."""
        await send(self.env.memory.sequencer, MemoryItem(error=kind, low=low, high=high))

    async def no_error(self) -> None:
        """Errors that were ordered and have not happened will not."""
        await send(self.env.memory.sequencer, MemoryItem(forget=True))

    async def wait(self, clocks: int) -> None:
        """Let the accelerator go on by itself."""
        await ClockCycles(cocotb.top.clk_i, clocks)

    async def write(self, register: reg.Reg, value: int) -> None:
        """Write a register."""
        await write(self.env.registers.sequencer, register, value, self.number(0, 4))

    async def read(self, register: reg.Reg) -> int:
        """Read a register."""
        return await read(self.env.registers.sequencer, register, self.number(0, 4))

    async def counters(self) -> None:
        """Latch and read all counters; the scoreboard looks at them."""
        await self.write(reg.COUNTER_SNAPSHOT, 1)
        for register in WORDS:
            await self.read(register)

    async def interrupts(self) -> None:
        """Look which interrupts there are, and clear them."""
        found = await self.read(reg.IRQ_STATUS)
        await self.write(reg.IRQ_STATUS, found)

    # Programs and slots

    async def load(self, program: DrawnProgram, spaces: Iterable[ProgramSpace] = ProgramSpace) -> None:
        """LOAD these spaces in chunks of any size, and START."""
        self.env.library[program.key] = self.host.program = program
        for space in spaces:
            image, at = program.images[space.name.lower()], 0
            while at < len(image):
                size = min(len(image) - at, 4 * int(self.rng.choice((1, 63, 300, 1024, 2000))))
                await self.post(self.host.chunk(space, at, image[at : at + size]))
                at += size
        await self.post(self.host.command(Operation.START, flags=0))
        done = await self.flush()
        bad = [completion for completion in done.completions if completion["status"]]
        assert not bad, f"a program was refused: {bad[0]}"
        for register in (reg.PROGRAM_ID, reg.ENC_SLOTS, reg.PRED_SLOTS, reg.STATUS):
            await self.read(register)

    def features(self, vectors: int) -> np.ndarray:
        """Random ones, int8 (vectors, bytes)."""
        return self.rng.integers(-128, 128, (vectors, self.host.header["feature_bytes"]))

    def numbers(self) -> tuple[int, int]:
        """Encoder and prediction slots of the current program."""
        return self.env.scoreboard.witness.numbers()

    async def census(self, encoders: int = 5, predictions: int = 7) -> None:
        """SAVE the first slots one by one, and all that are in doubt; those that are free or ended are freed."""
        doubtful = set(self.env.scoreboard.doubt.allowed)
        wanted = {(False, n) for n in range(encoders)} | {(True, n) for n in range(predictions)} | doubtful
        for prediction, number in sorted(wanted):
            done = await self.run(self.host.slots(Operation.SAVE, [number], prediction))
            if done["status"] and (prediction, number) in doubtful:
                await self.run(self.host.slots(Operation.FREE, [number], prediction))


def new_host(env: Environment) -> Host:
    """A host whose heap is behind the rings."""
    return Host(env.device_memory, RINGS, TINY.window_bytes)
