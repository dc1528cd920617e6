# SPDX-License-Identifier: Apache-2.0
"""Registers by AXI4-Lite, each as rtl/csr/gharial.rdl has it, with what the machine sets and takes from them."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiResp
from scripts.gen_registers import RDL, read_map

from gharial.isa import _registers as reg
from gharial.isa.header import INTERFACE_VERSION
from sim.common import bench
from sim.common.axi import WORD, AxiLiteHost

SPACE = 256  # bytes
MAP = {register.offset: register for register in read_map(RDL).registers}
COUNTERS = ("CYCLES", "ACTIVE", "WEIGHTS", "DEPENDENCY", "BACKPRESSURE", "LOADING", "IDLE")
MEM_BYTES = 16384  # the parameter's default
RTL = 3  # what answers
CLEARED = ("CMD_TAIL", "CPL_HEAD", "IRQ_STATUS", "CONTROL")  # by a soft reset
MASK = 0xFFFFFFFF


def mask(count: int, at: int = 0) -> int:
    """Bits of `count` bytes from byte `at` on."""
    return ((1 << 8 * count) - 1) << 8 * at


class Model:
    """What software sees, and what the machine is told."""

    def __init__(self, config_id: int) -> None:
        self.stored = {r.name: r.reset for r in MAP.values() if r.access == "rw"}
        self.shown = {
            "ID": reg.ID.reset,
            "VERSION": INTERFACE_VERSION,
            "CONFIG_ID": config_id,
            "DEVICE": RTL,
            "MEM_SIZE_LO": MEM_BYTES,
            "MEM_SIZE_HI": 0,
        }
        self.pulses = {"soft_reset": 0, "latch": 0}
        self.halted, self.fault, self.tag = False, 0, 0  # fault: code, unit, detail from the top
        self.busy = self.program = 0

    def write(self, offset: int, value: int, bits: int) -> None:
        """Software writes the bits of that mask."""
        register = MAP.get(offset)
        if register is None:
            return
        for f in register.fields:
            own = ((1 << f.width) - 1) << f.lsb & bits
            if f.access == "w, clears itself":
                self.pulses[f.name] += bool(value & own)
            elif f.access == "rw, write 1 clears":
                self.stored[register.name] &= ~(value & own)
            elif f.access == "rw":
                self.stored[register.name] = self.stored[register.name] & ~own | value & own
            else:
                assert f.access == "r", f"{register.name}.{f.name}: {f.access}"

    def read(self, offset: int) -> int:
        """What software reads there."""
        register = MAP.get(offset)
        if register is None or register.access == "wo":
            return 0
        return self.stored.get(register.name, self._shown().get(register.name, 0))

    def _shown(self) -> dict[str, int]:
        code, unit, detail = self.fault >> 40, self.fault >> 32 & 0xFF, self.fault & MASK
        ready = self.stored["CONTROL"] & 1 and not self.halted
        flags = int(bool(ready)) | self.busy << 1 | self.halted << 2 | self.program << 3
        found = self.shown | {"STATUS": flags | code << 8 | unit << 16, "FAULT_DETAIL": detail, "FAULT_TAG": self.tag}
        if not self.program:
            found |= dict.fromkeys(("PROGRAM_ID", "ENC_SLOTS", "PRED_SLOTS"), 0)
        return found


class Bench:
    """The block between a host and the machine, beside the model."""

    def __init__(self, dut: Any, test: str) -> None:
        self.dut, self.rng = dut, bench.rng(test)
        self.model = Model(bench.config().config_id)
        self.pulses = {"soft_reset": 0, "latch": 0}

    async def start(self, pause: float) -> None:
        """Reset, then everything around the block."""
        await bench.start(self.dut)
        self.host = AxiLiteHost(self.dut, "s_axil", self.rng, pause)
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        """Pulses are one clock; what the machine is told follows the model at all times that nothing is under way."""
        edge, dut = RisingEdge(self.dut.clk_i), self.dut
        while True:
            await edge
            self.pulses["soft_reset"] += int(dut.soft_reset_o.value)
            self.pulses["latch"] += int(dut.latch_o.value)

    def word(self) -> int:
        """A random value, now and then an extreme one."""
        return int(self.rng.choice([0, 1, 2, 3, MASK, *self.rng.integers(1 << 32, size=4)]))

    def place(self) -> tuple[int, int]:
        """Address and bytes of an access within a word."""
        rng = self.rng
        at = int(rng.choice([*MAP, int(rng.integers(SPACE // WORD)) * WORD]))
        if rng.random() < 0.6:
            return at, WORD
        first = int(rng.integers(WORD))
        return at + first, int(rng.integers(1, WORD - first + 1))

    async def write(self, address: int, value: int, count: int = WORD) -> None:
        """Software writes, here and in the model."""
        value &= mask(count)
        assert await self.host.write(address, value, count) == AxiResp.OKAY
        at = address % WORD
        self.model.write(address - at, value << 8 * at, mask(count, at))

    async def check(self, address: int, count: int = WORD) -> None:
        """Software reads what the model says."""
        found, response = await self.host.read(address, count)
        at = address % WORD
        wanted = self.model.read(address - at) >> 8 * at & mask(count)
        assert (found, response) == (wanted, AxiResp.OKAY), f"{address:#x}+{count}: {found:#x}, expected {wanted:#x}"

    async def check_all(self) -> None:
        """Every word of the space, and what the machine is told."""
        for address in range(0, SPACE, WORD):
            await self.check(address)
        self.check_outputs()

    def check_outputs(self) -> None:
        """What the machine is told."""
        dut, stored = self.dut, self.model.stored
        enabled = stored["CONTROL"] & 1
        wanted = {
            "run": int(enabled and not self.model.halted),
            "enabled": enabled,
            "halted": int(self.model.halted),
            "irq": int(bool(stored["IRQ_ENABLE"] & stored["IRQ_STATUS"])),
            "command_base": (stored["CMD_BASE_HI"] << 32 | stored["CMD_BASE_LO"]) & -64,
            "command_log2": min(stored["CMD_LOG2"], 16),
            "command_tail": stored["CMD_TAIL"],
            "completion_base": (stored["CPL_BASE_HI"] << 32 | stored["CPL_BASE_LO"]) & -64,
            "completion_log2": min(stored["CPL_LOG2"], 16),
            "completion_head": stored["CPL_HEAD"],
            "watchdog": stored["WATCHDOG"],
        }
        found = {name: int(getattr(dut, f"{name}_o").value) for name in wanted}
        assert found == wanted
        assert self.pulses == self.model.pulses

    async def pulse(self, **signals: int) -> None:
        """Inputs for one clock."""
        for name, value in signals.items():
            getattr(self.dut, f"{name}_i").value = value
        await ClockCycles(self.dut.clk_i, 1)
        for name in signals:
            getattr(self.dut, f"{name}_i").value = 0
        await ClockCycles(self.dut.clk_i, 2)

    async def halt(self) -> None:
        """The machine halts: the first time tells why."""
        failure, tag = int(self.rng.integers(1, 1 << 48)), self.word()
        await self.pulse(halt=1, halt_failure=failure, halt_tag=tag)
        model = self.model
        if not model.halted:
            model.halted, model.fault, model.tag = True, failure, tag
            model.stored["IRQ_STATUS"] |= 2

    async def clear(self) -> None:
        """The end of a soft reset."""
        await self.pulse(clear=1)
        model = self.model
        model.halted, model.fault, model.tag = False, 0, 0
        for name in CLEARED:
            model.stored[name] = 0

    async def complete(self) -> None:
        """A completion that interrupts."""
        await self.pulse(completion_irq=1)
        self.model.stored["IRQ_STATUS"] |= 1

    async def change(self) -> None:
        """Other values from the machine."""
        dut, model, rng = self.dut, self.model, self.rng
        model.busy, model.program = int(rng.integers(2)), int(rng.integers(2))
        dut.busy_i.value, dut.program_i.value = model.busy, model.program
        for port, name, bits in (
            ("program_id", "PROGRAM_ID", 32),
            ("enc_slots", "ENC_SLOTS", 16),
            ("pred_slots", "PRED_SLOTS", 16),
            ("command_head", "CMD_HEAD", 32),
            ("completion_tail", "CPL_TAIL", 32),
        ):
            model.shown[name] = self.word() & (1 << bits) - 1
            getattr(dut, f"{port}_i").value = model.shown[name]
        for number, name in enumerate(COUNTERS):
            low, high = self.word(), self.word()
            dut.counter_i[number].value = high << 32 | low
            model.shown |= {f"{name}_LO": low, f"{name}_HI": high}
        await ClockCycles(dut.clk_i, 2)


@cocotb.test()
async def after_reset(dut: Any) -> None:
    """The map's reset values, and none of what the machine has yet to say."""
    tb = Bench(dut, "after_reset")
    await tb.start(0.0)
    await tb.check_all()
    for r in reg.REGISTERS:
        found, _ = await tb.host.read(r.offset)
        assert found == r.reset or r.name in ("CONFIG_ID", "DEVICE", "MEM_SIZE_LO"), r.name


@cocotb.test()
async def each_bit(dut: Any) -> None:
    """Every bit of every register by itself: kept, cleared by a one, or not to be moved; no other register changes."""
    tb = Bench(dut, "each_bit")
    await tb.start(0.0)
    for offset in MAP:
        for value in (MASK, 0, *(1 << bit for bit in range(0, 32, 5 if bench.short() else 1))):
            await tb.complete()
            await tb.write(offset, value)
            await tb.check(offset)
    await tb.check_all()


@cocotb.test()
async def as_the_driver_needs_them(dut: Any) -> None:
    """What docs/isa.md says of them, whatever the map says: interrupts by ones, pulses, what a soft reset clears."""
    tb = Bench(dut, "as_the_driver_needs_them")
    await tb.start(0.0)
    read, write = tb.host.read, tb.host.write
    interrupts, control = reg.IRQ_STATUS.offset, reg.CONTROL.offset
    await tb.complete()
    await tb.halt()
    for cleared, left in ((0, 3), (1, 2), (1, 2), (2, 0)):
        await write(interrupts, cleared)
        assert await read(interrupts) == (left, AxiResp.OKAY)
    for name in ("CMD_TAIL", "CPL_HEAD", "WATCHDOG", "CMD_BASE_LO"):
        await write(getattr(reg, name).offset, 64)
    await write(control, 3)  # a soft reset is asked for; who does it tells when it is done
    assert await read(control) == (1, AxiResp.OKAY) and tb.pulses["soft_reset"] == 1
    await tb.complete()
    await tb.clear()
    names = ("CMD_TAIL", "CPL_HEAD", "IRQ_STATUS", "CONTROL", "STATUS", "FAULT_TAG", "WATCHDOG", "CMD_BASE_LO")
    assert [(await read(getattr(reg, name).offset))[0] for name in names] == [0, 0, 0, 0, 0, 0, 64, 64]


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.5])
async def random_accesses(dut: Any, pause: float) -> None:
    """Reads and writes of words and bytes at any address, while the machine halts, completes, and is reset."""
    tb = Bench(dut, f"random_accesses {pause}")
    await tb.start(pause)
    events = (tb.halt, tb.clear, tb.complete, tb.change)
    for turn in range(500 if bench.short() else 8000):
        address, count = tb.place()
        if tb.rng.random() < 0.5:
            await tb.write(address, tb.word(), count)
        else:
            await tb.check(address, count)
        if tb.rng.random() < 0.15:
            await events[int(tb.rng.integers(len(events)))]()
        await ClockCycles(dut.clk_i, 2)
        tb.check_outputs()
        if turn % 100 == 99:
            await tb.check_all()


@cocotb.test()
async def many_at_once(dut: Any) -> None:
    """Accesses that follow each other without a pause are done in their order, and each is answered."""
    tb = Bench(dut, "many_at_once")
    await tb.start(0.3)
    names = ("CMD_BASE_LO", "CMD_BASE_HI", "CPL_BASE_LO", "CPL_BASE_HI", "WATCHDOG")
    offsets = [getattr(reg, name).offset for name in names]
    tasks = []
    for _ in range(60):
        offset, value = int(tb.rng.choice(offsets)), tb.word()
        tasks.append(cocotb.start_soon(tb.host.write(offset, value)))
        tb.model.write(offset, value, MASK)
    for task in tasks:
        assert await task == AxiResp.OKAY
    reads = [(offset, cocotb.start_soon(tb.host.read(offset))) for offset in offsets * 5]
    for offset, task in reads:
        assert await task == (tb.model.read(offset), AxiResp.OKAY)
    tb.check_outputs()
