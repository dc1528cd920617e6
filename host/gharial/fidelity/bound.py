# SPDX-License-Identifier: Apache-2.0
"""The error that a program may have, and the refusal of one that has more (docs/quantisation.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from gharial.errors import BadInput
from gharial.fidelity.compare import Comparison, Recording, compare
from gharial.floating.network import FloatNetwork
from gharial.program import Program

T = TypeVar("T")

LEAST_SQNR = 20.0
"""dB, of the logits (of joint_enc, where an encoder is all there is)."""

LEAST_AGREEMENT = 0.8
"""Share of joint evaluations at which the best class is the float model's."""

FEWEST = 50
"""Joint evaluations that a share is asked of; of fewer it says too little."""

RECORDINGS = 4
VECTORS = 134  # of each recording: some four seconds


@dataclass(frozen=True)
class Verdict:
    """What a program was measured to be.

    Attributes:
        tensor: what is looked at: the logits; joint_enc of a network that has nothing behind it.
        sqnr: of that tensor, dB; None where it is exact.
        agreement: share of joint evaluations with the float model's best class.
        evaluations: how many they were.
    """

    tensor: str
    sqnr: float | None
    agreement: float
    evaluations: int

    @property
    def good(self) -> bool:
        """Whether the bound holds."""
        agrees = self.evaluations < FEWEST or self.agreement >= LEAST_AGREEMENT
        return agrees and (self.sqnr is None or self.sqnr >= LEAST_SQNR)

    def as_json(self) -> dict[str, Any]:
        """The object that `gharial compile --json` shows as `fidelity`."""
        sqnr = None if self.sqnr is None or not math.isfinite(self.sqnr) else round(self.sqnr, 2)
        return {
            "tensor": self.tensor,
            "sqnr_db": sqnr,
            "agreement": self.agreement,
            "evaluations": self.evaluations,
            "good": self.good,
        }

    def __str__(self) -> str:
        sqnr = "no noise in" if self.sqnr is None else f"{self.sqnr:.1f} dB in"
        same = (
            f", best class the same in {100 * self.agreement:.1f} % of {self.evaluations}" if self.evaluations else ""
        )
        return f"{sqnr} {self.tensor}{same}"


def sample(recordings: Sequence[T]) -> list[T]:
    """Some of the recordings, spread over all."""
    count = min(RECORDINGS, len(recordings))
    return [recordings[int(at)] for at in np.linspace(0, len(recordings) - 1, count).round()]


def output_of(program: Program) -> str:
    """The tensor that a program is there for: an encoder of given vectors has no logits to speak of."""
    return "joint_enc" if program.manifest["features"].get("given", False) else "logits"


def verdict(program: Program, comparison: Comparison) -> Verdict:
    """What the comparison of a program comes to."""
    output = output_of(program)
    counted = (comparison.agreement, comparison.evaluations) if output == "logits" else (1.0, 0)
    return Verdict(output, comparison.tensors[output].sqnr, *counted)


def judge(program: Program, network: FloatNetwork, recordings: Sequence[Recording]) -> Verdict:
    """Measure a program over the first seconds of recordings.

    Args:
        program: compiled from the network's checkpoint.
        network: the float model.
        recordings: a `sample` of those that it was calibrated with.
    """
    starts = [replace(recording, features=recording.features[:VECTORS]) for recording in recordings]
    return verdict(program, compare(program, network, starts, only=output_of(program)))


def require(found: Verdict, where: object) -> None:
    """Refuse a program that is too far from its checkpoint.

    Args:
        found: what was measured.
        where: the checkpoint's file.

    Raises:
        BadInput: the bound does not hold.
    """
    if not found.good:
        raise BadInput(
            "the compiled program is too far from the float model",
            where,
            found,
            f"at least {LEAST_SQNR:g} dB and {100 * LEAST_AGREEMENT:g} %",
            "see gharial compile --report DIR for where it comes from; --allow-error compiles it all the same",
        )
