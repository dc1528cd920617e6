# SPDX-License-Identifier: Apache-2.0
"""The host's end of the AXI4-Lite port."""

from __future__ import annotations

import logging

import cocotb
from cocotb.triggers import ClockCycles, FallingEdge
from cocotbext.axi import AxiLiteMaster
from pyuvm import uvm_driver

from sim.uvm.registers.bus import csr_bus
from sim.uvm.registers.item import RegisterItem

OKAY = 0


class RegisterDriver(uvm_driver):
    """Does one access after another with cocotbext-axi's master."""

    async def run_phase(self) -> None:
        dut = cocotb.top
        logging.getLogger(f"cocotb.{dut._name}.csr").setLevel(logging.WARNING)
        master = AxiLiteMaster(csr_bus(dut), dut.clk_i, dut.rst_i)
        await FallingEdge(dut.rst_i)
        while True:
            item: RegisterItem = await self.seq_item_port.get_next_item()
            channel = master.write_if.b_channel if item.is_write else master.read_if.r_channel
            if item.hold:
                channel.pause = True
                cocotb.start_soon(self._release(channel, item.hold))
            if item.is_write:
                done = await master.write(item.register.offset, item.value.to_bytes(4, "little"))
            else:
                done = await master.read(item.register.offset, 4)
                item.value = int.from_bytes(done.data, "little")
            assert done.resp == OKAY, f"register {item.register.name} answered {done.resp}"
            self.seq_item_port.item_done()

    async def _release(self, channel: object, clocks: int) -> None:
        await ClockCycles(cocotb.top.clk_i, clocks)
        channel.pause = False  # type: ignore[attr-defined]
