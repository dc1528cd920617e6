# SPDX-License-Identifier: Apache-2.0
"""The host's side of the machine: registers, rings, completions, halting and soft reset (docs/isa.md, section 5)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from gharial.devices.emulator.commands import Machine, checked
from gharial.devices.emulator.failure import CommandFault
from gharial.errors import DeviceError
from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION, DESCRIPTOR, Flag
from gharial.isa.faults import Fault, Unit

WORD = 0xFFFFFFFF
EMULATOR = 1  # register DEVICE
_MAX_LOG2 = 16
_ALIGN = ~63
_SATURATED = 0xFFFF
_COMPLETION = struct.Struct("<7I")
_ENABLE, _SOFT_RESET = 1, 2
_IRQ_COMPLETION, _IRQ_HALT = 1, 2


class HostInterface:
    """Registers and rings around a machine.

    Commands run when the doorbell is rung, when completions are taken off a full ring, and when CONTROL enables.

    Args:
        machine: what executes commands.

    Attributes:
        stalled: takes no further command, for tests of the host's time limits.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.stalled = False
        self.halted = False
        self._fault = CommandFault(Fault.NONE, Unit.NONE)
        self._tag = 0
        self._head = 0
        self._completed = 0
        self._irq = 0
        self._words = {r.offset: r.reset for r in reg.REGISTERS if r.access == "rw"}
        self._readers: dict[int, Callable[[], int]] = self._read_only() | {
            reg.CONTROL.offset: lambda: self._words[reg.CONTROL.offset] & _ENABLE,
            reg.IRQ_STATUS.offset: lambda: self._irq,
        }

    @property
    def completed(self) -> int:
        """Completions written so far, free-running 32 bits."""
        return self._completed

    def read(self, offset: int) -> int:
        """A register; DeviceError if there is none at that offset."""
        reader = self._readers.get(offset)
        if reader is not None:
            return reader()
        word = self._words.get(offset)
        if word is None:
            raise DeviceError("no register at this offset", unit="link", detail=offset)
        return word

    def write(self, offset: int, value: int) -> None:
        """Set a register; those that the host cannot write keep their value."""
        value &= WORD
        if offset == reg.IRQ_STATUS.offset:
            self._irq &= ~value
        elif offset == reg.CONTROL.offset:
            if value & _SOFT_RESET:
                self.soft_reset()
            else:
                self._words[offset] = value & _ENABLE
                self.process()
        elif offset in self._words:
            self._words[offset] = value
            if offset in (reg.CMD_TAIL.offset, reg.CPL_HEAD.offset):
                self.process()
        elif offset != reg.COUNTER_SNAPSHOT.offset:  # nothing is clocked: the counters stay zero
            self.read(offset)

    def soft_reset(self) -> None:
        """Clear indices and faults, disable; program, slots and memory stay."""
        self.stalled = self.halted = False
        self._fault = CommandFault(Fault.NONE, Unit.NONE)
        self._tag = self._head = self._completed = self._irq = 0
        for register in (reg.CONTROL, reg.CMD_TAIL, reg.CPL_HEAD):
            self._words[register.offset] = 0

    def process(self) -> None:
        """Run commands until there are none, or none can go on."""
        words = self._words
        if not words[reg.CONTROL.offset]:
            return
        size = 1 << min(words[reg.CMD_LOG2.offset], _MAX_LOG2)
        room = 1 << min(words[reg.CPL_LOG2.offset], _MAX_LOG2)
        if not self.halted and (words[reg.CMD_TAIL.offset] - self._head) & WORD > size:
            self._halt(CommandFault(Fault.RING_OVERRUN, Unit.HOST, words[reg.CMD_TAIL.offset]), 0)
        while not (self.halted or self.stalled or words[reg.CMD_TAIL.offset] == self._head):
            if (self._completed - words[reg.CPL_HEAD.offset]) & WORD >= room:
                return  # held back until the host takes completions
            self._step(size, room)

    def _step(self, size: int, room: int) -> None:
        machine, words, index = self.machine, self._words, self._head
        counts, flags, tag, fault = (0, 0), 0, 0, None
        base = (words[reg.CMD_BASE_LO.offset] | words[reg.CMD_BASE_HI.offset] << 32) & _ALIGN
        try:
            descriptor = machine.memory.take(base + DESCRIPTOR.bytes * (index % size), DESCRIPTOR.bytes)
        except CommandFault as error:
            self._halt(error, 0)
            return
        self._head = (index + 1) & WORD
        crc = checked(descriptor)
        if crc is None:
            flags, tag = descriptor[1], int.from_bytes(descriptor[4:8], "little")
            try:
                counts = machine.execute(descriptor)
            except CommandFault as error:
                fault = error
        else:
            fault = CommandFault(Fault.CHECKSUM, Unit.HOST, crc)
        try:
            self._complete(index, room, tag, fault, counts)
        except CommandFault as error:
            self._halt(error, tag)
            return
        if flags & Flag.INTERRUPT:
            self._irq |= _IRQ_COMPLETION
        if fault is not None and fault.fault.halts:
            self._halt(fault, tag)

    def _complete(self, index: int, room: int, tag: int, fault: CommandFault | None, counts: tuple[int, int]) -> None:
        status = detail = 0
        if fault is not None:
            status, detail = fault.fault | fault.unit << 8 | fault.entry << 16, fault.detail
        predictions, joints = (min(count, _SATURATED) for count in counts)
        body = _COMPLETION.pack(tag, status, detail, index, 0, 0, predictions | joints << 16)
        base = (self._words[reg.CPL_BASE_LO.offset] | self._words[reg.CPL_BASE_HI.offset] << 32) & _ALIGN
        address = base + COMPLETION.bytes * (self._completed % room)
        self.machine.memory.put(address, body + zlib.crc32(body).to_bytes(4, "little"))
        self._completed = (self._completed + 1) & WORD

    def _halt(self, fault: CommandFault, tag: int) -> None:
        self.halted = True
        self._fault, self._tag = fault, tag
        self._irq |= _IRQ_HALT

    def _status(self) -> int:
        enabled = self._words[reg.CONTROL.offset] == _ENABLE
        busy = enabled and not self.halted and self._words[reg.CMD_TAIL.offset] != self._head
        return (
            int(enabled and not self.halted)
            | int(busy) << 1
            | int(self.halted) << 2
            | int(self.machine.header is not None) << 3
            | self._fault.fault << 8
            | self._fault.unit << 16
        )

    def _read_only(self) -> dict[int, Callable[[], int]]:
        machine = self.machine
        config, size = machine.config, machine.memory.size
        readers: dict[int, Callable[[], int]] = {r.offset: lambda: 0 for r in reg.REGISTERS if r.access != "rw"}
        return readers | {
            reg.ID.offset: lambda: reg.ID.reset,
            reg.VERSION.offset: lambda: reg.VERSION.reset,
            reg.CONFIG_ID.offset: lambda: config.config_id,
            reg.DEVICE.offset: lambda: EMULATOR,
            reg.STATUS.offset: self._status,
            reg.FAULT_DETAIL.offset: lambda: self._fault.detail,
            reg.FAULT_TAG.offset: lambda: self._tag,
            reg.MEM_SIZE_LO.offset: lambda: size & WORD,
            reg.MEM_SIZE_HI.offset: lambda: size >> 32,
            reg.ENC_SLOTS.offset: lambda: machine.encoder.count if machine.encoder else 0,
            reg.PRED_SLOTS.offset: lambda: machine.prediction.count if machine.prediction else 0,
            reg.CMD_HEAD.offset: lambda: self._head,
            reg.CPL_TAIL.offset: lambda: self._completed,
            reg.PROGRAM_ID.offset: lambda: machine.header["program_id"] if machine.header else 0,
        }
