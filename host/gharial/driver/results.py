# SPDX-License-Identifier: Apache-2.0
"""What decoding commands bring back, in the machine's integers, with the way to log-probabilities (numerics.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gharial.isa.commands import (
    DECODE_RESULT_HEAD,
    GREEDY_RESULT_HEAD,
    MAX_NAMED,
    UNIT_TEMPERATURE,
    Mode,
    greedy_result_bytes,
)

LSE_BITS = 16
_TEMPERATURE_BITS = 14


@dataclass(frozen=True)
class LogitScale:
    """How logits become log-probabilities.

    Attributes:
        logit_bits: fraction bits e of a logit.
        temperature: inverse temperature T, Q2.14.
    """

    logit_bits: int
    temperature: int = UNIT_TEMPERATURE

    def log_probabilities(self, logits: npt.ArrayLike, lse: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Natural logarithms of the probabilities of classes with these logits; the shapes broadcast."""
        scaled = np.asarray(logits, np.float64) * (self.temperature * 2.0 ** -(self.logit_bits + _TEMPERATURE_BITS))
        return np.asarray(scaled - np.asarray(lse, np.float64) * 2.0**-LSE_BITS)


@dataclass(frozen=True)
class DecodeForm:
    """What the DECODE commands of a search have in common, checked once.

    Attributes:
        fields: of the descriptor.
        stride: bytes of a result.
        most: entries that one command takes.
        k, mode: what a result lists.
        named: number of named classes.
        scale: the way to log-probabilities.
    """

    fields: dict[str, int]
    stride: int
    most: int
    k: int
    mode: Mode
    named: int
    scale: LogitScale


@dataclass(frozen=True, eq=False)
class DecodeResult:
    """Results of a decode batch of n entries, one row an entry. Rows of entries without a joint are zero.

    Attributes:
        lse: int32 (n,), log-sum-exp over all classes, unit 2^-16 nat.
        named: int16 (n, m), logits of the classes that the call named.
        classes: int32 (n, k), classes in order of their logits; in mode ALL all of them by number.
        logits: int16 (n, k), their logits.
        joint: bool (n,), whether the entry asked for a joint.
        scale: the way to log-probabilities.
    """

    lse: npt.NDArray[np.int32]
    named: npt.NDArray[np.int16]
    classes: npt.NDArray[np.int32]
    logits: npt.NDArray[np.int16]
    joint: npt.NDArray[np.bool_]
    scale: LogitScale

    def __len__(self) -> int:
        return len(self.lse)

    @property
    def log_probabilities(self) -> npt.NDArray[np.float64]:
        """(n, k) natural logarithms of the probabilities of `classes`."""
        return self.scale.log_probabilities(self.logits, self.lse[:, None])

    @property
    def named_log_probabilities(self) -> npt.NDArray[np.float64]:
        """(n, m) the same of the named classes."""
        return self.scale.log_probabilities(self.named, self.lse[:, None])


@dataclass(frozen=True, eq=False)
class GreedyResult:
    """What one encoder step emitted.

    Attributes:
        tokens: int32 (t,).
        logits: int16 (t,), the tokens' logits.
        lse: int32 (t,), log-sum-exp of each joint, unit 2^-16 nat.
        capped: whether the step ended because it had emitted the most symbols allowed.
        joints: joint evaluations.
        scale: the way to log-probabilities.
    """

    tokens: npt.NDArray[np.int32]
    logits: npt.NDArray[np.int16]
    lse: npt.NDArray[np.int32]
    capped: bool
    joints: int
    scale: LogitScale

    @property
    def log_probabilities(self) -> npt.NDArray[np.float64]:
        """(t,) natural logarithms of the tokens' probabilities."""
        return self.scale.log_probabilities(self.logits, self.lse)


def parse_decode(
    data: bytes,
    stride: int,
    joint: npt.NDArray[np.bool_],
    mode: Mode,
    k: int,
    named: int,
    classes: int,
    scale: LogitScale,
) -> DecodeResult:
    """Results of one DECODE command.

    Args:
        data: result bytes of all its entries, `stride` apart.
        stride: bytes from one to the next.
        joint: bool (n,), the entries that have a result.
        mode, k, named: as in the descriptor.
        classes: of the program.
        scale: the way to log-probabilities.

    Raises:
        ValueError: no device writes such a result.
    """
    n = len(joint)
    rows = np.frombuffer(data, np.uint8, n * stride).reshape(n, stride)
    rows = np.where(joint[:, None], rows, np.uint8(0))
    lse = rows[:, :4].copy().view("<i4")[:, 0].astype(np.int32)
    logits_named = rows[:, 4 : 4 + 2 * MAX_NAMED].copy().view("<i2")[:, :named].astype(np.int16)
    counts = rows[:, 12:16].copy().view("<u2")
    listed = classes if mode == Mode.ALL else k
    if (counts[joint] != (listed, 0)).any():
        raise ValueError(f"a result lists {counts[joint].tolist()[:3]} classes, not {listed}")
    body = rows[:, DECODE_RESULT_HEAD:]
    if mode == Mode.ALL:
        numbers = np.broadcast_to(np.arange(classes, dtype=np.int32), (n, classes))
        logits = body[:, : 2 * classes].copy().view("<i2").astype(np.int16)
    else:
        words = body[:, : 4 * k].copy().view("<u4")
        numbers, logits = _pairs(words)
        if (numbers >= classes).any() or (np.diff(logits[joint].astype(np.int32), axis=1) > 0).any():
            raise ValueError("a result lists a class that there is not, or classes out of order")
    return DecodeResult(lse, logits_named, numbers, logits, joint, scale)


def parse_greedy(data: bytes, entries: int, most: int, classes: int, scale: LogitScale) -> list[GreedyResult]:
    """Results of one GREEDY command of at most `most` symbols a step.

    Raises:
        ValueError: no device writes such a result.
    """
    stride = greedy_result_bytes(most)
    words = np.frombuffer(data, "<u4", entries * stride // 4).reshape(entries, stride // 4)
    results = []
    for row in words:
        count, capped, joints = int(row[0]) & 0xFFFF, bool(row[0] >> 16 & 1), int(row[1])
        if count > most or row[0] >> 17 or not count <= joints <= count + 1:
            raise ValueError(f"a result of {count} tokens and {joints} joints")
        body = row[GREEDY_RESULT_HEAD // 4 :][: 2 * count].reshape(count, 2)
        tokens, logits = _pairs(body[:, 0])
        if (tokens >= classes).any():
            raise ValueError("a token that there is not")
        lse = body[:, 1].astype(np.uint32).view(np.int32)
        results.append(GreedyResult(tokens, logits, lse, capped, joints, scale))
    return results


def _pairs(words: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int16]]:
    """Class (upper half) and logit (lower half) of words of any shape."""
    return (words >> 16).astype(np.int32), (words & 0xFFFF).astype(np.uint16).view(np.int16)


def join_decode(parts: list[DecodeResult]) -> DecodeResult:
    """The results of a batch that was sent in several commands, in order."""
    if len(parts) == 1:
        return parts[0]
    return DecodeResult(
        np.concatenate([part.lse for part in parts]),
        np.concatenate([part.named for part in parts]),
        np.concatenate([part.classes for part in parts]),
        np.concatenate([part.logits for part in parts]),
        np.concatenate([part.joint for part in parts]),
        parts[0].scale,
    )
