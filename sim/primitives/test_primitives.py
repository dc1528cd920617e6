# SPDX-License-Identifier: Apache-2.0
"""Queues and delay lines in every clock against what they hold."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from sim.common import bench

WIDTH = 9
DEPTHS = (2, 8, 16)
CLOCKS = (1, 2, 3, 4, 5, 21)


@cocotb.test()
async def queues(dut: Any) -> None:
    """First in, first out, as many as there is room for; full and empty are told; a reset empties."""
    await bench.start(dut)
    rng, edge = bench.rng("queues"), RisingEdge(dut.clk_i)
    held: list[deque[int]] = [deque() for _ in DEPTHS]
    full, empty = set[int](), set[int]()
    share = (0.5, 0.5)
    for turn in range(3000 if bench.short() else 40_000):
        if turn % 50 == 0:
            share = (float(rng.choice([0.1, 0.6, 1.0])), float(rng.choice([0.1, 0.6, 1.0])))
        reset = bool(rng.random() < 0.005)
        push, pop = (sum(int(rng.random() < s) << n for n in range(len(DEPTHS))) for s in share)
        data = [int(value) for value in rng.integers(0, 1 << WIDTH, len(DEPTHS))]
        dut.rst_i.value, dut.push_valid_i.value, dut.pop_ready_i.value = int(reset), push, pop
        dut.push_data_i.value = sum(value << WIDTH * n for n, value in enumerate(data))
        await edge
        ready, valid, out = (int(s.value) for s in (dut.push_ready_o, dut.pop_valid_o, dut.pop_data_o))
        for n, (queue, depth) in enumerate(zip(held, DEPTHS, strict=True)):
            assert ready >> n & 1 == (len(queue) < depth), f"depth {depth} with {len(queue)}: ready"
            assert valid >> n & 1 == bool(queue), f"depth {depth} with {len(queue)}: valid"
            if queue:
                assert out >> WIDTH * n & (1 << WIDTH) - 1 == queue[0], f"depth {depth}"
            full |= {n} if len(queue) == depth else set()
            empty |= {n} if not queue else set()
            takes = push >> n & 1 and len(queue) < depth
            if pop >> n & 1 and queue:
                queue.popleft()
            if takes:
                queue.append(data[n])
            if reset:
                queue.clear()
    assert full == empty == set(range(len(DEPTHS)))


@cocotb.test()
async def lines(dut: Any) -> None:
    """The input so many clocks later, also across a reset, after which the first clocks say nothing."""
    await bench.start(dut)
    rng, edge = bench.rng("lines"), RisingEdge(dut.clk_i)
    for _ in range(3):
        await ClockCycles(dut.clk_i, int(rng.integers(1, 40)))
        dut.rst_i.value = 1
        await edge
        dut.rst_i.value = 0
        past: list[int] = []
        for _ in range(200):
            value = int(rng.integers(1 << WIDTH))
            dut.line_i.value = value
            await edge
            out = int(dut.line_o.value)
            for n, clocks in enumerate(CLOCKS):
                if len(past) >= clocks:
                    assert out >> WIDTH * n & (1 << WIDTH) - 1 == past[-clocks], f"{clocks} clocks"
            past.append(value)
