# SPDX-License-Identifier: Apache-2.0
"""Weight stream and array unit together: sums from what lies in the memory, and what share of the clocks has a step."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from sim.common import bench
from sim.common.streams import signed


def memory(first: int, count: int) -> np.ndarray:
    """Bytes from an address on, both multiples of 4, as port_memory.sv has them: int64."""
    at = np.arange(first // 4, (first + count) // 4, dtype=np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    mixed = ((at ^ (at >> np.uint64(15))) * np.uint64(0x9E3779B1)) & mask
    mixed = ((mixed ^ (mixed >> np.uint64(13))) * np.uint64(0x85EBCA6B)) & mask
    parts = mixed.astype("<u4").view(np.uint8).astype(np.int64) & 0x7F
    return np.where(parts >= 64, parts - 128, parts)


def units(addresses: np.ndarray, cols: int) -> np.ndarray:
    """Activation units as stream_array_bench.sv has them: int64 (addresses, cols)."""
    raw = (addresses[:, None] + 37 * np.arange(cols)) & 0xFF
    return np.where(raw >= 128, raw - 256, raw)


async def run(dut: Any, segments: int, tiles: int, seats: list[int], vectors: int, latency: int, eighths: int) -> None:
    """Run segments from reset to the last result, and compare all results."""
    config = bench.config()
    dut.segments_i.value, dut.tiles_i.value, dut.vectors_i.value = segments, tiles, vectors
    dut.seats_i.value = sum(1 << seat for seat in seats)
    dut.latency_i.value, dut.eighths_i.value = latency, eighths
    dut.rst_i.value = 1
    await ClockCycles(dut.clk_i, 2)
    dut.rst_i.value = 0
    slice_rows = 4 * config.lanes
    found = []
    while not dut.done_o.value:
        await RisingEdge(dut.clk_i)
        if dut.res_valid_o.value:
            found.append([signed(int(value), 32) for value in dut.res_sums_o.value])
    size = config.rows * config.cols
    place = 0
    for segment in range(segments):
        weights = memory(segment * tiles * size, tiles * size).reshape(tiles, config.rows, config.cols)
        for seat in seats:
            for vector in range(vectors):
                first = segment * tiles + (seat << 9) + 64 * vector
                sums = np.einsum("trc,tc->r", weights, units(first + np.arange(tiles), config.cols))
                for part in sums.reshape(-1, slice_rows):
                    assert found[place] == list(part), f"segment {segment}, seat {seat}, vector {vector}"
                    place += 1
    assert place == len(found)


def utilisation(dut: Any) -> float:
    """Steps in the clocks from the first step to the last."""
    return int(dut.active_o.value) / int(dut.clocks_o.value)


@cocotb.test()
async def compute_bound(dut: Any) -> None:
    """Where a batch takes as long over a tile as the memory, or longer, every clock has a step."""
    config = bench.config()
    await bench.start(dut)
    beats = config.rows * config.cols // config.ports // config.port_bytes
    vectors = -(-beats * 8 // (7 * config.batch))  # seven beats in eight clocks
    segments = 10 if bench.short() else 40
    await run(dut, segments, 24, list(range(config.batch)), vectors, min(150, 6 * beats), 7)
    text = f"{utilisation(dut):.4f}, starved {int(dut.starved_o.value)}, blocked {int(dut.blocked_o.value)}"
    dut._log.info(f"utilisation {text} of {int(dut.clocks_o.value)} clocks")
    assert utilisation(dut) == 1.0, text


@cocotb.test()
async def memory_bound(dut: Any) -> None:
    """One seat takes a tile a clock: then the memory never rests."""
    config = bench.config()
    await bench.start(dut)
    beats = config.rows * config.cols // config.ports // config.port_bytes
    await run(dut, 10, 24, [config.batch - 1], 1, 2 * beats, 8)
    assert int(dut.starved_o.value) > 0
    assert int(dut.clocks_o.value) == (10 * 24 - 1) * beats + 1
