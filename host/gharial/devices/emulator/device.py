# SPDX-License-Identifier: Apache-2.0
"""The emulator as a device: the default one, with no hardware and no tools behind it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gharial.devices.base import Device, TraceSource
from gharial.devices.emulator.commands import Machine
from gharial.devices.emulator.memory import NOWHERE, DeviceMemory
from gharial.devices.emulator.rings import WORD, HostInterface
from gharial.devices.records import Tracer
from gharial.errors import BadInput, DeviceError
from gharial.isa import _registers as reg
from gharial.isa.configs import Config
from gharial.isa.faults import Fault

MEMORY_MOST = 1 << 30
_AHEAD = 1 << 31  # free-running indices: further than this is behind


def open_emulator(config: Config, memory_bytes: int | None = None) -> EmulatorDevice:
    """Open an emulated device.

    Args:
        config: hardware configuration that it has.
        memory_bytes: bytes of device memory, a multiple of 64; None for the configuration's, but 1 GiB at most. Only
            what is touched is taken from the system.

    Raises:
        BadInput: the size is not a multiple of 64, or not positive.
        DeviceError: the system does not have that much memory.
    """
    size = min(config.window_bytes, MEMORY_MOST) if memory_bytes is None else memory_bytes
    if size <= 0 or size % 64:
        raise BadInput("size of the device memory", found=size, expected="a positive multiple of 64 bytes")
    return EmulatorDevice(config, size)


class EmulatorDevice(Device, TraceSource):
    """Runs programs on the CPU; see `open_emulator`.

    Commands run to their end within `ring_doorbell` (or within the write of CPL_HEAD or CONTROL that lets them go on),
    so completions are there when the call returns. Several threads may use one device; a call waits for another's to
    end. The weights and embedding that START names are taken over then: later writes to them have no effect. Nothing
    is clocked, so the counters and the completions' clocks are zero, and WATCHDOG never bites by itself.

    Args:
        config: hardware configuration.
        memory_bytes: bytes of device memory.
        kernel: name of a dot product kernel of `_engine.kernels()`; None takes the fastest this CPU can run. The
            results are the same.
    """

    kind = "emulator"

    def __init__(self, config: Config, memory_bytes: int, kernel: str | None = None) -> None:
        self.config = config
        self.name = f"emulator:{config.name}"
        self._memory = DeviceMemory(memory_bytes)
        self._machine = Machine(config, self._memory, kernel)
        self._host = HostInterface(self._machine)
        self._tracer: Tracer | None = None
        self._closed = False
        self._changed = threading.Condition(threading.RLock())

    def read_register(self, offset: int) -> int:
        """The 32-bit value of the register at that offset; DeviceError if there is none."""
        with self._changed:
            self._check_open()
            return self._host.read(offset)

    def write_register(self, offset: int, value: int) -> None:
        """Set the register at that offset; a write to one that only the device writes has no effect."""
        with self._changed:
            self._check_open()
            self._host.write(offset, value)
            self._after()

    def read_memory(self, address: int, count: int) -> bytes:
        """Count bytes of the device memory from the address on; DeviceError outside it."""
        with self._changed:
            self._check_open()
            return self._memory.host_read(address, count)

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Put the bytes into the device memory from the address on; DeviceError outside it."""
        with self._changed:
            self._check_open()
            self._memory.host_write(address, data)

    def ring_doorbell(self, tail: int) -> None:
        """Tell the device how many commands have been written in all, and run them."""
        self.write_register(reg.CMD_TAIL.offset, tail)

    def wait(self, completions: int, timeout: float) -> bool:
        """Wait until CPL_TAIL has reached `completions` or the device halts; False if `timeout` seconds ran out.

        What can run has run, so only another thread or a stall makes it wait at all.
        """
        with self._changed:
            self._check_open()
            return self._changed.wait_for(lambda: self._closed or self._reached(completions), timeout)

    def reset(self) -> None:
        """Soft reset; also ends a stall and forgets injected faults."""
        with self._changed:
            self._check_open()
            self._memory.bad_read = self._memory.bad_write = NOWHERE
            self._pass_errors(watchdog=False)
            self._host.write(reg.CONTROL.offset, 2)
            self._after()

    def close(self) -> None:
        """Let go of the memory; further calls raise DeviceError. Closing twice is harmless."""
        with self._changed:
            if not self._closed:
                self._closed = True
                self._machine.release()
                self._memory.close()
            self._changed.notify_all()

    def start_trace(self, layers: Sequence[Mapping[str, object]], trace: Sequence[Mapping[str, object]]) -> None:
        """Keep every post-operation's output from now on, named by the program's manifest (`layers`, `trace`)."""
        with self._changed:
            self._check_open()
            self._tracer = Tracer(layers, trace)
            self._machine.engine.trace(True)

    def stop_trace(self) -> dict[str, list[npt.NDArray[np.generic]]]:
        """What was kept, in order of time; empty if nothing was, or no trace was started."""
        with self._changed:
            self._check_open()
            tracer, self._tracer = self._tracer, None
            if tracer is None:
                return {}
            tracer.take(self._machine.engine.take_trace())
            self._machine.engine.trace(False)
            return tracer.arrays

    def inject_bus_error(self, fault: Fault, address: int | None = None, count: int = 4) -> None:
        """For tests: let the device's next access to a range of device memory fail, once.

        Rings, entries, chunks, features, results, and what SAVE and RESTORE move are covered; weights, embedding and
        slots in device memory are not.

        Args:
            fault: BUS_READ or BUS_WRITE.
            address, count: the range in bytes; None for whatever is accessed next.

        Raises:
            ValueError: another fault.
        """
        if fault not in (Fault.BUS_READ, Fault.BUS_WRITE):
            raise ValueError(f"{fault!r} is no bus error")
        with self._changed:
            self._check_open()
            place = (0, self._memory.size) if address is None else (address, address + count)
            if fault == Fault.BUS_READ:
                self._memory.bad_read = place
            else:
                self._memory.bad_write = place
            self._pass_errors(watchdog=False)

    def inject_watchdog(self) -> None:
        """For tests: the next instruction reached takes too long, and its command ends with the fault WATCHDOG."""
        with self._changed:
            self._check_open()
            self._pass_errors(watchdog=True)

    def stall(self) -> None:
        """For tests: take no further command, as a device that hangs, until `reset`."""
        with self._changed:
            self._check_open()
            self._host.stalled = True

    @property
    def kernel(self) -> str:
        """Name of the dot product kernel in use."""
        return self._machine.engine.kernel

    def _after(self) -> None:
        """What may follow from running commands."""
        if self._tracer is not None:
            self._tracer.take(self._machine.engine.take_trace())
        if self._host.halted and (self._memory.bad_read, self._memory.bad_write) != (NOWHERE, NOWHERE):
            self._memory.bad_read = self._memory.bad_write = NOWHERE
            self._pass_errors(watchdog=False)
        self._changed.notify_all()

    def _pass_errors(self, watchdog: bool) -> None:
        self._machine.engine.set_errors(self._memory.bad_read, self._memory.bad_write, watchdog)

    def _reached(self, completions: int) -> bool:
        return self._host.halted or (self._host.completed - completions) & WORD < _AHEAD

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError("the device is closed")
