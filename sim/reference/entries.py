# SPDX-License-Identifier: Apache-2.0
"""Checks of a command's fields and entries that come before any state changes (docs/isa.md, sections 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gharial.isa.commands import MAX_K, MAX_NAMED, Flag, Kind, Mode, Operation
from gharial.isa.faults import Fault, Unit
from gharial.isa.words import Record

from .machine import WORD, Machine, Refusal
from .model import ReferenceModel
from .ranking import BLOCK, BLOCK_VECTORS
from .slots import Life, SlotStore

ENTRY_BYTES = 16


def result_fields(model: ReferenceModel, d: dict[str, int]) -> None:
    """Fields of DECODE and GREEDY that lie in words 6 to 9."""
    V, k, greedy = model.classes, d["k"], d["operation"] == Operation.GREEDY
    if greedy:
        word_6 = k >= 1
    elif d["mode"] == Mode.TOP_K:
        word_6 = 1 <= k <= min(MAX_K, V)
    elif d["mode"] == Mode.FUZZY:
        word_6 = V % BLOCK == 0 and 1 <= k <= min(MAX_K, V // BLOCK_VECTORS)
    else:
        word_6 = d["mode"] == Mode.ALL
    if not word_6 or (not greedy and d["named"] > MAX_NAMED):
        raise Refusal(Fault.BAD_COMMAND, Unit.SEQUENCER, 6)
    if not greedy:
        for index, name in enumerate(named_classes(d)):
            if name >= V:
                raise Refusal(Fault.BAD_COMMAND, Unit.SEQUENCER, 7 + index // 2)
    if d["stride"] % WORD:
        raise Refusal(Fault.BAD_COMMAND, Unit.SEQUENCER, 9)


def named_classes(d: dict[str, int]) -> list[int]:
    """The classes that a DECODE names, at most four."""
    words = d["named_01"] | d["named_23"] << 32
    return [words >> 16 * index & 0xFFFF for index in range(d["named"])]


def read_entries(machine: Machine, d: dict[str, int], record: Record) -> list[dict[str, int]]:
    """The entries of a command, the list's address and CRC checked, but nothing in the entries."""
    address, count = d["entry_lo"] | d["entry_hi"] << 32, d["entries"] * ENTRY_BYTES
    machine.memory.check(address, count)
    if d["flags"] & Flag.CHECKED:
        data = machine.memory.checked_crc(address, count, d["body_crc"])
    else:
        data = machine.memory.read(address, count)
    words = np.frombuffer(data, dtype="<u4").reshape(-1, 4)
    entries = []
    for index, row in enumerate(words):
        entry = record.unpack(row)
        stray = record.stray(row)
        entry |= {"index": index, "stray": -1 if stray is None else stray}
        entries.append(entry)
    return entries


@dataclass
class Claims:
    """Slots of one kind that the entries of a command name so far."""

    sources: set[int] = field(default_factory=set)
    destinations: set[int] = field(default_factory=set)

    def claim(self, entry: int, source: int | None, destination: int | None) -> None:
        """Refuse an entry that meets an earlier one's destination, or writes what an earlier one reads."""
        for slot, taken in ((source, self.destinations), (destination, self.sources | self.destinations)):
            if slot is not None and slot in taken:
                raise Refusal(Fault.HAZARD, Unit.SEQUENCER, slot, entry)
        if source is not None:
            self.sources.add(source)
        if destination is not None:
            self.destinations.add(destination)


def check_words(entry: dict[str, int], **good: bool) -> None:
    """Refuse an entry for its first bad word; `word_0=False` says that word 0 is bad. Bits that an entry does not have
    must be zero."""
    bad = [word for word in range(ENTRY_BYTES // WORD) if not good.get(f"word_{word}", True) or word == entry["stray"]]
    if bad:
        raise Refusal(Fault.BAD_ENTRY, Unit.SEQUENCER, bad[0], entry["index"])


def need_encoder(slots: SlotStore, slot: int, lives: set[Life], entry: dict[str, int]) -> None:
    """The encoder slot exists and is in one of these conditions."""
    if slot >= slots.encoders or slots.encoder_life(slot) not in lives:
        raise Refusal(Fault.BAD_SLOT, Unit.SEQUENCER, slot, entry["index"])


def need_prediction(slots: SlotStore, slot: int, lives: set[Life], entry: dict[str, int]) -> None:
    """The prediction slot exists and is in one of these conditions."""
    if slot >= slots.predictions or slots.prediction_life(slot) not in lives:
        raise Refusal(Fault.BAD_SLOT, Unit.SEQUENCER, slot, entry["index"])


ANY = set(Life)
LIVE = {Life.LIVE}
IN_USE = {Life.LIVE, Life.ENDED}


def check_features(machine: Machine, model: ReferenceModel, d: dict[str, int], entry: dict[str, int]) -> None:
    """Where an encode or greedy entry's features lie."""
    address, count = features_range(model, d, entry)
    machine.memory.check(address, count, entry["index"])


def features_range(model: ReferenceModel, d: dict[str, int], entry: dict[str, int]) -> tuple[int, int]:
    """Address and bytes of an entry's features."""
    base = d["feature_lo"] | d["feature_hi"] << 32
    return base + entry["offset"], entry["vectors"] * model.features_padded


def check_encode(model: ReferenceModel, slots: SlotStore, entry: dict[str, int]) -> None:
    """Fields and encoder slot of an encode or greedy entry."""
    check_words(entry, word_0=1 <= entry["vectors"] <= model.stack)
    need_encoder(slots, entry["slot"], ANY if entry["reset"] else LIVE, entry)


def check_decode(model: ReferenceModel, slots: SlotStore, entry: dict[str, int], claims: Claims) -> None:
    """Fields, slots and hazards of a decode entry."""
    kind = entry["kind"]
    check_words(
        entry,
        word_0=kind in list(Kind),
        word_1=kind != Kind.NONE or entry["source"] == entry["destination"],
        word_2=kind != Kind.TOKEN or entry["token"] < model.tokens,
    )
    if not entry["no_joint"]:
        need_encoder(slots, entry["slot"], IN_USE, entry)
    if kind != Kind.START:
        need_prediction(slots, entry["source"], LIVE, entry)
    need_prediction(slots, entry["destination"], ANY, entry)
    claims.claim(entry["index"], None if kind == Kind.START else entry["source"], entry["destination"])
