# SPDX-License-Identifier: Apache-2.0
"""A device for tests of the driver: it keeps the protocol to the letter, computes nothing, and misbehaves when told to.

Results are made up from what was asked, so that a test can tell whose they are: a decode entry's log-sum-exp is its
encoder slot times 1000 plus its token; a greedy step emits the first feature modulo 3 times the token "slot".
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gharial.devices.base import Device
from gharial.errors import DeviceError
from gharial.isa import _registers as reg
from gharial.isa.commands import (
    COMPLETION,
    DECODE_ENTRY,
    DESCRIPTOR,
    ENCODE_ENTRY,
    GREEDY_ENTRY,
    SLOT_ENTRY,
    Flag,
    Mode,
    Operation,
)
from gharial.isa.configs import Config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import HEADER, ProgramSpace

MASK = 0xFFFFFFFF
Fields = dict[str, int]


@dataclass
class Failing:
    """The fault that a command ends with."""

    fault: int
    unit: int = Unit.SEQUENCER
    entry: int = 0
    detail: int = 7


@dataclass
class Command:
    """A command as it was run."""

    fields: Fields
    entries: list[Fields]
    features: list[bytes] = field(default_factory=list)

    @property
    def operation(self) -> Operation:
        return Operation(self.fields["operation"])


class FakeDevice(Device):
    """See above.

    Attributes:
        ran: commands that were run, in order.
        log: what the host did to it: ("register", name, value), ("write", address, count), ("doorbell", n), ("reset",).
        failing: index of a command to the fault it ends with.
        failing_next: operation to the fault that its next command ends with.
        held: commands from this index on are not run; `fetched` of them are fetched all the same.
        registers: values of registers that are forced.
        mangle: changes a completion's words before they are written, given its index.
        on_read: changes what is read of the memory, given address and bytes.
        resets_to: called at each soft reset.
        steps: commands that one call of `wait` runs; None: all run at the doorbell.
        ticks: what the counters gain between two looks.
        write_error, reset_error: raised when the host writes to memory, or resets.
    """

    kind = "fake"

    def __init__(self, config: Config, memory: int | None = None) -> None:
        self.name, self.config = f"fake:{config.name}", config
        self.memory = bytearray(config.window_bytes if memory is None else memory)
        self.ran: list[Command] = []
        self.log: list[tuple[object, ...]] = []
        self.failing: dict[int, Failing] = {}
        self.failing_next: dict[int, Failing] = {}
        self.held: int | None = None
        self.fetched = 0
        self.registers: dict[reg.Reg, int] = {}
        self.mangle: Callable[[int, np.ndarray], None] = lambda index, words: None
        self.on_read: Callable[[int, bytes], bytes] = lambda address, data: data
        self.resets_to: Callable[[], None] = lambda: None
        self.steps: int | None = None
        self.ticks: Fields = {}
        self.write_error: DeviceError | None = None
        self.reset_error: DeviceError | None = None
        self.closed = 0
        self.images: dict[int, bytearray] = {}
        self.header: Fields = {}
        self.slots: dict[tuple[bool, int], bytes] = {}
        self.counted = dict.fromkeys(
            ("cycles", "active", "weights", "dependency", "backpressure", "loading", "idle"), 0
        )
        self.latched = dict(self.counted)
        self.regs = {r.offset: r.reset for r in reg.REGISTERS if r.access == "rw"}
        self.head = self.tail = self.next = self.halt_tag = 0
        self.halt: Failing | None = None

    # What the host sees

    def read_register(self, offset: int) -> int:
        if self.closed:
            raise DeviceError("closed")
        register = next(r for r in reg.REGISTERS if r.offset == offset)
        if register in self.registers:
            return self.registers[register]
        if register is reg.STATUS:
            return self._status()
        name = register.name
        if name[-3:] in ("_LO", "_HI") and name[:-3].lower() in self.latched:
            return self.latched[name[:-3].lower()] >> (32 if name.endswith("HI") else 0) & MASK
        slots = self._slot_counts()
        values = {
            reg.ID: reg.ID.reset,
            reg.VERSION: reg.VERSION.reset,
            reg.CONFIG_ID: self.config.config_id,
            reg.MEM_SIZE_LO: len(self.memory) & MASK,
            reg.MEM_SIZE_HI: len(self.memory) >> 32,
            reg.ENC_SLOTS: slots[0],
            reg.PRED_SLOTS: slots[1],
            reg.CMD_HEAD: self.head & MASK,
            reg.CPL_TAIL: self.tail & MASK,
            reg.PROGRAM_ID: self.header.get("program_id", 0),
            reg.FAULT_DETAIL: self.halt.detail if self.halt else 0,
            reg.FAULT_TAG: self.halt_tag,
        }
        return values.get(register, self.regs.get(offset, 0))

    def _status(self) -> int:
        enabled = bool(self.regs[reg.CONTROL.offset] & 1)
        busy = enabled and self.halt is None and self.head != self.tail
        word = int(enabled and self.halt is None) | busy << 1 | (self.halt is not None) << 2 | bool(self.header) << 3
        if self.halt:
            word |= self.halt.fault << 8 | self.halt.unit << 16
        return word

    def _slot_counts(self) -> tuple[int, int]:
        if not self.header:
            return 0, 0
        counts = []
        for kind in ("enc", "pred"):
            most = getattr(self.config, f"{kind}_slots")
            for part in ("a", "c"):
                if not self.config.in_memory:
                    pool = getattr(self.config, f"{kind}_{part}_units")
                    most = min(most, pool // self.header[f"{kind}_{part}_units"])
            counts.append(most)
        return counts[0], counts[1]

    def write_register(self, offset: int, value: int) -> None:
        if self.closed:
            raise DeviceError("closed")
        register = next(r for r in reg.REGISTERS if r.offset == offset)
        self.log.append(("register", register.name, value))
        if register is reg.COUNTER_SNAPSHOT:
            self.latched = dict(self.counted)
            for name, value in self.ticks.items():
                self.counted[name] = (self.counted[name] + value) & (1 << 64) - 1
        elif register is reg.CONTROL and value & 2:
            self.soft_reset()
        elif offset in self.regs:
            self.regs[offset] = value

    def soft_reset(self) -> None:
        self.head = self.tail = self.next = self.halt_tag = 0
        self.halt = None
        for register in (reg.CONTROL, reg.CMD_TAIL, reg.CPL_HEAD):
            self.regs[register.offset] = 0
        self.resets_to()

    def read_memory(self, address: int, count: int) -> bytes:
        assert 0 <= address <= address + count <= len(self.memory)
        return self.on_read(address, bytes(self.memory[address : address + count]))

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        assert 0 <= address <= address + len(data) <= len(self.memory)
        if self.write_error is not None:
            error, self.write_error = self.write_error, None
            raise error
        self.log.append(("write", address, len(data)))
        self.memory[address : address + len(data)] = data

    def ring_doorbell(self, tail: int) -> None:
        self.log.append(("doorbell", tail))
        self.regs[reg.CMD_TAIL.offset] = tail
        if self.steps is None:
            self.run()

    def wait(self, completions: int, timeout: float) -> bool:
        self.run(self.steps)
        return self.halt is not None or (self.tail - completions) & MASK < 1 << 31

    def reset(self) -> None:
        self.log.append(("reset",))
        if self.reset_error is not None:
            raise self.reset_error
        self.soft_reset()

    def close(self) -> None:
        self.closed += 1

    # What it does

    def run(self, most: int | None = None) -> None:
        """Run commands while there are any."""
        done = 0
        while self.regs[reg.CONTROL.offset] & 1 and self.halt is None and (most is None or done < most):
            waiting = (self.regs[reg.CMD_TAIL.offset] - self.next) & MASK
            if self.held is not None and self.next >= self.held:
                self.head = self.next + min(self.fetched, waiting)
                return
            if not waiting:
                return
            assert waiting <= 1 << self.regs[reg.CMD_LOG2.offset], "ring overrun"
            assert (self.tail - self.regs[reg.CPL_HEAD.offset]) & MASK < 1 << self.regs[reg.CPL_LOG2.offset]
            index = self.next
            self.head = self.next = (self.next + 1) & MASK
            self._one(index)
            done += 1

    def _ring(self, base: reg.Reg, log2: reg.Reg, index: int, size: int) -> int:
        return self.regs[base.offset] + index % (1 << self.regs[log2.offset]) * size

    def _one(self, index: int) -> None:
        at = self._ring(reg.CMD_BASE_LO, reg.CMD_LOG2, index, DESCRIPTOR.bytes)
        raw = bytes(self.memory[at : at + DESCRIPTOR.bytes])
        d = DESCRIPTOR.unpack(np.frombuffer(raw, "<u4"))
        assert d["crc"] == zlib.crc32(raw[:-4]), "the descriptor's CRC"
        assert d["tag"], "tag 0 is that of a descriptor that did not arrive whole"
        failing = self.failing.pop(index, None) or self.failing_next.pop(d["operation"], None)
        if failing is None:
            failing = self._execute(d)
        fields = {"tag": d["tag"], "index": index, "cycles_lo": 100, "predictions": 1, "joints": 2}
        if failing is not None:
            fields |= {"status": failing.fault, "unit": failing.unit, "entry": failing.entry, "detail": failing.detail}
        words = COMPLETION.pack(**fields)
        words[-1] = zlib.crc32(words[:-1].tobytes())
        self.mangle(index, words)
        if failing is not None and failing.fault in list(Fault) and Fault(failing.fault).halts:
            self.halt, self.halt_tag = failing, d["tag"]
            if failing.entry == 0xDEAD:  # it could not even say so
                return
        at = self._ring(reg.CPL_BASE_LO, reg.CPL_LOG2, index, COMPLETION.bytes)
        self.memory[at : at + COMPLETION.bytes] = words.tobytes()
        self.tail = (self.tail + 1) & MASK

    def _execute(self, d: Fields) -> Failing | None:
        command = Command(d, [])
        self.ran.append(command)
        if command.operation == Operation.LOAD:
            return self._load(d)
        if command.operation == Operation.START:
            self.header = HEADER.unpack(np.frombuffer(bytes(self.images[ProgramSpace.CODE][:256]), "<u4"))
            self.slots = {}
            return None
        records = {Operation.ENCODE: ENCODE_ENTRY, Operation.GREEDY: GREEDY_ENTRY, Operation.DECODE: DECODE_ENTRY}
        record = records.get(command.operation, SLOT_ENTRY)
        at = d["entry_lo"]
        raw = bytes(self.memory[at : at + 16 * d["entries"]])
        assert 0 < d["entries"] <= self.config.max_entries
        if d["flags"] & Flag.CHECKED:
            assert zlib.crc32(raw) == d["body_crc"]
        for row in np.frombuffer(raw, "<u4").reshape(-1, 4):
            assert record.stray(row) is None
            command.entries.append(record.unpack(row))
        {Operation.ENCODE: self._features, Operation.GREEDY: self._greedy, Operation.DECODE: self._decode}.get(
            command.operation, self._slot
        )(command)
        return None

    def _load(self, d: Fields) -> Failing | None:
        at, count = d["entry_lo"] | d["entry_hi"] << 32, d["bytes"]
        data = self.memory[at : at + count]
        assert zlib.crc32(data) == d["body_crc"]
        image = self.images.setdefault(d["space"], bytearray()) if d["offset"] else bytearray()
        if len(image) != d["offset"]:
            return Failing(Fault.BAD_COMMAND, Unit.HOST, detail=12)
        self.images[d["space"]] = image + data
        self.header = {}
        return None

    def _features(self, command: Command) -> None:
        d = command.fields
        for entry in command.entries:
            at = d["feature_lo"] + entry["offset"]
            data = bytes(self.memory[at : at + entry["vectors"] * self.header["feature_bytes"]])
            if d["flags"] & Flag.CHECKED:
                assert zlib.crc32(data) == entry["crc"]
            command.features.append(data)

    def _put_result(self, command: Command, index: int, data: bytes) -> None:
        at = command.fields["result_lo"] + index * command.fields["stride"]
        assert len(data) <= command.fields["stride"]
        self.memory[at : at + len(data)] = data

    def _greedy(self, command: Command) -> None:
        self._features(command)
        for index, (entry, data) in enumerate(zip(command.entries, command.features, strict=True)):
            wanted = data[0] % 3
            count = min(wanted, command.fields["k"])
            words = [count | (wanted > count) << 16, count + (wanted <= count)]
            for n in range(count):
                words += [(entry["slot"] % 16) << 16 | 100 + n, 1000 + n]
            self._put_result(command, index, np.array(words, "<u4").tobytes())

    def _decode(self, command: Command) -> None:
        d, classes = command.fields, self.header["classes"]
        named = [(d["named_01"], d["named_23"])[i // 2] >> 16 * (i % 2) & 0xFFFF for i in range(d["named"])]
        for index, entry in enumerate(command.entries):
            if entry["no_joint"]:
                continue
            lse = entry["slot"] * 1000 + entry["token"]
            head = np.array([lse], "<i4").tobytes()
            head += np.array([-c for c in named] + [0] * (4 - len(named)), "<i2").tobytes()
            if d["mode"] == Mode.ALL:
                head += np.array([classes, 0], "<u2").tobytes()
                body = (np.arange(classes) - 5).astype("<i2").tobytes()
            else:
                head += np.array([d["k"], 0], "<u2").tobytes()
                logits = np.arange(d["k"]) * -2 - entry["destination"]
                body = (np.arange(d["k"]) << 16 | logits & 0xFFFF).astype("<u4").tobytes()
            self._put_result(command, index, head + body)

    def _slot(self, command: Command) -> None:
        d, prediction = command.fields, bool(command.fields["flags"] & Flag.PREDICTION)
        kind = "pred" if prediction else "enc"
        size = self.header[f"{kind}_a_units"] * self.config.cols
        size += self.header[f"{kind}_c_units"] * 2 * self.config.cell_unit
        for entry in command.entries:
            key = (prediction, entry["slot"])
            at = d["result_lo"] + entry["offset"]
            if command.operation == Operation.RESET:
                self.slots[key] = bytes(size)
            elif command.operation == Operation.FREE:
                self.slots.pop(key, None)
            elif command.operation == Operation.COPY:
                self.slots[prediction, entry["second"]] = self.slots[key]
            elif command.operation == Operation.SAVE:
                self.memory[at : at + size] = self.slots[key]
            else:
                self.slots[key] = bytes(self.memory[at : at + size])
