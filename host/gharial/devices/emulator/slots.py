# SPDX-License-Identifier: Apache-2.0
"""Per-stream state: slots, what becomes of them, and the commands that only move them about."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from gharial.devices.emulator.failure import CommandFault
from gharial.devices.emulator.memory import DeviceMemory
from gharial.isa.commands import SLOT_ENTRY, Operation
from gharial.isa.faults import Fault, Unit

_UNPACK = struct.Struct("<4I").iter_unpack
_STRAY = tuple(0xFFFFFFFF & ~used for used in SLOT_ENTRY.used)


class Slot(IntEnum):
    """What a slot is."""

    FREE = 0
    LIVE = 1
    ENDED = 2


@dataclass(frozen=True)
class Move:
    """One entry of a slot command, checked."""

    slot: int
    second: int
    address: int


class SlotBank:
    """The encoder's or the prediction network's slots.

    Args:
        state: what the slots lie in, writable bytes.
        base: byte offset of slot 0.
        stride: bytes from one slot to the next.
        size: bytes of a slot: A part, then C part.
        count: number of slots.

    Attributes:
        flags: a byte of `Slot` for each; the engine changes them too.
    """

    def __init__(self, state: memoryview, base: int, stride: int, size: int, count: int) -> None:
        self.size = size
        self.count = count
        self.flags = bytearray(count)
        self._state = state
        self._base = base
        self._stride = stride

    def content(self, slot: int) -> memoryview:
        """The slot's bytes."""
        start = self._base + slot * self._stride
        return self._state[start : start + self.size]

    def run(self, operation: Operation, entries: bytes, base: int, memory: DeviceMemory) -> None:
        """RESET, FREE, COPY, SAVE or RESTORE.

        Args:
            operation: which.
            entries: slot entries, 16 bytes each.
            base: the descriptor's result address.
            memory: for what is saved and restored.

        Raises:
            CommandFault: an entry is refused and nothing is changed, or the memory fails and destinations are free.
        """
        moves = self._check(operation, entries, base, memory)
        done = 0
        try:
            for move in moves:
                self._move(operation, move, memory)
                done += 1
        except CommandFault as fault:
            if operation == Operation.RESTORE:
                for move in moves:
                    self._clear(move.slot, Slot.FREE)
            fault.entry = 0 if fault.fault == Fault.BUS_WRITE else done
            raise

    def _move(self, operation: Operation, move: Move, memory: DeviceMemory) -> None:
        match operation:
            case Operation.RESET:
                self._clear(move.slot, Slot.LIVE)
            case Operation.FREE:
                self._clear(move.slot, Slot.FREE)
            case Operation.COPY:
                self.content(move.second)[:] = self.content(move.slot)
                self.flags[move.second] = self.flags[move.slot]
            case Operation.SAVE:
                memory.put(move.address, self.content(move.slot))
            case _:
                self.content(move.slot)[:] = memory.take(move.address, self.size)
                self.flags[move.slot] = Slot.LIVE

    def _clear(self, slot: int, flag: Slot) -> None:
        self.content(slot)[:] = bytes(self.size)
        self.flags[slot] = flag

    def _check(self, operation: Operation, entries: bytes, base: int, memory: DeviceMemory) -> list[Move]:
        read: set[int] = set()
        written: set[int] = set()
        moves: list[Move] = []
        for entry, words in enumerate(_UNPACK(entries)):
            for word, stray in enumerate(_STRAY):
                if words[word] & stray:
                    raise CommandFault(Fault.BAD_ENTRY, Unit.SEQUENCER, word, entry)
            slot, second, offset, _ = words
            if slot >= self.count or not self._fits(operation, self.flags[slot]):
                raise CommandFault(Fault.BAD_SLOT, Unit.SEQUENCER, slot, entry)
            if operation == Operation.COPY and second >= self.count:
                raise CommandFault(Fault.BAD_SLOT, Unit.SEQUENCER, second, entry)
            source, target = {Operation.COPY: (slot, second), Operation.SAVE: (slot, None)}.get(operation, (None, slot))
            if source is not None and source in written:
                raise CommandFault(Fault.HAZARD, Unit.SEQUENCER, source, entry)
            if target is not None and (target in written or target in read):
                raise CommandFault(Fault.HAZARD, Unit.SEQUENCER, target, entry)
            if source is not None:
                read.add(source)
            if target is not None:
                written.add(target)
            address = base + offset
            outside = base % 4 or offset % 4 or not memory.holds(address, self.size)
            if operation in (Operation.SAVE, Operation.RESTORE) and outside:
                raise CommandFault(Fault.ADDRESS, Unit.HOST, address, entry)
            moves.append(Move(slot, second, address))
        return moves

    @staticmethod
    def _fits(operation: Operation, flag: int) -> bool:
        """Whether a slot in that condition can be the first one of the operation."""
        if operation == Operation.COPY:
            return flag != Slot.FREE
        return operation != Operation.SAVE or flag == Slot.LIVE
