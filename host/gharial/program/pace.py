# SPDX-License-Identifier: Apache-2.0
"""How fast a program can be at best: steps of the array and bytes read by each of its sections, out of its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gharial.isa.configs import Config
from gharial.isa.header import HEADER
from gharial.isa.instructions import MATVEC, WORDS, Opcode
from gharial.program.manifest import SECTIONS
from gharial.program.program import Program

TOKENS_A_STEP = 0.2
"""Tokens of an encoder step on average, as in docs/performance.md; each is a prediction step and a joint more."""


@dataclass(frozen=True)
class Pace:
    """What the sections of a program ask of the array and of the memory.

    Attributes:
        steps: clocks that the array multiplies for one entry, by section ("encode" of a whole encoder step).
        bytes: of weights that a pass over a section reads; 0 where the weights lie on chip.
        config: the configuration.
    """

    steps: Mapping[str, int]
    bytes: Mapping[str, int]
    config: Config

    def clocks(self, section: str) -> float:
        """The least clocks that an entry takes, in a batch of as many as the configuration shares a pass between."""
        rate, batch = self.config.memory_rate, self.config.batch
        reading = self.bytes[section] / (rate * batch) if rate else 0.0
        return max(float(self.steps[section]), reading)

    @property
    def live_clocks(self) -> float:
        """The least clocks that a live stream takes for an encoder step, its joints and `TOKENS_A_STEP` tokens."""
        per_step = {"encode": 1.0, "joint": 1.0 + TOKENS_A_STEP, "predict": TOKENS_A_STEP}
        return sum(count * self.clocks(section) for section, count in per_step.items())

    def most_streams(self, step_seconds: float) -> int | None:
        """Live streams that array and memory suffice for, at most; None where the configuration names no clock."""
        if self.config.clock_mhz is None:
            return None
        return int(self.config.clock_mhz * 1e6 * step_seconds / self.live_clocks)


def program_pace(program: Program) -> Pace:
    """The pace of a verified program."""
    words, header = program.code[HEADER.words :].reshape(-1, WORDS), program.header
    code = {name: list(words[header[f"{name}_first"] :][: header[f"{name}_count"]]) for name in SECTIONS}
    return pace_of(code, program.config)


def pace_of(code: Mapping[str, Sequence[npt.NDArray[np.uint32]]], config: Config) -> Pace:
    """The pace of instructions by section, `WORDS` words each."""
    steps, read = dict.fromkeys(SECTIONS, 0), dict.fromkeys(SECTIONS, 0)
    for section in SECTIONS:
        for words in code[section]:
            if int(words[0]) & 0xFF == Opcode.MATVEC:
                fields = MATVEC.unpack(words)
                tiles = fields["row_groups"] * fields["col_tiles"]
                steps[section] += tiles * (fields["vectors_less_1"] + 1)
                read[section] += tiles * config.tile_bytes if config.in_memory else 0
    return Pace(steps, read, config)
