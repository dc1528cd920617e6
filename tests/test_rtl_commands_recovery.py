# SPDX-License-Identifier: Apache-2.0
"""What ends work on the RTL before its time: soft resets, the watchdog, instructions that cannot run.

Whatever was at work, afterwards its destination slots are free, all others are whole, and the device works.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rtl_pair import BOTH, HALTED, HAS_PROGRAM, PATTERN, START, TOKEN, Pair, lively, packed, pair_for
from sim.reference.slots import Life, pack_encoder, pack_prediction

from gharial.isa import _registers as reg
from gharial.isa.commands import ENCODE_ENTRY, SLOT_ENTRY, Flag, Operation
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import HEADER

reference = pytest.importorskip("sim.reference", reason="needs a source checkout")

ENCODERS, PREDICTIONS = 4, 6
Slot = tuple[bool, int]  # of the prediction network, number
State = dict[Slot, bytes | None]  # None: not live
SLOTS: list[Slot] = [(False, n) for n in range(ENCODERS)] + [(True, n) for n in range(PREDICTIONS)]


@pytest.fixture(params=BOTH)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    p = lively(request.param)
    pair = pair_for(p, reference.ReferenceDevice(p.config, p.manifest))
    yield pair
    pair.close()


def fill(pair: Pair, random: np.random.Generator) -> None:
    """Random states in all slots."""
    for prediction, count in ((False, ENCODERS), (True, PREDICTIONS)):
        image = random.integers(-90, 90, count * pair.slot_bytes(prediction)).astype(np.int8).tobytes()
        pair.slots(Operation.RESTORE, range(count), prediction, image=image)
    pair.flush()


def now(pair: Pair) -> State:
    """The reference device's slots."""
    store: Any = pair.twin.device._machine.slots  # type: ignore[attr-defined]
    found: State = dict.fromkeys(SLOTS)
    found |= {(False, n): pack_encoder(s.state) for n, s in store.encoder.items() if s.life == Life.LIVE}
    return found | {(True, n): pack_prediction(s.state) for n, s in store.prediction.items() if s.life == Life.LIVE}


class Work:
    """Commands that are posted and not known to be done: what each writes, and the slots before and after each."""

    def __init__(self, pair: Pair, random: np.random.Generator) -> None:
        self.pair, self.random = pair, random
        self.states = [now(pair)]
        self.written: list[set[Slot]] = []
        self.tags: list[int] = []

    def post(self) -> None:
        """One more command of any kind."""
        random, pair = self.random, self.pair
        encoders = [int(n) for n in random.permutation(ENCODERS)][: int(random.integers(1, 4))]
        predictions = [int(n) for n in random.permutation(PREDICTIONS)]
        features = random.integers(-99, 99, (len(encoders), 2, 12))
        kind = random.choice(["greedy", "encode", "decode", "copy", "save", "restore", "reset", "free", "nop", "start"],
                             p=[0.3, 0.15, 0.2, 0.1, 0.05, 0.1, 0.03, 0.04, 0.02, 0.01])  # fmt: skip
        written: set[Slot] = {(False, n) for n in encoders}
        prediction = bool(random.integers(2))
        if kind == "greedy":
            entries = [{"slot": n, "prediction": p, "features": x, "reset": int(random.integers(2))}
                       for n, p, x in zip(encoders, predictions, features, strict=False)]  # fmt: skip
            done = pair.steps(Operation.GREEDY, entries)
            written |= {(True, e["prediction"]) for e in entries}
        elif kind == "encode":
            done = pair.steps(Operation.ENCODE, [
                {"slot": n, "features": x[: int(random.integers(1, 3))], "reset": int(random.integers(2)), "bank": 1}
                for n, x in zip(encoders, features, strict=True)])  # fmt: skip
        elif kind == "decode":
            entries = [{"slot": encoders[0], "kind": START, "destination": predictions[0]}]
            if now(pair)[True, predictions[1]] is not None:
                entries.append({"slot": encoders[0], "kind": TOKEN, "token": int(random.integers(10)),
                                "source": predictions[1], "destination": predictions[2]})  # fmt: skip
            done = pair.decode(entries, k=5)
            written = {(True, e["destination"]) for e in entries}
        elif kind in ("save", "nop"):
            done = pair.slots(Operation.SAVE, encoders) if kind == "save" else pair.post(Operation.NOP)
            written = set()
        elif kind == "start":
            done = pair.post(Operation.START, **pair.addresses())
            written = set(SLOTS)
        else:
            numbers: list[Any] = predictions[:3] if prediction else encoders
            written = {(prediction, n) for n in numbers}
            if kind == "copy":
                source = predictions[4] if prediction else max(set(range(ENCODERS)) - set(encoders))
                numbers = [(source, n) for n in numbers]
            image = random.integers(-90, 90, len(numbers) * pair.slot_bytes(prediction)).astype(np.int8).tobytes()
            done = pair.slots(Operation[kind.upper()], numbers, prediction, image=image)
        self.written.append(set() if done["status"] else written)
        self.states.append(now(pair))
        self.tags.append(done["tag"])

    def check(self, begun: int) -> None:
        """After a soft reset of both: slots that commands from `begun` on write are free or as some of them left
        them, the others as they were; then random states everywhere, and all is well."""
        pair = self.pair
        doubtful = set().union(*self.written[begun:])
        states = saved(pair)
        for slot, state in states.items():
            if slot not in doubtful:
                assert state == self.states[begun][slot], slot
            elif state is not None:
                assert state in [states[slot] for states in self.states[begun:]], slot
        self.freed = {slot for slot in doubtful if states[slot] is None}
        fill(pair, self.random)
        features = self.random.integers(-99, 99, (2, 2, 12))
        pair.steps(Operation.GREEDY, [{"slot": n, "prediction": n, "features": features[n]} for n in (0, 1)])
        pair.flush()
        for slot, number in SLOTS:
            pair.slots(Operation.SAVE, [number], slot)
        pair.flush()


def saved(pair: Pair) -> State:
    """The RTL's slots, by SAVE; the reference device is not asked."""
    rtl, found = pair.rtl, State()
    for at, (prediction, number) in enumerate(SLOTS):
        listed = SLOT_ENTRY.pack(slot=number).tobytes()
        address = pair.place(PATTERN * (pair.slot_bytes(prediction) // 4))
        flags = int(Flag.PREDICTION) if prediction else 0
        descriptor = pair.descriptor(Operation.SAVE, listed, result_lo=address, flags=flags, tag=at)
        rtl.device.write_memory(64 * (rtl.taken % (1 << rtl.log2)), descriptor)
        rtl.device.ring_doorbell(rtl.taken + 1)
        done = rtl.take()
        assert done["tag"] == at and done["status"] in (0, Fault.BAD_SLOT)
        found[prediction, number] = None if done["status"] else rtl.device.read_memory(
            address, pair.slot_bytes(prediction))  # fmt: skip
        rtl.device.write_memory(address, PATTERN * (pair.slot_bytes(prediction) // 4))
    rtl.device.reset()
    rtl.setup()
    return found


@pytest.mark.parametrize("number", range(4))
def test_soft_reset_at_any_time(pair: Pair, number: int, seed: int) -> None:
    """Also while commands wait, slots are moved, or completions are written."""
    random = np.random.default_rng([seed, number])
    freed: set[bool] = set()
    for turn in range(400):
        if turn >= 40 and len(freed) == 2:
            break
        fill(pair, random)
        work = Work(pair, random)
        for _ in range(int(random.integers(1, 7))):
            work.post()
        pair.ring()
        pair.rtl.device.advance(int(random.choice([5, 50, 500, 5000]) * random.random()))  # type: ignore[attr-defined]
        completed = pair.rtl.read(reg.CPL_TAIL) - pair.rtl.taken
        pair.pending.clear()
        pair.anew()
        work.check(completed)
        freed |= {prediction for prediction, _ in work.freed}
    assert freed == {False, True}


def test_soft_reset_while_a_command_is_accepted(pair: Pair) -> None:
    """At every clock until entries compute: the command's slots, free before, are free again, as if it had never been
    posted. For a clock or two of these the slot table is just about to take them for live."""
    features = np.ones((2, 12))
    pair.anew()
    for clocks in range(160):
        entries = [{"slot": n, "prediction": n, "features": features, "reset": 1} for n in (0, 1)]
        pair.put_steps(Operation.GREEDY, entries)
        pair.rtl.device.ring_doorbell(1)
        pair.rtl.device.advance(clocks)  # type: ignore[attr-defined]
        assert pair.rtl.read(reg.CPL_TAIL) == 0
        pair.anew()
        pair.compare_slots([0, 1], [0, 1])
        pair.anew()


def test_soft_reset_while_a_command_comes_to_its_end(pair: Pair) -> None:
    """At every clock about its end, with a long read on the bus that a soft reset waits for: the slots of a command
    that was done before stay, but for those that the one that is dropped writes, too."""
    device: Any = pair.rtl.device
    features = np.ones((2, 12))
    refused = b"".join(packed(ENCODE_ENTRY, slot=0, vectors=7) for _ in range(pair.config.max_entries))

    def begin() -> int:
        """One command done, one at work, one with many entries in the ring; the clock."""
        entries = [{"slot": n, "prediction": n, "features": features, "reset": 1} for n in (0, 1)]
        pair.steps(Operation.GREEDY, entries)
        pair.post(Operation.NOP)
        pair.post(Operation.NOP)
        pair.flush()
        pair.put_steps(Operation.GREEDY, entries[1:])
        pair.put(pair.descriptor(Operation.ENCODE, refused))
        device.ring_doorbell(4)
        return int(device.cycles)

    pair.anew()
    began = begin()
    assert pair.rtl.wait(4)
    clocks = device.cycles - began
    pair.anew()
    for early in range(25, 75):
        began = begin()
        device.advance(clocks - 110)
        device.ring_doorbell(5)
        device.advance(clocks - early - (device.cycles - began))
        pair.anew()
        pair.compare_slots([0], [0])
        pair.anew()


@pytest.mark.parametrize("number", range(3))
def test_watchdog(pair: Pair, number: int, seed: int) -> None:
    """Any limit, with any commands on their way: those that were done before are done."""
    random = np.random.default_rng([seed, number])
    halts = 0
    for turn in range(300):
        if turn >= 30 and halts:
            break
        fill(pair, random)
        work = Work(pair, random)
        for _ in range(int(random.integers(1, 7))):
            work.post()
        first = pair.rtl.taken
        pair.rtl.write(reg.WATCHDOG, int(random.choice([1, 40, 400, 4000, 40_000]) * random.random()) + 1)
        pair.ring()
        assert pair.rtl.wait(first + len(work.tags))
        pair.rtl.device.advance(10_000)  # type: ignore[attr-defined]
        status = pair.rtl.read(reg.STATUS)
        completed = pair.rtl.read(reg.CPL_TAIL) - first
        if status & HALTED:
            halts += 1
            assert status == HALTED | HAS_PROGRAM | Fault.WATCHDOG << 8 | Unit.SEQUENCER << 16
            assert pair.rtl.read(reg.IRQ_STATUS) == 2
            assert pair.rtl.read(reg.FAULT_TAG) in [0, *work.tags]
            assert pair.rtl.read(reg.CMD_HEAD) - first <= len(work.tags)
        else:
            assert completed == len(work.tags)
        pair.rtl.write(reg.WATCHDOG, 0)
        pair.pending.clear()
        pair.anew()
        work.check(completed)
    assert halts


def test_watchdog_tells_the_command_and_where_it_was(pair: Pair) -> None:
    fill(pair, np.random.default_rng(0))
    for limit in (600, 900):
        entry = {"slot": 0, "prediction": 0, "features": np.ones((2, 12)), "reset": 1}
        pair.post(Operation.NOP)
        tag = pair.steps(Operation.GREEDY, [entry], k=30)["tag"]
        pair.rtl.write(reg.WATCHDOG, limit)
        pair.ring()
        before = pair.rtl.device.cycles  # type: ignore[attr-defined]
        assert pair.rtl.wait(pair.tail)
        assert limit < pair.rtl.device.cycles - before < limit + 400  # type: ignore[attr-defined]
        assert pair.rtl.read(reg.STATUS) == HALTED | HAS_PROGRAM | Fault.WATCHDOG << 8 | Unit.SEQUENCER << 16
        assert pair.rtl.read(reg.FAULT_TAG) == tag
        assert pair.rtl.read(reg.FAULT_DETAIL) < (pair.header["code_bytes"] - HEADER.bytes) // 32
        pair.rtl.write(reg.WATCHDOG, 0)
        pair.pending.clear()
        pair.anew()
    pair.slots(Operation.RESET, [0])
    pair.slots(Operation.RESET, [0], True)
    pair.rtl.write(reg.WATCHDOG, 100_000)
    pair.steps(Operation.GREEDY, [entry], k=30)
    pair.flush()
    pair.compare_slots(range(ENCODERS), range(PREDICTIONS))
