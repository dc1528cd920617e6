# SPDX-License-Identifier: Apache-2.0
"""Bus errors at every access of a command to the device memory: what each must come to (docs/isa.md, section 6).

For any device that lets an access fail: the core on its bench, the emulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gharial.driver import DecodeEntry, Driver, EncodeEntry, GreedyEntry, GreedyResult, Ticket
from gharial.errors import CommandFailed, DeviceError
from gharial.isa import _registers as reg
from gharial.isa.commands import Kind, Mode, Operation
from gharial.isa.faults import Fault
from gharial.program import Program
from sim.common.posting import ENTRY_BYTES, Posted
from sim.common.programs import SMALL

FOREVER = 1e9  # seconds
CAP = 3
READY, HALTED = 1, 4  # bits of STATUS
SLOTS = [("encoder", n) for n in range(4)] + [("prediction", n) for n in range(4, 10)]
"""Those that are looked at."""
FREE = 20  # a prediction slot
Slots = tuple[str, tuple[int, ...]]
Place = Callable[[Posted], int]


@dataclass(frozen=True)
class Case:
    """A command, and the access of it that fails.

    Attributes:
        operation: which of the commands that `run` sends.
        run: sends it; streams are on encoder slots 0, 1, 2 with prediction slots 4, 5, 6.
        writes: whether the failing access is a write.
        start, word: address of what is accessed, and of the word in it that fails.
        entry: at fault.
        hit: slots that are free afterwards; all others are as they were.
        completed: whether the command has a completion.
    """

    name: str
    operation: Operation
    run: Callable[[Driver, Steps], Ticket]
    writes: bool
    start: Place
    word: int
    entry: int = 0
    hit: Sequence[Slots] = ()
    completed: bool = True


class Steps:
    """Streams of random features, one an encoder slot; `entry` gives the next step of one."""

    def __init__(self, seed: int) -> None:
        self.features = np.random.default_rng(seed).integers(-99, 99, (3, 8, SMALL.stack, SMALL.features))
        self.step = [0, 0, 0]

    def entry(self, slot: int, reset: bool = False) -> GreedyEntry:
        """The slot's next step; from the start with `reset`."""
        at = 0 if reset else self.step[slot]
        self.step[slot] = at + 1
        return GreedyEntry(slot, self.features[slot, at].astype(np.int8), at & 1, at == 0, prediction=slot + 4)

    def encode(self, slot: int) -> EncodeEntry:
        """The same for the encoder alone."""
        e = self.entry(slot)
        return EncodeEntry(e.slot, e.features, e.bank, e.reset)


def _greedy(driver: Driver, steps: Steps) -> Ticket:
    return driver.greedy([steps.entry(0), steps.entry(1)], max_symbols=CAP)


def _encode(driver: Driver, steps: Steps) -> Ticket:
    return driver.encode([steps.encode(0), steps.encode(1)])


def _decode(driver: Driver, steps: Steps) -> Ticket:
    entries = [DecodeEntry(2, (steps.step[2] + 1) & 1, Kind.TOKEN, slot, slot, 1) for slot in (4, 5)]
    return driver.decode(entries, mode=Mode.ALL)


def _save(driver: Driver, steps: Steps) -> Ticket:
    return driver.save("encoder", [0, 1])


def _restore(driver: Driver, steps: Steps) -> Ticket:
    images = driver.save("prediction", [5, 6]).result()
    return driver.restore([4, 8], images)


def _copy(driver: Driver, steps: Steps) -> Ticket:
    return driver.copy("prediction", [(5, 4), (6, 9)])


def _refused(driver: Driver, steps: Steps) -> Ticket:
    return driver.copy("prediction", [(FREE, 9)])


STREAMS: tuple[Slots, ...] = (("encoder", (0, 1)), ("prediction", (4, 5)))
READ, WRITE = False, True
END_OF_RESULT = "end of a result"  # what the device writes last before the completion
CASES = [
    Case("command", Operation.GREEDY, _greedy, READ, lambda p: p.descriptor, 8, completed=False),
    Case("entries", Operation.GREEDY, _greedy, READ, lambda p: p.fields["entry_lo"], ENTRY_BYTES + 4),
    Case("entries of a copy", Operation.COPY, _copy, READ, lambda p: p.fields["entry_lo"], 0),
    Case("features", Operation.GREEDY, _greedy, READ, lambda p: p.features(1), 4, 1, STREAMS),
    Case("features of encode", Operation.ENCODE, _encode, READ, lambda p: p.features(0), 0, 0, STREAMS[:1]),
    Case("result", Operation.GREEDY, _greedy, WRITE, lambda p: p.result(1), 0, 0, STREAMS),
    Case(END_OF_RESULT, Operation.GREEDY, _greedy, WRITE, lambda p: p.result(1), 4, 0, STREAMS),
    Case("result of decode", Operation.DECODE, _decode, WRITE, lambda p: p.result(0), 20, 0, STREAMS[1:]),
    Case("saved state", Operation.SAVE, _save, WRITE, lambda p: p.state(1), 40),
    Case("restored state", Operation.RESTORE, _restore, READ, lambda p: p.state(1), 8, 1, (("prediction", (4, 8)),)),
    *(Case(f"completion, byte {at}", Operation.GREEDY, _greedy, WRITE, lambda p: p.completion, at, 0, STREAMS,
           completed=False) for at in (12, 28)),
    *(Case(f"completion of a refused command, byte {at}", Operation.COPY, _refused, WRITE, lambda p: p.completion, at,
           completed=False) for at in (0, 28)),
]  # fmt: skip


@dataclass
class Session:
    """A program on a failing device, with three streams on it, and the same on a good one."""

    device: Any
    twin: Any
    program: Program
    seed: int
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        options = {"timeout": FOREVER, "checked": True}
        self.driver = Driver(self.device, self.program, **options)
        self.good = Driver(self.twin, self.program, **options)
        self.steps = Steps(self.seed)
        for kind in ("encoder", "prediction"):
            self.driver.reset(kind, [n for k, n in SLOTS if k == kind]).result()
        self.together([self.steps.entry(n, True) for n in range(3)])
        self.together([self.steps.entry(n) for n in range(3)])

    def together(self, entries: list[GreedyEntry]) -> None:
        """Greedy steps on both, which must be the same."""
        found, wanted = (shown(d.greedy(entries, max_symbols=CAP).result()) for d in (self.driver, self.good))
        assert found == wanted

    def states(self, gone: set[tuple[str, int]]) -> dict[tuple[str, int], bytes | None]:
        """All slots' states; None for those that are not live, which only those in `gone` may be."""
        found = {slot: saved(self.driver, *slot) for slot in gone}
        for kind in ("encoder", "prediction"):
            numbers = [n for k, n in SLOTS if k == kind and (k, n) not in gone]
            images = self.driver.save(kind, numbers).result()
            found |= {(kind, n): image.data for n, image in zip(numbers, images, strict=True)}
        return found

    def check(self, case: Case) -> None:
        """Let the case's access fail: typed fault, others' state whole, recovered by a soft reset."""
        driver, device, steps = self.driver, self.device, self.steps
        self.together([steps.entry(slot, reset=steps.step[slot] > 4) for slot in range(3)])
        before, armed = self.states(set()), list[Posted]()

        def posted(command: Posted) -> None:
            if command.fields["operation"] == case.operation and not armed:
                armed.append(command)
                device.fail(case.writes, case.start(command) + case.word)

        older = steps.entry(2)
        first = driver.greedy([older], max_symbols=CAP)
        if case.name == "command":  # whose fetch stops what else there is
            first.result()
        wanted = shown(self.good.greedy([older], max_symbols=CAP).result())
        for slot in (("encoder", 2), ("prediction", 6)):
            before[slot] = saved(self.good, *slot)
        at_first = list(steps.step)
        made = dict.fromkeys(before)  # what the command leaves where it is not known to have failed
        if case.hit and not case.completed:
            case.run(self.good, deepcopy(steps)).result()
            made |= {("encoder", n): saved(self.good, "encoder", n) for n in (0, 1)}
            made |= {("prediction", n): saved(self.good, "prediction", n) for n in (4, 5)}
        device.posted = posted
        ticket = case.run(driver, steps)
        younger = driver.save("encoder", [2])
        failure = _failure(ticket)
        device.posted = None
        assert armed, f"{case.name}: nothing failed"
        self._check_failure(case, failure, armed[0])
        assert shown(first.result()) == wanted, "an older command"
        recovery = driver.recover()
        assert not recovery.reloaded
        assert isinstance(_failure(younger), DeviceError), "a younger command"
        hit = {(kind, n) for kind, slots in case.hit for n in slots}
        lost = {("encoder", n) for n in recovery.lost_encoder} | {("prediction", n) for n in recovery.lost_prediction}
        assert hit <= lost, f"{case.name}: the driver takes {hit - lost} for whole"
        for slot, state in self.states(hit).items():
            assert state in ((None, made[slot]) if slot in hit else (before[slot],)), f"{case.name}: {slot}"
        steps.step[:2] = at_first[:2]  # what was hit begins anew, the others go on
        gone = [("encoder", n) in hit or ("prediction", n + 4) in hit for n in (0, 1)]
        self.together([steps.entry(n, reset=gone[n]) for n in (0, 1)])
        for kind, slot in hit:
            if slot > 6:  # of no stream
                driver.reset(kind, [slot]).result()

    def _check_failure(self, case: Case, failure: DeviceError, command: Posted) -> None:
        fault = Fault.BUS_WRITE if case.writes else Fault.BUS_READ
        start = case.start(command)
        assert (failure.code, failure.unit) == (fault, "memory"), f"{case.name}: {failure}"
        assert start <= int(failure.detail or 0) <= start + case.word, f"{case.name}: {failure}"
        if case.completed:
            assert isinstance(failure, CommandFailed) and failure.entry == case.entry, f"{case.name}: {failure}"
        read = self.device.read_register
        assert read(reg.CPL_TAIL.offset) == command.index + case.completed, case.name
        status = read(reg.STATUS.offset)
        assert status & (READY | HALTED) == HALTED and status >> 8 & 0xFF == fault, f"{case.name}: {status:#x}"
        assert read(reg.FAULT_DETAIL.offset) == failure.detail
        assert read(reg.FAULT_TAG.offset) == (0 if case.name == "command" else command.fields["tag"]), case.name
        assert read(reg.IRQ_STATUS.offset) & 2, "no interrupt for the halt"


def _failure(ticket: Ticket) -> DeviceError:
    try:
        ticket.result()
    except DeviceError as error:
        return error
    raise AssertionError("no error")


def saved(driver: Driver, kind: str, slot: int) -> bytes | None:
    """A slot's state, None where it is not live."""
    try:
        return driver.save(kind, [slot]).result()[0].data
    except CommandFailed as error:
        assert error.code == Fault.BAD_SLOT, error
        return None


def shown(results: Sequence[GreedyResult]) -> list[tuple[list[int], list[int], list[int], bool, int]]:
    """All that a greedy command says."""
    return [(r.tokens.tolist(), r.logits.tolist(), r.lse.tolist(), r.capped, r.joints) for r in results]
