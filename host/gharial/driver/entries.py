# SPDX-License-Identifier: Apache-2.0
"""Entries of encode, decode and greedy batches: one by one for convenience, or as arrays for many streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gharial.errors import BadRequest
from gharial.isa.commands import DECODE_ENTRY, Kind
from gharial.isa.words import Record

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_BANK, _KIND, _NO_JOINT = (DECODE_ENTRY.fields[name] for name in ("bank", "kind", "no_joint"))
_DECODE_BITS = 0xFFFF | 1 << _BANK.lsb | 3 << _KIND.lsb | 1 << _NO_JOINT.lsb


@dataclass(frozen=True, eq=False)
class EncodeEntry:
    """One encoder step of one stream.

    Attributes:
        slot: encoder slot.
        features: int8 (vectors, features), 1 to `stack` vectors; fewer than `stack` end the slot.
        bank: 0 or 1, where the output goes.
        reset: whether the slot starts anew.
    """

    slot: int
    features: npt.NDArray[np.int8]
    bank: int = 0
    reset: bool = False


@dataclass(frozen=True, eq=False)
class GreedyEntry(EncodeEntry):
    """One encoder step with greedy decoding; `prediction` is the stream's prediction slot."""

    prediction: int = 0


@dataclass(frozen=True)
class DecodeEntry:
    """One step of the prediction network and one joint evaluation, or one of the two.

    Attributes:
        encoder: encoder slot, looked at only with `joint`.
        bank: 0 or 1, which output of it.
        kind: input of the prediction step: a token, the start of a sequence, or none (the stored output is used).
        source: prediction slot to start from; ignored for START.
        destination: prediction slot of the result; for NONE it must be the source.
        token: for TOKEN.
        joint: whether to evaluate the joint.
    """

    encoder: int = 0
    bank: int = 0
    kind: Kind = Kind.TOKEN
    source: int = 0
    destination: int = 0
    token: int = 0
    joint: bool = True


@dataclass(frozen=True, eq=False)
class EncodeBatch:
    """n encode or greedy entries as arrays.

    Attributes:
        slot: (n,) encoder slots.
        features: int8 (n, stack, features); vectors that an entry lacks are not looked at.
        vectors: (n,) feature vectors of each.
        bank: (n,) 0 or 1.
        reset: bool (n,).
        prediction: (n,) prediction slots, for greedy.
    """

    slot: Ints
    features: npt.NDArray[np.int8]
    vectors: Ints
    bank: Ints
    reset: npt.NDArray[np.bool_]
    prediction: Ints

    def __len__(self) -> int:
        return len(self.slot)

    @classmethod
    def of(cls, entries: Sequence[EncodeEntry], stack: int, count: int) -> EncodeBatch:
        """Single entries put together, for steps of `stack` vectors of `count` features.

        Raises:
            BadRequest: features of another shape or type.
        """
        features = np.zeros((len(entries), stack, count), np.int8)
        vectors = []
        for index, entry in enumerate(entries):
            given = np.asarray(entry.features)
            if given.dtype != np.int8 or given.ndim != 2 or given.shape[1] != count or not 1 <= len(given) <= stack:
                raise BadRequest(
                    f"entry {index}: features must be int8 (1..{stack}, {count}), found {given.dtype} {given.shape}"
                )
            features[index, : len(given)] = given
            vectors.append(len(given))
        return cls(
            _ints([e.slot for e in entries]),
            features,
            _ints(vectors),
            _ints([e.bank for e in entries]),
            np.array([e.reset for e in entries], np.bool_),
            _ints([e.prediction if isinstance(e, GreedyEntry) else 0 for e in entries]),
        )


@dataclass(frozen=True, eq=False)
class DecodeBatch:
    """n decode entries as arrays: encoder, bank, kind, source, destination, token integers (n,), joint bool (n,)."""

    encoder: Ints
    bank: Ints
    kind: Ints
    source: Ints
    destination: Ints
    token: Ints
    joint: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def of(cls, entries: Sequence[DecodeEntry]) -> DecodeBatch:
        """Single entries put together."""
        return cls(
            _ints([e.encoder for e in entries]),
            _ints([e.bank for e in entries]),
            _ints([e.kind for e in entries]),
            _ints([e.source for e in entries]),
            _ints([e.destination for e in entries]),
            _ints([e.token for e in entries]),
            np.array([e.joint for e in entries], np.bool_),
        )


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def unpack_decode(entries: Bytes) -> DecodeBatch:
    """Decode entries as the ISA has them, (n, 16) bytes, as arrays.

    Raises:
        BadRequest: they are no such entries, or a bit that has no meaning is set.
    """
    if entries.dtype != np.uint8 or entries.ndim != 2 or entries.shape[1] != DECODE_ENTRY.bytes:
        expected = f"uint8 (n, {DECODE_ENTRY.bytes})"
        raise BadRequest(f"decode entries must be {expected}, found {entries.dtype} {entries.shape}")
    words = np.ascontiguousarray(entries).view("<u4").astype(np.int64)
    first, slots, token = words[:, 0], words[:, 1], words[:, 2]
    if (first & ~_DECODE_BITS).any() or words[:, 3].any():
        raise BadRequest("a decode entry sets bits that have no meaning")
    return DecodeBatch(
        encoder=first & 0xFFFF,
        bank=first >> _BANK.lsb & 1,
        kind=first >> _KIND.lsb & 3,
        source=slots & 0xFFFF,
        destination=slots >> 16,
        token=token,
        joint=(first >> _NO_JOINT.lsb & 1) == 0,
    )


def pack(record: Record, count: int, **columns: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """`count` records of 32-bit words at once, uint32 (count, words); values were checked to fit."""
    out = np.zeros((count, record.words), np.int64)
    for name, values in columns.items():
        where = record.fields[name]
        out[:, where.word] |= np.asarray(values, np.int64) << where.lsb
    return out.astype("<u4")


def inside(what: str, values: Ints, limit: int) -> None:
    """Raise BadRequest unless all values are in 0 .. limit - 1."""
    bad = (values < 0) | (values >= limit)
    if bad.any():
        index = int(np.argmax(bad))
        raise BadRequest(f"entry {index}: {what} out of range: found {values[index]}, expected 0..{limit - 1}")


def no_hazard(
    kind: str, destinations: Ints, sources: Ints | None = None, reads: npt.NDArray[np.bool_] | None = None
) -> None:
    """Raise BadRequest where entries are in each other's way: all of them take effect at once.

    Args:
        kind: of the slots, for the error.
        destinations: slots written, (n,).
        sources: slots read, (n,).
        reads: bool (n,), the entries that read at all; None: all.
    """
    order = np.argsort(destinations, kind="stable")
    ordered = destinations[order]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if twice.size:
        a, b = sorted(int(i) for i in order[twice[0] : twice[0] + 2])
        raise BadRequest(f"HAZARD: entries {a} and {b} both write {kind} slot {destinations[a]}")
    if sources is None or not destinations.size:
        return
    at = np.minimum(np.searchsorted(ordered, sources), len(ordered) - 1)
    writer = order[at]
    clash = (ordered[at] == sources) & (writer != np.arange(len(sources)))
    if reads is not None:
        clash &= reads
    if clash.any():
        index = int(np.argmax(clash))
        raise BadRequest(
            f"HAZARD: entry {index} reads {kind} slot {sources[index]}, which entry {int(writer[index])} writes"
        )


def quickly_checked(entries: Bytes, encoder: int, prediction: int, tokens: int) -> list[int] | None:
    """A look at decode entries as the ISA has them that is cheap for the usual few, and may take good ones for bad.

    Args:
        entries: (n, 16) bytes.
        encoder, prediction: slots there are.
        tokens: rows of the embedding.

    Returns:
        Destinations of the entries with a prediction step; None if something may be wrong with the entries.
    """
    if entries.dtype != np.uint8 or entries.ndim != 2 or entries.shape[1] != DECODE_ENTRY.bytes:
        return None
    sources, destinations, stepped = [], [], []
    for first, slots, token, nothing in np.ascontiguousarray(entries).view("<u4").tolist():
        source, destination, kind = slots & 0xFFFF, slots >> 16, first >> _KIND.lsb & 3
        if nothing or first & ~_DECODE_BITS or first & 0xFFFF >= encoder or token >= tokens or kind == len(Kind):
            return None
        if source >= prediction or destination >= prediction:
            return None
        sources.append(source)
        destinations.append(destination)
        if kind != Kind.NONE:
            stepped.append(destination)
        elif source != destination:
            return None
    written = set(destinations)
    if not written or len(written) < len(destinations):
        return None
    alone = all(a == b or a not in written for a, b in zip(sources, destinations, strict=True))
    return stepped if alone else None
