# SPDX-License-Identifier: Apache-2.0
"""Faults in words: what happened, what to do, and whether the command's destination slots are lost."""

from __future__ import annotations

from gharial.isa.commands import Operation
from gharial.isa.faults import Fault, Unit

_WORDS: dict[int, tuple[str, str]] = {
    Fault.BAD_COMMAND: ("a field of the command is out of range (detail: word)", "report this: the driver checks them"),
    Fault.BAD_ENTRY: ("a field of an entry is out of range (detail: word)", "report this: the driver checks them"),
    Fault.BAD_SLOT: (
        "a slot is not live, or there is no such slot (detail: slot)",
        "reset, restore or start the slot before going on with it",
    ),
    Fault.HAZARD: ("two entries are in each other's way (detail: slot)", "report this: the driver checks it"),
    Fault.ADDRESS: (
        "an address outside the device memory, or an operand outside its space",
        "compile the program again; if that does not help, report this",
    ),
    Fault.CHECKSUM: (
        "what arrived is not what was sent (detail: CRC computed)",
        "send it again; if it stays so, check cable, clock and power",
    ),
    Fault.NO_PROGRAM: ("no program is loaded", "open the driver again"),
    Fault.BAD_PROGRAM: (
        "the device refuses the program (detail: word of its header)",
        "compile it again with this version",
    ),
    Fault.BAD_OPCODE: ("undefined instruction (detail: instruction)", "compile the program again, then recover"),
    Fault.BUS_READ: ("a memory answered a read with an error (detail: address)", "recover; check the memory's clock"),
    Fault.BUS_WRITE: ("a memory answered a write with an error (detail: address)", "recover; check the memory's clock"),
    Fault.RING_OVERRUN: ("the doorbell was rung beyond the ring (detail: index)", "recover; is another driver open?"),
    Fault.WATCHDOG: (
        "a command took longer than the watchdog allows (detail: instruction)",
        "recover; raise the watchdog limit if the command is a long one",
    ),
}
_UNITS = {
    Unit.HOST: "host interface",
    Unit.SEQUENCER: "sequencer",
    Unit.MATRIX: "matrix unit",
    Unit.VECTOR: "vector unit",
    Unit.MEMORY: "memory",
    Unit.STATE: "state store",
    Unit.TOPK: "top-k unit",
}
# Found before any state has changed (docs/isa.md, section 6).
_EARLY = {Fault.BAD_COMMAND, Fault.BAD_ENTRY, Fault.BAD_SLOT, Fault.HAZARD, Fault.NO_PROGRAM, Fault.BAD_PROGRAM}
_FEATURES = {Operation.ENCODE, Operation.GREEDY}


def fault_name(code: int) -> str:
    """Name of a fault."""
    return Fault(code).name if code in list(Fault) else f"fault {code}"


def unit_name(code: int) -> str:
    """Name of a hardware unit."""
    return _UNITS.get(Unit(code), "unknown unit") if code in list(Unit) else f"unit {code}"


def explain(code: int) -> tuple[str, str]:
    """What a fault means, and what to do."""
    return _WORDS.get(code, ("a fault that this version does not know", "install the version that the device needs"))


def keeps_state(operation: Operation, fault: int, unit: int, tag: int) -> bool:
    """Whether a command that failed so has left every slot as it was.

    An address is found bad by the host interface before, by any other unit after the command began. A descriptor's
    CRC comes back with tag 0; other CRCs are those of the entry list, or of features, which are read last.
    """
    if fault in _EARLY:
        return True
    if fault == Fault.ADDRESS:
        return unit == Unit.HOST
    if fault == Fault.CHECKSUM:
        return tag == 0 or operation not in _FEATURES
    return False
