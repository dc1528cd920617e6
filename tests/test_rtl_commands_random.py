# SPDX-License-Identifier: Apache-2.0
"""Random commands on the RTL and on the reference device: the same completions, results and states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import program, random_dims
from rtl_pair import NONE, START, TOKEN, Pair, pair_for

from gharial.isa.commands import Flag, Mode, Operation
from gharial.isa.faults import Fault

reference = pytest.importorskip("sim.reference", reason="needs a source checkout")

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


class Commands:
    """Draws commands; what the twin says of each tells which slots are live, so that most of them are good."""

    def __init__(self, rng: np.random.Generator, pair: Pair, slots: Any) -> None:
        self.rng, self.pair, self.store = rng, pair, slots
        self.classes = pair.header["classes"]
        self.images: dict[bool, list[bytes]] = {False: [], True: []}
        self.outcomes: dict[int, int] = {}

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def several(self, most: int, of: int) -> list[int]:
        """Different numbers below `of`; now and then one twice."""
        found = self.rng.permutation(of)[: self.number(1, most + 1)].tolist()
        if len(found) > 1 and self.chance(0.02):
            found[-1] = found[0]
        return [int(n) for n in found]

    def live(self, prediction: bool) -> list[int]:
        store = self.store()
        life = store.prediction_life if prediction else store.encoder_life
        return [s for s in range(PREDICTIONS if prediction else ENCODERS) if life(s).name == "LIVE"]

    def command(self) -> None:
        """Post one."""
        names, weights = list(WEIGHTS), np.array(list(WEIGHTS.values()), float)
        operation = Operation(int(self.rng.choice(names, p=weights / weights.sum())))
        flags = (Flag.CHECKED if self.chance(0.7) else 0) | (Flag.INTERRUPT if self.chance(0.1) else 0)
        if operation == Operation.NOP:
            done = self.pair.post(operation, flags=flags)
        elif operation == Operation.DECODE:
            done = self.decode(flags)
        elif operation in (Operation.ENCODE, Operation.GREEDY):
            done = self.steps(operation, flags)
        else:
            done = self.slots(operation, flags)
        self.outcomes[done["status"]] = self.outcomes.get(done["status"], 0) + 1

    def steps(self, operation: Operation, flags: int) -> dict[str, int]:
        entries = []
        encoders = self.several(ENCODERS, ENCODERS)
        predictions = [int(n) for n in self.rng.permutation(PREDICTIONS)]
        full, live, live_predictions = self.pair.header["vectors"], self.live(False), self.live(True)
        for slot, prediction in zip(encoders, predictions, strict=False):
            good = slot in live and (operation == Operation.ENCODE or prediction in live_predictions)
            reset = self.chance(0.15) if good else self.chance(0.96)
            vectors = full if self.chance(0.85) else self.number(1, full + 1)
            entry: dict[str, Any] = {"slot": slot, "reset": int(reset), "bank": self.number(0, 2)}
            entry["features"] = self.rng.integers(-128, 128, (vectors, self.pair.header["feature_bytes"]))
            if operation == Operation.GREEDY:
                entry["prediction"] = prediction
            if self.chance(0.01):
                entry["crc"] = 1  # noticed if flags say so
            entries.append(entry)
        more = {"k": self.number(1, 9), "temperature": self.number(0, 1 << 16)}
        return self.pair.steps(operation, entries, flags=flags, **(more if operation == Operation.GREEDY else {}))

    def decode(self, flags: int) -> dict[str, int]:
        store, live = self.store(), self.live(True)
        encoders = [s for s in range(ENCODERS) if store.encoder_life(s).name != "FREE"] or [0]
        entries = []
        free = self.several(PREDICTIONS, PREDICTIONS)
        for destination in free:
            kind = int(self.rng.choice([NONE, TOKEN, TOKEN, START]))
            sources = [s for s in live if s not in free] + ([destination] if destination in live else [])
            if (kind == NONE and destination not in live) or (kind == TOKEN and not sources):
                kind = START if self.chance(0.96) else kind
            source = destination
            if kind == TOKEN:
                source = int(self.rng.choice(sources)) if sources else self.number(0, PREDICTIONS)
            elif kind == START:
                source = self.number(0, 99)  # nobody looks at it
            entries.append({
                "slot": int(self.rng.choice(encoders)), "bank": self.number(0, 2), "kind": kind, "source": source,
                "destination": destination, "token": self.number(0, self.classes - (kind == TOKEN)),
                "no_joint": int(self.chance(0.3)),
            })  # fmt: skip
        mode = Mode.ALL if self.chance(0.3) else Mode.TOP_K
        named = self.rng.integers(0, self.classes, 4)
        fields = {
            "k": self.number(1, min(33, self.classes) + 1),
            "mode": mode,
            "named": self.number(0, 5),
            "named_01": int(named[0] | named[1] << 16),
            "named_23": int(named[2] | named[3] << 16),
            "temperature": self.number(0, 1 << 16),
        }
        return self.pair.decode(entries, flags=flags, **fields)

    def slots(self, operation: Operation, flags: int) -> dict[str, int]:
        prediction = self.chance(0.5)
        count, live = PREDICTIONS if prediction else ENCODERS, self.live(prediction)
        numbers: list[Any] = self.several(3, count)
        if operation == Operation.SAVE and self.chance(0.9):
            numbers = live[:3]
        if operation == Operation.FREE:
            numbers = numbers[:1]
        if operation == Operation.COPY:
            sources = live if live and self.chance(0.9) else list(range(count))
            targets = [n for n in numbers if n not in sources] or numbers[:1]
            numbers = [(int(self.rng.choice(sources)), n) for n in targets]
        image = b""
        if operation == Operation.RESTORE:
            size = self.pair.slot_bytes(prediction)
            for _ in numbers:
                kept = self.images[prediction]
                state = self.rng.integers(-100, 100, size).astype(np.int8).tobytes()
                image += kept[self.number(0, len(kept))] if kept and self.chance(0.8) else state
        done = self.pair.slots(operation, numbers, prediction, flags, image)
        if operation == Operation.SAVE and done["status"] == Fault.NONE:
            (address, size), step = self.pair.pending[-1].rooms[0], self.pair.slot_bytes(prediction)
            data = self.pair.twin.device.read_memory(address, size)
            self.images[prediction] = [data[at : at + step] for at in range(0, size, step)]
        return done


@pytest.mark.parametrize("name", ["tiny", "tiny-batch"])
@pytest.mark.parametrize("number", range(6))
def test_random_commands(number: int, name: str, seed: int) -> None:
    """Several entries a command, several commands on their way; the RTL begins at any time."""
    rng = np.random.default_rng([seed, number])
    dims = random_dims(rng)
    print(f"model: {dims}")
    p = program(int(rng.integers(1 << 30)), name, dims, float(rng.uniform(-1, 4)))
    twin = reference.ReferenceDevice(p.config, p.manifest)
    pair = pair_for(p, twin, seed)
    commands = Commands(rng, pair, lambda: twin._machine.slots)
    batch = 0
    while batch < 25 or (commands.outcomes.get(Fault.NONE, 0) <= 60 and batch < 250):
        for _ in range(int(rng.integers(1, 9))):
            commands.command()
            if rng.random() < 0.5:
                pair.ring()
                pair.rtl.device.advance(int(rng.integers(0, 3000)))
        pair.flush()
        if batch % 5 == 4:
            pair.compare_slots(range(ENCODERS), range(PREDICTIONS))
        batch += 1
    print(f"outcomes: {commands.outcomes}")
    assert commands.outcomes[Fault.NONE] > 60
    pair.close()
