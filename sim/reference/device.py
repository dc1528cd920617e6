# SPDX-License-Identifier: Apache-2.0
"""The reference model behind the machine's command interface: registers, memory, rings (docs/isa.md, section 5).

Commands run, one after another, while the doorbell is rung; nothing is clocked, so cycles and counters are 0.
Not for use from several threads at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gharial.devices.base import Device, TraceSource
from gharial.errors import BadInput, DeviceError
from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION, DESCRIPTOR, Flag
from gharial.isa.configs import Config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import INTERFACE_VERSION

from .commands import Counts, execute
from .machine import MEMORY_CAP, Machine, Memory, Refusal, spaces
from .model import ReferenceModel
from .trace import Trace

KIND = 2  # of register DEVICE
MASK = 0xFFFFFFFF
MOST_COUNTED = 0xFFFF
RING_LOG2_MOST = 16
RING_ALIGNMENT = 64

ENABLE, SOFT_RESET = 1, 2  # CONTROL
IRQ_COMPLETION, IRQ_HALT = 1, 2  # IRQ_STATUS

REGISTERS = {register.offset: register for register in reg.REGISTERS}
PLAIN = {
    register.offset
    for register in (
        reg.CMD_BASE_LO,
        reg.CMD_BASE_HI,
        reg.CMD_LOG2,
        reg.CPL_BASE_LO,
        reg.CPL_BASE_HI,
        reg.CPL_LOG2,
        reg.WATCHDOG,
        reg.IRQ_ENABLE,
    )
}


class ReferenceDevice(Device, TraceSource):
    """A device that computes with `ReferenceModel`.

    Args:
        config: its hardware configuration. The device memory has `window_bytes`, but at most MEMORY_CAP.
        program_manifest: manifest of the program that will be loaded (docs/program.md). The model needs positions
            that the images do not state; START refuses images with other digests than the manifest's.

    Raises:
        BadInput: the manifest is for another configuration.
    """

    kind = "reference"

    def __init__(self, config: Config, program_manifest: Mapping[str, Any]) -> None:
        wanted = program_manifest["config"]
        if (wanted["name"], wanted["id"]) != (config.name, config.config_id):
            raise BadInput("program was compiled for another configuration", found=wanted["name"], expected=config.name)
        self.name = f"reference:{config.name}"
        self.config = config
        memory = Memory(min(config.window_bytes, MEMORY_CAP))
        self._machine = Machine(config, program_manifest, memory, spaces(config))
        self._plain = dict.fromkeys(PLAIN, 0)
        self._irq = 0
        self._closed = False
        self._stop()

    def _stop(self) -> None:
        """What a soft reset clears."""
        self._enabled = False
        self._cmd_tail = self._cmd_head = self._cpl_tail = self._cpl_head = 0
        self._halt: tuple[Refusal, int] | None = None
        self._irq = 0

    # Device

    def read_register(self, offset: int) -> int:
        """The 32-bit value of the register at that offset."""
        self._check_open()
        if offset not in REGISTERS:
            raise DeviceError("no such register", detail=offset)
        if offset in self._plain:
            return self._plain[offset]
        return self._readable().get(offset, 0) & MASK

    def _readable(self) -> dict[int, int]:
        machine = self._machine
        halt, tag = self._halt or (None, 0)
        size = len(machine.memory)
        status = int(self._enabled and halt is None) | (halt is not None) << 2 | (machine.model is not None) << 3
        if halt is not None:
            status |= halt.fault << 8 | halt.unit << 16
        return {
            reg.ID.offset: reg.ID.reset,
            reg.VERSION.offset: INTERFACE_VERSION,
            reg.CONFIG_ID.offset: self.config.config_id,
            reg.DEVICE.offset: KIND,
            reg.CONTROL.offset: ENABLE if self._enabled else 0,
            reg.STATUS.offset: status,
            reg.FAULT_DETAIL.offset: halt.detail if halt is not None else 0,
            reg.FAULT_TAG.offset: tag,
            reg.MEM_SIZE_LO.offset: size & MASK,
            reg.MEM_SIZE_HI.offset: size >> 32,
            reg.ENC_SLOTS.offset: machine.slots.encoders if machine.slots else 0,
            reg.PRED_SLOTS.offset: machine.slots.predictions if machine.slots else 0,
            reg.CMD_TAIL.offset: self._cmd_tail,
            reg.CMD_HEAD.offset: self._cmd_head,
            reg.CPL_TAIL.offset: self._cpl_tail,
            reg.CPL_HEAD.offset: self._cpl_head,
            reg.IRQ_STATUS.offset: self._irq,
            reg.PROGRAM_ID.offset: machine.model.header["program_id"] if machine.model else 0,
        }

    def write_register(self, offset: int, value: int) -> None:
        """Set the register at that offset; a read-only one stays as it is."""
        self._check_open()
        if offset not in REGISTERS or not 0 <= value <= MASK:
            raise DeviceError("no such register, or the value has more than 32 bits", detail=offset)
        if offset == reg.CONTROL.offset:
            if value & SOFT_RESET:
                self._stop()
            else:
                self._enabled = bool(value & ENABLE)
        elif offset == reg.CMD_TAIL.offset:
            self._cmd_tail = value
        elif offset == reg.CPL_HEAD.offset:
            self._cpl_head = value
        elif offset == reg.IRQ_STATUS.offset:
            self._irq &= ~value
        elif offset in self._plain:
            self._plain[offset] = value
        self._run()

    def read_memory(self, address: int, count: int) -> bytes:
        """Count bytes of the device memory from the address on."""
        self._check_range(address, count)
        return self._machine.memory.read(address, count)

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Put the bytes into the device memory from the address on."""
        data = bytes(data)
        self._check_range(address, len(data))
        self._machine.memory.write(address, data)

    def ring_doorbell(self, tail: int) -> None:
        """Tell the device how many commands have been written in all; returns when they are done."""
        self.write_register(reg.CMD_TAIL.offset, tail)

    def wait(self, completions: int, timeout: float) -> bool:
        """Whether the completion index has reached `completions` or the device halts. Never waits: nothing is left to
        be done between two calls."""
        self._check_open()
        return self._halt is not None or (self._cpl_tail - completions) & MASK < 1 << 31

    def reset(self) -> None:
        """Soft reset."""
        self.write_register(reg.CONTROL.offset, SOFT_RESET)

    def close(self) -> None:
        """Let go of everything."""
        self._closed = True

    # TraceSource

    def start_trace(self, layers: Sequence[Mapping[str, object]], trace: Sequence[Mapping[str, object]]) -> None:
        """Keep features, every layer's output, logits and log-sum-exp from now on.

        The layers are those of the manifest that the device was opened with; `trace` speaks of instructions, which
        this device does not run.

        Raises:
            DeviceError: no program is current.
        """
        self._check_open()
        self._machine.trace = self._model().trace()

    def stop_trace(self) -> dict[str, list[npt.NDArray[np.generic]]]:
        """What was kept since: key to one array a step."""
        kept: Trace | None = self._machine.trace
        self._machine.trace = None
        return kept.steps() if kept else {}

    # Rings

    def _run(self) -> None:
        """Run commands until there are none, or the completion ring is full, or a fault halts."""
        while self._enabled and self._halt is None and self._cmd_head != self._cmd_tail:
            if (self._cmd_tail - self._cmd_head) & MASK > self._entries(reg.CMD_LOG2):
                self._halt_on(Refusal(Fault.RING_OVERRUN, Unit.HOST, self._cmd_tail), 0)
                return
            if (self._cpl_tail - self._cpl_head) & MASK >= self._entries(reg.CPL_LOG2):
                return
            self._run_one()

    def _run_one(self) -> None:
        address = self._entry(reg.CMD_BASE_LO, reg.CMD_BASE_HI, reg.CMD_LOG2, self._cmd_head, DESCRIPTOR.bytes)
        if not self._machine.memory.holds(address, DESCRIPTOR.bytes):
            self._halt_on(Refusal(Fault.BUS_READ, Unit.HOST, address), 0)
            return
        raw = self._machine.memory.read(address, DESCRIPTOR.bytes)
        d = DESCRIPTOR.unpack(np.frombuffer(raw, dtype="<u4"))
        index = self._cmd_head
        self._cmd_head = (self._cmd_head + 1) & MASK

        crc = zlib.crc32(raw[:-4])
        counts, refusal = Counts(), None
        try:
            if crc != d["crc"]:
                d = dict.fromkeys(d, 0)
                raise Refusal(Fault.CHECKSUM, Unit.HOST, crc)
            counts = execute(self._machine, d)
        except Refusal as found:
            refusal = found
        self._complete(index, d, counts, refusal)

    def _complete(self, index: int, d: dict[str, int], counts: Counts, refusal: Refusal | None) -> None:
        fields = {
            "tag": d["tag"],
            "index": index,
            "predictions": min(counts.predictions, MOST_COUNTED),
            "joints": min(counts.joints, MOST_COUNTED),
        }
        if refusal is not None:
            fields |= {"status": refusal.fault, "unit": refusal.unit, "entry": refusal.entry, "detail": refusal.detail}
        words = COMPLETION.pack(**fields)
        words[-1] = zlib.crc32(words[:-1].tobytes())
        address = self._entry(reg.CPL_BASE_LO, reg.CPL_BASE_HI, reg.CPL_LOG2, self._cpl_tail, COMPLETION.bytes)
        if not self._machine.memory.holds(address, COMPLETION.bytes):
            self._halt_on(Refusal(Fault.BUS_WRITE, Unit.HOST, address), d["tag"])
            return
        self._machine.memory.write(address, words.tobytes())
        self._cpl_tail = (self._cpl_tail + 1) & MASK
        if d["flags"] & Flag.INTERRUPT:
            self._irq |= IRQ_COMPLETION

    def _halt_on(self, refusal: Refusal, tag: int) -> None:
        self._halt = (refusal, tag)
        self._irq |= IRQ_HALT

    def _entries(self, log2: reg.Reg) -> int:
        return 1 << min(self._plain[log2.offset], RING_LOG2_MOST)

    def _entry(self, lo: reg.Reg, hi: reg.Reg, log2: reg.Reg, index: int, size: int) -> int:
        """Address of a ring's entry."""
        base = (self._plain[lo.offset] | self._plain[hi.offset] << 32) & -RING_ALIGNMENT
        return base + index % self._entries(log2) * size

    def _model(self) -> ReferenceModel:
        if self._machine.model is None:
            raise DeviceError("no program is current", code=Fault.NO_PROGRAM)
        return self._machine.model

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError("the device is closed")

    def _check_range(self, address: int, count: int) -> None:
        self._check_open()
        if not self._machine.memory.holds(address, count):
            raise DeviceError("outside the device memory", code=Fault.ADDRESS, detail=address)
