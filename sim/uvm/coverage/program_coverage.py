# SPDX-License-Identifier: Apache-2.0
"""Samples the sizes of the programs that have run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from gharial.isa.commands import Operation
from gharial.isa.configs import Config
from gharial.isa.header import ProgramSpace
from sim.uvm.coverage.group import CoverGroup
from sim.uvm.program.drawn import DrawnProgram
from sim.uvm.ring.finished import Finished


def remainder(units: int, whole: int) -> str:
    """How far a size is from whole ones; with wholes of 4 a rest of 2 is between, and so on."""
    rest = units % whole
    return {0: "whole", 1: "one over", whole - 1: "one short"}.get(rest, "between")


class ProgramCoverage:
    """Learns from the chunks of LOAD which program START has made current.

    Args:
        groups: all groups.
        config: the hardware configuration.
        library: programs by the digest of their code.
    """

    def __init__(self, groups: dict[str, CoverGroup], config: Config, library: Mapping[str, DrawnProgram]) -> None:
        self._groups, self._config, self._library = groups, config, library
        self._code = bytearray()
        self.current: DrawnProgram | None = None
        self._sampled: set[str] = set()

    def finished(self, command: Finished) -> bool:
        """One command; whether it has started a program."""
        d = command.descriptor
        if command.operation == Operation.LOAD and command.done and d["space"] == ProgramSpace.CODE:
            del self._code[d["offset"] :]
            self._code += command.body
        elif command.operation == Operation.START and command.done:
            self.current = self._library[hashlib.sha256(bytes(self._code)).hexdigest()]
            return True
        elif command.operation == Operation.GREEDY and command.done and command.entries and self.current:
            self._ran(self.current)  # all sections but maybe predict
        return False

    def _ran(self, program: DrawnProgram) -> None:
        if program.key in self._sampled:
            return
        self._sampled.add(program.key)
        rows, cols = self._groups["sizes, rows"], self._groups["sizes, columns"]
        counts = {"pre": 0, "post": 0, "prediction": 0}
        for layer in program.manifest["layers"]:
            name = layer["name"]
            part = next((p for p in ("pre_rnn", "post_rnn", "prediction.") if p in name), "")
            if part:
                counts[part.removesuffix("_rnn").rstrip(".")] += 1
                rows.hit(f"lstm, {remainder(layer['units'], self._config.cell_unit)}")
                cols.hit(f"h, {remainder(layer['units'], self._config.cols)}")
            elif name in ("joint_enc", "logits"):
                rows.hit(f"{name.removesuffix('_enc')}, {remainder(layer['units'], self._config.rows)}")
            if name == "joint":
                cols.hit(f"joint, {remainder(layer['units'], self._config.cols)}")
        cols.hit(f"features, {remainder(program.manifest['features']['count'], self._config.cols)}")
        for part, count in counts.items():
            self._groups["layers"].hit(f"{part}, {count}")
