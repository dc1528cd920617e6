# SPDX-License-Identifier: Apache-2.0
"""Setting up a bench: clock and reset, its configuration, its random numbers, and how long it may take."""

from __future__ import annotations

import os
import zlib
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.handle import ArrayObject, LogicArrayObject, LogicObject, PackedObject
from cocotb.triggers import ClockCycles, Timer
from cocotb.utils import get_sim_time

from gharial.isa.configs import Config
from gharial.isa.configs import config as named

PERIOD_NS = 10
MOST_CLOCKS = 5_000_000  # of a test: one that still runs then waits for what will not come, and fails


def short() -> bool:
    """Whether this is the form for `make test`: leave out what takes more than a few seconds."""
    return os.environ.get("GHARIAL_BENCH") == "short"


def config() -> Config:
    """The configuration that the design was built for."""
    return named(os.environ["GHARIAL_CONFIG"])


def rng(test: str) -> np.random.Generator:
    """Random numbers for the test of that name: the same for the same GHARIAL_SEED, whichever tests run besides."""
    return np.random.default_rng([cocotb.RANDOM_SEED & 0xFFFFFFFF, zlib.crc32(test.encode())])


def clock() -> int:
    """Number of the present clock: rises by one a rising edge, the same for all that happens at one edge."""
    return int(get_sim_time("ns")) // PERIOD_NS


async def start(dut: Any, reset_clocks: int = 3) -> None:
    """Start `clk_i`, set every other input to zero, hold `rst_i` for some clocks; returns at the first edge without."""
    for handle in dut:
        if handle._name.endswith("_i"):
            _clear(handle)
    dut.clk_i.value = 0
    Clock(dut.clk_i, PERIOD_NS, unit="ns").start(start_high=False)
    cocotb.start_soon(_end())
    if hasattr(dut, "rst_i"):
        dut.rst_i.value = 1
        await ClockCycles(dut.clk_i, reset_clocks)
        dut.rst_i.value = 0
    await ClockCycles(dut.clk_i, 1)


async def _end() -> None:
    await Timer(MOST_CLOCKS * PERIOD_NS, unit="ns")
    raise AssertionError(f"the test still runs after {MOST_CLOCKS} clocks")


def _clear(handle: Any) -> None:
    if isinstance(handle, ArrayObject):
        for element in handle:
            _clear(element)
    elif isinstance(handle, (LogicObject, LogicArrayObject, PackedObject)):
        handle.value = 0
