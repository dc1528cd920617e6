# SPDX-License-Identifier: Apache-2.0
"""What each command does, from its descriptor to its results (docs/isa.md, sections 5 and 6)."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from gharial.devices.emulator import _engine
from gharial.devices.emulator.failure import CommandFault
from gharial.devices.emulator.memory import DeviceMemory
from gharial.devices.emulator.slots import SlotBank
from gharial.devices.emulator.spaces import Header, ProgramSpaces, slot_bytes, slot_count
from gharial.errors import DeviceError
from gharial.isa.commands import MAX_K, MAX_NAMED, Flag, Mode, Operation
from gharial.isa.configs import Config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import ProgramSpace

Counts = tuple[int, int]  # prediction steps, joint evaluations

DESCRIPTOR = struct.Struct("<16I")
_NONE: Counts = (0, 0)
_OPERATIONS = {int(operation) for operation in Operation}
_FLAGS = sum(Flag)
_ON_STREAMS = {int(Operation.ENCODE), int(Operation.DECODE), int(Operation.GREEDY)}
_FUZZY_BLOCK = 256
_ALIGN = 64
_CRC_WORD = 60  # bytes of a descriptor that its CRC covers


class Machine:
    """Program, slots and engine behind the rings.

    Args:
        config: the hardware configuration.
        memory: the device memory.
        kernel: name of the engine's dot product kernel, None for the best one (see `_engine.kernels()`).

    Attributes:
        header: header of the current program, None if there is none.
        encoder, prediction: its slots.
        engine: what runs the sections.
    """

    def __init__(self, config: Config, memory: DeviceMemory, kernel: str | None = None) -> None:
        self.config = config
        self.memory = memory
        self.spaces = ProgramSpaces(config)
        self.header: Header | None = None
        self.encoder: SlotBank | None = None
        self.prediction: SlotBank | None = None
        self.engine: Any = _engine.Engine(memory.view, config.rows, config.cols, config.max_entries, kernel)
        self._most_k = dict.fromkeys(Mode, 0)

    def execute(self, descriptor: bytes) -> Counts:
        """Run one command to its end.

        Args:
            descriptor: 64 bytes, CRC checked.

        Returns:
            Prediction steps and joint evaluations.

        Raises:
            CommandFault: it failed; what docs/isa.md says about state and slots has been done.
        """
        words = DESCRIPTOR.unpack(descriptor)
        operation, flags, entries = words[0] & 0xFF, words[0] >> 8 & 0xFF, words[0] >> 16
        if operation not in _OPERATIONS:
            raise CommandFault(Fault.BAD_COMMAND, Unit.HOST, 0)
        in_place = flags & Flag.IN_PLACE
        if flags & ~_FLAGS or (in_place and operation != Operation.LOAD) or (flags & Flag.UNCHECKED and not in_place):
            raise CommandFault(Fault.BAD_COMMAND, Unit.SEQUENCER, 0)
        if operation == Operation.NOP:
            return _NONE
        if operation == Operation.LOAD:
            self._load(words, flags)
            return _NONE
        if operation == Operation.START:
            self._start(words)
            return _NONE
        if self.header is None:
            raise CommandFault(Fault.NO_PROGRAM, Unit.SEQUENCER)
        if entries > self.config.max_entries:
            raise CommandFault(Fault.BAD_COMMAND, Unit.SEQUENCER, 0)
        if operation in _ON_STREAMS:
            self._check_fields(words, operation)
            return self._run(descriptor, self._entries(words, flags, entries))
        bank = self.prediction if flags & Flag.PREDICTION else self.encoder
        assert bank is not None
        listed = self._entries(words, flags, entries)
        bank.run(Operation(operation), listed, words[4] | words[5] << 32, self.memory)
        return _NONE

    def release(self) -> None:
        """Let go of the device memory."""
        self._unload()
        self.engine.release()

    def _run(self, descriptor: bytes, entries: bytes) -> Counts:
        try:
            fault, unit, entry, detail, predictions, joints = self.engine.run(descriptor, entries)
        except MemoryError:
            raise DeviceError("the emulator ran out of memory in a command") from None
        if fault:
            raise CommandFault(Fault(fault), Unit(unit), detail, entry)
        return predictions, joints

    def _entries(self, words: tuple[int, ...], flags: int, count: int) -> bytes:
        """The entry list, a copy: what is checked is what is run, whatever the host writes meanwhile."""
        address = words[2] | words[3] << 32
        if address % 4 or not self.memory.holds(address, 16 * count):
            raise CommandFault(Fault.ADDRESS, Unit.HOST, address)
        entries = self.memory.take(address, 16 * count)
        if flags & Flag.CHECKED:
            crc = zlib.crc32(entries)
            if crc != words[14]:
                raise CommandFault(Fault.CHECKSUM, Unit.HOST, crc)
        return entries

    def _check_fields(self, words: tuple[int, ...], operation: int) -> None:
        if operation == Operation.ENCODE:
            return
        word = words[6]
        k, mode, named = word & 0xFF, word >> 8 & 3, word >> 10 & 0x3F
        if operation == Operation.GREEDY:
            good = k > 0
        else:
            good = named <= MAX_NAMED and (mode == Mode.ALL or (mode < Mode.ALL and 1 <= k <= self._most_k[Mode(mode)]))
        if not good:
            raise CommandFault(Fault.BAD_COMMAND, Unit.SEQUENCER, 6)
        if operation == Operation.DECODE:
            assert self.header is not None
            for index in range(named):
                if words[7 + index // 2] >> index % 2 * 16 & 0xFFFF >= self.header["classes"]:
                    raise CommandFault(Fault.BAD_COMMAND, Unit.SEQUENCER, 7 + index // 2)
        if words[9] % 4:
            raise CommandFault(Fault.BAD_COMMAND, Unit.SEQUENCER, 9)

    def _load(self, words: tuple[int, ...], flags: int) -> None:
        address, offset = words[2] | words[3] << 32, words[12]
        size, number = words[13] & 0x1FFFFFFF, words[13] >> 29
        if number not in list(ProgramSpace):
            raise CommandFault(Fault.BAD_COMMAND, Unit.HOST, 13)
        space = self.spaces.spaces[number]
        in_place = space.image is None
        if bool(flags & Flag.IN_PLACE) != in_place:
            raise CommandFault(Fault.BAD_COMMAND, Unit.HOST, 0)
        if offset not in (0, space.loaded) or offset % 4:
            raise CommandFault(Fault.BAD_COMMAND, Unit.HOST, 12)
        if size % 4 or offset + size > space.capacity:
            raise CommandFault(Fault.BAD_COMMAND, Unit.HOST, 13)
        if address % 4 or not self.memory.holds(address, size):
            raise CommandFault(Fault.ADDRESS, Unit.HOST, address)
        self._unload()
        chunk = self.memory.take(address, size)
        crc = zlib.crc32(chunk)
        if crc != words[14] and not flags & Flag.UNCHECKED:
            raise CommandFault(Fault.CHECKSUM, Unit.HOST, crc)
        self.spaces.accept(number, offset, chunk, address)

    def _start(self, words: tuple[int, ...]) -> None:
        bases = {name: words[w] | words[w + 1] << 32 for name, w in (("embedding", 2), ("state", 4), ("weights", 10))}
        if self.config.in_memory:
            expected = {"embedding": ProgramSpace.EMBEDDING, "weights": ProgramSpace.WEIGHTS}
            for name, address in bases.items():
                moved = name in expected and address != self.spaces.spaces[expected[name]].base
                if address % _ALIGN or moved:
                    raise CommandFault(Fault.ADDRESS, Unit.HOST, address)
        header = self.spaces.header()
        counts = {side: slot_count(self.config, header, side) for side in ("enc", "pred")}
        sizes = {side: slot_bytes(self.config, header, side) for side in ("enc", "pred")}
        strides = {side: -(-size // _ALIGN) * _ALIGN for side, size in sizes.items()}
        total = sum(counts[side] * strides[side] for side in counts)
        if self.config.in_memory and not self.memory.holds(bases["state"], total):
            raise CommandFault(Fault.ADDRESS, Unit.HOST, bases["state"])
        self._unload()
        try:
            base = bases["state"] if self.config.in_memory else 0
            state = self.memory.view if self.config.in_memory else memoryview(bytearray(total))
            self.engine.start(*self.spaces.images(header, self.memory.view))
            self.encoder = SlotBank(state, base, strides["enc"], sizes["enc"], counts["enc"])
            after = base + counts["enc"] * strides["enc"]
            self.prediction = SlotBank(state, after, strides["pred"], sizes["pred"], counts["pred"])
            self.engine.bind(state, base, self.encoder.flags, self.prediction.flags)
        except MemoryError:
            self._unload()
            raise DeviceError("the emulator has no memory for the program") from None
        self.header = header
        classes = header["classes"]
        self._most_k[Mode.TOP_K] = min(MAX_K, classes)
        self._most_k[Mode.FUZZY] = 0 if classes % _FUZZY_BLOCK else min(MAX_K, classes // 8)

    def _unload(self) -> None:
        self.header = self.encoder = self.prediction = None
        self.engine.unload()


def checked(descriptor: bytes) -> int | None:
    """The CRC of a descriptor if it is not the one that it carries, else None."""
    crc = zlib.crc32(descriptor[:_CRC_WORD])
    return None if crc == int.from_bytes(descriptor[_CRC_WORD:], "little") else crc
