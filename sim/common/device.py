# SPDX-License-Identifier: Apache-2.0
"""The core on its bench as a device of the driver: registers by AXI4-Lite, device memory on the bench.

The driver and whoever uses it block; they run in a thread of cocotb's, `await bridge(function)(...)`, in which each
call of the device lets the simulation go on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cocotb.task import resume
from cocotb.triggers import ClockCycles, First, Timer

from gharial.devices.base import Device
from gharial.errors import DeviceError
from gharial.isa import _registers as reg
from gharial.isa.configs import Config
from sim.common.axi import AxiLiteHost, AxiMemory
from sim.common.bench import PERIOD_NS
from sim.common.posting import Telling

PATIENCE = 400_000
"""Clocks in which something must have come of a wait: many times what a command of the benches takes."""

SOFT_RESET, HALTED = 2, 4  # bits of CONTROL and STATUS


class CoreDevice(Telling, Device):
    """`gharial_core` between a host on the AXI4-Lite port and a memory on the AXI4 port.

    Args:
        dut: the core, out of reset.
        config: what it was built for.
        rng: of pauses.
        pause: share of clocks in which each channel of the register port pauses.

    Attributes:
        memory: the device memory.
        posted: called with each command before its doorbell is rung.
    """

    kind = "bench"

    def __init__(self, dut: Any, config: Config, rng: np.random.Generator, pause: float = 0.0) -> None:
        self.name, self.config = f"bench:{config.name}", config
        self.memory = AxiMemory(dut, rng, bytearray(config.window_bytes))
        self._dut = dut
        self._host = AxiLiteHost(dut, "s_axil_csr", rng, pause)
        self._read, self._write, self._wait = resume(self._host.read), resume(self._host.write), resume(self._until)
        self.advance = resume(self._advance)

    def read_register(self, offset: int) -> int:
        """The register at that offset."""
        value, _ = self._read(offset)
        return value

    def write_register(self, offset: int, value: int) -> None:
        """Set the register at that offset."""
        if offset == reg.CONTROL.offset and value & SOFT_RESET:
            self.begin_anew()
        self._write(offset, value)

    def read_memory(self, address: int, count: int) -> bytes:
        """Bytes of the device memory; takes no time."""
        self._check(address, count)
        return bytes(self.memory.mem[address : address + count])

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Bytes to the device memory; takes no time."""
        self._check(address, len(data))
        self.memory.mem[address : address + len(data)] = bytes(data)

    def ring_doorbell(self, tail: int) -> None:
        """Tell how many commands there are in all."""
        self.tell(self, tail)
        self.write_register(reg.CMD_TAIL.offset, tail)

    def wait(self, completions: int, timeout: float) -> bool:
        """Wait until so many completions are there or the core halts; seconds mean nothing here.

        Raises:
            DeviceError: neither happened in PATIENCE clocks.
        """
        if not self._wait(completions):
            raise DeviceError(f"no completion {completions} after {PATIENCE} clocks")
        return True

    def reset(self) -> None:
        """Soft reset."""
        self.write_register(reg.CONTROL.offset, SOFT_RESET)
        for _ in range(10_000):
            if not self.read_register(reg.STATUS.offset) & (HALTED | 2):
                return
        raise DeviceError("the soft reset does not end")

    def fail(self, writes: bool, address: int, after: int = 0) -> None:
        """Let a read, or write, of the word there have an error response, after so many that have not."""
        self.memory.fail(writes, address, after=after)

    def close(self) -> None:
        """Nothing to let go of: the simulation ends with its test."""

    async def _advance(self, clocks: int) -> None:
        await ClockCycles(self._dut.clk_i, clocks)

    async def _until(self, completions: int) -> bool:
        dut, left = self._dut, Timer(PATIENCE * PERIOD_NS, "ns")
        while not (dut.halted_o.value or (int(dut.completions_o.value) - completions) & 0xFFFFFFFF < 1 << 31):
            came = await First(dut.completions_o.value_change, dut.halted_o.value_change, left)
            if came is left:
                return False
        return True

    def _check(self, address: int, count: int) -> None:
        if not 0 <= address <= address + count <= len(self.memory.mem):
            raise DeviceError("outside the device memory", detail=address)
