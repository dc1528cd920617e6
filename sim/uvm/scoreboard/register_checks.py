# SPDX-License-Identifier: Apache-2.0
"""What registers must read as."""

from __future__ import annotations

from collections.abc import Callable

import cocotb

from gharial.isa import _registers as reg
from gharial.isa.faults import Fault, Unit
from sim.uvm.registers.item import RegisterSeen
from sim.uvm.scoreboard.witness import Witness

RTL = 3  # of register DEVICE
BUS = (Fault.BUS_READ, Fault.BUS_WRITE)
READY, BUSY, HALTED, HAS_PROGRAM = 1, 2, 4, 8
SAME = {
    reg.ID, reg.VERSION, reg.CONFIG_ID, reg.MEM_SIZE_LO, reg.MEM_SIZE_HI, reg.CMD_BASE_LO, reg.CMD_BASE_HI,
    reg.CMD_LOG2, reg.CMD_TAIL, reg.CPL_BASE_LO, reg.CPL_BASE_HI, reg.CPL_LOG2, reg.CPL_HEAD, reg.WATCHDOG,
    reg.IRQ_ENABLE, reg.CONTROL,
}  # fmt: skip
SETTLED = {reg.CPL_TAIL, reg.FAULT_DETAIL, reg.FAULT_TAG, reg.ENC_SLOTS, reg.PRED_SLOTS, reg.PROGRAM_ID}
"""Equal to the witness's once the accelerator has done all that the witness has."""


class RegisterChecks:
    """Compares what is read with the witness.

    Args:
        witness: the reference device.
        errors: faults that may have halted it without the witness, and where: bus errors that were seen, a watchdog
            that is set.

    Attributes:
        interrupts: what IRQ_STATUS should hold.
        halted_alone: the fault that has halted the accelerator and not the witness, as STATUS has told it.
        resetting: a soft reset was ordered, and the device has not been enabled since.
    """

    def __init__(self, witness: Witness, errors: Callable[[], list[tuple[Fault, int]]]) -> None:
        self._witness, self._errors = witness, errors
        self.interrupts = 0
        self.halted_alone: Fault | None = None
        self.resetting = False

    def check(self, seen: RegisterSeen, settled: bool) -> None:
        """One read; `settled`: all that was posted had completed, and nothing had halted the accelerator alone."""
        register, value = seen.register, seen.value
        if register == reg.DEVICE:
            self._equal(register, value, RTL)
        elif register in SAME or (register in SETTLED and settled):
            self._equal(register, value, self._witness.read_register(register.offset))
        elif register == reg.CMD_HEAD:
            assert value <= self._witness.read_register(reg.CMD_TAIL.offset), f"CMD_HEAD {value} is beyond the bell"
        elif register == reg.STATUS:
            if not (self.resetting and value & BUSY):
                self._status(value & ~BUSY, settled)
        elif register == reg.FAULT_DETAIL and self.halted_alone in BUS:
            assert value in self._addresses(), f"FAULT_DETAIL {value:#x}: no error was there"
        elif register == reg.CPL_TAIL:
            most = self._witness.read_register(register.offset)
            assert value <= most or self.halted_alone, f"CPL_TAIL {value}: {most} commands have been posted"
        elif register == reg.IRQ_STATUS and settled:
            self._equal(register, value, self.interrupts)
            enabled = self.interrupts & self._witness.read_register(reg.IRQ_ENABLE.offset)
            assert bool(cocotb.top.irq_o.value) == bool(enabled), f"irq_o is not {bool(enabled)}"

    def _status(self, value: int, settled: bool) -> None:
        fault = Fault(value >> 8 & 0xFF)
        if value & HALTED and fault in self._halts():
            unit = Unit.SEQUENCER if fault == Fault.WATCHDOG else Unit.MEMORY
            program = value & HAS_PROGRAM
            self._equal(reg.STATUS, value, HALTED | program | fault << 8 | unit << 16)
            self.halted_alone = fault
        elif settled:
            self._equal(reg.STATUS, value, self._witness.read_register(reg.STATUS.offset))
        else:
            assert not value & HALTED or fault == Fault(self._witness.read_register(reg.STATUS.offset) >> 8 & 0xFF), (
                f"STATUS {value:#x}: nothing has happened that halts"
            )

    def _halts(self) -> set[Fault]:
        return {fault for fault, _ in self._errors()}

    def _addresses(self) -> list[int]:
        return [address for fault, address in self._errors() if fault in BUS]

    def _equal(self, register: reg.Reg, value: int, expected: int) -> None:
        assert value == expected, f"{register.name} reads {value:#x}, expected {expected:#x}"
