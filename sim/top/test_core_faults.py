# SPDX-License-Identifier: Apache-2.0
"""Error responses of the device memory at every access of the core: typed fault, others' state whole, recovered."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.task import bridge

from gharial.driver import Driver
from gharial.errors import CommandFailed
from gharial.isa import _registers as reg
from gharial.isa.commands import Operation
from gharial.isa.faults import Fault
from sim.common import bench
from sim.common.axi import PACES
from sim.common.device import CoreDevice
from sim.common.posting import Posted
from sim.common.programs import lively
from sim.reference import ReferenceDevice
from sim.top import bus_errors

QUICK = ("free", "uneven", "addresses", "data")
"""Paces at which a command takes about as long as without."""


async def core(dut: Any, test: str) -> tuple[CoreDevice, int]:
    """The core, and a seed."""
    rng = bench.rng(test)
    await bench.start(dut)
    return CoreDevice(dut, bench.config(), rng), int(rng.integers(1 << 30))


@cocotb.test()
async def every_access(dut: Any) -> None:
    """Each kind of access in turn, at memories of changing pace."""
    device, seed = await core(dut, "every_access")
    paces = [PACES[name] for name in QUICK] if bench.short() else list(PACES.values())

    def run() -> None:
        session = bus_errors.Session(device, ReferenceDevice(device.config, lively().manifest), lively(), seed)
        for turn in range(1 if bench.short() else 10):
            for at, case in enumerate(bus_errors.CASES):
                device.memory.pace(paces[(at + 3 * turn + seed) % len(paces)])
                session.check(case)
                assert not any(fault.times for fault in device.memory.faults), "an access that did not come"

    await bridge(run)()


@cocotb.test()
async def late_answers(dut: Any) -> None:
    """The last word of a command's results is refused long after it was sent: its completion says so all the same."""
    device, seed = await core(dut, "late_answers")
    (case,) = (case for case in bus_errors.CASES if case.name == bus_errors.END_OF_RESULT)

    def run() -> None:
        session = bus_errors.Session(device, ReferenceDevice(device.config, lively().manifest), lively(), seed)
        device.memory.pace(PACES["late"])
        for _ in range(2 if bench.short() else 10):
            session.check(case)

    await bridge(run)()


@cocotb.test()
@cocotb.parametrize(after=[0, 1])
async def chunks(dut: Any, after: int) -> None:
    """A chunk of a program that cannot be read, the first time or the second: no program; another driver loads it."""
    device, seed = await core(dut, f"chunks {after}")
    program = lively()
    seen: list[Posted] = []

    def posted(command: Posted) -> None:
        if command.fields["operation"] == Operation.LOAD and command.fields["bytes"] >= 64:
            seen.append(command)
            if len(seen) == 3:
                device.fail(False, command.fields["entry_lo"] + 32, after)

    def load() -> CommandFailed:
        try:
            Driver(device, program, timeout=bus_errors.FOREVER, checked=True)
        except CommandFailed as failure:
            return failure
        raise AssertionError("the program was loaded")

    def run() -> None:
        device.posted = posted
        failure, start = load(), seen[2].fields["entry_lo"]
        device.posted = None
        assert (failure.code, failure.unit) == (Fault.BUS_READ, "memory")
        assert start <= int(failure.detail or 0) <= start + 32
        assert device.read_register(reg.PROGRAM_ID.offset) == 0
        bus_errors.Session(device, ReferenceDevice(device.config, program.manifest), program, seed)

    await bridge(run)()
