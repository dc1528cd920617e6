# SPDX-License-Identifier: Apache-2.0
"""How a command fails within the emulator."""

from gharial.isa.faults import Fault, Unit


class CommandFault(Exception):
    """A fault of docs/isa.md, section 6, on its way to the completion; never leaves the emulator.

    Attributes:
        fault, unit: what, and where it was seen.
        detail: the fault's further word, 0..2^32 - 1.
        entry: entry at fault, 0 where none is.
    """

    def __init__(self, fault: Fault, unit: Unit, detail: int = 0, entry: int = 0) -> None:
        super().__init__(fault, unit, detail, entry)
        self.fault = fault
        self.unit = unit
        self.detail = detail & 0xFFFFFFFF
        self.entry = entry
