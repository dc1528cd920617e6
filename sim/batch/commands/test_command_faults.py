# SPDX-License-Identifier: Apache-2.0
"""Command block: error responses of the device memory at each kind of access, the watchdog, and a ring overrun."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from gharial.isa import _registers as reg
from gharial.isa.commands import ENCODE_ENTRY, GREEDY_ENTRY, SLOT_ENTRY, Flag, Operation
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import ProgramSpace
from sim.batch.commands.engine import Slot
from sim.batch.commands.host import CHUNK, Host, Posted
from sim.batch.commands.test_command_block import SLOTS, begin
from sim.common import bench
from sim.common.axi import PACES

READ, WRITE = False, True
READY, HALTED, PROGRAM = 1, 4, 8  # bits of STATUS
Place = Callable[[Host, Posted], int]


@dataclass(frozen=True)
class Case:
    """A command, and the access of it that fails.

    Attributes:
        post: posts it.
        writes, place: the access.
        entry: at fault.
        hits: whether its destination slots are lost.
        completed: whether the command has a completion.
    """

    name: str
    post: Callable[[Host], Any]
    writes: bool
    place: Place
    entry: int = 0
    hits: bool = True
    completed: bool = True


def steps(host: Host, flags: int = Flag.CHECKED) -> None:
    """GREEDY on encoder slots 0 to 2, prediction slots 3 to 5."""
    width, full = host.header["feature_bytes"], host.header["vectors"]
    listed = b""
    for n in range(3):
        data = bytes(range(n, n + width * full))
        entry = {"slot": n, "prediction": n + 3, "vectors": full, "offset": host.place(data), "crc": crc(data)}
        listed += GREEDY_ENTRY.pack(**entry).tobytes()
    host.post(Operation.GREEDY, listed, k=2, stride=24, result_lo=host.room(72), flags=int(flags))


def crc(data: bytes) -> int:
    """Of features, or a chunk."""
    return zlib.crc32(data)


def moves(operation: Operation, *entries: tuple[int, int]) -> Callable[[Host], None]:
    """A slot command on prediction slots."""

    def post(host: Host) -> None:
        size = host.slot_bytes(True)
        base = host.place(host.rng.integers(-9, 9, size * len(entries)).astype(np.int8).tobytes())
        moved = operation in (Operation.SAVE, Operation.RESTORE)
        listed = b"".join(
            SLOT_ENTRY.pack(slot=a, second=b, offset=at * size if moved else 0).tobytes()
            for at, (a, b) in enumerate(entries)
        )
        host.post(operation, listed, flags=int(Flag.PREDICTION), result_lo=base)

    return post


def features(entry: int, word: int = 0) -> Place:
    """A word of an entry's."""
    return lambda host, p: host.memory.words(p.fields["entry_lo"] + 16 * entry + 4, 1)[0] + 4 * word


def slot(number: int) -> Place:
    """A word of a prediction slot."""
    return lambda host, p: host.engine.address((True, number)) + 8


def moved(entry: int) -> Place:
    """A word of what is saved or restored."""
    return lambda host, p: p.fields["result_lo"] + entry * host.slot_bytes(True) + 12


COPY = moves(Operation.COPY, (1, 7), (2, 8))
SAVE = moves(Operation.SAVE, (1, 0), (2, 0))
RESTORE = moves(Operation.RESTORE, (1, 0), (2, 0))
REFUSED = moves(Operation.COPY, (len(SLOTS), 7))  # of a free slot
CASES = [
    Case("command", steps, READ, lambda host, p: p.address + 8, hits=False, completed=False),
    Case("entries", steps, READ, lambda host, p: p.fields["entry_lo"] + 20, hits=False),
    Case("features", steps, READ, features(1, 2), entry=1),
    Case("features for the engine", lambda host: steps(host, Flag.INTERRUPT), READ, features(2), entry=2),
    Case("result", steps, WRITE, lambda host, p: p.results[0][0]),
    Case("end of a result", steps, WRITE, lambda host, p: p.results[-1][0]),
    Case("source of a copy", COPY, READ, slot(2), entry=1),
    Case("copy", COPY, WRITE, slot(7)),
    Case("slot to save", SAVE, READ, slot(2), entry=1, hits=False),
    Case("saved slot", SAVE, WRITE, moved(1), hits=False),
    Case("slot to restore", RESTORE, READ, moved(1), entry=1),
    Case("restored slot", RESTORE, WRITE, slot(1)),
    *(Case(f"completion, word {n}", steps, WRITE, lambda host, p, n=n: p.completion + 4 * n, completed=False)
      for n in range(8)),
    *(Case(f"completion of a refused command, word {n}", REFUSED, WRITE, lambda host, p, n=n: p.completion + 4 * n,
           hits=False, completed=False) for n in (0, 7)),
]  # fmt: skip


async def fill(host: Host) -> None:
    """Random states in all slots."""
    for prediction in (False, True):
        numbers = [n for kind, n in SLOTS if kind == prediction]
        size = host.slot_bytes(prediction)
        image = host.rng.integers(-100, 100, size * len(numbers)).astype(np.int8).tobytes()
        listed = b"".join(SLOT_ENTRY.pack(slot=n, offset=at * size).tobytes() for at, n in enumerate(numbers))
        host.post(Operation.RESTORE, listed, flags=int(prediction), result_lo=host.place(image))
        await host.flush()


async def check(host: Host, case: Case) -> None:
    """Let it fail: typed fault, all else whole, recovered by a soft reset."""
    memory = host.memory
    memory.pace(PACES["free"])
    await fill(host)
    names = ["free", "uneven", "data", "answers"]
    memory.pace(PACES[str(host.rng.choice(names))])
    first, older = int(host.dut.completions_o.value), case.name != "command"
    if older:
        entry = ENCODE_ENTRY.pack(slot=6, vectors=1, reset=1, offset=host.place(bytes(64))).tobytes()
        host.post(Operation.ENCODE, entry)
    before = dict(host.contents)
    host.results, host.engine.reads = 1, 1.0
    case.post(host)
    host.results, host.engine.reads = 0, 1.0
    posted = host.pending[-1]
    made = dict(host.contents)
    host.post(Operation.SAVE, SLOT_ENTRY.pack(slot=5).tobytes(), result_lo=host.room(host.slot_bytes(False)))
    address = case.place(host, posted)
    memory.fail(case.writes, address)
    await host.ring()
    await host.wait(first + 3)
    await ClockCycles(host.dut.clk_i, 300)
    host.engine.reads = 0.3
    fault = Fault.BUS_WRITE if case.writes else Fault.BUS_READ
    status = await host.read(reg.STATUS)
    assert status == HALTED | PROGRAM | fault << 8 | Unit.MEMORY << 16, f"{case.name}: {status:#x}"
    detail = await host.read(reg.FAULT_DETAIL)
    # A read's burst is named, a write's word.
    assert detail == address if case.writes else address - 256 < detail <= address, f"{case.name}: {detail:#x}"
    assert await host.read(reg.FAULT_TAG) == (0 if case.name == "command" else posted.fields["tag"]), case.name
    assert await host.read(reg.IRQ_STATUS) & 2
    assert int(host.dut.completions_o.value) == first + older + case.completed, case.name
    if case.completed:
        found = host.completion(posted)
        assert (found["status"], found["unit"], found["entry"], found["detail"]) == (
            fault,
            Unit.MEMORY,
            case.entry,
            detail,
        )
    lost = host.written(posted) if case.hits else set[Slot]()
    memory.pace(PACES["free"])
    await host.reset()
    for where, image in (await host.live(SLOTS)).items():
        if where in lost:
            assert image is None or (not case.completed and image in (before.get(where), made.get(where))), case.name
        elif where != (False, 6):
            assert image == before.get(where), f"{case.name}: {where}"


@cocotb.test()
async def bus_errors(dut: Any) -> None:
    """Each kind of access in turn; short: some of them."""
    host = await begin(dut, "bus_errors")
    cases = CASES
    if bench.short():
        cases = [CASES[int(n)] for n in host.rng.permutation(len(CASES))[:3]]
    for _ in range(1 if bench.short() else 4):
        for case in cases:
            await check(host, case)


@cocotb.test()
async def chunks(dut: Any) -> None:
    """A chunk that cannot be read, the first time or the second, in place or not; the program is loaded again."""
    host = await begin(dut, "chunks")
    for space, after in ((ProgramSpace.SCALES, 0), (ProgramSpace.SCALES, 1), (ProgramSpace.WEIGHTS, 0)):
        image = host.program.sections[space.name.lower()][:256]
        in_place = space == ProgramSpace.WEIGHTS
        address = host.places()["feature_lo"] if in_place else CHUNK
        host.place(image, address)
        host.memory.fail(READ, address + 32, after=after)
        fields = {"entry_lo": address, "bytes": len(image), "space": int(space), "body_crc": crc(image)}
        host.post(Operation.LOAD, flags=int(Flag.IN_PLACE) if in_place else 0, **fields)
        await host.ring()
        await host.wait(host.tail)
        assert host.completion(host.pending[-1])["status"] == Fault.BUS_READ
        await ClockCycles(dut.clk_i, 20)
        assert await host.read(reg.STATUS) & (HALTED | PROGRAM) == HALTED
        await host.reset()
        await host.load()
        if bench.short():
            break


@cocotb.test()
async def watchdog_and_overrun(dut: Any) -> None:
    """A command whose work does not end halts the block; so does a tail beyond the ring. A soft reset leaves both."""
    host = await begin(dut, "watchdog_and_overrun")
    await fill(host)
    before = dict(host.contents)
    host.engine.stuck = True
    dut.instruction_i.value = 0x1234
    await host.write(reg.WATCHDOG, 3000)
    steps(host)
    posted = host.pending[-1]
    await host.ring()
    await host.wait(host.tail)
    await ClockCycles(dut.clk_i, 10)
    assert await host.read(reg.STATUS) == HALTED | PROGRAM | Fault.WATCHDOG << 8 | Unit.SEQUENCER << 16
    assert await host.read(reg.FAULT_DETAIL) == 0x1234
    assert await host.read(reg.FAULT_TAG) == posted.fields["tag"]
    lost = host.written(posted)
    await host.write(reg.WATCHDOG, 0)
    await host.reset()
    host.engine.stuck = False
    for where, image in (await host.live(SLOTS)).items():
        assert image == (None if where in lost else before.get(where)), where
    await host.write(reg.CMD_TAIL, 17)
    await ClockCycles(dut.clk_i, 50)
    assert await host.read(reg.STATUS) == HALTED | PROGRAM | Fault.RING_OVERRUN << 8 | Unit.HOST << 16
    await host.reset()
    host.contents = {}
    await fill(host)
