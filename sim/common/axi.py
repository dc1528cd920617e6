# SPDX-License-Identifier: Apache-2.0
"""The other ends of a design's AXI ports, on cocotbext-axi: a memory that pauses, is late and fails; a host's accesses.

Ports are found by their AXI names with the prefix and `_i` or `_o`. Signals that our ports leave out have the one value
that they would have.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, Timer
from cocotb.types import LogicArray
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiRamRead, AxiRamWrite, AxiReadBus, AxiResp, AxiWriteBus
from cocotbext.axi.stream import StreamBase

from sim.common.bench import PERIOD_NS

WORD = 4  # bytes
ABSENT = {
    "awid": (1, 0),
    "awlen": (8, 0),  # single words
    "awsize": (3, 2),
    "awburst": (2, 1),  # INCR
    "wlast": (1, 1),
    "bid": (1, 0),
    "arid": (1, 0),
    "arsize": (3, 2),
    "arburst": (2, 1),
    "rid": (1, 0),
}
"""Signals of AXI4 that a master of single-word writes and INCR reads of 32 bits does without: bits and value."""

SIGNALS = (
    *("awvalid", "awready", "awaddr", "awprot", "wvalid", "wready", "wdata", "wstrb", "bvalid", "bready", "bresp"),
    *("arvalid", "arready", "araddr", "arprot", "arlen", "rvalid", "rready", "rdata", "rresp", "rlast"),
)


class Constant:
    """Stands for a signal that a port does not have: reads as its value; what is written is dropped."""

    def __init__(self, bits: int, value: int) -> None:
        self._value = LogicArray.from_unsigned(value, bits)

    def __len__(self) -> int:
        return len(self._value)

    @property
    def value(self) -> LogicArray:
        """As a handle has it."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        pass

    def setimmediatevalue(self, value: Any) -> None:
        """As for a signal of the design."""


class Port:
    """A port of the design under its AXI names, for cocotbext-axi.

    Args:
        dut: the design.
        prefix: of the port's signals, as in `m_axi_awvalid_o`.
        lite: AXI4-Lite: nothing is added.
    """

    def __init__(self, dut: Any, prefix: str, lite: bool = False) -> None:
        self._name, self._log = prefix, logging.getLogger("cocotb.axi")
        self._log.setLevel(logging.ERROR)
        logging.getLogger(f"cocotb.{prefix}").setLevel(logging.ERROR)
        names = {handle._name: handle for handle in dut}
        for name in SIGNALS:
            for end in ("_i", "_o"):
                if f"{prefix}_{name}{end}" in names:
                    setattr(self, name, names[f"{prefix}_{name}{end}"])
        if not lite:
            for name, (bits, value) in ABSENT.items():
                setattr(self, name, Constant(bits, value))


@dataclass(frozen=True)
class Pace:
    """How willing a memory is.

    Args:
        pause: the share of clocks in which a channel pauses, of each in turn: aw, w, b, ar, r.
        length: mean clocks of a pause.
        latency: most clocks from an address, or a written word, to what follows on it; each time drawn anew.
    """

    pause: tuple[float, float, float, float, float] = (0.0,) * 5
    length: float = 1.0
    latency: int = 0


PACES = {
    "free": Pace(),
    "uneven": Pace((0.4,) * 5, 2.0, 3),
    "late": Pace(latency=60),
    "busy": Pace((0.85,) * 5, 6.0, 10),
    "addresses": Pace((0.8, 0.0, 0.0, 0.8, 0.0), 5.0),
    "data": Pace((0.0, 0.8, 0.0, 0.0, 0.8), 5.0),
    "answers": Pace((0.0, 0.0, 0.9, 0.0, 0.0), 20.0, 20),
    "stops": Pace((0.5,) * 5, 100.0),
}
"""Paces to run a design at: whatever it computes must be the same at each."""


@dataclass
class Fault:
    """Addresses whose next accesses have an error response."""

    writes: bool
    address: int
    count: int
    response: AxiResp
    times: int
    after: int

    def hits(self, writes: bool, address: int) -> bool:
        """Whether this access fails; then it is used up, once."""
        if not self.times or writes != self.writes or not self.address <= address < self.address + self.count:
            return False
        if self.after:
            self.after -= 1
            return False
        self.times -= 1
        return True


@dataclass
class Record:
    """What came over the bus, in order."""

    bursts: list[tuple[int, int]] = field(default_factory=list)  # address, words
    writes: list[tuple[int, int]] = field(default_factory=list)  # address, word; also those with an error response
    failed: list[tuple[bool, int]] = field(default_factory=list)  # writes, address


def pauses(channel: Any, rng: np.random.Generator, share: float, length: float = 1.0) -> Any:
    """Let a channel pause now and then from now on: geometric lengths, of pauses and of what lies between. The task."""
    between = max(length * (1 - share) / share, 1.0)

    async def run() -> None:
        while True:
            channel.pause = False
            await Timer(int(rng.geometric(1 / between)) * PERIOD_NS, "ns")
            channel.pause = True
            await Timer(int(rng.geometric(1 / length)) * PERIOD_NS, "ns")

    return cocotb.start_soon(run())


class AxiMemory:
    """The memory at the design's AXI4 master (either or both of its halves), 32 bits wide.

    Accesses beyond its end have the response DECERR.

    Args:
        dut: the design, out of reset.
        rng: of pauses and latencies.
        mem: bytes, by slices.
        prefix: of the port.
        check: whether each channel is watched for valid or payload that change before they are taken.
    """

    def __init__(self, dut: Any, rng: np.random.Generator, mem: Any, prefix: str = "m_axi", check: bool = True) -> None:
        self.mem, self.rng, self.record, self.faults = mem, rng, Record(), list[Fault]()
        self._pace = Pace()
        self._pausing: list[Any] = []
        self._clk = dut.clk_i
        port = Port(dut, prefix)
        self._channels: list[tuple[int, StreamBase]] = []  # place in Pace.pause
        watched = []
        if hasattr(port, "awvalid"):
            writer = _Writer(AxiWriteBus.from_entity(port), self)
            self._channels += list(enumerate((writer.aw_channel, writer.w_channel, writer.b_channel)))
            watched += [(port.awvalid, port.awready, port.awaddr), (port.wvalid, port.wready, port.wdata)]
        if hasattr(port, "arvalid"):
            reader = _Reader(AxiReadBus.from_entity(port), self)
            self._channels += list(enumerate((reader.ar_channel, reader.r_channel), 3))
            watched += [(port.arvalid, port.arready, port.araddr), (port.arvalid, port.arready, port.arlen)]
        if check:
            for signals in watched:
                cocotb.start_soon(self._watch(*signals))

    def pace(self, pace: Pace) -> None:
        """Behave like that from now on."""
        for task in self._pausing:
            task.cancel()
        self._pace = pace
        self._pausing = []
        for place, channel in self._channels:
            channel.pause = False
            if pace.pause[place]:
                self._pausing.append(pauses(channel, self.rng, pace.pause[place], pace.length))

    def fail(
        self,
        writes: bool,
        address: int,
        count: int = WORD,
        response: AxiResp = AxiResp.SLVERR,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """Let accesses fail.

        Args:
            writes: which accesses: writes or reads. A word that is written so is not kept.
            address, count: range, in bytes.
            response: SLVERR or DECERR.
            times: so many words of the range fail,
            after: when so many have not.
        """
        self.faults.append(Fault(writes, address, count, response, times, after))

    def words(self, address: int, count: int) -> list[int]:
        """Words from an address on."""
        data = bytes(self.mem[address : address + WORD * count])
        return [int.from_bytes(data[at : at + WORD], "little") for at in range(0, len(data), WORD)]

    def response(self, writes: bool, address: int) -> AxiResp:
        """Of an access to the word there, which happens now."""
        if address + WORD > len(self.mem):
            self.record.failed.append((writes, address))
            return AxiResp.DECERR
        for fault in self.faults:
            if fault.hits(writes, address):
                self.record.failed.append((writes, address))
                return fault.response
        return AxiResp.OKAY

    async def latency(self) -> None:
        """Wait for as long as this time takes."""
        clocks = int(self.rng.integers(0, self._pace.latency + 1)) if self._pace.latency else 0
        if clocks:
            await Timer(clocks * PERIOD_NS, "ns")

    async def _watch(self, valid: Any, ready: Any, payload: Any) -> None:
        """AXI's rule for the source of a channel: once offered, an item stays until it is taken."""
        edge, held = RisingEdge(self._clk), None
        while True:
            await edge
            if not valid.value:
                assert held is None, f"{valid._name} fell before {ready._name}"
                continue
            item = int(payload.value)
            assert held in (None, item), f"{payload._name} changed before it was taken: {held:#x} became {item:#x}"
            held = None if ready.value else item


class _Reader(AxiRamRead):
    """The memory's read side: an answer for each word."""

    def __init__(self, bus: Any, memory: AxiMemory) -> None:
        self._memory, self._answer = memory, AxiResp.OKAY
        super().__init__(bus, memory._clk, mem=memory.mem)
        self.log.setLevel(logging.ERROR)
        self.ar_channel.queue_occupancy_limit = 1
        take, give = self.ar_channel.recv, self.r_channel.send

        async def recv() -> Any:
            ar = await take()
            memory.record.bursts.append((int(ar.araddr), int(ar.arlen) + 1))
            await memory.latency()
            return ar

        async def send(r: Any) -> None:
            r.rresp = self._answer
            await give(r)

        self.ar_channel.recv, self.r_channel.send = recv, send

    async def _read(self, address: int, length: int) -> bytes:
        self._answer = self._memory.response(False, address)
        if self._answer != AxiResp.OKAY:  # what is on the data then is nobody's business
            return self._memory.rng.bytes(length)
        return bytes(self._memory.mem[address : address + length])


class _Writer(AxiRamWrite):
    """The memory's write side."""

    def __init__(self, bus: Any, memory: AxiMemory) -> None:
        self._memory, self._answer = memory, AxiResp.OKAY
        super().__init__(bus, memory._clk, mem=memory.mem)
        self.log.setLevel(logging.ERROR)
        give = self.b_channel.send

        async def send(b: Any) -> None:
            b.bresp = self._answer
            await memory.latency()
            await give(b)

        self.b_channel.send = send

    async def _write(self, address: int, data: bytes) -> None:
        self._answer = self._memory.response(True, address)
        self._memory.record.writes.append((address, int.from_bytes(data, "little")))
        if self._answer == AxiResp.OKAY:
            self._memory.mem[address : address + len(data)] = data


def channels(master: Any) -> list[Any]:
    """The five channels of a master of cocotbext-axi: aw, w, b, ar, r."""
    write, read = master.write_if, master.read_if
    return [write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel]


class AxiLiteHost:
    """A host at one of the design's AXI4-Lite slaves.

    Args:
        dut: the design, out of reset.
        prefix: of the port.
        rng: of pauses, if there are to be any.
        pause: share of clocks in which each channel pauses.
    """

    def __init__(self, dut: Any, prefix: str, rng: np.random.Generator | None = None, pause: float = 0.0) -> None:
        port = Port(dut, prefix, lite=True)
        self.master = AxiLiteMaster(AxiLiteBus.from_entity(port), dut.clk_i)
        for half in (self.master.write_if, self.master.read_if):
            half.log.setLevel(logging.ERROR)
        if rng is not None and pause:
            for channel in channels(self.master):
                pauses(channel, rng, pause, 4.0)

    async def read(self, address: int, count: int = WORD) -> tuple[int, AxiResp]:
        """A read of some bytes; their value and the response."""
        done = await self.master.read(address, count)
        return int.from_bytes(done.data, "little"), done.resp

    async def write(self, address: int, value: int, count: int = WORD) -> AxiResp:
        """A write of some bytes, by strobes where they are less than a word; the response."""
        return (await self.master.write(address, value.to_bytes(count, "little"))).resp
