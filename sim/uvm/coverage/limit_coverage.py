# SPDX-License-Identifier: Apache-2.0
"""Samples numbers that results and saved slots hold: those at the ends of their range."""

from __future__ import annotations

import numpy as np

from gharial.isa.commands import DECODE_RESULT_HEAD, Flag, Mode, Operation
from gharial.isa.configs import Config
from sim.uvm.coverage.group import CoverGroup
from sim.uvm.ring.finished import Finished
from sim.uvm.ring.items import Fields

RANGES = {"logit": (-(1 << 15), (1 << 15) - 1), "h": (-127, 127), "c": (-(1 << 15), (1 << 15) - 1)}


class LimitCoverage:
    """Group on limits.

    Args:
        group: the group.
        config: the hardware configuration.

    Attributes:
        header: of the current program.
    """

    def __init__(self, group: CoverGroup, config: Config) -> None:
        self._group, self._config = group, config
        self.header: Fields = {}

    def finished(self, command: Finished) -> None:
        """One command."""
        d = command.descriptor
        if not command.done:
            return
        if command.operation == Operation.DECODE and d["mode"] == Mode.ALL:
            for at, entry in enumerate(command.entries):
                if not entry["no_joint"]:
                    start = d["result_lo"] + at * d["stride"] + DECODE_RESULT_HEAD
                    self._sample("logit", self._numbers(command, start, 2 * self.header["classes"], "<i2"))
        elif command.operation == Operation.SAVE:
            side = "pred" if d["flags"] & Flag.PREDICTION else "enc"
            a_bytes = self.header[f"{side}_a_units"] * self._config.cols
            c_bytes = self.header[f"{side}_c_units"] * self._config.cell_unit * 2
            for entry in command.entries:
                start = d["result_lo"] + entry["offset"]
                self._sample("h", self._numbers(command, start, a_bytes, "i1"))
                self._sample("c", self._numbers(command, start + a_bytes, c_bytes, "<i2"))

    def _numbers(self, command: Finished, start: int, size: int, kind: str) -> np.ndarray:
        words = [command.words[at] for at in range(start, start + size, 4)]
        return np.frombuffer(np.array(words, "<u4").tobytes()[:size], kind)

    def _sample(self, name: str, numbers: np.ndarray) -> None:
        for value, end in zip(RANGES[name], ("least", "most"), strict=True):
            if (numbers == value).any():
                self._group.hit(f"{name}, {end}")
