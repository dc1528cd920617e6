# SPDX-License-Identifier: Apache-2.0
"""Samples how slots are used one time after another."""

from __future__ import annotations

from gharial.isa.commands import Flag, Kind, Operation
from gharial.isa.faults import Fault
from sim.uvm.coverage.group import CoverGroup
from sim.uvm.ring.finished import Finished
from sim.uvm.ring.items import Fields

Slot = tuple[bool, int]


class SlotCoverage:
    """Follows slots by the commands that were seen to succeed or fail.

    Args:
        group: the group.
    """

    def __init__(self, group: CoverGroup) -> None:
        self._group = group
        self.stack = 0  # vectors of a full step
        self.forget()

    def forget(self) -> None:
        """All slots are free: a program has started."""
        self._lives: dict[Slot, str] = {}  # live, ended, or lost to a fault; else free
        self._saved: dict[Slot, bool] = {}

    def ended(self, slot: int) -> bool:
        """Whether an encoder slot has ended."""
        return self._lives.get((False, slot)) == "ended"

    def finished(self, command: Finished) -> None:
        """One command."""
        prediction = bool(command.descriptor["flags"] & Flag.PREDICTION)
        for entry in command.entries:
            if not command.done:
                self._failed(command, entry, prediction)
            elif command.operation in (Operation.ENCODE, Operation.GREEDY):
                self._stepped(command.operation, entry)
            elif command.operation == Operation.DECODE:
                self._decoded(entry)
            else:
                self._moved(Operation(command.operation), (prediction, entry["slot"]), (prediction, entry["second"]))

    def _failed(self, command: Finished, entry: Fields, prediction: bool) -> None:
        status = command.completion["status"]
        slot = (prediction, entry["slot"])
        if status == Fault.BAD_SLOT:
            if command.operation == Operation.SAVE and self._lives.get(slot) == "freed":
                self._group.hit("freed and refused")
            named = command.completion["detail"]
            if entry["slot"] == named and self._lives.get((False, named)) == "lost":
                self._group.hit("used after its fault")
        if command.operation in (Operation.ENCODE, Operation.GREEDY) and status == Fault.CHECKSUM:
            self._lives[False, entry["slot"]] = "lost"

    def _stepped(self, operation: int, entry: Fields) -> None:
        slot = (False, entry["slot"])
        life = self._lives.get(slot)
        if entry["reset"] and life == "live":
            self._group.hit("begun anew while live")
        if entry["reset"] and life == "ended":
            self._group.hit("begun anew after its end")
        if not entry["reset"]:
            self._group.hit("goes on after a step")
        self._lives[slot] = "live" if entry["vectors"] == self.stack else "ended"
        if operation == Operation.GREEDY:
            self._lives[True, entry["prediction"]] = "live"

    def _decoded(self, entry: Fields) -> None:
        if not entry["no_joint"] and self._lives.get((False, entry["slot"])) == "ended":
            self._group.hit("decoded after its end")
        if entry["kind"] == Kind.TOKEN and self._lives.get((True, entry["source"])) == "copied":
            self._group.hit("used while copied")
        self._lives[True, entry["destination"]] = "live"

    def _moved(self, operation: Operation, slot: Slot, second: Slot) -> None:
        life = self._lives.get(slot)
        if operation == Operation.RESET:
            self._lives[slot] = "live"
        elif operation == Operation.FREE:
            self._lives[slot] = "freed"
        elif operation == Operation.COPY:
            self._lives[second] = "ended" if life == "ended" else "live"
            if life == "ended":
                self._group.hit("copied after its end")
            if slot == second:
                self._group.hit("copied to itself")
            elif slot[0]:
                self._lives[slot] = self._lives[second] = "copied"
        elif operation == Operation.SAVE:
            self._saved[slot] = True
        elif operation == Operation.RESTORE:
            if self._saved.get(slot):
                self._group.hit("saved and restored")
            if life in ("live", "copied"):
                self._group.hit("restored over a live one")
            self._lives[slot] = "live"
