# SPDX-License-Identifier: Apache-2.0
"""Commands that have to be refused, among others that do not notice."""

from __future__ import annotations

import numpy as np

from gharial.isa.commands import DECODE_ENTRY, ENCODE_ENTRY, GREEDY_ENTRY, SLOT_ENTRY, Flag, Kind, Mode, Operation
from gharial.isa.words import Record
from sim.uvm.sequences.base import BenchSequence
from sim.uvm.sequences.host import CHECKED, TINY, Host

END = TINY.window_bytes
SLOT_OPERATIONS = (Operation.RESET, Operation.FREE, Operation.COPY, Operation.SAVE, Operation.RESTORE)
ALL_OPERATIONS = (Operation.ENCODE, Operation.DECODE, Operation.GREEDY, *SLOT_OPERATIONS)
BEYOND = 999


def packed(record: Record, word: int = 0, bits: int = 0, **fields: int) -> bytes:
    """An entry, with bits set in a word that no field has."""
    words = record.pack(**fields)
    words[word] |= np.uint32(bits)
    return words.tobytes()


class Refused(BenchSequence):
    """Needs a program of at least two vectors a step. Slot 0 of both kinds is live, encoder slot 1 has ended."""

    async def body(self) -> None:
        host = self.host
        full = host.header["vectors"]
        step = {"slot": 0, "reset": 1, "prediction": 0, "features": self.features(full)}
        await self.post(host.steps(Operation.GREEDY, [step]))
        await self.post(host.steps(Operation.ENCODE, [{"slot": 1, "reset": 1, "features": self.features(1)}]))
        for case in self._cases(host):
            await self.post(case())
            if self.chance(0.2):
                await self.flush()
                await self.interrupts()
            if self.chance(0.3):
                token = {"slot": 0, "kind": Kind.TOKEN, "token": 0, "source": 0, "destination": 2}
                await self.post(host.decode([token], True))
        await self.flush()
        await self.census()

    def _cases(self, host: Host) -> list:  # type: ignore[type-arg]
        commands: list[tuple[int, bytes, dict[str, int]]] = [
            (99, b"", {}), (0, b"", {}),
            (Operation.NOP, b"", {"crc": 1}), (Operation.NOP, b"", {"flags": 64}),
            (Operation.START, b"", {"flags": int(Flag.IN_PLACE)}),
            (Operation.DECODE, b"", {"k": 0}), (Operation.DECODE, b"", {"k": 1, "mode": Mode.FUZZY}),
            (Operation.DECODE, b"", {"k": 1, "named": 5}), (Operation.DECODE, b"", {"k": 1, "mode": 3}),
            (Operation.DECODE, b"", {"k": 1, "named": 1, "named_01": BEYOND}),
            (Operation.DECODE, b"", {"k": 1, "named": 3, "named_23": BEYOND}),
            (Operation.GREEDY, b"", {"k": 1, "stride": 2}), (Operation.GREEDY, b"", {"k": 0}),
        ]  # fmt: skip
        for operation in ALL_OPERATIONS:
            commands += [
                (operation, bytes(32), {"k": 1, "body_crc": 1}),
                (operation, b"", {"k": 1, "entries": 2, "entry_lo": END - 16}),
                (operation, b"", {"k": 1, "entries": 65}),
            ]
        commands += self._entries()
        return [
            lambda c=c: host.command(c[0], c[1], self.chance(0.7), **self._flagged(c[2]))  # type: ignore[misc]
            for c in commands
        ]

    def _flagged(self, fields: dict[str, int]) -> dict[str, int]:
        """With an interrupt now and then."""
        flags = fields.get("flags", CHECKED)
        return fields | {"flags": flags | int(Flag.INTERRUPT) if self.chance(0.3) else flags}

    def _entries(self) -> list[tuple[int, bytes, dict[str, int]]]:
        full = self.host.header["vectors"]
        found: list[tuple[int, bytes, dict[str, int]]] = []
        for operation, record in ((Operation.ENCODE, ENCODE_ENTRY), (Operation.GREEDY, GREEDY_ENTRY)):
            more = {"k": 1, "result_lo": 8192, "stride": 16} if operation == Operation.GREEDY else {}

            def step(word: int = 0, bits: int = 0, record: Record = record, **fields: int) -> bytes:
                return packed(record, word, bits, **({"vectors": full} | fields))

            found += [(operation, entries, {"feature_lo": 4096} | more) for entries in (
                step(vectors=0), step(vectors=full + 1), step(3, 1 << 31), step(0, 1 << 21),
                step(slot=BEYOND, reset=1), step(slot=1), step(slot=4), step() + step(),
                step(offset=END), step(offset=2),
            )]  # fmt: skip
        found.append((Operation.GREEDY, packed(GREEDY_ENTRY, vectors=full), {"k": 1, "result_lo": END}))
        token = {"kind": Kind.TOKEN, "source": 0, "destination": 2}
        found += [(Operation.DECODE, entries, {"k": 1, "result_lo": 8192, "stride": 20}) for entries in (
            packed(DECODE_ENTRY, kind=3), packed(DECODE_ENTRY, kind=Kind.NONE, source=0, destination=2),
            packed(DECODE_ENTRY, **token, token=BEYOND), packed(DECODE_ENTRY, 3, 1, **token),
            packed(DECODE_ENTRY, slot=4, **token), packed(DECODE_ENTRY, slot=BEYOND, **token),
            packed(DECODE_ENTRY, **(token | {"source": 6})), packed(DECODE_ENTRY, **(token | {"destination": BEYOND})),
            packed(DECODE_ENTRY, **token) * 2,
            packed(DECODE_ENTRY, kind=Kind.TOKEN, destination=1) + packed(DECODE_ENTRY, kind=Kind.START),
            packed(DECODE_ENTRY, kind=Kind.START) + packed(DECODE_ENTRY, kind=Kind.TOKEN, destination=1),
        )]  # fmt: skip
        found.append((Operation.DECODE, packed(DECODE_ENTRY, **token), {"k": 1, "result_lo": END - 4}))
        for operation in SLOT_OPERATIONS:
            for flags in (0, int(Flag.PREDICTION)):
                found += [(operation, entries, {"flags": flags, "result_lo": 8192}) for entries in (
                    packed(SLOT_ENTRY, slot=BEYOND), packed(SLOT_ENTRY, 1, 1 << 16), packed(SLOT_ENTRY, 3, 1),
                )]  # fmt: skip
        twice = packed(SLOT_ENTRY, second=3) * 2
        found += [(o, twice, {"flags": 0}) for o in (Operation.RESET, Operation.FREE, Operation.COPY)]
        for flags in (0, int(Flag.PREDICTION)):
            for seconds in ((3, 0), (0, 3)):
                pairs = b"".join(packed(SLOT_ENTRY, slot=0, second=second) for second in seconds)
                found.append((Operation.COPY, pairs, {"flags": flags}))
        found += [(o, packed(SLOT_ENTRY, offset=END), {}) for o in (Operation.SAVE, Operation.RESTORE)]
        found += [(o, packed(SLOT_ENTRY, slot=4), {}) for o in (Operation.COPY, Operation.SAVE)]
        return found
