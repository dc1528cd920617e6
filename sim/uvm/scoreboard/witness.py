# SPDX-License-Identifier: Apache-2.0
"""The reference device, telling of each command what it did.

It computes whole networks and knows no instructions: of a program whose instructions cannot all run, `damage.stops`
says where a section ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from gharial.isa import _registers as reg
from gharial.isa.commands import DESCRIPTOR, Kind, Operation
from gharial.isa.configs import Config
from gharial.isa.faults import Fault
from gharial.isa.header import ProgramSpace
from sim.reference import ReferenceDevice
from sim.reference.commands import Counts
from sim.reference.machine import Refusal
from sim.reference.model import ReferenceModel
from sim.uvm.program.damage import Stop, stops
from sim.uvm.program.drawn import DrawnProgram
from sim.uvm.scoreboard.logged_memory import LoggedMemory
from sim.uvm.scoreboard.record import RECORDS, Fields, Record, Slot, State


class Witness(ReferenceDevice):
    """`ReferenceDevice` for any of the programs in a library, and with access to its slots.

    Args:
        config: the hardware configuration.
        library: programs by key; it may grow.
        report: called with each command's record when it is done.
    """

    def __init__(self, config: Config, library: Mapping[str, DrawnProgram], report: Callable[[Record], None]) -> None:
        nothing = {"config": {"name": config.name, "id": config.config_id}}
        super().__init__(config, nothing)
        self.memory = LoggedMemory(len(self._machine.memory))
        self._machine.memory = self.memory
        self._library, self._report = library, report
        self._before: State = {}
        self._listed: list[Fields] = []
        self._encoded = 0
        self.program: DrawnProgram | None = None

    # Slots

    def state(self) -> State:
        """Slots that are not free. States are never changed in place, so this is a picture of now."""
        slots = self._machine.slots
        if slots is None:
            return {}
        found: State = {(False, n): slot for n, slot in slots.encoder.items()}
        return found | {(True, n): slot for n, slot in slots.prediction.items()}

    def adopt(self, slot: Slot, state: Any) -> None:
        """Put a state into a slot, or free it with None."""
        slots = self._machine.slots
        assert slots is not None
        table: dict[int, Any] = slots.prediction if slot[0] else slots.encoder
        table.pop(slot[1], None)
        if state is not None:
            table[slot[1]] = state

    def numbers(self) -> tuple[int, int]:
        """Encoder and prediction slots of the current program."""
        slots = self._machine.slots
        return (slots.encoders, slots.predictions) if slots else (0, 0)

    def lose_chunk(self, space: int, offset: int) -> None:
        """A chunk could not be read: no program is current, and the space is as it was before the chunk."""
        self._machine.model = self._machine.slots = None
        self._machine.spaces[ProgramSpace(space)].count = offset

    @property
    def halted(self) -> bool:
        """Whether a fault has halted it."""
        return self._halt is not None

    @property
    def held_back(self) -> bool:
        """Whether it has been told of commands that it has not run: the ring of completions is full."""
        return self._cmd_head != self._cmd_tail and not self.halted

    # Commands

    def _run_one(self) -> None:
        machine = self._machine
        if machine.model is None:
            code = machine.spaces[ProgramSpace.CODE]
            key = hashlib.sha256(bytes(code.image[: code.count])).hexdigest()
            if key in self._library:
                self.program = self._library[key]
                machine.manifest = self.program.manifest
        self.memory.taken()
        self._before, self._encoded, model = self.state(), 0, machine.model
        self._listed = self._list(self._cmd_head)
        super()._run_one()
        if machine.model is not None and machine.model is not model:
            self._damage(machine.model)

    def _list(self, index: int) -> list[Fields]:
        """Entries of a command in the ring, if it has a list and the list lies in the memory."""
        d = self._descriptor(index)
        at, count = d["entry_lo"] | d["entry_hi"] << 32, 16 * d["entries"]
        if d["operation"] not in RECORDS or not self.memory.holds(at, count):
            return []
        words = np.frombuffer(self.memory.read(at, count), "<u4").reshape(-1, 4)
        return [RECORDS[d["operation"]].unpack(row) for row in words]

    def _descriptor(self, index: int) -> Fields:
        """Fields of a descriptor in the ring; all zero where the ring is not in the memory."""
        at = self._entry(reg.CMD_BASE_LO, reg.CMD_BASE_HI, reg.CMD_LOG2, index, DESCRIPTOR.bytes)
        raw = self.memory.read(at, DESCRIPTOR.bytes) if self.memory.holds(at, DESCRIPTOR.bytes) else bytes(64)
        return DESCRIPTOR.unpack(np.frombuffer(raw, "<u4"))

    def waiting(self) -> list[Record]:
        """Commands behind a halt: they are not run, but the accelerator may have begun with them."""
        told = (self._cmd_tail - self._cmd_head) & 0xFFFFFFFF
        state = self.state()
        behind = range(self._cmd_head, self._cmd_head + told) if told <= self._entries(reg.CMD_LOG2) else ()
        return [Record(n, self._descriptor(n), self._list(n), {}, {}, state, state) for n in behind]

    def _complete(self, index: int, d: Fields, counts: Counts, refusal: Refusal | None) -> None:
        if refusal is not None and refusal.fault in (Fault.BAD_OPCODE, Fault.ADDRESS):
            refusal = self._stopped(d, refusal)
        writes, tail = self.memory.taken(), self._cpl_tail
        super()._complete(index, d, counts, refusal)
        if self._cpl_tail == tail:
            return  # it could not be written
        completion: Fields = {
            "tag": d["tag"], "index": index, "status": 0, "unit": 0, "entry": 0, "detail": 0,
            "predictions": counts.predictions, "joints": counts.joints,
        }  # fmt: skip
        if refusal is not None:
            completion |= {"status": refusal.fault, "unit": refusal.unit, "entry": refusal.entry,
                           "detail": refusal.detail}  # fmt: skip
        model = self._machine.model
        self._report(Record(
            index, d, self._listed if d["operation"] in RECORDS else [], completion, writes, self._before, self.state(),
            model.classes if model else 0, model.features_padded if model else 0,
        ))  # fmt: skip
        if refusal is not None and Fault(refusal.fault).halts:
            self._halt_on(refusal, d["tag"])

    def _stopped(self, d: Fields, refusal: Refusal) -> Refusal:
        """A fault of an instruction: which entry it is of, and the command's slots are lost. Others stay whole."""
        where = getattr(refusal, "section", None)
        if where is None:
            return refusal
        entry = self._encoded - 1
        if d["operation"] == Operation.DECODE:
            runs = [e["kind"] != Kind.NONE if where == "predict" else not e["no_joint"] for e in self._listed]
            entry = runs.index(True)
        for slot in Record(0, d, self._listed, {}, {}, {}, {}).destinations:
            self.adopt(slot, None)
        return Refusal(refusal.fault, refusal.unit, refusal.detail, entry)

    def _damage(self, model: ReferenceModel) -> None:
        """Let sections end where their instructions cannot run."""
        assert self.program is not None
        found = stops(self.program, self.config.tile_bytes)
        encode = model.encode_step

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._encoded += 1
            if "encode" in found:
                stop(found["encode"], "encode")
            return encode(*args, **kwargs)

        def stop(at: Stop, section: str) -> NoReturn:
            refusal = Refusal(at.fault, at.unit, at.number)
            refusal.section = section  # type: ignore[attr-defined]
            raise refusal

        model.encode_step = counted  # type: ignore[method-assign]
        if "predict" in found:
            model.predict = lambda *_: stop(found["predict"], "predict")  # type: ignore[method-assign]
        if "joint" in found:
            model.joint = lambda *_: stop(found["joint"], "joint")  # type: ignore[method-assign]
