# SPDX-License-Identifier: Apache-2.0
"""The RTL as a device: compiled by Verilator, clocked in this process."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gharial.devices.base import Device, TraceSource
from gharial.devices.verilator.build import library
from gharial.devices.verilator.library import Simulation
from gharial.devices.verilator.profile import CAUSES, Profile, Rows, assemble
from gharial.devices.verilator.trace import RtlTracer
from gharial.errors import DeviceError
from gharial.isa import _registers as reg
from gharial.isa.configs import Config

RESET_CLOCKS = 1 << 20
"""Clocks within which a soft reset must be done: all slots of a pool could have to be zeroed."""

_SLICE = 0.02  # seconds for which a wait keeps other threads from the device
_ENDLESS = (1 << 64) - 1
_WORD = 4
_SOFT_RESET = 2  # of CONTROL
_BUSY = 2  # of STATUS
_LOOK = 64  # clocks between two looks at a reset
_OFFSETS = frozenset(register.offset for register in reg.REGISTERS)


def open_verilator(config: Config, seed: int = 1) -> VerilatorDevice:
    """Open the RTL of a configuration, compiling it if it has not been yet.

    Args:
        config: hardware configuration.
        seed: of the values that registers and memories have at power-on.

    Raises:
        BadInput: checkout or tools are missing.
        DeviceError: the RTL does not compile, or cannot be run.
    """
    return VerilatorDevice(config, library(config), seed)


class VerilatorDevice(Device, TraceSource):
    """The top `gharial_onchip` or `gharial_memory` with its clock; see `open_verilator`.

    The clock runs only within calls: transfers over the AXI4-Lite ports take the clocks that they take, back to back,
    and `wait` and `advance` let more go by. A memory off chip is read and written at once: its link to the host is not
    part of the machine. Several threads may use one device; a call waits for another's to
    end.

    Args:
        config: hardware configuration that the library was compiled for.
        path: the library.
        seed: of the values at power-on.
    """

    kind = "verilator"

    def __init__(self, config: Config, path: Path, seed: int = 1) -> None:
        self.config = config
        self.name = f"verilator:{config.name}"
        self._lock = threading.RLock()
        self._simulation: Simulation | None = Simulation(path, seed)
        self._tracer: RtlTracer | None = None
        self._rows: Rows | None = None

    # Device

    def read_register(self, offset: int) -> int:
        """The 32-bit value of the register at that offset; DeviceError if there is none."""
        _check_register(offset)
        value = ctypes.c_uint32()
        with self._lock:
            self._open().call("read_register", offset, ctypes.byref(value))
        return value.value

    def write_register(self, offset: int, value: int) -> None:
        """Set the register at that offset; DeviceError if there is none."""
        _check_register(offset)
        with self._lock:
            self._open().call("write_register", offset, value & 0xFFFFFFFF)

    def read_memory(self, address: int, count: int) -> bytes:
        """Count bytes of the device memory from the address on; DeviceError outside it."""
        self._check_range(address, count)
        start, end = address // _WORD, -(-(address + count) // _WORD)
        data = bytearray((end - start) * _WORD)
        if data:
            with self._lock:
                into = (ctypes.c_char * len(data)).from_buffer(data)
                self._open().call("read_memory", start * _WORD, into, end - start)
        skip = address - start * _WORD
        return bytes(data[skip : skip + count])

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Put the bytes into the device memory from the address on; DeviceError outside it."""
        octets = bytes(data)
        self._check_range(address, len(octets))
        if not octets:
            return
        before = address % _WORD
        after = -(address + len(octets)) % _WORD
        words = bytes(before) + octets + bytes(after)
        first, last = 0xF << before & 0xF, 0xF >> after
        with self._lock:
            self._open().call("write_memory", address - before, words, len(words) // _WORD, first, last)

    def ring_doorbell(self, tail: int) -> None:
        """Tell the device how many commands have been written in all."""
        self.write_register(reg.CMD_TAIL.offset, tail)

    def wait(self, completions: int, timeout: float) -> bool:
        """Let the clock run until CPL_TAIL has reached `completions` or the device halts; False if `timeout` seconds
        ran out."""
        return self.wait_clocks(completions, timeout)

    def wait_clocks(self, completions: int, timeout: float, clocks: int | None = None) -> bool:
        """As `wait`, and for so many clocks at most."""
        deadline = time.monotonic() + timeout
        left = _ENDLESS if clocks is None else clocks
        while True:
            with self._lock:
                simulation = self._open()
                before = self.cycles
                seconds = min(_SLICE, deadline - time.monotonic())
                if simulation.call("wait", completions & 0xFFFFFFFF, seconds, left):
                    return True
                left -= self.cycles - before
            if left <= 0 or time.monotonic() >= deadline:
                return False

    def reset(self) -> None:
        """Soft reset."""
        with self._lock:
            self.write_register(reg.CONTROL.offset, _SOFT_RESET)
            end = self.cycles + RESET_CLOCKS
            while self._at_work():
                if self.cycles >= end:
                    raise DeviceError(f"soft reset not done after {RESET_CLOCKS} clocks", unit="host interface")
                self.advance(_LOOK)

    def close(self) -> None:
        """Let go of the simulation; further calls raise DeviceError. Closing twice is harmless."""
        with self._lock:
            simulation, self._simulation = self._simulation, None
            if simulation is not None:
                simulation.close()

    # TraceSource

    def start_trace(self, layers: Sequence[Mapping[str, object]], trace: Sequence[Mapping[str, object]]) -> None:
        """Keep every post-operation's output from now on, named by the program's manifest (`layers`, `trace`).

        The device should have nothing to do meanwhile.
        """
        with self._lock:
            self._tracer = RtlTracer(layers, trace)
            self._open().call("begin_trace")

    def stop_trace(self) -> dict[str, list[npt.NDArray[np.generic]]]:
        """What was kept, in order of time; empty if no trace was started.

        The RTL computes no log-sum-exp for the blank that ends a greedy step: nobody asks for it. In the trace those
        are computed from the RTL's logits and tables.

        Raises:
            DeviceError: the trace began, or the device was reset, while an instruction was at work.
        """
        with self._lock:
            simulation, tracer = self._open(), self._tracer
            self._tracer = None
            if tracer is None:
                return {}
            records = ctypes.create_string_buffer(max(1, size := simulation.call("end_trace")))
            simulation.call("copy_trace", records)
            words = (ctypes.c_uint32 * 256)()
            simulation.call("tables", words)
            wrong = simulation.call("trace_error")
            if wrong:
                raise DeviceError(f"the trace cannot be used: {wrong.decode()}")
            tracer.take(records.raw[:size])
            tracer.fill(np.array(words, np.uint32))
            return tracer.arrays

    # Profiles

    def begin_profile(self, rows: Rows) -> None:
        """Count where the clocks go, from the next time that the counters are read to the time after.

        The array should have nothing to do meanwhile.
        """
        with self._lock:
            self._rows = rows
            self._open().call(
                "begin_profile",
                *(part.ctypes.data for part in (rows.tiles, rows.of_tiles)),
                len(rows.tiles),
                rows.others.ctypes.data,
                len(rows.others),
                len(rows.names),
            )

    def take_profile(self) -> Profile:
        """What was counted.

        Raises:
            DeviceError: the counters were not read twice, or the array had something to do when the profile began.
        """
        with self._lock:
            simulation, rows = self._open(), self._rows
            if rows is None:
                raise DeviceError("no profile was begun")
            sizes = np.zeros(2, np.uint64)
            wrong = simulation.call("profile", sizes.ctypes.data)
            if wrong:
                raise DeviceError(f"the profile cannot be used: {wrong.decode()}")
            counts = np.zeros(len(rows.names) * len(CAUSES), np.uint64)
            buckets = np.zeros(int(sizes[1]), np.uint32)
            simulation.call("copy_profile", counts.ctypes.data, buckets.ctypes.data)
            return assemble(rows.names, self.config.in_memory, counts, buckets, int(sizes[0]))

    # The clock

    @property
    def cycles(self) -> int:
        """Clocks since power-on."""
        with self._lock:
            return int(self._open().call("cycles"))

    @property
    def interrupt(self) -> bool:
        """The level of the interrupt."""
        with self._lock:
            return bool(self._open().call("interrupt"))

    @property
    def bytes_moved(self) -> int:
        """Bytes that the device's accesses to a memory off chip have moved since power-on."""
        with self._lock:
            return int(self._open().call("bytes_moved"))

    def linear_read(self, count: int) -> float:
        """Bytes a clock at which the weight ports of a memory off chip read so many bytes, one after the other."""
        with self._lock:
            return count / int(self._open().call("linear_read", count))

    def break_memory(self, address: int | None) -> None:
        """Have the device's accesses to this address of a memory off chip answered by an error; None: no more."""
        with self._lock:
            self._open().call("break_memory", (1 << 64) - 1 if address is None else address)

    def advance(self, clocks: int) -> None:
        """Let so many clocks go by."""
        with self._lock:
            self._open().call("advance", clocks)

    def _open(self) -> Simulation:
        if self._simulation is None:
            raise DeviceError("the device is closed")
        return self._simulation

    def _at_work(self) -> bool:
        busy = self.read_register(reg.STATUS.offset) & _BUSY
        return bool(busy or self.read_register(reg.CMD_HEAD.offset) or self.read_register(reg.CPL_TAIL.offset))

    def _check_range(self, address: int, count: int) -> None:
        with self._lock:
            self._open()
        size = self.config.window_bytes
        if min(address, count) < 0 or address + count > size:
            raise DeviceError(
                f"address outside the device memory of {size} bytes", unit="link", detail=f"{address:#x}+{count}"
            )


def _check_register(offset: int) -> None:
    if offset not in _OFFSETS:
        raise DeviceError("no register at this offset", unit="link", detail=offset)
