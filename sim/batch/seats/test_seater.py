# SPDX-License-Identifier: Apache-2.0
"""Seater: random commands on few slots; batches see what the commands before them left; memory ends as it should."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import ClockCycles

from gharial.isa.commands import Kind, Operation
from sim.common import bench

from .seater_models import Bench
from .seater_program import FEATURES, Command
from .wide_memory import PACES, Pace

BUS_READ, BUS_WRITE, MEMORY_UNIT = 10, 11, 5


@cocotb.test()
async def given_up(dut: Any) -> None:
    """Left in the middle: the tests behind it begin with a reset, and nothing of this."""
    tb = Bench(dut, "given_up")
    await tb.start(PACES[1])
    for _ in range(6):
        await tb.give(tb.program.command())
    await ClockCycles(dut.clk_i, int(tb.rng.integers(1, 1000)))
    await tb.give(tb.program.command())
    await ClockCycles(dut.clk_i, 2)
    assert not dut.seater_idle_o.value


@cocotb.test()
@cocotb.parametrize(pace=range(len(PACES)), failures=[0.0, 0.25])
async def random_commands(dut: Any, pace: int, failures: float) -> None:
    """As many commands on their way as there are names, at several paces of memory; RESETs in between; some fail."""
    tb = Bench(dut, f"random_commands {pace} {failures}", failures)
    await tb.start(PACES[pace])
    rounds, commands = (1, 7) if bench.short() else (8, 30)
    for _ in range(rounds):
        tb.reset_some()
        for _ in range(commands):
            await tb.give(tb.program.command())
        await tb.drain()
        tb.check_memory()
    assert len(tb.ends) == rounds * commands


def _candidates(tb: Bench, command: Command) -> list[tuple[str, int, int, tuple[int, int]]]:
    """Where an error may hit a command: kind, entry, address, and the fault and entry that it makes."""
    found = []
    for n, entry in enumerate(command.entries):
        if command.operation != Operation.DECODE:
            size = entry["vectors"] * tb.layout.header["feature_units"] * tb.places.unit_bytes
            word = FEATURES + entry["offset"] + 4 * int(tb.rng.integers(0, size // 4))
            found.append(("feature", n, word, (BUS_READ, n)))
            slot = tb.layout.address(False, entry["encoder"])
            found.append(("write", n, slot, (BUS_WRITE, 0)))
            if not entry["reset"] and (False, entry["encoder"]) not in tb.blank:
                found.append(("read", n, slot, (BUS_READ, n)))
        elif entry["kind"] == Kind.TOKEN and (True, entry["source"]) not in tb.blank:
            found.append(("read", n, tb.layout.address(True, entry["source"]), (BUS_READ, n)))
        elif entry["kind"] == Kind.START:
            found.append(("write", n, tb.layout.address(True, entry["destination"]), (BUS_WRITE, 0)))
    return found


@cocotb.test()
async def bus_errors(dut: Any) -> None:
    """A word of features or state that cannot be read or written fails its command and no other; no slot stays busy."""
    tb = Bench(dut, "bus_errors")
    await tb.start(PACES[0], 0.0)
    tb.loose = True
    seen = {"feature": 0, "write": 0, "read": 0}
    turns, turn = 24 if bench.short() else 200, -1
    while turn + 1 < turns or (not all(seen.values()) and turn < 20 * turns):
        turn += 1
        command = tb.program.command()
        candidates = _candidates(tb, command)
        if not candidates or turn % 2 == 0:
            await tb.give(command)
            await tb.drain()
            continue
        kind = sorted({one[0] for one in candidates}, key=lambda name: seen[name])[0]
        of_kind = [one for one in candidates if one[0] == kind]
        _, n, address, wanted = of_kind[int(tb.rng.integers(0, len(of_kind)))]
        if sum(one[2] == address for one in candidates if one[0] == kind) > 1:
            n = next(one[1] for one in candidates if one[0] == kind and one[2] == address)  # several read one slot
            wanted = wanted[0], n if kind == "read" else wanted[1]
        seen[kind] += 1
        {"feature": tb.bad_features, "read": tb.memory.bad_reads, "write": tb.memory.bad_writes}[kind].add(address)
        await tb.give(command)
        await tb.drain()
        for bad in (tb.bad_features, tb.memory.bad_reads, tb.memory.bad_writes):
            bad.clear()
        tb.program.forget(command)
        assert not tb.busy
        fault, unit, detail, entry = tb.ends[command.number]
        assert ((fault, entry), unit) == (wanted, MEMORY_UNIT), f"{kind} of entry {n} of {len(command.entries)}"
        assert address - 8 < detail <= address
    assert min(seen.values()) > 0


@cocotb.test()
@cocotb.parametrize(operation=[Operation.ENCODE, Operation.GREEDY])
async def sides_overlap(dut: Any, operation: int) -> None:
    """While a batch runs, the one before it is stored and the one behind it fetched: the thread does not wait."""
    tb = Bench(dut, f"sides_overlap {operation}")
    tb.run_clocks = 1500, 1500
    await tb.start(PACES[0], 0.0)
    seats = tb.places.seats
    for n in range(6):
        await tb.give(tb.program.command(operation, range(n % 2 * seats, (n % 2 + 1) * seats)))
    await tb.drain()
    tb.check_memory()
    assert max(tb.waits[0][1:6]) <= 8, f"encode thread: waits {tb.waits[0]}"


@cocotb.test()
async def encode_runs_ahead(dut: Any) -> None:
    """The decode thread is slow, encode batches of the same slots run ahead: each joint takes its own step's bank."""
    tb = Bench(dut, "encode_runs_ahead")
    tb.run_clocks = 0, 2000
    await tb.start(PACES[0], 0.0)
    for n in range(7):
        await tb.give(tb.program.command(Operation.GREEDY, range(2 + n % 2)))
    await tb.drain()
    tb.check_memory()


@cocotb.test()
async def decode_then_encode(dut: Any) -> None:
    """DECODEs that wait for a side, encode batches behind them of the slots whose banks they read; slow writes."""
    tb = Bench(dut, "decode_then_encode")
    tb.run_clocks = 0, 1500
    await tb.start(Pace(aw=0.9, w=0.8), 0.0)
    await tb.give(tb.program.command(Operation.ENCODE, range(4)))
    for _ in range(5):
        await tb.give(tb.program.command(Operation.DECODE))
        await tb.give(tb.program.command(Operation.ENCODE, range(4)))
    await tb.drain()
    tb.check_memory()


@cocotb.test()
@cocotb.parametrize(reset=[0, 1])
async def joint_beside_the_next_step(dut: Any, reset: int) -> None:
    """A joint of one step does not wait until the next step, which began before it, has stored the other bank."""
    tb = Bench(dut, f"joint_beside_the_next_step {reset}")
    tb.run_clocks = 4000, 0
    await tb.start(PACES[0], 0.0)
    commands = [tb.program.command(operation, range(2)) for operation in 2 * [Operation.ENCODE] + [Operation.DECODE]]
    for bank, command in enumerate(commands[:2]):
        for entry in command.entries:
            entry["bank"], entry["reset"] = bank, reset or not bank
    for entry in commands[2].entries:
        entry["encoder"], entry["bank"], entry["no_joint"] = tb.program.some(0, 1), 0, 0
    for command in commands:
        await tb.give(command)
    await tb.drain()
    tb.check_memory()
    assert list(tb.ends) == [commands[n].number for n in (0, 2, 1)]


@cocotb.test()
async def failed_encode(dut: Any) -> None:
    """A GREEDY whose first batch fails in the encode thread, or by its features: no decode part runs."""
    tb = Bench(dut, "failed_encode")
    await tb.start(PACES[0], 0.0)
    for bad_features in (False, True):
        command = tb.program.command(Operation.GREEDY, range(6))
        if bad_features:
            command.checked, command.bad_entry = True, 1
            command.entries[1]["crc"] ^= 1
        else:
            command.bad_batch = False, 0
        tb.program.forget(command)
        await tb.give(command)
        await tb.drain()
        assert tb.ends[command.number][0] and not command.joints
