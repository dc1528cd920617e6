# SPDX-License-Identifier: Apache-2.0
"""Compares all that the accelerator says and writes with the reference device, command by command."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from pyuvm import uvm_analysis_port, uvm_scoreboard

from gharial.isa import _registers as reg
from gharial.isa.commands import Flag, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit
from sim.uvm.imp import Imp
from sim.uvm.memory.items import ReadBurst, WriteWord
from sim.uvm.memory.model import DeviceMemory
from sim.uvm.program.drawn import DrawnProgram
from sim.uvm.registers.item import RegisterSeen
from sim.uvm.ring.items import Completed, Fields
from sim.uvm.ring.monitor import RingMonitor
from sim.uvm.scoreboard.counter_checks import CounterChecks
from sim.uvm.scoreboard.doubt import Doubt
from sim.uvm.scoreboard.record import Record, State
from sim.uvm.scoreboard.register_checks import BUS, RegisterChecks
from sim.uvm.scoreboard.witness import Witness

SOFT_RESET = 2
COMPUTES = (Operation.ENCODE, Operation.DECODE, Operation.GREEDY)


def late(completion: Fields) -> bool:
    """Whether a command may have computed something before it failed so: checks of features come on the way, faults of
    instructions too, and slots may be lost to an older command meanwhile."""
    if completion["status"] == Fault.ADDRESS:
        return completion["unit"] == Unit.SEQUENCER
    return completion["status"] in (Fault.CHECKSUM, Fault.BAD_OPCODE, Fault.BAD_SLOT)


class Scoreboard(uvm_scoreboard):
    """Told by the monitors; tells `counters` what was read of them.

    The witness runs a command when the bell is rung for it, so it is always ahead. A command's words, wherever it
    writes them, have to be there and right when its completion is published; none may be left over.

    Attributes:
        memory: the device memory, and `rings`, the monitor that knows where the rings are; set before the run.
        library: programs that may be loaded, by key; set before the run.
    """

    memory: DeviceMemory
    rings: RingMonitor
    library: Mapping[str, DrawnProgram]

    def build_phase(self) -> None:
        self.requests = Imp("requests", self, lambda _: self._asked.append(self.settled))
        self.accesses = Imp("accesses", self, self._access)
        self.reads = Imp("reads", self, self._read)
        self.writes = Imp("writes", self, self._write)
        self.completions = Imp("completions", self, self._completed)
        self.counters = uvm_analysis_port("counters", self)
        self.expected: deque[Record] = deque()
        self.compared = 0
        self.doubt = Doubt()
        self._asked: deque[bool] = deque()  # of reads on their way: whether all was settled when they began
        self._written: dict[int, int] = {}
        self._loose: list[tuple[int, int]] = []  # where commands that were given up may write
        self._errors: list[tuple[Fault, int]] = []  # of the bus: kind and address
        self._base: State | None = None  # slots after a fault that the witness knows nothing of
        self._watched = False

    def end_of_elaboration_phase(self) -> None:
        self.witness = Witness(config("tiny"), self.library, self.expected.append)
        self.registers = RegisterChecks(self.witness, self._causes)
        self.counts = CounterChecks(self.counters.write)
        self.memory.listeners.append(self._host_write)

    @property
    def settled(self) -> bool:
        """Whether the accelerator has done all that the witness has."""
        alone = self.registers.halted_alone is not None or self._errors
        return not self.expected and not alone and not self.witness.held_back

    # What comes in

    def _host_write(self, address: int, data: bytes) -> None:
        self.witness.memory.data[address : address + len(data)] = data

    def _access(self, seen: RegisterSeen) -> None:
        if not seen.is_write:
            self.registers.check(seen, self._asked.popleft())
            self.counts.check(seen)
            return
        if seen.register == reg.CONTROL and seen.value & SOFT_RESET:
            self._soft_reset()
        elif seen.register == reg.CONTROL:  # the soft reset has ended: nothing that was given up is written any more
            self._loose.clear()
            self.registers.resetting = False
        if seen.register == reg.COUNTER_SNAPSHOT:
            self.counts.latch(self.settled)
        if seen.register == reg.WATCHDOG:
            self._watched = seen.value != 0
        if seen.register == reg.IRQ_STATUS:
            self.registers.interrupts &= ~seen.value
        before = self.witness.read_register(reg.STATUS.offset)
        self.witness.write_register(seen.register.offset, seen.value)
        if ~before & self.witness.read_register(reg.STATUS.offset) & 4:
            self.registers.interrupts |= 2

    def _read(self, burst: ReadBurst) -> None:
        if burst.failed:
            self._errors.append((Fault.BUS_READ, burst.address))
            self.registers.interrupts |= 2

    def _write(self, written: WriteWord) -> None:
        address = written.address
        if written.failed:
            self._errors.append((Fault.BUS_WRITE, address))
            self.registers.interrupts |= 2
        elif any(low <= address < high for low, high in self._loose) or self.rings.inside(address, True):
            return
        else:
            assert address not in self._written, f"{address:#x} is written twice"
            self._written[address] = written.word

    def _causes(self) -> list[tuple[Fault, int]]:
        """What may have halted the accelerator and not the witness."""
        return [*self._errors, *([(Fault.WATCHDOG, 0)] if self._watched else [])]

    # Commands

    def _completed(self, done: Completed) -> None:
        if self.registers.resetting:  # it was given up a moment ago, and what it has done is in doubt
            return
        assert self.expected, f"a completion that nobody waits for: {done.fields}"
        record, found = self.expected.popleft(), done.fields
        self.compared += 1
        if record.descriptor["flags"] & Flag.INTERRUPT:
            self.registers.interrupts |= 1
        if found["status"] in BUS:
            self._bus_fault(record, found)
        elif self._in_doubt(record):
            self._settle(record, found)
        else:
            self._compare(record, found)
            self._count(record)
        # A command that the witness holds back for a full ring of completions may have been worked on all the same.
        if self.settled and not self._loose:
            stray = {hex(address): hex(word) for address, word in self._written.items()}
            assert not stray, f"written, and by no command that has completed: {stray}"

    def _compare(self, record: Record, found: Fields) -> None:
        expected = record.completion
        unsaid = {"predictions", "joints"} if expected["status"] else set()
        wrong = {
            key: (found[key], value) for key, value in expected.items() if key not in unsaid and found[key] != value
        }
        assert not wrong, f"completion of {self._name(record)}: (found, expected) {wrong}"
        if expected["status"]:
            if late(expected):
                self._forget(record.rooms())
            return
        wrong = {}
        for address, word in record.writes.items():
            written = self._written.pop(address, None)
            if written != word:
                wrong[hex(address)] = ("nothing" if written is None else hex(written), hex(word))
        assert not wrong, f"what {self._name(record)} wrote: (found, expected) {wrong}"

    def _name(self, record: Record) -> str:
        try:
            operation = Operation(record.operation).name
        except ValueError:
            operation = f"operation {record.operation}"
        return f"command {record.index}, {operation} of {len(record.entries)} entries: {record.entries}"

    def _forget(self, rooms: list[tuple[int, int]]) -> None:
        for low, high in rooms:
            for address in range(low, high, 4):
                self._written.pop(address, None)

    def _count(self, record: Record) -> None:
        """Products of the command, for the counter of active clocks."""
        if record.operation not in COMPUTES or self.counts.active is None:
            return
        program, found = self.witness.program, record.completion
        if found["status"]:
            self.counts.active = None if late(found) else self.counts.active
        elif program is not None:
            self.counts.active += found["predictions"] * program.steps("predict")
            self.counts.active += found["joints"] * program.steps("joint")
            if record.operation != Operation.DECODE:
                self.counts.active += sum(program.steps("encode", entry["vectors"]) for entry in record.entries)

    # Faults of which the witness knows nothing

    def _bus_fault(self, record: Record, found: Fields) -> None:
        """The command that an error of the bus hit: it fails, its destination slots are free, nothing else is lost."""
        name = self._name(record)
        assert (Fault(found["status"]), found["detail"]) in self._errors, f"{name}: {found}, errors: {self._errors}"
        assert found["unit"] == Unit.MEMORY and found["tag"] == record.completion["tag"], f"{name}: {found}"
        self.registers.halted_alone = Fault(found["status"])
        self.counts.active = None
        self._base = dict(record.before)
        reads = record.reads()
        in_list = any(low <= found["detail"] < high for low, high in reads.get("entries", []))
        hit = [n for n, (low, high) in enumerate(reads.get("features", [])) if low <= found["detail"] < high]
        if found["status"] == Fault.BUS_WRITE or in_list:
            hit = [0]
        assert not hit or found["entry"] == hit[0], f"{name}: {found}, expected entry {hit[0]}"
        if found["status"] == Fault.BUS_WRITE or not in_list:
            for slot in record.destinations:
                self._base.pop(slot, None)
        if record.operation == Operation.LOAD:
            self.witness.lose_chunk(record.descriptor["space"], record.descriptor["offset"])
            self._base = {}
        self._loose += record.rooms()
        if record.operation == Operation.SAVE:
            self._loose += [(address, address + 4) for address in record.writes]
        self._forget(self._loose)

    def _soft_reset(self) -> None:
        """What was posted and has not completed is given up."""
        self.registers.resetting = True
        given_up = [*self.expected, *self.witness.waiting()]
        self.expected.clear()
        assert all(r.operation not in (Operation.LOAD, Operation.START) for r in given_up), "a program is in doubt"
        if given_up or self._base is not None:
            base = self._base if self._base is not None else given_up[0].before
            if given_up:
                self.doubt.add(given_up)
            for slot in self.doubt.allowed:
                self.doubt.allowed[slot].append(base.get(slot))
            for slot in self.witness.state():
                self.witness.adopt(slot, None)
            for slot, state in base.items():
                self.witness.adopt(slot, state)
        for record in given_up:
            self._loose += record.rooms()
            if record.operation == Operation.SAVE:
                self._loose += [(address, address + 4) for address in record.writes]
        self._forget(self._loose)
        self._base = None
        self._errors.clear()
        self.registers.halted_alone = None
        self.registers.interrupts = 0
        self.counts.clear()

    def _in_doubt(self, record: Record) -> bool:
        if not self.doubt.allowed or not record.entries:
            return False
        slot = (bool(record.descriptor["flags"] & Flag.PREDICTION), record.entries[0]["slot"])
        return record.operation == Operation.SAVE and len(record.entries) == 1 and slot in self.doubt.allowed

    def _settle(self, record: Record, found: Fields) -> None:
        """SAVE of a slot that commands were given up on tells what became of it."""
        slot = (bool(record.descriptor["flags"] & Flag.PREDICTION), record.entries[0]["slot"])
        assert found["tag"] == record.completion["tag"] and found["status"] in (0, Fault.BAD_SLOT), found
        saved = None
        if not found["status"]:
            d = record.descriptor
            at, size = d["result_lo"], self._slot_bytes(slot[0])
            missing = [hex(at + n) for n in range(0, size, 4) if at + n not in self._written]
            assert not missing, f"SAVE of {slot} did not write {missing}"
            saved = b"".join(self._written.pop(at + n).to_bytes(4, "little") for n in range(0, size, 4))
        self.witness.adopt(slot, self.doubt.settle(slot, saved))

    def _slot_bytes(self, prediction: bool) -> int:
        assert self.witness.program is not None
        header, side = self.witness.program.header, "pred" if prediction else "enc"
        c = config("tiny")
        return header[f"{side}_a_units"] * c.cols + header[f"{side}_c_units"] * c.cell_unit * 2

    def check_phase(self) -> None:
        assert not self.expected, f"{len(self.expected)} commands without a completion"
        assert not self.doubt.allowed, f"what became of these slots was not looked at: {sorted(self.doubt.allowed)}"

    def report_phase(self) -> None:
        self.logger.info(f"{self.compared} commands compared")
