# SPDX-License-Identifier: Apache-2.0
"""Loaded, activation and cell memory in every clock against what they hold: widths, lanes, and whose turn it is."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from sim.common import bench

BYTES = 1024  # of each loaded memory
WIDTHS = {"narrow": 32, "middle": 128, "wide": 512, "spread": 512}
WRITE_LATE, READ_LATE = {"spread": 2}, {"spread": 1}  # clocks on the way to a memory; of the others: 1 and 0
COLS, ROWS, UNITS = 8, 16, 32
LANE = ROWS // 4  # bytes of a lane of the activations


class Ram:
    """A memory of lanes, read two clocks late; a lane that is written while it is read may be seen either way."""

    def __init__(self, lanes: int, bits: int) -> None:
        self.lanes, self.bits = lanes, bits
        self.words: dict[int, list[int | None]] = {}
        self._read: list[set[int | None]] | None = None
        self.shown: list[set[int | None]] = [{None}] * lanes

    def clock(self, writes: dict[int, int], at: int, read: int | None) -> None:
        """One clock: lanes written at `at`, and the address that is read."""
        if self._read is not None:
            self.shown = self._read
        self._read = None
        if read is not None:
            word = self.words.get(read, [None] * self.lanes)
            self._read = [{old} | ({writes[n]} if at == read and n in writes else set()) for n, old in enumerate(word)]
        if writes:
            word = self.words.setdefault(at, [None] * self.lanes)
            for lane, value in writes.items():
                word[lane] = value

    def check(self, data: int, what: str) -> None:
        """Data at the output; lanes that were never written hold anything."""
        for lane, allowed in enumerate(self.shown):
            value = data >> lane * self.bits & (1 << self.bits) - 1
            assert None in allowed or value in allowed, f"{what}, lane {lane}: {value:#x}, expected {allowed}"


class Drive:
    """Inputs for the coming clock, at random, and what they were."""

    def __init__(self, dut: Any, rng: np.random.Generator) -> None:
        self.dut, self.rng = dut, rng
        self.now: dict[str, int] = {}

    def chance(self, name: str, share: float) -> bool:
        """A signal of one bit."""
        return bool(self.set(name, int(self.rng.random() < share)))

    def draw(self, name: str, below: int) -> int:
        """Any value below; above 64 bits as well."""
        bits = (below - 1).bit_length()
        return self.set(name, int.from_bytes(self.rng.bytes(bits // 8 + 1), "little") % below)

    def set(self, name: str, value: int) -> int:
        """That value."""
        getattr(self.dut, f"{name}_i").value = value
        self.now[name] = value
        return value


def lanes(data: int, mask: int, count: int, bits: int, step: int = 1) -> dict[int, int]:
    """Lanes of a word that the mask has."""
    return {n: data >> n * bits & (1 << bits) - 1 for n in range(count) if mask >> n * step & 1}


@cocotb.test()
async def activations(dut: Any) -> None:
    """Vector before aux before host to write, matrix before host to read; lanes; data two clocks late that stay."""
    await bench.start(dut)
    d, ram = Drive(dut, bench.rng("activations")), Ram(COLS // LANE, 8 * LANE)
    edge, wide = RisingEdge(dut.clk_i), 1 << 8 * COLS
    for _ in range(3000 if bench.short() else 50_000):
        vector, aux, host = d.chance("vector_we", 0.4), d.chance("aux_we", 0.4), d.chance("host_we", 0.5)
        matrix, read = d.chance("matrix_en", 0.5), d.chance("host_re", 0.5)
        for user in ("vector", "aux", "host"):
            d.draw(f"{user}_addr", UNITS)
            d.draw(f"{user}_data", wide)
        for user in ("vector", "aux"):  # whole lanes
            mask = int(d.rng.integers(1 << COLS // LANE))
            d.set(f"{user}_mask", sum((1 << LANE) - 1 << n * LANE for n in range(COLS // LANE) if mask >> n & 1))
        d.draw("matrix_addr", UNITS)
        d.draw("host_raddr", UNITS)
        await edge
        ready = (dut.aux_ready_o.value, dut.host_ready_o.value, dut.host_re_ready_o.value)
        assert [bool(r) for r in ready] == [not vector, not vector and not aux, not matrix]
        ram.check(int(dut.act_rdata_o.value), "activations")
        now = d.now
        writer = "vector" if vector else "aux" if aux else "host" if host else None
        writes: dict[int, int] = {}
        if writer:
            mask = now.get(f"{writer}_mask", (1 << COLS) - 1) if writer != "host" else (1 << COLS) - 1
            writes = lanes(now[f"{writer}_data"], mask, COLS // LANE, 8 * LANE, LANE)
        reader = now["matrix_addr"] if matrix else now["host_raddr"] if read else None
        ram.clock(writes, now[f"{writer or 'host'}_addr"], reader)


@cocotb.test()
async def cells(dut: Any) -> None:
    """Vector before host to write, vector before aux before host to read; halfwords by themselves."""
    await bench.start(dut)
    d, ram = Drive(dut, bench.rng("cells")), Ram(ROWS // 4, 16)
    edge, wide = RisingEdge(dut.clk_i), 1 << 4 * ROWS
    for _ in range(3000 if bench.short() else 50_000):
        vector, host = d.chance("cell_vector_we", 0.4), d.chance("cell_host_we", 0.5)
        reads = [(user, d.chance(f"cell_{user}_re", 0.4)) for user in ("vector", "aux", "host")]
        for user in ("vector", "host"):
            d.draw(f"cell_{user}_waddr", UNITS)
            d.draw(f"cell_{user}_wdata", wide)
        for user, _ in reads:
            d.draw(f"cell_{user}_raddr", UNITS)
        d.draw("cell_vector_wmask", 1 << ROWS // 4)
        await edge
        by_vector, by_aux = reads[0][1], reads[1][1]
        ready = (dut.cell_aux_ready_o.value, dut.cell_host_re_ready_o.value, dut.cell_host_ready_o.value)
        assert [bool(r) for r in ready] == [not by_vector, not by_vector and not by_aux, not vector]
        ram.check(int(dut.cell_rdata_o.value), "cells")
        now = d.now
        writer = "vector" if vector else "host"
        mask = now["cell_vector_wmask"] if vector else (1 << ROWS // 4) - 1 if host else 0
        reader = next((now[f"cell_{user}_raddr"] for user, wants in reads if wants), None)
        ram.clock(lanes(now[f"cell_{writer}_wdata"], mask, ROWS // 4, 16), now[f"cell_{writer}_waddr"], reader)


@cocotb.test()
async def loading(dut: Any) -> None:
    """Chunks of any size with pauses; each word of the loader is there at once, and nothing beyond the end is kept."""
    await bench.start(dut)
    d, edge = Drive(dut, bench.rng("loading")), RisingEdge(dut.clk_i)
    rams = {name: Ram(bits // 32, 32) for name, bits in WIDTHS.items()}
    writing: dict[str, deque[tuple[dict[int, int], int]]]
    writing = {name: deque([({}, 0)] * WRITE_LATE.get(name, 1)) for name in WIDTHS}
    reading: dict[str, deque[int | None]] = {name: deque([None] * READ_LATE.get(name, 0)) for name in WIDTHS}
    at = 0
    for _ in range(6000 if bench.short() else 60_000):
        if d.rng.random() < 0.003:
            at = 0  # the space is loaded anew
        loads = d.chance("load_valid", 0.7)
        d.set("load_addr", at)
        d.draw("load_data", 1 << 32)
        reads = d.chance("read", 0.5)
        d.set("read_addr", int(d.rng.choice([d.rng.integers(256), at % 256, at // 4 % 64, at // 16 % 16])))
        await edge
        for name, bits in WIDTHS.items():
            count, size = bits // 32, BYTES * 8 // bits
            rams[name].check(int(getattr(dut, f"{name}_o").value), f"{name} at {at}")
            writes = {at % count: d.now["load_data"]} if loads and at // count < size else {}
            writing[name].append((writes, at // count))
            reading[name].append(d.now["read_addr"] % size if reads else None)
            rams[name].clock(*writing[name].popleft(), reading[name].popleft())
        at += loads
