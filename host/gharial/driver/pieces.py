# SPDX-License-Identifier: Apache-2.0
"""Commands ready to be sent, made of batches: checked as a whole first, then cut to what a command may carry."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from gharial.driver.entries import (
    Bytes,
    DecodeBatch,
    EncodeBatch,
    Ints,
    inside,
    no_hazard,
    pack,
    quickly_checked,
    unpack_decode,
)
from gharial.driver.layout import ENTRY_BYTES, staging_bytes
from gharial.driver.piece import Limits, Piece
from gharial.driver.results import DecodeForm, DecodeResult, GreedyResult, LogitScale, parse_decode, parse_greedy
from gharial.errors import BadRequest
from gharial.isa.commands import (
    DECODE_ENTRY,
    ENCODE_ENTRY,
    GREEDY_ENTRY,
    MAX_K,
    MAX_NAMED,
    SLOT_ENTRY,
    Flag,
    Kind,
    Mode,
    Operation,
    decode_result_bytes,
    greedy_result_bytes,
)
from gharial.program import Program
from gharial.program.inspect import slot_bytes

_FUZZY_BLOCK, _FUZZY_DEPTH = 256, 8  # classes of a block, and those of which one survives (numerics.md, section 9)
_MAX_TEMPERATURE = (1 << 16) - 1


class Builder:
    """Makes commands for one program under the limits of one device."""

    def __init__(self, program: Program, limits: Limits) -> None:
        self.limits = limits
        header = program.header
        self.stack, self.feature_bytes = header["vectors"], header["feature_bytes"]
        self.count = int(program.manifest["features"]["count"])
        self.classes, self.tokens, self.logit_bits = header["classes"], header["tokens"], header["logit_bits"]
        self.slot_bytes = {kind: slot_bytes(header, program.config, kind) for kind in ("encoder", "prediction")}

    def _cut(self, count: int, entry_bytes: int) -> Iterator[slice]:
        """Slices of a batch: as many entries as a command may carry, `entry_bytes` of staging each."""
        if not count:
            raise BadRequest("a batch without entries")
        one = staging_bytes(entry_bytes)
        if one > self.limits.most:
            raise BadRequest(
                f"one entry does not fit the staging memory: needs {one} bytes, found {self.limits.most}; "
                "ask for less, or use a device with a larger window"
            )
        room = max(self.limits.preferred, one) - staging_bytes(0)
        size = min(self.limits.entries, room // entry_bytes)
        for start in range(0, count, size):
            yield slice(start, min(start + size, count))

    def _flags(self, *others: Flag) -> int:
        return sum(others) | (Flag.CHECKED if self.limits.checked else 0)

    def encode(self, batch: EncodeBatch) -> list[Piece]:
        """ENCODE commands.

        Raises:
            BadRequest: an entry out of range, or two on one slot.
        """
        self._check_encode(batch)
        per_entry = ENTRY_BYTES + self.stack * self.feature_bytes
        pieces = []
        for cut in self._cut(len(batch), per_entry):
            columns, payload = self._encode_columns(batch, cut)
            words = pack(ENCODE_ENTRY, cut.stop - cut.start, **columns)
            piece = Piece(Operation.ENCODE, {"flags": self._flags()}, words.tobytes(), payload, first=cut.start)
            piece.encoder = _tuple(batch.slot[cut])
            pieces.append(piece)
        return pieces

    def greedy(
        self, batch: EncodeBatch, most: int, temperature: int, take: Callable[[int, list[GreedyResult]], None]
    ) -> list[Piece]:
        """GREEDY commands; `take` is given the first entry's index and the results of each.

        Raises:
            BadRequest: an entry or argument out of range, or two entries on one slot.
        """
        if not 1 <= most <= 255:
            raise BadRequest(f"most symbols a step out of range: found {most}, expected 1..255")
        self._check_encode(batch)
        inside("prediction slot", batch.prediction, self.limits.prediction)
        no_hazard("prediction", batch.prediction)
        scale = self._scale(temperature)
        stride = greedy_result_bytes(most)
        pieces = []
        for cut in self._cut(len(batch), ENTRY_BYTES + self.stack * self.feature_bytes + stride):
            count = cut.stop - cut.start
            columns, payload = self._encode_columns(batch, cut)
            words = pack(GREEDY_ENTRY, count, **columns, prediction=batch.prediction[cut])
            fields = {"flags": self._flags(), "k": most, "temperature": temperature, "stride": stride}

            def done(data: bytes, first: int = cut.start, count: int = count) -> None:
                take(first, parse_greedy(data, count, most, self.classes, scale))

            piece = Piece(Operation.GREEDY, fields, words.tobytes(), payload, count * stride, cut.start, take=done)
            piece.encoder, piece.prediction = _tuple(batch.slot[cut]), _tuple(batch.prediction[cut])
            pieces.append(piece)
        return pieces

    def _check_encode(self, batch: EncodeBatch) -> None:
        shape = (len(batch), self.stack, self.count)
        if batch.features.shape != shape or batch.features.dtype != np.int8:
            raise BadRequest(f"features must be int8 {shape}, found {batch.features.dtype} {batch.features.shape}")
        inside("encoder slot", batch.slot, self.limits.encoder)
        inside("bank", batch.bank, 2)
        inside("feature vectors less 1", batch.vectors - 1, self.stack)
        no_hazard("encoder", batch.slot)

    def _encode_columns(self, batch: EncodeBatch, cut: slice) -> tuple[dict[str, np.ndarray], bytes]:
        """Columns of encode entries, and their features, padded to whole vectors and whole steps."""
        given = batch.features[cut]
        padded = np.zeros((len(given), self.stack, self.feature_bytes), np.int8)
        padded[:, :, : self.count] = given
        payload = padded.tobytes()
        step = self.stack * self.feature_bytes
        offsets = np.arange(len(given), dtype=np.int64) * step
        columns: dict[str, np.ndarray] = {
            "slot": batch.slot[cut],
            "reset": batch.reset[cut],
            "bank": batch.bank[cut],
            "vectors": batch.vectors[cut],
            "offset": offsets,
        }
        if self.limits.checked:
            lengths = batch.vectors[cut] * self.feature_bytes
            spans = zip(offsets.tolist(), lengths.tolist(), strict=True)
            columns["crc"] = np.array([zlib.crc32(payload[at : at + size]) for at, size in spans], np.int64)
        return columns, payload

    def _scale(self, temperature: int) -> LogitScale:
        if not 1 <= temperature <= _MAX_TEMPERATURE:
            found = f"found {temperature}, expected 1..{_MAX_TEMPERATURE} (16384 is 1.0)"
            raise BadRequest(f"inverse temperature out of range: {found}")
        return LogitScale(self.logit_bits, temperature)

    def decode(
        self,
        batch: DecodeBatch,
        k: int,
        mode: Mode,
        named: Sequence[int],
        temperature: int,
        take: Callable[[DecodeResult], None],
    ) -> list[Piece]:
        """DECODE commands; `take` is given the results of each, in order.

        Raises:
            BadRequest: an entry or argument out of range, or entries in each other's way.
        """
        form = self.decode_form(k, mode, named, temperature)
        stride = form.stride
        self._check_decode(batch)
        pieces = []
        for cut in self._cut(len(batch), ENTRY_BYTES + stride):
            count = cut.stop - cut.start
            kind, starts = batch.kind[cut], batch.kind[cut] == Kind.START
            words = pack(
                DECODE_ENTRY,
                count,
                slot=np.where(batch.joint[cut], batch.encoder[cut], 0),
                bank=batch.bank[cut],
                kind=kind,
                no_joint=~batch.joint[cut],
                source=np.where(starts, 0, batch.source[cut]),
                destination=batch.destination[cut],
                token=np.where(kind == Kind.TOKEN, batch.token[cut], 0),
            )

            def done(data: bytes, joint: np.ndarray = batch.joint[cut]) -> None:
                take(parse_decode(data, stride, joint, mode, k, len(named), self.classes, form.scale))

            piece = Piece(
                Operation.DECODE, dict(form.fields), words.tobytes(), b"", count * stride, cut.start, take=done
            )
            # NONE changes nothing, so a failure costs nothing either.
            piece.prediction = _tuple(batch.destination[cut][kind != Kind.NONE])
            pieces.append(piece)
        return pieces

    def decode_form(self, k: int, mode: Mode, named: Sequence[int], temperature: int) -> DecodeForm:
        """What DECODE commands of this kind have in common.

        Raises:
            BadRequest: an argument is out of range, or not even one entry fits.
        """
        self._check_decode_arguments(k, mode, named)
        scale = self._scale(temperature)
        stride = decode_result_bytes(mode, k, self.classes)
        classes = [*named, *[0] * (MAX_NAMED - len(named))]
        fields = {
            "flags": self._flags(),
            "k": k,
            "mode": mode,
            "named": len(named),
            "temperature": temperature,
            "named_01": classes[0] | classes[1] << 16,
            "named_23": classes[2] | classes[3] << 16,
            "stride": stride,
        }
        most = next(self._cut(self.limits.entries, ENTRY_BYTES + stride)).stop
        return DecodeForm(fields, stride, most, k, mode, len(named), scale)

    def decode_bytes(self, form: DecodeForm, entries: Bytes, take: Callable[[bytes], None]) -> list[Piece]:
        """DECODE commands of entries as the ISA has them; `take` is given the result bytes of each, in order.

        Raises:
            BadRequest: an entry that is none, is out of range, or in another's way.
        """
        quick = quickly_checked(entries, self.limits.encoder, self.limits.prediction, self.tokens)
        if quick is not None and len(entries) <= form.most:
            return [self._decode_piece(form, entries, 0, tuple(quick), take)]
        batch = unpack_decode(entries)
        self._check_decode(batch)
        pieces = []
        for cut in self._cut(len(batch), ENTRY_BYTES + form.stride):
            stepped = _tuple(batch.destination[cut][batch.kind[cut] != Kind.NONE])
            pieces.append(self._decode_piece(form, entries[cut], cut.start, stepped, take))
        return pieces

    def _decode_piece(
        self, form: DecodeForm, entries: Bytes, first: int, stepped: tuple[int, ...], take: Callable[[bytes], None]
    ) -> Piece:
        joint = unpack_decode(entries).joint if self.limits.checked else None  # the entries may be written over

        def done(data: bytes) -> None:
            if joint is not None:  # raises where the link has damaged them, so that they are read again
                parse_decode(data, form.stride, joint, form.mode, form.k, form.named, self.classes, form.scale)
            take(data)

        size = len(entries) * form.stride
        piece = Piece(Operation.DECODE, dict(form.fields), entries.tobytes(), b"", size, first, take=done)
        piece.prediction = stepped
        return piece

    def _check_decode_arguments(self, k: int, mode: Mode, named: Sequence[int]) -> None:
        most = min(MAX_K, self.classes)
        if mode == Mode.FUZZY:
            if self.classes % _FUZZY_BLOCK:
                raise BadRequest(f"fuzzy top-k needs a multiple of {_FUZZY_BLOCK} classes, found {self.classes}")
            most = min(most, self.classes // _FUZZY_DEPTH)
        if not 1 <= k <= most:
            raise BadRequest(f"k out of range: found {k}, expected 1..{most}")
        if len(named) > MAX_NAMED:
            raise BadRequest(f"too many named classes: found {len(named)}, at most {MAX_NAMED}")
        for name in named:
            if not 0 <= name < self.classes:
                raise BadRequest(f"named class out of range: found {name}, expected 0..{self.classes - 1}")

    def _check_decode(self, batch: DecodeBatch) -> None:
        inside("kind", batch.kind, len(Kind))
        inside("bank", batch.bank, 2)
        inside("encoder slot", np.where(batch.joint, batch.encoder, 0), self.limits.encoder)
        reads = batch.kind != Kind.START
        inside("source slot", np.where(reads, batch.source, 0), self.limits.prediction)
        inside("destination slot", batch.destination, self.limits.prediction)
        inside("token", np.where(batch.kind == Kind.TOKEN, batch.token, 0), self.tokens)
        moved = (batch.kind == Kind.NONE) & (batch.source != batch.destination)
        if moved.any():
            raise BadRequest(f"entry {int(np.argmax(moved))}: without a prediction step source must be destination")
        no_hazard("prediction", batch.destination, batch.source, reads)

    def slots(self, operation: Operation, kind: str, first: Ints, second: Ints | None = None) -> list[Piece]:
        """RESET, FREE or COPY commands on encoder or prediction slots.

        Raises:
            BadRequest: a slot out of range, or entries in each other's way.
        """
        limit = self.limits.encoder if kind == "encoder" else self.limits.prediction
        inside(f"{kind} slot", first, limit)
        targets = first
        if second is not None:
            inside(f"{kind} slot", second, limit)
            no_hazard(kind, second, first)
            targets = second
        else:
            no_hazard(kind, first)
        pieces = []
        for cut in self._cut(len(first), ENTRY_BYTES):
            words = pack(SLOT_ENTRY, cut.stop - cut.start, slot=first[cut], second=0 if second is None else second[cut])
            piece = Piece(operation, {"flags": self._slot_flags(kind)}, words.tobytes(), first=cut.start)
            _set_targets(piece, kind, _tuple(targets[cut]))
            pieces.append(piece)
        return pieces

    def save(self, kind: str, slots: Ints, take: Callable[[int, list[bytes]], None]) -> list[Piece]:
        """SAVE commands; `take` is given the first entry's index and the slots' bytes of each."""
        inside(f"{kind} slot", slots, self.limits.encoder if kind == "encoder" else self.limits.prediction)
        size = self.slot_bytes[kind]
        pieces = []
        for cut in self._cut(len(slots), ENTRY_BYTES + size):
            count = cut.stop - cut.start
            words = pack(SLOT_ENTRY, count, slot=slots[cut], offset=np.arange(count) * size)

            def done(data: bytes, first: int = cut.start) -> None:
                take(first, [data[at : at + size] for at in range(0, len(data), size)])

            fields = {"flags": self._slot_flags(kind)}
            pieces.append(Piece(Operation.SAVE, fields, words.tobytes(), b"", count * size, cut.start, take=done))
        return pieces

    def restore(self, kind: str, slots: Ints, images: Sequence[bytes]) -> list[Piece]:
        """RESTORE commands; every image has the size of a slot."""
        inside(f"{kind} slot", slots, self.limits.encoder if kind == "encoder" else self.limits.prediction)
        no_hazard(kind, slots)
        size = self.slot_bytes[kind]
        pieces = []
        for cut in self._cut(len(slots), ENTRY_BYTES + size):
            count = cut.stop - cut.start
            words = pack(SLOT_ENTRY, count, slot=slots[cut], offset=np.arange(count) * size)
            payload = b"".join(images[cut])
            piece = Piece(Operation.RESTORE, {"flags": self._slot_flags(kind)}, words.tobytes(), payload)
            piece.first, piece.restores = cut.start, True
            _set_targets(piece, kind, _tuple(slots[cut]))
            pieces.append(piece)
        return pieces

    def _slot_flags(self, kind: str) -> int:
        return self._flags(Flag.PREDICTION) if kind == "prediction" else self._flags()


def _tuple(slots: np.ndarray) -> tuple[int, ...]:
    return tuple(int(slot) for slot in slots)


def _set_targets(piece: Piece, kind: str, slots: tuple[int, ...]) -> None:
    if kind == "encoder":
        piece.encoder = slots
    else:
        piece.prediction = slots
