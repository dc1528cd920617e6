# SPDX-License-Identifier: Apache-2.0
"""Samples commands: what they were, what they had, and what came of them."""

from __future__ import annotations

from gharial.isa.commands import Flag, Kind, Mode, Operation
from sim.uvm.coverage.group import CoverGroup
from sim.uvm.coverage.plan import SLOTS, STREAMS
from sim.uvm.ring.finished import Finished
from sim.uvm.ring.items import Fields

UNIT_T, MOST_T = 1 << 14, 0xFFFF
MOST_K = 33


def name_of(operation: int) -> str | None:
    """Its name, or None for an unknown one."""
    return Operation(operation).name if operation in list(Operation) else None


class CommandCoverage:
    """Groups on commands.

    Args:
        groups: all groups, by name.
    """

    def __init__(self, groups: dict[str, CoverGroup]) -> None:
        self._groups = groups
        self.stack, self.classes, self.prediction_slots = 0, 0, 0  # of the current program

    def _hit(self, group: str, *parts: object) -> None:
        self._groups[group].hit(", ".join(str(part) for part in parts))

    def finished(self, command: Finished) -> None:
        """One command."""
        if not command.whole:
            return
        name, d = name_of(command.operation), command.descriptor
        if name is None:
            self._hit("commands", "unknown", "refused")
            return
        self._hit("commands", name, "done" if command.done else "refused")
        ahead = "2 and more" if command.ahead >= 2 else command.ahead
        self._groups["rings"].hit(f"fetched ahead: {ahead}")
        if command.ahead:
            self._succession(command.older, command.operation)
        if not command.done:
            return
        self._hit("flags", "interrupt" if d["flags"] & Flag.INTERRUPT else "no interrupt")
        if name not in STREAMS + SLOTS:
            return
        self._hit("flags", name, "checked" if d["flags"] & Flag.CHECKED else "unchecked")
        if name in SLOTS:
            self._hit("flags", name, "prediction" if d["flags"] & Flag.PREDICTION else "encoder")
        self._batch(name, len(command.entries))
        if name in ("ENCODE", "GREEDY"):
            for entry in command.entries:
                self._groups["encoding"].hit(f"{entry['vectors']} of {self.stack}")
                self._hit("entry flags", name, "reset" if entry["reset"] else "goes on", f"bank {entry['bank']}")
        if name == "GREEDY":
            self._greedy(command)
        if name == "DECODE":
            self._decode(d, command.entries)

    def _succession(self, older: int, younger: int) -> None:
        names = [name_of(operation) for operation in (older, younger)]
        kinds = [n if n in STREAMS else "slots" if n in SLOTS else None for n in names]
        if None not in kinds:
            self._hit("succession", *kinds)

    def _batch(self, name: str, count: int) -> None:
        size = str(count)
        if name in SLOTS:
            size = size if count < 2 else "2 and more"
        elif count > 2:
            size = "3 to 7" if count < 8 else "8 and more"
        self._hit("batches", name, size)
        if name == "DECODE" and count == min(self.prediction_slots, 64):
            self._hit("batches", name, "all that fit")

    def _greedy(self, command: Finished) -> None:
        d = command.descriptor
        for at in range(len(command.entries)):
            word = command.words[d["result_lo"] + at * d["stride"]]
            tokens, capped = word & 0xFFFF, word >> 16
            if capped:
                self._hit("greedy", "capped at one" if d["k"] == 1 else "capped")
            if tokens != d["k"]:
                self._hit("greedy", ("no token", "one token")[tokens] if tokens < 2 else "several tokens")

    def _decode(self, d: Fields, entries: list[Fields]) -> None:
        sources = [entry["source"] for entry in entries if entry["kind"] == Kind.TOKEN]
        if len(set(sources)) < len(sources):
            self._hit("decode kinds", "two from one slot")
        for entry in entries:
            joint = "no joint" if entry["no_joint"] else "joint"
            self._hit("decode kinds", Kind(entry["kind"]).name.lower(), joint)
            if entry["kind"] == Kind.TOKEN:
                in_place = entry["source"] == entry["destination"]
                self._hit("decode kinds", "in place" if in_place else "from another slot")
            if not entry["no_joint"]:
                self._hit("decode kinds", f"bank {entry['bank']}")
        if all(entry["no_joint"] for entry in entries):
            return
        if d["mode"] == Mode.ALL:
            self._hit("results", "all", "odd" if self.classes % 2 else "even")
        elif d["k"] == MOST_K:
            self._hit("results", "top 33")
        else:
            self._hit("results", "top all" if d["k"] == self.classes else "top 1" if d["k"] == 1 else "top few")
        self._hit("results", "named", d["named"])
        exact = {0: "0", UNIT_T: "1", MOST_T: "most"}
        self._hit("results", f"T {exact.get(d['temperature'], 'other')}")
