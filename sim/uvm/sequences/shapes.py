# SPDX-License-Identifier: Apache-2.0
"""Batches of every shape: no entry to as many as there are slots; every kind, mode and flag once at least."""

from __future__ import annotations

from typing import Any

from gharial.isa.commands import Flag, Kind, Mode, Operation
from sim.uvm.sequences.base import BenchSequence

MOST_ENTRIES = 64
SIZES = (0, 1, 2, 5, 9)


class Shapes(BenchSequence):
    """Directed, on whichever program is current; all commands succeed."""

    async def body(self) -> None:
        self.encoders, self.predictions = self.numbers()
        await self._slots()
        await self._steps()
        await self._decode_batches()
        await self._kinds()
        await self._results()
        await self._greedy_ends()

    def _flags(self, number: int) -> int:
        """Checked and not by turns; now and then with an interrupt."""
        return (int(Flag.CHECKED) if number % 2 else 0) | (int(Flag.INTERRUPT) if self.chance(0.2) else 0)

    async def _slots(self) -> None:
        """Every slot command with none, one and several entries, on both kinds, with and without a checksum."""
        host = self.host
        for prediction in (False, True):
            for number, count in enumerate((0, 1, 2, 3)):
                numbers = [int(n) for n in self.rng.permutation(4)[:count]]
                size = count * host.slot_bytes(prediction)
                image = self.rng.integers(-100, 100, size).astype("i1").tobytes()
                flags = self._flags(number)
                await self.post(host.slots(Operation.RESTORE, numbers, prediction, image, flags=flags))
                await self.post(host.slots(Operation.SAVE, numbers, prediction, flags=flags, ring=True))
                await self.post(host.slots(Operation.RESET, numbers[:2], prediction, flags=flags))
                pairs: list[Any] = [(n, n + 4 if self.encoders > 8 or prediction else n) for n in numbers]
                await self.post(host.slots(Operation.COPY, pairs, prediction, flags=flags))
                await self.post(host.slots(Operation.FREE, numbers[:count], prediction, flags=flags, ring=True))
        await self.flush()

    async def _steps(self) -> None:
        """ENCODE and GREEDY of every size, with both banks, going on and anew; all lengths of a step."""
        full = self.host.header["vectors"]
        for operation in (Operation.ENCODE, Operation.GREEDY):
            for number, count in enumerate(SIZES):
                for reset in (1, 0):
                    count = min(count, self.encoders, self.predictions)
                    entries: list[dict[str, Any]] = [
                        {"slot": n, "reset": reset, "bank": n % 2 ^ reset, "features": self.features(full)}
                        for n in range(count)
                    ]
                    if operation == Operation.GREEDY:
                        entries = [e | {"prediction": self.predictions - 1 - e["slot"]} for e in entries]
                    await self.post(self.host.steps(operation, entries, self.chance(0.5), flags=self._flags(number)))
        for vectors in range(1, full + 1):
            entry = {"slot": 0, "reset": 1, "features": self.features(vectors)}
            await self.post(self.host.steps(Operation.ENCODE, [entry]))
        await self.flush()

    async def _decode_batches(self) -> None:
        """DECODE of every size, as many entries as there are slots among them."""
        for number, count in enumerate((*SIZES, min(MOST_ENTRIES, self.predictions))):
            entries = [
                {"slot": 0, "kind": Kind.START, "destination": n, "no_joint": int(count > 9)}
                for n in range(min(count, self.predictions))
            ]
            await self.post(self.host.decode(entries, True, flags=self._flags(number)))
        await self.flush()

    async def _kinds(self) -> None:
        """Every kind with and without joint, in place and from another slot, two from one."""
        for joint in (0, 1):
            for kind in Kind:
                entries: list[dict[str, int]] = [{"destination": 0, "source": 0}, {"destination": 1, "source": 1}]
                if kind == Kind.TOKEN:
                    entries = [
                        {"destination": 0, "source": 0}, {"destination": 1, "source": 2},
                        {"destination": 3, "source": 2},
                    ]  # fmt: skip
                for entry in entries:
                    entry |= {"kind": kind, "no_joint": joint, "bank": entry["destination"] % 2}
                await self.post(self.host.decode(entries, True, k=2))
        await self.flush()

    async def _results(self) -> None:
        """Every list, named classes, temperatures."""
        classes = self.host.header["classes"]
        entry = {"slot": 0, "kind": Kind.NONE, "source": 1, "destination": 1}
        ranks = [1, min(2, classes), min(classes, 33)]
        for number, k in enumerate(ranks):
            await self.post(self.host.decode([entry], k=k, temperature=(0, 1 << 14, 0xFFFF)[number % 3]))
        for named in range(5):
            words = [self.number(0, classes) | self.number(0, classes) << 16 for _ in range(2)]
            fields = {"named": named, "named_01": words[0], "named_23": words[1], "temperature": self.number(1, 0xFFFF)}
            mode = Mode.ALL if named % 2 else Mode.TOP_K
            await self.post(self.host.decode([entry], True, mode=mode, **fields))
        await self.flush()

    async def _greedy_ends(self) -> None:
        """Steps that end at once, after a token or several, and at the limit: features decide, so many are tried."""
        full = self.host.header["vectors"]
        for k in (1, 2, 3, 12):
            entries = [
                {"slot": n, "reset": 1, "prediction": n, "features": self.features(full)}
                for n in range(min(5, self.encoders, self.predictions))
            ]
            await self.post(self.host.steps(Operation.GREEDY, entries, True, k=k))
        await self.flush()
