# SPDX-License-Identifier: Apache-2.0
"""Batch aux: LOOKUP and JOINT for random seats against what they are, with the memories and the mover as they are."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from sim.common import bench
from sim.common.bench import clock
from sim.common.streams import Source
from sim.reference import numerics
from sim.sequencer.packing import pack

from .places import CELL_JOINT, CELL_PRED, PLACES, SCRATCH, Places, aux_fields
from .seat_ports import SeatPorts
from .wide_memory import PACES, Pace, WideMemory

EMBEDDING = 4096  # base
TOKENS = 200
UNITS = 11  # of a row


class Bench:
    """Batch aux with the embedding in memory and random cells in the seats."""

    def __init__(self, dut: Any, test: str, pause: float = 0.0) -> None:
        self.dut, self.rng = dut, bench.rng(test)
        self.places = Places.of(bench.config())
        self.mem = bytearray(self.rng.bytes(1 << 16))
        self._pause = pause

    async def start(self, pace: Pace) -> None:
        """Reset, then everything around it."""
        dut = self.dut
        await bench.start(dut)
        self.ports = SeatPorts(dut, self.places, self.rng, self._pause)
        self.memory = WideMemory(dut, self.rng, self.mem, pace)
        self.memory.start()
        dut.places_i.value = pack(PLACES, {"embedding": EMBEDDING})
        self.jobs = Source(dut.clk_i, dut.aux_valid_i, dut.aux_ready_o, {"job": dut.aux_i})

    async def run(self, **values: int) -> tuple[bool, int]:
        """A job, from its start to its end; whether it failed, and how many clocks it took."""
        self.jobs.put(job=pack(aux_fields(self.places.seats), values))
        await self.jobs.drain()
        for _ in range(20_000):
            if self.dut.aux_done_o.value:
                return bool(self.dut.aux_failed_o.value), clock() - self.jobs.taken[-1]
            await RisingEdge(self.dut.clk_i)
        raise AssertionError("a job does not end")

    def seats(self) -> int:
        """Some."""
        return int(self.rng.integers(1, 1 << self.places.seats))


@cocotb.test()
@cocotb.parametrize(pace=range(3))
async def lookups(dut: Any, pace: int) -> None:
    """Rows of tokens, zeros, constants; seats that take no part keep what they have."""
    tb = Bench(dut, f"lookups {pace}", 0.2)
    await tb.start(PACES[pace])
    rng, places = tb.rng, tb.places
    size = UNITS * places.unit_bytes
    for _ in range(5 if bench.short() else 80):
        seats, zeros, row, side = tb.seats(), int(rng.integers(0, 1 << places.seats)), rng.random() < 0.7, 0
        tokens = rng.integers(0, TOKENS, places.seats)
        dut.tokens_i.value = sum(int(token) << 16 * s for s, token in enumerate(tokens))
        dut.zeros_i.value = zeros
        unit, first = int(rng.integers(0, places.act_units[SCRATCH] - UNITS)), int(rng.integers(0, 300))
        side = int(rng.integers(0, 2))
        wanted = []
        for s in range(places.seats):
            at = EMBEDDING + (first + (int(tokens[s]) * UNITS if row else 0)) * places.unit_bytes
            data = bytes(size) if row and zeros >> s & 1 else bytes(tb.mem[at : at + size])
            if not seats >> s & 1:
                data = rng.bytes(size)
                await tb.ports.write_acts(places.act(SCRATCH, side, s, unit), data)
            wanted.append(data)
        failed, _ = await tb.run(
            seats=seats,
            row=int(row),
            embed_unit=first,
            unit_count=UNITS,
            destination=places.act(SCRATCH, side, 0, unit),
            destination_shift=places.act_shift(SCRATCH),
        )
        assert not failed
        for s, data in enumerate(wanted):
            assert await tb.ports.read_acts(places.act(SCRATCH, side, s, unit), UNITS) == data, f"seat {s}"


@cocotb.test()
async def joints(dut: Any) -> None:
    """The joint of every shift, with numbers of all sizes, while others use the memories."""
    tb = Bench(dut, "joints", 0.3)
    await tb.start(PACES[0])
    rng, places = tb.rng, tb.places
    halves = places.cell_bytes // 2
    for n in range(9 if bench.short() else 180):
        units, shift, side, seats = int(rng.integers(1, 9)), n % 9, int(rng.integers(0, 2)), tb.seats()
        units *= max(1, places.unit_bytes // halves)  # whole activation units
        units_out = units * halves // places.unit_bytes
        unit, enc_unit, pred_unit = int(rng.integers(0, 400)), int(rng.integers(0, 64)), int(rng.integers(0, 64))
        wanted = []
        for s in range(places.seats):
            enc, pred = (
                (rng.integers(-(1 << 15), 1 << 15, units * halves) >> rng.integers(0, 14, units * halves))
                .clip(-(1 << 15), (1 << 15) - 1)
                .astype("<i2")
                for _ in range(2)
            )
            await tb.ports.write_cells(places.cell(CELL_JOINT, side, s, enc_unit), enc.tobytes())
            await tb.ports.write_cells(places.cell(CELL_PRED, side, s, pred_unit), pred.tobytes())
            joint = np.asarray(numerics.joint(enc, pred, shift)).astype("i1").tobytes()
            if not seats >> s & 1:
                joint = rng.bytes(len(joint))
                await tb.ports.write_acts(places.act(SCRATCH, side, s, unit), joint)
            wanted.append(joint)
        await tb.run(
            seats=seats,
            joint=1,
            unit_count=units,
            joint_enc=places.cell(CELL_JOINT, side, 0, enc_unit),
            joint_enc_shift=places.cell_shift(CELL_JOINT),
            joint_pred=places.cell(CELL_PRED, side, 0, pred_unit),
            joint_pred_shift=places.cell_shift(CELL_PRED),
            shift=shift,
            destination=places.act(SCRATCH, side, 0, unit),
            destination_shift=places.act_shift(SCRATCH),
        )
        for s, data in enumerate(wanted):
            assert await tb.ports.read_acts(places.act(SCRATCH, side, s, unit), units_out) == data, f"seat {s}"


@cocotb.test()
async def row_that_cannot_be_read(dut: Any) -> None:
    """The job ends all the same, and says where."""
    tb = Bench(dut, "row_that_cannot_be_read")
    await tb.start(PACES[1])
    places = tb.places
    job = {
        "seats": (1 << places.seats) - 1,
        "row": 1,
        "unit_count": UNITS,
        "destination_shift": places.act_shift(SCRATCH),
    }
    for bad in range(places.seats):
        dut.tokens_i.value = sum(10 * s << 16 * s for s in range(places.seats))
        hit = EMBEDDING + 10 * bad * UNITS * places.unit_bytes + 12
        tb.memory.bad_reads = {hit}
        failed, _ = await tb.run(**job)
        assert failed and hit - 8 < int(dut.aux_error_addr_o.value) <= hit
        tb.memory.bad_reads = set()
        assert not (await tb.run(**job))[0]


@cocotb.test()
async def clocks(dut: Any) -> None:
    """JOINT takes two clocks a cell unit, and what docs/blocks/batch_aux.md says beside."""
    tb = Bench(dut, "clocks")
    await tb.start(PACES[0])
    places = tb.places
    for units in (1, 4, 16):
        for count in range(1, places.seats + 1):
            _, taken = await tb.run(
                seats=(1 << count) - 1,
                joint=1,
                unit_count=units,
                joint_enc_shift=places.cell_shift(CELL_JOINT),
                joint_pred_shift=places.cell_shift(CELL_PRED),
                destination_shift=places.act_shift(SCRATCH),
            )
            assert taken <= count * (2 * units + 2) + 12, f"{taken} clocks"
