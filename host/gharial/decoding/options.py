# SPDX-License-Identifier: Apache-2.0
"""Settings of the beam search, checked (docs/decoding.md, section 1)."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields
from enum import StrEnum
from numbers import Integral

from gharial.errors import BadInput

MAX_WIDTH = 32
MAX_SYMBOLS = 255
MAX_EXPANSIONS = 65536
MAX_PENALTY = 20.0
MAX_SCALE = 1000.0
TEMPERATURE_ONE = 1 << 14
_MAX_TEMPERATURE = 65535


class EosStrategy(StrEnum):
    """What becomes of the end-of-sequence token's probability (docs/decoding.md, section 3)."""

    NONE = "none"
    IGNORE = "ignore"
    BLANK = "blank"
    PREDICT = "predict"


@dataclass(frozen=True)
class DecoderOptions:
    """Settings, each as docs/decoding.md, section 1, has it.

    Attributes:
        width: 1 to 32, hypotheses kept at the end of a step.
        temperature: logits are divided by it; 0.25 to 16384, applied by the device as an inverse in units of 2^-14.
        max_symbols: 1 to 255, tokens of a hypothesis in one step.
        max_expansions: evaluations of a stream in one step, 1 to 65536; None: 4 width + max_symbols.
        topk_threshold: nats below the best class that a candidate may be; negative: none; 0 is refused.
        score_threshold: nats below the best mean that a hypothesis may be; negative: none; 0 is refused.
        final_limit_s: seconds that a final may be held up; negative: none; 0 is refused.
        blank_penalty: -20 to 20, taken off blank's logit once divided by the temperature.
        ngram_scale: weight of the n-gram's ln p, -1000 to 1000; None: the checkpoint's.
        eos: strategy for the end-of-sequence token.
        eos_alpha: above 0, factor of its log-probability with PREDICT.
        eos_beta: 0 to 1, probability that it must exceed with PREDICT.
        merge_lone_marks: a lone word mark at the start counts as no text.

    Raises:
        BadInput: a setting is out of its range; names it.
    """

    width: int = 4
    temperature: float = 1.4
    max_symbols: int = 8
    max_expansions: int | None = None
    topk_threshold: float = 1.5
    score_threshold: float = 0.4
    final_limit_s: float = 1.25
    blank_penalty: float = 0.0
    ngram_scale: float | None = None
    eos: EosStrategy = EosStrategy.NONE
    eos_alpha: float = 1.0
    eos_beta: float = 0.0
    merge_lone_marks: bool = False

    def __post_init__(self) -> None:
        whole = {"width": MAX_WIDTH, "max_symbols": MAX_SYMBOLS}
        if self.max_expansions is not None:
            whole["max_expansions"] = MAX_EXPANSIONS
        for name, most in whole.items():
            object.__setattr__(self, name, _whole(name, getattr(self, name), 1, most))
        _real("temperature", self.temperature, TEMPERATURE_ONE / _MAX_TEMPERATURE, TEMPERATURE_ONE)
        for name in ("topk_threshold", "score_threshold", "final_limit_s"):
            value = _real(name, getattr(self, name))
            if value == 0:
                raise BadInput("a threshold of 0 leaves nothing", name, 0, "above 0, or negative for none")
        _real("blank_penalty", self.blank_penalty, -MAX_PENALTY, MAX_PENALTY)
        if self.ngram_scale is not None:
            _real("ngram_scale", self.ngram_scale, -MAX_SCALE, MAX_SCALE)
        if not isinstance(self.eos, str) or self.eos not in list(EosStrategy):
            raise BadInput("no such strategy", "eos", self.eos, ", ".join(EosStrategy))
        object.__setattr__(self, "eos", EosStrategy(self.eos))
        if _real("eos_alpha", self.eos_alpha) <= 0:
            raise BadInput("setting is out of its range", "eos_alpha", self.eos_alpha, "above 0")
        _real("eos_beta", self.eos_beta, 0.0, 1.0)
        if not isinstance(self.merge_lone_marks, bool):
            raise BadInput("setting is no truth value", "merge_lone_marks", self.merge_lone_marks, "true or false")

    @property
    def expansions(self) -> int:
        """`max_expansions`, or what it is when it is not given."""
        return 4 * self.width + self.max_symbols if self.max_expansions is None else self.max_expansions

    @property
    def inverse_temperature(self) -> int:
        """T of a DECODE command, Q2.14."""
        return max(1, math.floor(TEMPERATURE_ONE / self.temperature + 0.5))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of all settings."""
        return tuple(field.name for field in fields(cls))


def _whole(name: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise BadInput("setting is out of its range", name, value, f"a whole number from {least} to {most}")
    return int(value)


def _real(name: str, value: object, least: float = -math.inf, most: float = math.inf) -> float:
    wanted = "a finite number" if least == -math.inf else f"a number from {least:.4g} to {most:.6g}"
    # Compared first: a whole number of any length is an int, but not always a float.
    finite = isinstance(value, int | float) and abs(value) <= sys.float_info.max
    if isinstance(value, bool) or not isinstance(value, int | float) or not finite:
        raise BadInput("setting is no number", name, value, wanted)
    if not least <= value <= most:
        raise BadInput("setting is out of its range", name, value, wanted)
    return float(value)
