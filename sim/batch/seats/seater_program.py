# SPDX-License-Identifier: Apache-2.0
"""Random commands for the seater's bench, and what slots hold in the order of the commands."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gharial.isa.commands import Kind, Operation

from .places import Places

FEATURES = 1 << 12  # byte addresses
SLOTS = 1 << 16
MEMORY = 1 << 18
ENC_SLOTS, PRED_SLOTS = 9, 14
BAD_OPCODE, SEQUENCER = 9, 2


@dataclass
class Layout:
    """Sizes of slots and features, as the header has them."""

    places: Places
    header: dict[str, int]

    @classmethod
    def random(cls, places: Places, rng: np.random.Generator) -> Layout:
        """Small ones."""

        def some(low: int, high: int) -> int:
            return int(rng.integers(low, high + 1))

        bank, lower, upper = some(1, 3), some(0, 4), some(0, 2)
        pred_lower, pred_upper = some(0, 3), some(0, 2)
        return cls(
            places,
            {
                "feature_units": some(1, 5),
                "vectors": 2,
                "feature_unit": some(0, 40),
                "enc_a_units": some(1, 9),
                "enc_c_units": lower + 2 * bank + upper,
                "pred_a_units": some(1, 7),
                "pred_c_units": pred_lower + bank + pred_upper,
                "joint_enc_unit": lower,
                "joint_enc_units": bank,
                "joint_pred_unit": pred_lower,
                "joint_pred_units": bank,
            },
        )

    def bytes_of(self, prediction: bool) -> tuple[int, int]:
        """Bytes of a slot's A part and C part."""
        kind = "pred" if prediction else "enc"
        a, c = self.header[f"{kind}_a_units"], self.header[f"{kind}_c_units"]
        return a * self.places.unit_bytes, c * self.places.cell_bytes

    def stride(self, prediction: bool) -> int:
        """From one slot to the next."""
        return -(-sum(self.bytes_of(prediction)) // 64) * 64

    def address(self, prediction: bool, slot: int) -> int:
        """Of a slot."""
        base = SLOTS + (ENC_SLOTS * self.stride(False) if prediction else 0)
        return base + slot * self.stride(prediction)

    def bank(self, bank: int) -> slice:
        """Where a bank lies among the bytes of an encoder slot's C part."""
        size = self.header["joint_enc_units"] * self.places.cell_bytes
        first = self.header["joint_enc_unit"] * self.places.cell_bytes + bank * size
        return slice(first, first + size)

    def joint_pred(self) -> slice:
        """Where joint_pred lies in a prediction slot's C part."""
        first = self.header["joint_pred_unit"] * self.places.cell_bytes
        return slice(first, first + self.header["joint_pred_units"] * self.places.cell_bytes)


@dataclass
class Command:
    """A command that the seater is given."""

    number: int
    operation: int
    entries: list[dict[str, Any]]
    first: int
    checked: bool
    result: int
    stride: int
    fields: dict[str, int]
    bad_entry: int | None = None  # features with a wrong CRC
    bad_batch: tuple[bool, int] | None = None  # the decode thread's or not, and which of the command's batches fails
    predictions: int = 0
    joints: int = 0

    @property
    def fails(self) -> bool:
        """Whether it will not end well."""
        return self.bad_entry is not None or self.bad_batch is not None


@dataclass
class Program:
    """Makes commands, and knows which slots are in use when they are accepted.

    Args:
        layout: of slots and features.
        rng: of everything.
        mem: the device memory, for features.
        failures: the share of commands that fail.
    """

    layout: Layout
    rng: np.random.Generator
    mem: bytearray
    failures: float = 0.0
    enc_live: set[int] = field(default_factory=set)
    pred_live: set[int] = field(default_factory=set)
    commands: int = 0
    placed: int = 0
    _feature: int = 0

    def some(self, low: int, high: int) -> int:
        """A number in that range."""
        return int(self.rng.integers(low, high + 1))

    def command(self, operation: int | None = None, slots: Sequence[int] | None = None) -> Command:
        """One more: at random, or of that operation, an encoding one perhaps with those encoder slots."""
        if operation is None:
            operation = int(self.rng.choice([Operation.ENCODE, Operation.DECODE, Operation.GREEDY]))
        most = {Operation.ENCODE: ENC_SLOTS, Operation.DECODE: PRED_SLOTS, Operation.GREEDY: ENC_SLOTS}[operation]
        count = self.some(1, int(self.rng.choice([1, self.layout.places.seats, most])))
        checked = bool(self.rng.random() < 0.6)
        if operation == Operation.DECODE:
            entries = self._decode(count)
        else:
            slots = self.rng.permutation(ENC_SLOTS)[:count].tolist() if slots is None else slots
            entries = self._encode(slots, operation == Operation.GREEDY)
        command = Command(
            number=self.commands,
            operation=operation,
            entries=entries,
            first=self.placed,
            checked=checked,
            result=4 * self.some(0, 1 << 40),
            stride=4 * self.some(0, 4000),
            fields={
                "k": self.some(0, 255),
                "mode": self.some(0, 2),
                "named": self.some(0, 4),
                "named_class": self.some(0, (1 << 62) - 1),
                "temperature": self.some(0, 65535),
            },
        )
        self.commands += 1
        self.placed = (self.placed + len(entries)) % (1 << 16)
        if self.rng.random() < self.failures:
            self._fail(command)
        self._accept(command)
        return command

    def forget(self, command: Command) -> None:
        """The command has failed: what it would have written is free."""
        self.enc_live -= {entry["encoder"] for entry in command.entries if command.operation != Operation.DECODE}
        self.pred_live -= {entry["destination"] for entry in command.entries if "destination" in entry}

    def _fail(self, command: Command) -> None:
        decode = command.operation == Operation.DECODE
        if command.checked and not decode and self.rng.random() < 0.5:
            command.bad_entry = self.some(0, len(command.entries) - 1)
            command.entries[command.bad_entry]["crc"] ^= 1 << self.some(0, 31)
            return
        batches = -(-len(command.entries) // self.layout.places.seats)
        side = decode or (command.operation == Operation.GREEDY and bool(self.rng.random() < 0.5))
        command.bad_batch = side, self.some(0, batches - 1)

    def _accept(self, command: Command) -> None:
        """Slots become what the command makes them; those of one that fails are free when that shows."""
        for entry in command.entries:
            for live, slot in ((self.enc_live, entry.get("encoder")), (self.pred_live, entry.get("destination"))):
                if slot is None or (command.operation == Operation.DECODE and live is self.enc_live):
                    continue
                (live.discard if command.fails else live.add)(slot)

    def _features(self, vectors: int) -> tuple[int, int]:
        size = vectors * self.layout.header["feature_units"] * self.layout.places.unit_bytes
        offset = self._feature
        self._feature = (self._feature + size + 4 * self.some(0, 9)) % (SLOTS - FEATURES - 1024)
        self.mem[FEATURES + offset : FEATURES + offset + size] = self.rng.bytes(size)
        return offset, zlib.crc32(self.mem[FEATURES + offset : FEATURES + offset + size])

    def _encode(self, slots: Sequence[int], greedy: bool) -> list[dict[str, Any]]:
        entries = []
        for slot, pred in zip(slots, self.rng.permutation(PRED_SLOTS).tolist(), strict=False):
            live = slot in self.enc_live and (not greedy or pred in self.pred_live)
            vectors = self.some(1, self.layout.header["vectors"])
            offset, crc = self._features(vectors)
            entry = {
                "encoder": slot,
                "reset": int(not live or self.rng.random() < 0.1),
                "bank": self.some(0, 1),
                "vectors": vectors,
                "offset": offset,
                "crc": crc,
            }
            if greedy:
                entry["destination"] = pred
            entries.append(entry)
        return entries

    def _decode(self, count: int) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        destinations = self.rng.permutation(PRED_SLOTS)[:count].tolist()
        sources = sorted(self.pred_live - set(destinations))
        for slot in destinations:
            choices = [(Kind.START, slot)]
            if slot in self.pred_live:
                choices += [(Kind.NONE, slot), (Kind.TOKEN, slot)]
            if sources:
                choices += 2 * [(Kind.TOKEN, sources[self.some(0, len(sources) - 1)])]
            kind, source = choices[self.some(0, len(choices) - 1)]
            live = sorted(self.enc_live)
            entries.append(
                {
                    "encoder": live[self.some(0, len(live) - 1)] if live else 0,
                    "bank": self.some(0, 1),
                    "kind": int(kind),
                    "no_joint": int(not live or self.rng.random() < 0.2),
                    "source": source,
                    "destination": slot,
                    "token": self.some(0, 65535),
                }
            )
        return entries


def entry_words(command: Command, entry: dict[str, Any]) -> list[int]:
    """An entry as it stands in the command's list."""
    if command.operation == Operation.DECODE:
        flags = entry["bank"] << 17 | entry["kind"] << 21 | entry["no_joint"] << 23
        return [entry["encoder"] | flags, entry["source"] | entry["destination"] << 16, entry["token"], 0]
    flags = entry["reset"] << 16 | entry["bank"] << 17 | entry["vectors"] << 18
    return [entry["encoder"] | flags, entry["offset"], entry["crc"], entry.get("destination", 0)]


def check_decode(command: Command, batch: dict[str, int], entries: list[dict[str, Any]]) -> None:
    """A decode batch says of its seats and its command what it should."""
    greedy = command.operation == Operation.GREEDY
    masks = {"predicts": 0, "starts": 0, "joints": 0}
    for s, entry in enumerate(entries):
        start = bool(entry["reset"]) if greedy else entry["kind"] == Kind.START
        masks["starts"] |= start << s
        masks["predicts"] |= (start if greedy else entry["kind"] != Kind.NONE) << s
        masks["joints"] |= (greedy or not entry["no_joint"]) << s
        if not greedy and entry["kind"] == Kind.TOKEN:
            assert batch["tokens"] >> 16 * s & 0xFFFF == entry["token"]
    assert {name: batch[name] for name in masks} == masks
    assert {name: batch[name] for name in command.fields} == command.fields
    assert batch["result"] == command.result + batch["index"] * command.stride
    assert batch["result_stride"] == command.stride


class Slots:
    """What slots hold, in the order of the commands: of encoder slots, every version of the banks."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.encoders: dict[int, tuple[bytes, bytes]] = {}  # A, C without a meaning of the banks
        self.predictions: dict[int, tuple[bytes, bytes]] = {}
        self._banks: dict[tuple[int, int], list[tuple[int, bytes]]] = {}

    def zero(self, prediction: bool, slot: int) -> None:
        """Both parts become zero."""
        a, c = self._layout.bytes_of(prediction)
        (self.predictions if prediction else self.encoders)[slot] = bytes(a), bytes(c)

    def zero_banks(self, slot: int, command: int) -> None:
        """Both banks become zero with that command: a younger one may read one of them before that command has run."""
        for bank in range(2):
            where = self._layout.bank(bank)
            self.set_bank(slot, bank, command, bytes(where.stop - where.start))

    def set_bank(self, slot: int, bank: int, command: int, data: bytes) -> None:
        """What the bank holds from that command on."""
        versions = self._banks.setdefault((slot, bank), [])
        versions.append((command, data))
        versions.sort(key=lambda version: version[0])

    def bank(self, slot: int, bank: int, command: int) -> bytes:
        """What the bank holds for that command."""
        return next(data for since, data in reversed(self._banks[slot, bank]) if since <= command)
