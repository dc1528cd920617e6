# SPDX-License-Identifier: Apache-2.0
"""Samples faults of commands: which, and where."""

from __future__ import annotations

import zlib

from gharial.isa.commands import Kind, Operation
from gharial.isa.faults import Fault, Unit
from sim.uvm.coverage.group import CoverGroup
from sim.uvm.coverage.slot_coverage import SlotCoverage
from sim.uvm.program.drawn import SECTIONS, DrawnProgram
from sim.uvm.ring.finished import Finished

STEPS = (Operation.ENCODE, Operation.GREEDY)


class FaultCoverage:
    """Groups on faults and their sites.

    Args:
        groups: all groups.
        slots: knows which slots have ended.

    Attributes:
        program: the current one.
        slot_numbers: encoder and prediction slots that it has.
    """

    def __init__(self, groups: dict[str, CoverGroup], slots: SlotCoverage) -> None:
        self._groups, self._slots = groups, slots
        self.program: DrawnProgram | None = None
        self.slot_numbers = (0, 0)

    def finished(self, command: Finished) -> None:
        """One command."""
        fault = Fault(command.completion["status"])
        if fault == Fault.NONE:
            return
        self._groups["faults"].hit(fault.name)
        site = self._site(fault, command)
        if site:
            self._groups["fault sites"].hit(site)

    def _site(self, fault: Fault, command: Finished) -> str:
        detail = command.completion["detail"]
        if fault in (Fault.BAD_COMMAND, Fault.BAD_ENTRY, Fault.BAD_PROGRAM):
            return f"{fault.name} word, {detail}"
        if fault == Fault.BAD_OPCODE:
            return f"BAD_OPCODE, {self._section(detail)}"
        where = {
            Fault.CHECKSUM: self._checksum,
            Fault.ADDRESS: self._address,
            Fault.BUS_READ: self._bus_read,
            Fault.BUS_WRITE: self._bus_write,
            Fault.BAD_SLOT: self._bad_slot,
            Fault.HAZARD: self._hazard,
        }.get(fault)
        return f"{fault.name}, {where(command)}" if where else ""

    def _section(self, number: int) -> str:
        assert self.program is not None
        header = self.program.header
        return next(s for s in SECTIONS if 0 <= number - header[f"{s}_first"] < header[f"{s}_count"])

    def _checksum(self, command: Finished) -> str:
        if not command.whole:
            return "descriptor"
        if command.operation == Operation.LOAD:
            return "chunk"
        return "entries" if zlib.crc32(command.body) != command.descriptor["body_crc"] else "features"

    def _address(self, command: Finished) -> str:
        d, found = command.descriptor, command.completion
        if found["unit"] == Unit.SEQUENCER:
            return "instruction"
        if command.operation == Operation.LOAD:
            return "chunk"
        if not command.body:
            return "entries"
        result = d["result_lo"] + found["entry"] * d["stride"]
        in_features = command.operation in STEPS and found["detail"] != result & 0xFFFFFFFF
        return "features" if in_features else "results"

    def _bus_read(self, command: Finished) -> str:
        d, detail = command.descriptor, command.completion["detail"]
        if command.operation == Operation.LOAD:
            return "chunk"
        if d["entry_lo"] <= detail < d["entry_lo"] + 16 * d["entries"]:
            return "entries"
        return "features" if command.operation in STEPS else "image"

    def _bus_write(self, command: Finished) -> str:
        return "image" if command.operation == Operation.SAVE else "result"

    def _hazard(self, command: Finished) -> str:
        """What the entry at fault and an earlier one do to the slot."""
        slot, at = command.completion["detail"], command.completion["entry"]
        if command.operation in STEPS and slot in [entry["slot"] for entry in command.entries[:at]]:
            return "encoder"
        if command.operation == Operation.DECODE:
            pairs = [(e["source"] if e["kind"] == Kind.TOKEN else -1, e["destination"]) for e in command.entries]
        elif command.operation == Operation.COPY:
            pairs = [(entry["slot"], entry["second"]) for entry in command.entries]
        else:
            return "written twice"
        written = slot in [pair[1] for pair in pairs[:at]]
        if pairs[at][0] == slot and written:
            return "read after written"
        return "written twice" if written else "written after read"

    def _bad_slot(self, command: Finished) -> str:
        slot = command.completion["detail"]
        if slot >= max(self.slot_numbers):
            return "beyond"
        return "ended" if command.operation in STEPS and self._slots.ended(slot) else "free"
