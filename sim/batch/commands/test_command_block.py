# SPDX-License-Identifier: Apache-2.0
"""Command block: random commands, good and bad, several on their way, beside the reference device; resets."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from gharial.isa import _registers as reg
from gharial.isa.commands import (
    DECODE_ENTRY,
    ENCODE_ENTRY,
    GREEDY_ENTRY,
    SLOT_ENTRY,
    Flag,
    Kind,
    Mode,
    Operation,
    decode_result_bytes,
    greedy_result_bytes,
)
from sim.batch.commands.engine import Slot
from sim.batch.commands.host import FAR, MOVES, STREAMS, Host
from sim.common import bench
from sim.common.programs import SMALL, compiled, lively
from sim.reference import ReferenceDevice

ENCODERS, PREDICTIONS = 8, 10  # that are used, so that commands meet
SLOTS: list[Slot] = [(False, n) for n in range(ENCODERS)] + [(True, n) for n in range(PREDICTIONS)]
OPERATIONS = {
    Operation.NOP: 1, Operation.ENCODE: 5, Operation.DECODE: 7, Operation.GREEDY: 7, Operation.RESET: 1,
    Operation.FREE: 1, Operation.COPY: 2, Operation.SAVE: 2, Operation.RESTORE: 2, 99: 1,
}  # fmt: skip


async def begin(dut: Any, test: str, twin: Any = None, classes: int = 0) -> Host:
    """The block with a program, of so many classes, beside the reference device or another twin."""
    await bench.start(dut)
    program = compiled(5, "tiny-batch", replace(SMALL, classes=classes), 2.0) if classes else lively("tiny-batch")
    host = Host(dut, bench.rng(test), twin or ReferenceDevice(bench.config(), program.manifest), program)
    await host.setup()
    await host.load()
    return host


class Commands:
    """Draws commands; the twin's slots tell which are live, so that most of them are good."""

    def __init__(self, host: Host) -> None:
        self.host, self.rng = host, host.rng
        self.uncertain: set[Slot] = set()  # after faults that only the block's engine has found
        self.bad_features = 0.01
        self.outcomes: dict[int, int] = {}

    def chance(self, p: float) -> bool:
        """Yes, with this probability."""
        return bool(self.rng.random() < p)

    def number(self, low: int, high: int) -> int:
        """From low to below high."""
        return int(self.rng.integers(low, high))

    def life(self, prediction: bool, *names: str) -> list[int]:
        """Slots that are in one of these conditions."""
        store: Any = self.host.twin._machine.slots  # type: ignore[attr-defined]
        life = store.prediction_life if prediction else store.encoder_life
        found = range(PREDICTIONS if prediction else ENCODERS)
        return [n for n in found if life(n).name in names and (prediction, n) not in self.uncertain]

    def several(self, most: int, of: list[int]) -> list[int]:
        """Different ones of a list; now and then one twice."""
        found = [int(n) for n in self.rng.permutation(of)[: self.number(1, most + 1)]]
        if len(found) > 1 and self.chance(0.03):
            found[-1] = found[0]
        return found

    def command(self, damage: float = 0.1, doom: float = 0.0) -> None:
        """Post one."""
        weights = np.array(list(OPERATIONS.values()), float)
        operation = int(self.rng.choice(list(OPERATIONS), p=weights / weights.sum()))
        flags = (Flag.CHECKED if self.chance(0.6) else 0) | (Flag.INTERRUPT if self.chance(0.1) else 0)
        if operation in (Operation.ENCODE, Operation.GREEDY):
            listed, fields = self.steps(operation)
        elif operation == Operation.DECODE:
            listed, fields = self.decode()
        elif operation in MOVES:
            listed, fields = self.moves(operation)
        else:
            listed, fields = b"", {}
        damaged = self.chance(damage)
        told = None
        if damaged and listed and self.chance(0.6):
            listed, damaged = self.mangled(operation, listed), False
        elif operation in (Operation.ENCODE, Operation.GREEDY) and listed and not damaged and self.chance(doom):
            flags |= Flag.CHECKED
            words = np.frombuffer(listed, "<u4").copy()
            words[4 * self.number(0, len(words) // 4) + 2] ^= 1
            told = words.tobytes()
        fields = {"flags": int(flags) | fields.pop("flags", 0)} | fields
        if told is not None and self.host.twin.read_register(reg.STATUS.offset) & 8:
            self.doomed(operation, listed, told, fields)
        else:
            done = self.host.post(operation, listed, damage=damaged, **fields)
            self.outcomes[done["status"]] = self.outcomes.get(done["status"], 0) + 1

    def doomed(self, operation: int, listed: bytes, told: bytes, fields: dict[str, int]) -> None:
        """The features are good, but the engine ends the command as the twin does that is told they are not."""
        self.host.post(operation, listed, told, **fields)

    def mangled(self, operation: int, listed: bytes) -> bytes:
        """A bit of an entry is another."""
        words = np.frombuffer(listed, "<u4").copy()
        at = self.number(0, len(words))
        bits = FAR if at % 4 == 2 and operation in MOVES else range(32)
        words[at] ^= np.uint32(1 << int(self.rng.choice(list(bits))))
        return words.tobytes()

    def steps(self, operation: int) -> tuple[bytes, dict[str, Any]]:
        """Entries and fields of ENCODE or GREEDY."""
        host, full = self.host, self.host.header["vectors"]
        live, live_predictions = self.life(False, "LIVE"), self.life(True, "LIVE")
        listed = b""
        encoders = self.several(ENCODERS, list(range(ENCODERS)))
        for slot, prediction in zip(encoders, self.rng.permutation(PREDICTIONS).tolist(), strict=False):
            good = slot in live and (operation == Operation.ENCODE or prediction in live_predictions)
            vectors = full if self.chance(0.85) else self.number(1, full + 1)
            data = self.rng.bytes(vectors * host.header["feature_bytes"]).replace(b"\x80", b"\0")
            crc = zlib.crc32(data) ^ int(self.chance(self.bad_features))
            entry = {"slot": slot, "reset": int(not good if self.chance(0.95) else good), "bank": self.number(0, 2),
                     "vectors": vectors, "offset": host.place(data), "crc": crc}  # fmt: skip
            if operation == Operation.GREEDY:
                listed += GREEDY_ENTRY.pack(**entry, prediction=int(prediction)).tobytes()
            else:
                listed += ENCODE_ENTRY.pack(**entry).tobytes()
        if operation == Operation.ENCODE:
            return listed, {}
        k = self.number(1, 5)
        stride = greedy_result_bytes(k)
        return listed, {"k": k, "stride": stride, "result_lo": host.room(stride * len(encoders))}

    def decode(self) -> tuple[bytes, dict[str, Any]]:
        """Of DECODE."""
        host, classes = self.host, self.host.header["classes"]
        live, encoders = self.life(True, "LIVE"), self.life(False, "LIVE", "ENDED") or [0]
        chosen = self.several(PREDICTIONS, list(range(PREDICTIONS)))
        listed = b""
        for destination in chosen:
            kind = int(self.rng.choice([Kind.NONE, Kind.TOKEN, Kind.TOKEN, Kind.START]))
            sources = [s for s in live if s not in chosen] + ([destination] if destination in live else [])
            if (kind == Kind.NONE and destination not in live) or (kind == Kind.TOKEN and not sources):
                kind = Kind.START if self.chance(0.96) else kind
            source = destination
            if kind == Kind.TOKEN:
                source = int(self.rng.choice(sources)) if sources else self.number(0, PREDICTIONS)
            listed += DECODE_ENTRY.pack(
                slot=int(self.rng.choice(encoders)), bank=self.number(0, 2), kind=kind, source=source,
                destination=destination, token=self.number(0, classes - (kind == Kind.TOKEN)),
                no_joint=int(self.chance(0.3)),
            ).tobytes()  # fmt: skip
        mode, k = int(self.rng.integers(0, 3)), self.number(1, min(33, classes) + 1)
        named = self.rng.integers(0, classes, 4)
        stride = decode_result_bytes(Mode(mode), k, classes)
        fields = {"k": k, "mode": mode, "named": self.number(0, 5), "named_01": int(named[0] | named[1] << 16),
                  "named_23": int(named[2] | named[3] << 16), "stride": stride}  # fmt: skip
        return listed, fields | {"result_lo": host.room(stride * len(chosen))}

    def moves(self, operation: int) -> tuple[bytes, dict[str, Any]]:
        """Of a slot command."""
        host, prediction = self.host, self.chance(0.5)
        count, live = PREDICTIONS if prediction else ENCODERS, self.life(prediction, "LIVE")
        numbers: list[Any] = self.several(3, list(range(count)))
        if operation == Operation.SAVE and self.chance(0.9):
            numbers = live[:3]
        if operation == Operation.COPY:
            sources = live if live and self.chance(0.9) else list(range(count))
            targets = [n for n in numbers if n not in sources] or numbers[:1]
            numbers = [(int(self.rng.choice(sources)), n) for n in targets]
        size, listed = host.slot_bytes(prediction), b""
        for at, entry in enumerate(numbers):
            first, second = entry if isinstance(entry, tuple) else (entry, 0)
            moved = at * size if operation in (Operation.SAVE, Operation.RESTORE) else 0
            listed += SLOT_ENTRY.pack(slot=first, second=second, offset=moved).tobytes()
        fields: dict[str, Any] = {"flags": int(Flag.PREDICTION) if prediction else 0}
        if operation == Operation.SAVE:
            fields["result_lo"] = host.room(size * len(numbers))
        if operation == Operation.RESTORE:
            image = self.rng.integers(-100, 100, size * len(numbers)).astype(np.int8).tobytes()
            fields["result_lo"] = host.place(image)
        return listed, fields


async def compare(host: Host, uncertain: set[Slot] | None = None) -> None:
    """All slots, by SAVE on both."""
    for prediction in (False, True):
        for number in range(PREDICTIONS if prediction else ENCODERS):
            if (prediction, number) not in (uncertain or set()):
                size = host.slot_bytes(prediction)
                host.post(Operation.SAVE, SLOT_ENTRY.pack(slot=number).tobytes(), flags=int(prediction),
                          result_lo=host.room(size))  # fmt: skip
            if len(host.pending) == 16:
                await host.flush()
    await host.flush()


@cocotb.test()
async def random_commands(dut: Any) -> None:
    """Completions, results and slots of the reference device, whenever the block begins and the engine ends."""
    host = await begin(dut, "random_commands")
    commands = Commands(host)
    least, good, batch = (4, 8, 0) if bench.short() else (60, 200, 0)
    while batch < least or (commands.outcomes.get(0, 0) <= good and batch < 10 * least):
        host.pace()
        for _ in range(int(host.rng.integers(1, 16))):
            commands.command()
            if host.rng.random() < 0.3:
                await host.ring()
                await ClockCycles(dut.clk_i, int(host.rng.integers(0, 2000)))
        await host.flush()
        if batch % 5 == 4:
            host.pace("free")
            await compare(host)
        batch += 1
    print(f"outcomes: {commands.outcomes}")
    assert commands.outcomes[0] > good
    assert any(blank for _, blank in host.engine.told) or bench.short()


@cocotb.test()
async def soft_resets(dut: Any) -> None:
    """At any time: slots of commands on their way are free or as some of them left them, all others as they were."""
    host = await begin(dut, "soft_resets")
    commands = Commands(host)
    freed = 0
    for _ in range(2 if bench.short() else 60):
        host.pace("free")
        for prediction, count in ((False, ENCODERS), (True, PREDICTIONS)):
            for number in range(count):
                if host.rng.random() < 0.7:
                    host.post(Operation.RESTORE, SLOT_ENTRY.pack(slot=number).tobytes(), flags=int(prediction),
                              result_lo=host.place(host.rng.bytes(host.slot_bytes(prediction)).replace(b"\x80", b"")
                                                   .ljust(host.slot_bytes(prediction), b"\0")))  # fmt: skip
                if len(host.pending) > 12:
                    await host.flush()
        await host.flush()
        host.pace()
        for _ in range(int(host.rng.integers(1, 12))):
            commands.command(0.0)
        await host.ring()
        await ClockCycles(dut.clk_i, int(host.rng.choice([50, 500, 5000]) * host.rng.random()) + 1)
        done = int(dut.completions_o.value) - (host.tail - len(host.pending))
        history, touched = host.history[done:], set[Slot]()
        for posted in host.pending[done:]:
            if posted.wanted["status"] == 0 or posted.fields["operation"] in STREAMS:
                touched |= host.written(posted)
        host.pace("free")
        await host.reset()
        held = await host.live(SLOTS)
        for slot, image in held.items():
            if slot not in touched:
                ended = image is None and not slot[0]  # that cannot be saved
                assert image == history[0].get(slot) or ended, slot
            elif image is not None:
                assert image in [h.get(slot) for h in history], slot
            freed += slot in touched and image is None
        # Begin anew: no slot is live on either.
        for prediction, count in ((False, ENCODERS), (True, PREDICTIONS)):
            listed = b"".join(SLOT_ENTRY.pack(slot=n).tobytes() for n in range(count))
            await host.do(Operation.FREE, listed, flags=int(prediction))
    assert freed or bench.short()


@cocotb.test()
async def engine_faults(dut: Any) -> None:
    """Commands that fail late, while others that need their slots have been accepted: those fail as well."""
    host = await begin(dut, "engine_faults", classes=256)
    commands = Commands(host)
    commands.bad_features = 0.0
    statuses: list[int] = []
    for _ in range(3 if bench.short() else 80):
        host.pace()
        commands.uncertain = set()
        for prediction, count in ((False, ENCODERS), (True, PREDICTIONS)):
            listed = b"".join(SLOT_ENTRY.pack(slot=n).tobytes() for n in range(count))
            host.post(Operation.RESET, listed, flags=int(prediction))
        await host.flush()
        for _ in range(int(host.rng.integers(2, 8))):
            commands.command(0.0, 0.4)
            last = host.pending[-1]
            if last.wanted["status"] in (2, 3) and last.fields["operation"] in (16, 17, 18):
                commands.uncertain |= host.written(last)  # the block may have begun it before it knew
                break
        statuses += [posted.wanted["status"] for posted in host.pending]
        await host.flush()
        await compare(host, commands.uncertain)
    assert bench.short() or {3, 6} <= set(statuses)


@cocotb.test()
async def lost_slots(dut: Any) -> None:
    """All are accepted before the oldest fails: who needs one of its slots fails at that entry, who begins one anew
    does not, and whoever goes on with that does not either."""
    host = await begin(dut, "lost_slots")
    host.pace("free")
    width, full = host.header["feature_bytes"], host.header["vectors"]
    data = bytes(width * full)
    step = {"vectors": full, "offset": host.place(data), "crc": zlib.crc32(data)}

    def greedy(*entries: dict[str, int], record: Any = GREEDY_ENTRY) -> bytes:
        return b"".join(record.pack(**(step | entry)).tobytes() for entry in entries)

    for turn in range(1 if bench.short() else 5):
        for prediction, count in ((False, ENCODERS), (True, PREDICTIONS)):
            listed = b"".join(SLOT_ENTRY.pack(slot=n).tobytes() for n in range(count))
            await host.do(Operation.RESET, listed, flags=int(prediction))
        step["offset"] = host.place(data)
        host.engine.stuck = True
        failing = greedy({"slot": 0, "prediction": 0}, {"slot": 1, "prediction": 1})
        told = greedy({"slot": 0, "prediction": 0}, {"slot": 1, "prediction": 1, "crc": 1})
        result = {"k": 1, "stride": 32, "result_lo": host.room(64)}
        host.post(Operation.GREEDY, failing, told, flags=int(Flag.CHECKED), **result)
        host.post(Operation.ENCODE, greedy({"slot": 7, "reset": 1}, {"slot": 0}, record=ENCODE_ENTRY))
        host.post(Operation.ENCODE, greedy({"slot": 1, "reset": 1}, record=ENCODE_ENTRY))
        host.post(Operation.NOP)
        lost = DECODE_ENTRY.pack(slot=2, kind=Kind.TOKEN, source=1, destination=9).tobytes()
        host.post(Operation.DECODE, lost, **result)
        host.post(Operation.GREEDY, greedy({"slot": 1, "prediction": 5}), **result)
        host.post(Operation.DECODE, DECODE_ENTRY.pack(slot=0, kind=Kind.START, destination=6).tobytes(), **result)
        wanted = [(posted.wanted["status"], posted.wanted["entry"]) for posted in host.pending]
        assert wanted == [(6, 1), (3, 1), (0, 0), (0, 0), (3, 0), (0, 0), (3, 0)]
        await host.ring()
        await ClockCycles(dut.clk_i, 3000 + 500 * turn)
        host.engine.stuck = False
        await host.flush()
        await compare(host, {(False, 7), (True, 9), (True, 6)})
