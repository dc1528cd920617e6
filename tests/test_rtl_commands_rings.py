# SPDX-License-Identifier: Apache-2.0
"""Rings, indices, interrupts, counters and bus errors of the RTL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rtl_pair import BOTH, BUSY, HALTED, HAS_PROGRAM, NONE, START, Pair, Side, lively, open_rtl, pair_for, said

from gharial.errors import DeviceError
from gharial.isa import _registers as reg
from gharial.isa.commands import Flag, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit

reference = pytest.importorskip("sim.reference", reason="needs a source checkout")

COUNTERS = ("CYCLES", "ACTIVE", "WEIGHTS", "DEPENDENCY", "BACKPRESSURE", "LOADING", "IDLE")


@pytest.fixture(params=BOTH)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Encoder and prediction slots 0 to 3 are live."""
    p = lively(request.param)
    pair = pair_for(p, reference.ReferenceDevice(p.config, p.manifest), log2=2)
    for prediction in (False, True):
        pair.slots(Operation.RESET, range(4), prediction)
    pair.flush()
    yield pair
    pair.close()


def status(side: Side) -> tuple[int, int, int]:
    """Low bits, fault and unit of STATUS."""
    word = side.read(reg.STATUS)
    return word & 0xF, word >> 8 & 0xFF, word >> 16 & 0xFF


def step(pair: Pair, slot: int = 0, **fields: int) -> dict[str, Any]:
    """An entry of GREEDY."""
    features = np.random.default_rng(slot).integers(-99, 99, (2, 12))
    return {"slot": slot, "prediction": slot, "features": features} | fields


def nop(pair: Pair, **fields: int) -> None:
    pair.put(pair.descriptor(Operation.NOP, **fields))


def test_identity_and_registers(pair: Pair) -> None:
    rtl = pair.rtl
    assert [rtl.read(r) for r in (reg.ID, reg.VERSION, reg.CONFIG_ID, reg.DEVICE, reg.MEM_SIZE_LO, reg.MEM_SIZE_HI)] \
        == [0x4748524C, 0x00010001, pair.config.config_id, 3, pair.config.window_bytes, 0]  # fmt: skip
    for register in (reg.ENC_SLOTS, reg.PRED_SLOTS, reg.PROGRAM_ID):
        assert rtl.read(register) == pair.twin.read(register) != 0
    for register in reg.REGISTERS:
        if register.access == "ro" and not any(register.name.startswith(name) for name in COUNTERS):
            before = rtl.read(register)
            rtl.write(register, ~before & 0xFFFFFFFF)
            assert rtl.read(register) == before, register.name
    for register in (reg.CMD_BASE_HI, reg.CPL_BASE_HI, reg.WATCHDOG, reg.IRQ_ENABLE):
        rtl.write(register, 0xFFFFFFFF)
        assert rtl.read(register) == (3 if register is reg.IRQ_ENABLE else 0xFFFFFFFF), register.name
        rtl.write(register, 0)
    pair.done(Operation.NOP)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("log2", [0, 1, 5])
def test_rings_wrap(log2: int, name: str) -> None:
    """Full rings, several times around, on rings of every size; tags and indices in order."""
    p = lively(name)
    pair = Pair(reference.ReferenceDevice(p.config, p.manifest), log2=log2)
    for _ in range(4 if log2 else 40):
        for _ in range(1 << log2):
            pair.post(Operation.NOP)
        assert [done["index"] for done in pair.flush()] == list(range(pair.tail - (1 << log2), pair.tail))
    assert [pair.rtl.read(r) for r in (reg.CMD_HEAD, reg.CPL_TAIL)] == [pair.tail] * 2
    pair.close()


def test_rings_that_reach_the_end_of_the_memory(pair: Pair) -> None:
    """Rings of other sizes and places: the commands' at the end, the completions' before it."""
    size = pair.config.window_bytes
    for side in pair.sides:
        side.device.reset()
        side.setup()
        side.write(reg.CONTROL, 0)
        side.write(reg.CMD_BASE_LO, size - 128 + 17)  # the low bits do not count
        side.write(reg.CMD_LOG2, 1)
        side.write(reg.CPL_BASE_LO, size - 512)
        side.write(reg.CPL_LOG2, 3)
        side.write(reg.CONTROL, 1)
    for number in range(9):
        words = [pair.descriptor(Operation.NOP, tag=number)]
        words.append(pair.descriptor(99 if number == 5 else Operation.NOP, tag=number + 100))
        for at, descriptor in enumerate(words):
            for side in pair.sides:
                side.device.write_memory(size - 128 + 64 * at, descriptor)
        for side in pair.sides:
            side.device.ring_doorbell(2 * number + 2)
            assert side.wait(2 * number + 2)
            at = size - 512 + 32 * (2 * number % 8)
            found = np.frombuffer(side.device.read_memory(at, 64), "<u4").reshape(2, 8)
            assert found[:, 0].tolist() == [number, number + 100]
            assert found[:, 1].tolist() == [0, 1 | 1 << 8 if number == 5 else 0]
            assert found[:, 3].tolist() == [2 * number, 2 * number + 1]
            side.write(reg.CPL_HEAD, 2 * number + 2)


def test_nothing_runs_before_enable(pair: Pair) -> None:
    rtl = pair.rtl
    rtl.write(reg.CONTROL, 0)
    nop(pair)
    nop(pair)
    rtl.device.ring_doorbell(pair.tail)
    assert not pair.rtl.device.wait_clocks(pair.tail, 60, 2000)  # type: ignore[attr-defined]
    assert (rtl.read(reg.CMD_HEAD), status(rtl)[0]) == (pair.tail - 2, HAS_PROGRAM)
    rtl.write(reg.CONTROL, 1)
    assert [rtl.take()["index"] for _ in range(2)] == [pair.tail - 2, pair.tail - 1]


def test_a_full_completion_ring_holds_back_and_loses_nothing(pair: Pair) -> None:
    """Streams at work, and more commands than the ring of completions has room for."""
    rtl: Any = pair.rtl.device
    entries = [step(pair, slot % 4) for slot in range(8)]
    taken = pair.rtl.taken
    for entry in entries[:4]:
        pair.steps(Operation.GREEDY, [entry], k=3)
    pair.ring()
    assert rtl.wait_clocks(pair.tail, 60, 1_000_000)
    for entry in entries[4:]:  # the commands' ring has room, the other has none
        pair.put_steps(Operation.GREEDY, [entry], k=3)
    pair.ring()
    assert not rtl.wait_clocks(pair.tail - 3, 60, 20_000)
    assert pair.rtl.read(reg.CPL_TAIL) == taken + 4
    assert status(pair.rtl) == (1 | BUSY | HAS_PROGRAM, 0, 0)
    before = counters(pair.rtl)
    rtl.advance(5000)
    spent = {name: value - before[name] for name, value in counters(pair.rtl).items()}
    assert spent["BACKPRESSURE"] >= 5000 and spent["BACKPRESSURE"] == spent["CYCLES"]
    found = [pair.rtl.take()]
    assert rtl.wait_clocks(taken + 5, 60, 20_000) and not rtl.wait_clocks(taken + 6, 60, 20_000)
    pair.twin.device.ring_doorbell(pair.tail)
    expected = [pending.completion for pending in pair.pending] + [pair.twin.take() for _ in range(4)]
    pair.pending.clear()
    found += [pair.rtl.take() for _ in expected[1:]]
    assert [said(completion) for completion in found] == [said(completion) for completion in expected]
    pair.compare_slots(range(4), range(4))


def test_a_slot_begun_behind_a_failure_that_waits_for_room(pair: Pair) -> None:
    """A refused command waits for room in the ring; what the next one makes live meanwhile stays live."""
    rtl: Any = pair.rtl.device
    first = [step(pair, slot) for slot in range(4)]
    refused, begun = step(pair, 6), step(pair, 5)
    for entry in first:
        pair.steps(Operation.GREEDY, [entry], k=3)
    pair.ring()
    assert rtl.wait_clocks(pair.tail, 60, 1_000_000)
    pair.put_steps(Operation.GREEDY, [refused | {"reset": 0}], k=3)
    pair.put_steps(Operation.GREEDY, [begun | {"reset": 1}], k=3)
    pair.ring()
    rtl.advance(20_000)
    pair.twin.device.ring_doorbell(pair.tail)
    found = [pair.rtl.take() for _ in range(6)]
    pair.twin.taken, pair.pending = pair.rtl.taken, []
    pair.twin.write(reg.CPL_HEAD, pair.twin.taken & 0xFFFFFFFF)
    assert [completion["status"] for completion in found] == [0] * 4 + [Fault.BAD_SLOT, 0]
    pair.compare_slots([5], [5])


def counters(side: Side) -> dict[str, int]:
    """All counters, latched."""
    side.write(reg.COUNTER_SNAPSHOT, 1)
    by_name = {register.name: register for register in reg.REGISTERS}
    return {n: side.read(by_name[f"{n}_LO"]) | side.read(by_name[f"{n}_HI"]) << 32 for n in COUNTERS}


def test_every_clock_counts_once(pair: Pair) -> None:
    """Active and all that stands still make up the clocks since the enabling; a clock without work is idle."""
    rtl: Any = pair.rtl.device
    assert all(value for name, value in counters(pair.rtl).items() if name in ("CYCLES", "LOADING", "IDLE"))
    for number in range(12):
        if number % 3 == 0:
            pair.steps(Operation.GREEDY, [step(pair, slot) for slot in range(number % 4 + 1)])
        elif number % 3 == 1:
            pair.slots(Operation.SAVE, range(4), True)
        else:
            pair.decode([{"slot": 0, "kind": START, "destination": 7}], k=5)
        pair.ring()
        rtl.advance(int(np.random.default_rng(number).integers(900)))
        found = counters(pair.rtl)
        assert sum(value for name, value in found.items() if name != "CYCLES") == found["CYCLES"]
        assert bool(found["WEIGHTS"]) == pair.config.in_memory
        pair.flush()
    assert all(found[name] for name in ("ACTIVE", "DEPENDENCY", "LOADING", "IDLE"))
    before = counters(pair.rtl)
    rtl.advance(1000)
    after = counters(pair.rtl)
    spent = {name: after[name] - before[name] for name in after}
    assert spent["IDLE"] == spent["CYCLES"] and 1000 <= spent["CYCLES"] < 1200
    again = {n: pair.rtl.read(r) for n in COUNTERS for r in reg.REGISTERS if r.name == f"{n}_LO"}
    assert again == after  # what was latched stays
    pair.rtl.write(reg.CONTROL, 0)
    frozen = counters(pair.rtl)
    rtl.advance(500)
    assert counters(pair.rtl) == frozen
    rtl.reset()
    assert set(counters(pair.rtl).values()) == {0}


def test_active_is_the_products(pair: Pair) -> None:
    """As many clocks as the program's tiles, whatever else goes on: an encoder step, then a joint."""
    for operation, fields in ((Operation.ENCODE, {}), (Operation.DECODE, {"kind": NONE})):
        before = counters(pair.rtl)["ACTIVE"]
        if operation == Operation.ENCODE:
            pair.steps(operation, [{k: v for k, v in step(pair).items() if k != "prediction"}] * 1)
        else:
            pair.decode([{"slot": 0} | fields])
        pair.flush()
        assert counters(pair.rtl)["ACTIVE"] - before == tiles(
            pair, "encode" if operation == Operation.ENCODE else "joint"
        )


def tiles(pair: Pair, section: str) -> int:
    """Products of a full step of a section, in steps of the array."""
    words = np.frombuffer(lively(pair.config.name).sections["code"], "<u4")
    first, count = (
        int(words[{"encode": 11, "joint": 12}[section]]) & 0xFFFF,
        int(words[11 if section == "encode" else 12]) >> 16,
    )
    total = 0
    vectors = int(words[13]) >> 16 & 0xFF if section == "encode" else 0
    for w in words[64 + 8 * first : 64 + 8 * (first + count)].reshape(-1, 8):
        kind, n = int(w[0]) >> 11 & 3, int(w[0]) >> 13 & 3
        if int(w[0]) & 0xFF == 1 and (kind == 0 or (kind == 1) == (vectors > n)):
            total += (int(w[2]) & 0xFFFF) * (int(w[2]) >> 16) * ((int(w[0]) >> 15 & 3) + 1)
    return total


@pytest.mark.parametrize("ahead", [5, 6, 0x80000000, 0xFFFFFFFF])
def test_ring_overrun(pair: Pair, ahead: int) -> None:
    """Halts at once where nothing is on its way; a soft reset makes all well, and the slots are as they were."""
    base = pair.tail
    tail = (base + ahead) & 0xFFFFFFFF
    for side in pair.sides:
        side.device.ring_doorbell(tail)
        assert side.wait(side.taken + 1)  # halted: there is nothing to wait for
        assert status(side) == (HALTED | HAS_PROGRAM, Fault.RING_OVERRUN, Unit.HOST)
        assert [side.read(r) for r in (reg.FAULT_DETAIL, reg.FAULT_TAG)] == [tail, 0]
        assert [side.read(r) for r in (reg.CMD_HEAD, reg.CPL_TAIL)] == [base, base]
        assert side.read(reg.IRQ_STATUS) == 2
        side.device.reset()
        registers = (reg.CMD_TAIL, reg.CMD_HEAD, reg.CPL_TAIL, reg.CPL_HEAD, reg.FAULT_DETAIL, reg.FAULT_TAG)
        assert [side.read(r) for r in (*registers, reg.CONTROL)] == [0] * 7
        assert side.read(reg.STATUS) == HAS_PROGRAM
    pair.setup()
    pair.compare_slots(range(5), range(5))


def test_overrun_behind_work(pair: Pair) -> None:
    """What was fetched before is done and completed, or its slots are free after the reset."""
    pair.steps(Operation.GREEDY, [step(pair, 0)], k=9)
    pair.ring()
    pair.rtl.device.advance(60)  # type: ignore[attr-defined]
    pair.rtl.device.ring_doorbell(pair.tail + 77)
    pair.rtl.device.advance(100_000)  # type: ignore[attr-defined]
    assert status(pair.rtl) == (HALTED | HAS_PROGRAM, Fault.RING_OVERRUN, Unit.HOST)
    assert pair.rtl.read(reg.CPL_TAIL) == pair.tail
    assert said(pair.rtl.take()) == said(pair.pending.pop().completion)
    for side in pair.sides:
        side.device.reset()
    pair.setup()
    pair.compare_slots(range(4), range(4))


def test_rings_outside_the_memory(pair: Pair) -> None:
    """BUS_READ and BUS_WRITE with the address, of the whole ring or of the entry that is outside."""
    size = pair.config.window_bytes
    for register, value, at, outside in (
        (reg.CMD_BASE_LO, size, 0, size),
        (reg.CMD_BASE_HI, 1, 0, 0),
        (reg.CMD_BASE_LO, size - 128, 2, size),
        (reg.CMD_BASE_LO, 0xFFFFFFC0, 0, 0xFFFFFFC0),
        (reg.CPL_BASE_LO, size, 0, size),
        (reg.CPL_BASE_LO, size - 64, 2, size),
        (reg.CPL_BASE_HI, 0x80000000, 0, 256),
    ):
        for side in pair.sides:
            side.device.reset()
        pair.setup()
        for side in pair.sides:
            side.write(register, value)
        reads = register in (reg.CMD_BASE_LO, reg.CMD_BASE_HI)
        for number in range(at + 1):
            descriptor = pair.descriptor(Operation.NOP, tag=500 + number)
            where = value + 64 * number if reads else 64 * number
            for side in pair.sides:
                if where + 64 <= size:
                    side.device.write_memory(where, descriptor)
        rtl = pair.rtl
        rtl.device.ring_doorbell(at + 1)
        assert rtl.wait(at + 1)
        expected = Fault.BUS_READ if reads else Fault.BUS_WRITE
        assert status(rtl) == (HALTED | HAS_PROGRAM, expected, Unit.MEMORY)
        assert rtl.read(reg.FAULT_DETAIL) == outside
        assert rtl.read(reg.FAULT_TAG) == (0 if reads else 500 + at)
        assert [rtl.read(r) for r in (reg.CPL_TAIL, reg.IRQ_STATUS)] == [at, 2]
        assert rtl.read(reg.CMD_HEAD) == (at if reads else at + 1)
    for side in pair.sides:
        side.device.reset()
    pair.setup()
    pair.done(Operation.NOP)
    pair.compare_slots(range(5), range(5))


def test_interrupts(pair: Pair) -> None:
    """Every kind of command, done or refused, interrupts where it is asked to; the line follows the enabled bits."""
    rtl: Any = pair.rtl.device
    pair.rtl.write(reg.IRQ_ENABLE, 1)

    def commands(flags: int) -> Iterator[Any]:
        yield lambda: pair.post(Operation.NOP, flags=flags)
        yield lambda: pair.steps(Operation.GREEDY, [step(pair)], flags=flags)
        yield lambda: pair.steps(Operation.GREEDY, [step(pair), step(pair, 1)], flags=flags | Flag.CHECKED)
        yield lambda: pair.decode([{"slot": 0, "kind": START, "destination": 3}], flags=flags)
        yield lambda: pair.slots(Operation.SAVE, [0, 1], True, flags=flags)
        yield lambda: pair.slots(Operation.RESET, [2], flags=flags)
        yield lambda: pair.post(Operation.RESET, b"", flags=flags)
        yield lambda: pair.post(Operation.START, flags=flags | 128)
        yield lambda: pair.post(99, flags=flags)
        yield lambda: pair.decode([{"slot": 0, "kind": START, "destination": 99}], flags=flags)
        yield lambda: pair.slots(Operation.RESET, [99], flags=flags)
        yield lambda: pair.steps(Operation.GREEDY, [step(pair, crc=1)], flags=flags | Flag.CHECKED)
        yield lambda: pair.post(Operation.DECODE, bytes(16), k=1, body_crc=1, flags=flags | Flag.CHECKED)
        yield lambda: pair.post(Operation.LOAD, space=7, flags=flags)

    for flags in (0, int(Flag.INTERRUPT)):
        for command in commands(flags):
            command()
            (done,) = pair.flush()
            assert [side.read(reg.IRQ_STATUS) for side in pair.sides] == [bool(flags)] * 2, done
            assert rtl.interrupt == bool(flags)
            pair.rtl.write(reg.IRQ_STATUS, 2)
            assert pair.rtl.read(reg.IRQ_STATUS) == bool(flags)
            for side in pair.sides:
                side.write(reg.IRQ_STATUS, 1)
            assert not rtl.interrupt
            if done["status"] == Fault.CHECKSUM:
                pair.steps(Operation.GREEDY, [step(pair, reset=1)])
                pair.flush()
    pair.rtl.write(reg.IRQ_ENABLE, 0)
    pair.post(Operation.NOP, flags=int(Flag.INTERRUPT))
    pair.flush()
    assert pair.rtl.read(reg.IRQ_STATUS) == 1 and not rtl.interrupt
    rtl.ring_doorbell(99)
    rtl.advance(50)
    assert pair.rtl.read(reg.IRQ_STATUS) == 3 and not rtl.interrupt
    pair.rtl.write(reg.IRQ_ENABLE, 2)
    assert rtl.interrupt
    pair.rtl.write(reg.IRQ_STATUS, 2)
    assert not rtl.interrupt


def test_a_descriptor_with_a_wrong_crc_does_not_interrupt(pair: Pair) -> None:
    pair.post(Operation.NOP, flags=int(Flag.INTERRUPT), crc=1)
    pair.flush()
    assert [side.read(reg.IRQ_STATUS) for side in pair.sides] == [0, 0]


def test_memory_and_registers_beyond_their_ends() -> None:
    device = open_rtl()
    size = config("tiny").window_bytes
    for address, count in ((size, 1), (size - 3, 4), (-4, 4)):
        with pytest.raises(DeviceError):
            device.read_memory(address, count)
    with pytest.raises(DeviceError):
        device.read_register(0x68)
    device.write_memory(size - 4, b"abcd")
    assert device.read_memory(size - 4, 4) == b"abcd"
    device.close()


def test_bytes_of_the_memory(seed: int) -> None:
    """A write sets its bytes and no others, wherever it begins and ends."""
    device, random = open_rtl(), np.random.default_rng(seed)
    expected = bytearray(random.bytes(64))
    device.write_memory(0, expected)
    for at in range(8):
        for count in range(1, 12):
            data = random.bytes(count)
            expected[at + 16 : at + 16 + count] = data
            device.write_memory(at + 16, data)
            assert device.read_memory(0, 64) == expected, (at, count)
    device.close()
