# SPDX-License-Identifier: Apache-2.0
"""Random commands, most of them good: several entries each, any slots, any flags."""

from __future__ import annotations

from typing import Any

import numpy as np

from gharial.isa.commands import Flag, Kind, Mode, Operation
from sim.reference.slots import Life
from sim.uvm.ring.command_item import CommandItem
from sim.uvm.sequences.base import BenchSequence

ENCODERS, PREDICTIONS = 5, 7  # few slots, so that commands meet
WEIGHTS = {
    Operation.NOP: 1,
    Operation.ENCODE: 4,
    Operation.DECODE: 7,
    Operation.GREEDY: 7,
    Operation.RESET: 1,
    Operation.FREE: 1,
    Operation.COPY: 2,
    Operation.SAVE: 2,
    Operation.RESTORE: 2,
}


class RandomCommands(BenchSequence):
    """`commands` of them, flushed now and then.

    The reference device says which slots are live, so that most commands make sense.
    """

    commands = 20
    spoil = 0.02
    """Chance of something wrong in an entry."""

    async def body(self) -> None:
        for _ in range(self.commands):
            await self.post(self._draw())
            if self.chance(0.15):
                await self.flush(str(self.rng.choice(["pins", "poll"])))
                await self.interrupts()
        await self.flush()

    def _draw(self) -> CommandItem:
        names, weights = list(WEIGHTS), np.array(list(WEIGHTS.values()), float)
        operation = Operation(int(self.rng.choice(names, p=weights / weights.sum())))
        flags = (int(Flag.CHECKED) if self.chance(0.7) else 0) | (int(Flag.INTERRUPT) if self.chance(0.1) else 0)
        ring = self.chance(0.7)
        if operation == Operation.NOP:
            return self.host.command(operation, ring=ring, flags=flags)
        if operation == Operation.DECODE:
            return self._decode(flags, ring)
        if operation in (Operation.ENCODE, Operation.GREEDY):
            return self._steps(operation, flags, ring)
        return self._slots(operation, flags, ring)

    def _live(self, prediction: bool, life: Life | None = Life.LIVE) -> list[int]:
        """Slots of a kind that are live, or with None that are not free."""
        most = PREDICTIONS if prediction else ENCODERS
        state = self.env.scoreboard.witness.state()
        return [n for (kind, n), s in state.items() if kind == prediction and life in (None, s.life) and n < most]

    def _several(self, most: int, of: int) -> list[int]:
        found = [int(n) for n in self.rng.permutation(of)[: self.number(1, most + 1)]]
        if len(found) > 1 and self.chance(self.spoil):
            found[-1] = found[0]
        return found

    def _steps(self, operation: Operation, flags: int, ring: bool) -> CommandItem:
        entries = []
        predictions = [int(n) for n in self.rng.permutation(PREDICTIONS)]
        full, live, live_predictions = self.host.header["vectors"], self._live(False), self._live(True)
        for slot, prediction in zip(self._several(ENCODERS, ENCODERS), predictions, strict=False):
            good = slot in live and (operation == Operation.ENCODE or prediction in live_predictions)
            vectors = full if self.chance(0.85) else self.number(1, full + 1)
            entry: dict[str, Any] = {"slot": slot, "bank": self.number(0, 2), "features": self.features(vectors)}
            entry["reset"] = int(self.chance(0.15) if good else not self.chance(self.spoil))
            if operation == Operation.GREEDY:
                entry["prediction"] = prediction
            if self.chance(self.spoil / 2):
                entry["crc"] = 1  # noticed if the flags say so
            entries.append(entry)
        more = {"k": self.number(1, 6), "temperature": self.number(0, 1 << 16)}
        return self.host.steps(operation, entries, ring, flags=flags, **(more if operation == Operation.GREEDY else {}))

    def _decode(self, flags: int, ring: bool) -> CommandItem:
        classes, live = self.host.header["classes"], self._live(True)
        encoders = self._live(False, None) or [0]
        entries = []
        destinations = self._several(PREDICTIONS, PREDICTIONS)
        for destination in destinations:
            kind = int(self.rng.choice([Kind.NONE, Kind.TOKEN, Kind.TOKEN, Kind.START]))
            sources = [s for s in live if s not in destinations] + ([destination] if destination in live else [])
            if (kind == Kind.NONE and destination not in live) or (kind == Kind.TOKEN and not sources):
                kind = kind if self.chance(self.spoil) else int(Kind.START)
            source = destination
            if kind == Kind.TOKEN:
                source = int(self.rng.choice(sources)) if sources else self.number(0, PREDICTIONS)
            elif kind == Kind.START:
                source = self.number(0, 99)  # nobody looks at it
            entries.append({
                "slot": int(self.rng.choice(encoders)), "bank": self.number(0, 2), "kind": kind, "source": source,
                "destination": destination, "token": self.number(0, classes - (kind == Kind.TOKEN)),
                "no_joint": int(self.chance(0.3)),
            })  # fmt: skip
        named = self.rng.integers(0, classes, 4)
        return self.host.decode(
            entries, ring, flags=flags, k=self.number(1, min(33, classes) + 1),
            mode=Mode.ALL if self.chance(0.3) else Mode.TOP_K, named=self.number(0, 5),
            named_01=int(named[0] | named[1] << 16), named_23=int(named[2] | named[3] << 16),
            temperature=self.number(0, 1 << 16),
        )  # fmt: skip

    def _slots(self, operation: Operation, flags: int, ring: bool) -> CommandItem:
        prediction = self.chance(0.5)
        count, live = PREDICTIONS if prediction else ENCODERS, self._live(prediction)
        numbers: list[int | tuple[int, int]] = list(self._several(3, count))
        if operation == Operation.SAVE and live and not self.chance(self.spoil):
            numbers = list(live[:3])
        if operation == Operation.FREE:
            numbers = numbers[:1]
        if operation == Operation.COPY:
            sources = live if live and not self.chance(self.spoil) else list(range(count))
            targets = [n for n in numbers if n not in sources] or numbers[:1]
            numbers = [(int(self.rng.choice(sources)), int(n)) for n in targets]  # type: ignore[arg-type]
        image = b""
        if operation == Operation.RESTORE:
            image = self.rng.integers(-100, 100, len(numbers) * self.host.slot_bytes(prediction)).astype("i1").tobytes()
        return self.host.slots(operation, numbers, prediction, image, ring, flags)
