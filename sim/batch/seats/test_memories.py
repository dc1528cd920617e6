# SPDX-License-Identifier: Apache-2.0
"""Seat memories: every unit of every region, seat and side has its own place, lanes are written alone."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from sim.common import bench

from .places import Places
from .seat_ports import SeatPorts


@cocotb.test()
async def places_are_apart(dut: Any) -> None:
    """A run of units in every region of every seat and side, written all, then read all."""
    rng = bench.rng("places_are_apart")
    await bench.start(dut)
    places = Places.of(bench.config())
    ports = SeatPorts(dut, places, rng, 0.1)
    written = []
    for cells in (False, True):
        units = places.cell_units if cells else places.act_units
        size = places.cell_bytes if cells else places.unit_bytes
        for region in range(3):
            for side in range(2):
                for seat in range(places.seats):
                    count = int(rng.integers(1, 6))
                    unit = int(rng.choice([0, units[region] - count, int(rng.integers(0, units[region] - count + 1))]))
                    at = (places.cell if cells else places.act)(region, side, seat, unit)
                    written.append((cells, at, count, rng.bytes(count * size)))
    for index in rng.permutation(len(written)):
        cells, at, _, data = written[index]
        await (ports.write_cells if cells else ports.write_acts)(at, data)
    for cells, at, count, data in written:
        assert await (ports.read_cells if cells else ports.read_acts)(at, count) == data, f"unit {at:#x}"


@cocotb.test()
async def lanes(dut: Any) -> None:
    """The finish unit's narrowest write changes its lane alone."""
    rng = bench.rng("lanes")
    await bench.start(dut)
    config = bench.config()
    places = Places.of(config)
    ports = SeatPorts(dut, places, rng)
    edge = RisingEdge(dut.clk_i)
    old, new = rng.bytes(places.unit_bytes), rng.bytes(places.unit_bytes)
    for lane in range(0, places.unit_bytes, config.lanes):
        await ports.write_acts(5, old)
        dut.finish_we_i.value, dut.finish_addr_i.value = 1, 5
        dut.finish_data_i.value = int.from_bytes(new, "little")
        dut.finish_mask_i.value = (1 << config.lanes) - 1 << lane
        await edge
        dut.finish_we_i.value = 0
        await edge
        wanted = old[:lane] + new[lane : lane + config.lanes] + old[lane + config.lanes :]
        assert await ports.read_acts(5, 1) == wanted
    old, new = rng.bytes(places.cell_bytes), rng.bytes(places.cell_bytes)
    for lane in range(0, places.cell_bytes // 2, config.lanes):
        await ports.write_cells(7, old)
        dut.cell_we_i.value, dut.cell_waddr_i.value = 1, 7
        dut.cell_wdata_i.value = int.from_bytes(new, "little")
        dut.cell_wmask_i.value = (1 << config.lanes) - 1 << lane
        await edge
        dut.cell_we_i.value = 0
        await edge
        first, end = 2 * lane, 2 * (lane + config.lanes)
        assert await ports.read_cells(7, 1) == old[:first] + new[first:end] + old[end:]
