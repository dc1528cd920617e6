# SPDX-License-Identifier: Apache-2.0
"""Commands, each in two halves: all that can be refused, then what it does (docs/isa.md, sections 5 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from gharial.isa.commands import (
    DECODE_ENTRY,
    ENCODE_ENTRY,
    GREEDY_ENTRY,
    MAX_NAMED,
    SLOT_ENTRY,
    Flag,
    Kind,
    Mode,
    Operation,
    decode_result_bytes,
    greedy_result_bytes,
)
from gharial.isa.faults import Fault, Unit

from .entries import (
    ANY,
    IN_USE,
    LIVE,
    Claims,
    check_decode,
    check_encode,
    check_features,
    check_words,
    features_range,
    named_classes,
    need_encoder,
    need_prediction,
    read_entries,
    result_fields,
)
from .loader import load, start
from .machine import Machine, Refusal
from .model import EncoderState, ReferenceModel
from .numerics import Array
from .ranking import fuzzy, top_k
from .slots import (
    EncoderSlot,
    Life,
    PredictionSlot,
    SlotStore,
    pack_encoder,
    pack_prediction,
    slot_bytes,
    unpack_encoder,
    unpack_prediction,
)

DEFINED_FLAGS = 0x1F
Fields = dict[str, int]


@dataclass
class Counts:
    """Prediction steps and joint evaluations of a command."""

    predictions: int = 0
    joints: int = 0


def execute(machine: Machine, d: Fields) -> Counts:
    """Run one command whose descriptor has passed its CRC.

    Raises:
        Refusal: the command failed.
    """
    counts = Counts()
    if d["operation"] not in list(Operation):
        raise Refusal(Fault.BAD_COMMAND, Unit.HOST, 0)
    operation = Operation(d["operation"])
    in_place = d["flags"] & Flag.IN_PLACE
    misplaced = (in_place and operation != Operation.LOAD) or (d["flags"] & Flag.UNCHECKED and not in_place)
    if d["flags"] & ~DEFINED_FLAGS or misplaced:
        raise Refusal(Fault.BAD_COMMAND, Unit.SEQUENCER, 0)
    if operation == Operation.LOAD:
        load(machine, d)
    elif operation == Operation.START:
        start(machine, d)
    elif operation != Operation.NOP:
        if machine.model is None or machine.slots is None:
            raise Refusal(Fault.NO_PROGRAM, Unit.SEQUENCER, 0)
        if d["entries"] > machine.config.max_entries:
            raise Refusal(Fault.BAD_COMMAND, Unit.SEQUENCER, 0)
        HANDLERS[operation](machine, machine.model, machine.slots, d, counts)
    return counts


@contextmanager
def freed_on_fault(slots: SlotStore, encoders: list[int], predictions: list[int]) -> Iterator[None]:
    """Within it, a refusal leaves these destination slots free."""
    try:
        yield
    except Refusal:
        for slot in encoders:
            slots.encoder.pop(slot, None)
        for slot in predictions:
            slots.prediction.pop(slot, None)
        raise


def result_address(d: Fields, entry: Fields) -> int:
    """Where an entry's result goes."""
    return (d["result_lo"] | d["result_hi"] << 32) + entry["index"] * d["stride"]


def read_features(machine: Machine, model: ReferenceModel, d: Fields, entries: list[Fields]) -> list[Array]:
    """The feature vectors of every entry, int8 (vectors, padded features), their CRCs checked."""
    found = []
    for entry in entries:
        address, count = features_range(model, d, entry)
        if d["flags"] & Flag.CHECKED:
            data = machine.memory.checked_crc(address, count, entry["crc"], entry["index"])
        else:
            data = machine.memory.read(address, count)
        found.append(np.frombuffer(data, dtype="i1").astype(np.int64).reshape(entry["vectors"], -1))
    return found


def encode_entry(machine: Machine, model: ReferenceModel, slots: SlotStore, entry: Fields, x8: Array) -> Array:
    """One encoder step of an entry; the encoder output."""
    old: EncoderState = model.encoder_state() if entry["reset"] else slots.encoder[entry["slot"]].state
    state, enc = model.encode_step(old, x8, entry["bank"], machine.trace)
    life = Life.LIVE if entry["vectors"] == model.stack else Life.ENDED
    slots.encoder[entry["slot"]] = EncoderSlot(state, life)
    return enc


def encode(machine: Machine, model: ReferenceModel, slots: SlotStore, d: Fields, counts: Counts) -> None:
    """ENCODE."""
    entries = read_entries(machine, d, ENCODE_ENTRY)
    claims = Claims()
    for entry in entries:
        check_encode(model, slots, entry)
        claims.claim(entry["index"], None, entry["slot"])
        check_features(machine, model, d, entry)

    with freed_on_fault(slots, [entry["slot"] for entry in entries], []):
        for entry, x8 in zip(entries, read_features(machine, model, d, entries), strict=True):
            encode_entry(machine, model, slots, entry, x8)


def decode(machine: Machine, model: ReferenceModel, slots: SlotStore, d: Fields, counts: Counts) -> None:
    """DECODE."""
    result_fields(model, d)
    entries = read_entries(machine, d, DECODE_ENTRY)
    claims = Claims()
    for entry in entries:
        check_decode(model, slots, entry, claims)
        if not entry["no_joint"]:
            count = decode_result_bytes(Mode(d["mode"]), d["k"], model.classes)
            machine.memory.check(result_address(d, entry), count, entry["index"])

    for entry in entries:
        if entry["kind"] != Kind.NONE:
            starts = entry["kind"] == Kind.START
            old = None if starts else slots.prediction[entry["source"]].state
            state = model.predict(old, None if starts else entry["token"], machine.trace)
            slots.prediction[entry["destination"]] = PredictionSlot(state)
            counts.predictions += 1
        if not entry["no_joint"]:
            enc = slots.encoder[entry["slot"]].state.banks[entry["bank"]]
            pred = slots.prediction[entry["destination"]].state.joint_pred
            logits = model.joint(enc, pred, machine.trace)
            counts.joints += 1
            machine.memory.write(result_address(d, entry), decode_result(machine, model, d, logits))


def decode_result(machine: Machine, model: ReferenceModel, d: Fields, logits: Array) -> bytes:
    """The result of a decode entry."""
    if d["mode"] == Mode.ALL:
        listed, shown = model.classes, logits
        body = logits.astype("<i2").tobytes()
        body += bytes(-len(body) % 4)
    else:
        if d["mode"] == Mode.FUZZY:
            best, shown = fuzzy(logits, d["k"])
        else:
            best, shown = top_k(logits, d["k"]), logits
        listed = len(best)
        body = b"".join(pair_word(j, int(logits[j])) for j in best)
    lse = model.lse(shown, d["temperature"], machine.trace)
    named = [int(shown[j]) for j in named_classes(d)]
    named += [0] * (MAX_NAMED - len(named))
    head = np.array(lse, "<i4").tobytes() + np.array(named, "<i2").tobytes() + np.array([listed, 0], "<u2").tobytes()
    return head + body


def pair_word(j: int, logit: int) -> bytes:
    """Class in the upper half, logit in the lower."""
    return (j << 16 | logit & 0xFFFF).to_bytes(4, "little")


def greedy(machine: Machine, model: ReferenceModel, slots: SlotStore, d: Fields, counts: Counts) -> None:
    """GREEDY."""
    result_fields(model, d)
    entries = read_entries(machine, d, GREEDY_ENTRY)
    encoders, predictions = Claims(), Claims()
    for entry in entries:
        check_encode(model, slots, entry)
        need_prediction(slots, entry["prediction"], ANY if entry["reset"] else LIVE, entry)
        encoders.claim(entry["index"], None, entry["slot"])
        predictions.claim(entry["index"], None, entry["prediction"])
        check_features(machine, model, d, entry)
        machine.memory.check(result_address(d, entry), greedy_result_bytes(d["k"]), entry["index"])

    with freed_on_fault(slots, [e["slot"] for e in entries], [e["prediction"] for e in entries]):
        for entry, x8 in zip(entries, read_features(machine, model, d, entries), strict=True):
            enc = encode_entry(machine, model, slots, entry, x8)
            if entry["reset"]:
                state = model.predict(None, None, machine.trace)
                counts.predictions += 1
            else:
                state = slots.prediction[entry["prediction"]].state
            emission = model.greedy_step(enc, state, d["k"], d["temperature"], machine.trace)
            counts.predictions += len(emission.tokens)
            counts.joints += emission.joints
            slots.prediction[entry["prediction"]] = PredictionSlot(emission.state)
            words = [len(emission.tokens) | int(emission.capped) << 16, emission.joints]
            data = np.array(words, "<u4").tobytes()
            for token, logit, lse in emission.tokens:
                data += pair_word(token, logit) + np.array(lse, "<i4").tobytes()
            machine.memory.write(result_address(d, entry), data)


def slot_command(machine: Machine, model: ReferenceModel, slots: SlotStore, d: Fields, counts: Counts) -> None:
    """RESET, FREE, COPY, SAVE and RESTORE, of encoder slots or prediction slots."""
    operation = Operation(d["operation"])
    entries = read_entries(machine, d, SLOT_ENTRY)
    kind = SlotKind(machine, model, slots, bool(d["flags"] & Flag.PREDICTION))
    base = d["result_lo"] | d["result_hi"] << 32
    claims = Claims()
    for entry in entries:
        check_words(entry)
        first, second, index = entry["slot"], entry["second"], entry["index"]
        lives = {Operation.COPY: IN_USE, Operation.SAVE: LIVE}.get(operation, ANY)
        kind.need(first, lives, entry)
        if operation == Operation.COPY:
            kind.need(second, ANY, entry)
            claims.claim(index, first, second)
        elif operation == Operation.SAVE:
            claims.claim(index, first, None)
        else:
            claims.claim(index, None, first)
        if operation in (Operation.SAVE, Operation.RESTORE):
            machine.memory.check(base + entry["offset"], kind.bytes, index)

    for entry in entries:
        first, second, address = entry["slot"], entry["second"], base + entry["offset"]
        if operation == Operation.RESET:
            kind.reset(first)
        elif operation == Operation.FREE:
            kind.free(first)
        elif operation == Operation.COPY:
            kind.copy(first, second)
        elif operation == Operation.SAVE:
            machine.memory.write(address, kind.save(first))
        else:
            kind.restore(first, machine.memory.read(address, kind.bytes))


class SlotKind:
    """Slot commands on one kind of slot."""

    def __init__(self, machine: Machine, model: ReferenceModel, slots: SlotStore, prediction: bool) -> None:
        self.model, self.slots, self.prediction = model, slots, prediction
        a, c = ("pred_a_units", "pred_c_units") if prediction else ("enc_a_units", "enc_c_units")
        self.bytes = slot_bytes(machine.config, model.header[a], model.header[c])

    def need(self, slot: int, lives: set[Life], entry: Fields) -> None:
        """Refuse a slot that is not in one of these conditions."""
        (need_prediction if self.prediction else need_encoder)(self.slots, slot, lives, entry)

    def reset(self, slot: int) -> None:
        """Live, all zero."""
        if self.prediction:
            self.slots.prediction[slot] = PredictionSlot(self.model.prediction_state())
        else:
            self.slots.encoder[slot] = EncoderSlot(self.model.encoder_state())

    def free(self, slot: int) -> None:
        """Free; nothing of its state is left."""
        if self.prediction:
            self.slots.prediction.pop(slot, None)
        else:
            self.slots.encoder.pop(slot, None)

    def copy(self, first: int, second: int) -> None:
        """The second becomes as the first. States are never changed in place, so both may share one."""
        if self.prediction:
            old = self.slots.prediction[first]
            self.slots.prediction[second] = PredictionSlot(old.state, old.life)
        else:
            from_ = self.slots.encoder[first]
            self.slots.encoder[second] = EncoderSlot(from_.state, from_.life)

    def save(self, slot: int) -> bytes:
        """The slot's image."""
        if self.prediction:
            return pack_prediction(self.slots.prediction[slot].state)
        return pack_encoder(self.slots.encoder[slot].state)

    def restore(self, slot: int, image: bytes) -> None:
        """Live, from an image."""
        if self.prediction:
            self.slots.prediction[slot] = PredictionSlot(unpack_prediction(self.model, image))
        else:
            self.slots.encoder[slot] = EncoderSlot(unpack_encoder(self.model, image))


HANDLERS: dict[Operation, Callable[[Machine, ReferenceModel, SlotStore, Fields, Counts], None]] = {
    Operation.ENCODE: encode,
    Operation.DECODE: decode,
    Operation.GREEDY: greedy,
    Operation.RESET: slot_command,
    Operation.FREE: slot_command,
    Operation.COPY: slot_command,
    Operation.SAVE: slot_command,
    Operation.RESTORE: slot_command,
}
