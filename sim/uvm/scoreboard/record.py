# SPDX-License-Identifier: Apache-2.0
"""What a command should do, as the reference device did it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gharial.isa.commands import (
    DECODE_ENTRY,
    ENCODE_ENTRY,
    GREEDY_ENTRY,
    SLOT_ENTRY,
    Flag,
    Mode,
    Operation,
    decode_result_bytes,
    greedy_result_bytes,
)
from gharial.isa.words import Record as WordRecord
from sim.reference.slots import EncoderSlot, PredictionSlot

Fields = dict[str, int]
Slot = tuple[bool, int]  # of the prediction network, number
State = dict[Slot, EncoderSlot | PredictionSlot]  # slots that are not free

RECORDS: dict[int, WordRecord] = {
    Operation.ENCODE: ENCODE_ENTRY,
    Operation.DECODE: DECODE_ENTRY,
    Operation.GREEDY: GREEDY_ENTRY,
    Operation.RESET: SLOT_ENTRY,
    Operation.FREE: SLOT_ENTRY,
    Operation.COPY: SLOT_ENTRY,
    Operation.SAVE: SLOT_ENTRY,
    Operation.RESTORE: SLOT_ENTRY,
}


@dataclass
class Record:
    """One command.

    Attributes:
        index: free-running.
        descriptor: its fields.
        entries: fields of each entry, as the list in the memory had them.
        completion: fields of the completion that is to come.
        writes: words that it writes beside the completion, by address.
        before, after: slots.
        classes: of the program, 0 if there is none.
        features: bytes of a feature vector.
    """

    index: int
    descriptor: Fields
    entries: list[Fields]
    completion: Fields
    writes: dict[int, int]
    before: State
    after: State
    classes: int = 0
    features: int = 0
    destinations: set[Slot] = field(init=False)

    def __post_init__(self) -> None:
        same = {slot: id(state) for slot, state in self.before.items()} == {
            slot: id(state) for slot, state in self.after.items()
        }
        # What is refused before anything changes has no destinations.
        self.destinations = set() if same and self.completion.get("status") else self._destinations()

    @property
    def operation(self) -> int:
        """What it does."""
        return self.descriptor["operation"]

    def _destinations(self) -> set[Slot]:
        prediction = bool(self.descriptor["flags"] & Flag.PREDICTION)
        found: set[Slot] = set()
        for entry in self.entries:
            if self.operation in (Operation.ENCODE, Operation.GREEDY):
                found.add((False, entry["slot"]))
            if self.operation == Operation.GREEDY:
                found.add((True, entry["prediction"]))
            if self.operation == Operation.DECODE:
                found.add((True, entry["destination"]))
            if self.operation in (Operation.RESET, Operation.FREE, Operation.RESTORE):
                found.add((prediction, entry["slot"]))
            if self.operation == Operation.COPY:
                found.add((prediction, entry["second"]))
        return found

    def rooms(self) -> list[tuple[int, int]]:
        """Where results may be written, (address, end), whether it succeeds or fails on the way."""
        d = self.descriptor
        base = d["result_lo"] | d["result_hi"] << 32
        if self.operation == Operation.GREEDY:
            size = greedy_result_bytes(d["k"])
        elif self.operation == Operation.DECODE and self.classes and d["mode"] != 3:
            size = decode_result_bytes(Mode(d["mode"]), d["k"], self.classes)
        else:
            return []
        return [(base + n * d["stride"], base + n * d["stride"] + size) for n in range(len(self.entries))]

    def reads(self) -> dict[str, list[tuple[int, int]]]:
        """What it reads: ranges, (address, end), by what lies there."""
        d = self.descriptor
        at = d["entry_lo"] | d["entry_hi"] << 32
        if self.operation == Operation.LOAD:
            return {"chunk": [(at, at + d["bytes"])]}
        found = {"entries": [(at, at + 16 * d["entries"])]}
        if self.operation in (Operation.ENCODE, Operation.GREEDY):
            base = d["feature_lo"] | d["feature_hi"] << 32
            found["features"] = [
                (base + e["offset"], base + e["offset"] + e["vectors"] * self.features) for e in self.entries
            ]
        return found
