# SPDX-License-Identifier: Apache-2.0
"""Loader that believes: chunks in place are taken unread, all others are checked (large programs in simulation)."""

from __future__ import annotations

import zlib
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from gharial.isa.faults import Fault
from gharial.isa.header import ProgramSpace
from sim.common import bench

IMAGE = [0x12345678, 0x9ABCDEF0, 3, 4]


async def load(dut: Any, space: int, in_place: bool, offset: int, count: int, crc: int) -> tuple[int, int, int]:
    """One LOAD: its fault and detail, and how many words were read."""
    edge, read, left = RisingEdge(dut.clk_i), 0, 0
    fields = {"space": space, "in_place": int(in_place), "address": 4096 + offset, "offset": offset,
              "bytes": 4 * count, "crc": crc, "mem_size": 1 << 20}  # fmt: skip
    for name, value in fields.items():
        getattr(dut, f"{name}_i").value = value
    dut.load_i.value = 1
    await edge
    dut.load_i.value = 0
    for _ in range(1000):
        dut.read_ready_i.value = 1
        await edge
        if dut.done_o.value:
            return int(dut.fault_o.value), int(dut.detail_o.value), read
        if dut.read_valid_o.value and dut.read_ready_i.value:
            left = int(dut.read_words_o.value)
        dut.data_valid_i.value = int(left > 0)
        if left:
            dut.data_i.value = IMAGE[count - left]
            left, read = left - 1, read + 1
    raise AssertionError("the LOAD does not end")


@cocotb.test()
async def unread(dut: Any) -> None:
    """Weights and embedding in chunks, their sizes counted; scales still need a CRC."""
    await bench.start(dut)
    good = zlib.crc32(b"".join(word.to_bytes(4, "little") for word in IMAGE))
    for space in (ProgramSpace.WEIGHTS, ProgramSpace.EMBEDDING):
        assert (await load(dut, space, True, 0, 4096, 1))[::2] == (0, 0)
        assert (await load(dut, space, True, 16384, 4, 2))[::2] == (0, 0)
        assert (await load(dut, space, True, 16384, 4, 2))[:2] == (Fault.BAD_COMMAND, 12)
        assert (await load(dut, space, False, 0, 4, good))[:2] == (Fault.BAD_COMMAND, 0)
    assert await load(dut, ProgramSpace.SCALES, False, 0, 4, good ^ 1) == (Fault.CHECKSUM, good, 4)
    assert (await load(dut, ProgramSpace.SCALES, False, 0, 4, good))[::2] == (0, 8)
