# SPDX-License-Identifier: Apache-2.0
"""The core at memories of every pace: what comes of commands is what the reference model says, bit for bit.

The driver runs one conversation on the core and on the reference device; commands wait for one another in the ring.
"""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from cocotb.task import bridge

from gharial.driver import DecodeEntry, Driver, EncodeEntry, GreedyEntry
from gharial.isa.commands import Kind, Mode
from sim.common import bench
from sim.common.axi import PACES
from sim.common.device import CoreDevice
from sim.common.programs import BLANK, SMALL, lively
from sim.reference import ReferenceDevice
from sim.top.bus_errors import shown

FOREVER = 1e9  # seconds: benches count clocks
CAP = 3


def conversation(driver: Driver, seed: int, steps: int) -> list[Any]:
    """Streams decoded greedily, a search, slots copied and carried; everything that a host sees of it."""
    random, seen = np.random.default_rng(seed), list[Any]()
    features = random.integers(-99, 99, (steps + 2, 3, SMALL.stack, SMALL.features)).astype(np.int8)
    tickets = [
        driver.greedy(
            [GreedyEntry(n, x, step & 1, step == 0, prediction=n + 4) for n, x in enumerate(features[step])],
            max_symbols=CAP,
        )
        for step in range(steps)
    ]
    for ticket in tickets:
        seen += shown(ticket.result())
    copied = driver.copy("encoder", [(0, 3)])
    driver.encode([EncodeEntry(3, features[steps, 0], 1), EncodeEntry(1, features[steps, 1, :1], 1)])
    driver.decode([DecodeEntry(kind=Kind.START, destination=9, joint=False)])
    two = [DecodeEntry(3, 1, Kind.NONE, 9, 9), DecodeEntry(1, 1, Kind.TOKEN, 4, 5, 2)]
    searched = [
        driver.decode(two, k=4, named=[BLANK]),
        driver.decode([DecodeEntry(3, 1, Kind.TOKEN, 9, 10, 1)], mode=Mode.ALL, temperature=9000),
    ]
    for found in (ticket.result() for ticket in searched):
        arrays = (found.classes, found.logits, found.named, found.lse)
        seen.append([None if array is None else array.tolist() for array in arrays])
    copied.result()
    images = driver.save("encoder", [0, 3]).result() + driver.save("prediction", [4, 9, 10]).result()
    seen += [image.data for image in images]
    driver.restore([7, 8], images[:2]).result()
    seen += shown(driver.greedy([GreedyEntry(7, features[-1, 0], 0, prediction=4)], max_symbols=CAP).result())
    driver.free("encoder", [8]).result()
    return seen


@cocotb.test()
@cocotb.parametrize(registers=[0.0, 0.4])
async def conversations(dut: Any, registers: float) -> None:
    """Pauses and latency of the memory, and of the registers, do not show: not in loading, not in what follows."""
    rng = bench.rng(f"conversations {registers}")
    paces = [PACES[str(name)] for name in rng.permutation(list(PACES))]
    await bench.start(dut)
    device = CoreDevice(dut, bench.config(), rng, registers)
    program = lively()
    twin = Driver(ReferenceDevice(device.config, program.manifest), program, timeout=FOREVER, checked=True)

    def run() -> None:
        device.memory.pace(paces[0])
        driver = Driver(device, program, timeout=FOREVER, checked=True)
        for pace in paces[:2] if bench.short() else paces:
            device.memory.pace(pace)
            seed, steps = int(rng.integers(1 << 30)), 2 if bench.short() else 12
            assert conversation(driver, seed, steps) == conversation(twin, seed, steps), pace

    await bridge(run)()
    assert not device.memory.record.failed
