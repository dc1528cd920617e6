# SPDX-License-Identifier: Apache-2.0
"""Fault and unit codes of completions and of the STATUS register (docs/isa.md, section 6)."""

from enum import IntEnum


class Fault(IntEnum):
    """Why a command failed; NONE in the completion of one that did not."""

    NONE = 0
    BAD_COMMAND = 1
    BAD_ENTRY = 2
    BAD_SLOT = 3
    HAZARD = 4
    ADDRESS = 5
    CHECKSUM = 6
    NO_PROGRAM = 7
    BAD_PROGRAM = 8
    BAD_OPCODE = 9
    BUS_READ = 10
    BUS_WRITE = 11
    RING_OVERRUN = 12
    WATCHDOG = 13

    @property
    def halts(self) -> bool:
        """Whether the device stops until a soft reset."""
        return self >= Fault.BAD_OPCODE


class Unit(IntEnum):
    """Where a fault was seen."""

    NONE = 0
    HOST = 1
    SEQUENCER = 2
    MATRIX = 3
    VECTOR = 4
    MEMORY = 5
    STATE = 6
    TOPK = 7
