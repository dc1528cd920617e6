# SPDX-License-Identifier: Apache-2.0
"""Top-k unit against the integer reference model: maximum, log-sum-exp, order, single logits."""

from __future__ import annotations

import os
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

from gharial.compiler.tables import default_tables
from sim.reference import ranking

SEED = int(os.environ.get("GHARIAL_SEED", "1"))
CASES = int(os.environ.get("GHARIAL_CASES", "40"))
FIRST_WORD = 2048  # exp and log follow sigmoid and tanh in the table space
PLACES = 33
CLASS_CLOCKS = 5  # from class_re_i to its logit
WAIT_LIMIT = 4000
LSE_BOUND = 3.3e-4  # nat, and 2^-24 a class: docs/numerics.md, section 8


class Bench:
    """Drives one unit."""

    def __init__(self, dut):
        self.dut = dut
        self.tables = default_tables()
        self.worst = 0.0  # error of a log-sum-exp against double precision, as a share of its bound
        self.most = int(dut.MaxClasses.value) if hasattr(dut, "MaxClasses") else 512

    async def start(self):
        """Clock, reset, tables."""
        dut = self.dut
        for name in (
            "load_valid_i",
            "logit_valid_i",
            "scan_valid_i",
            "scan_fuzzy_i",
            "rank_pop_i",
            "class_re_i",
            "logit_last_i",
        ):
            getattr(dut, name).value = 0
        cocotb.start_soon(Clock(dut.clk_i, 10, "ns").start())
        dut.rst_i.value = 1
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        dut.rst_i.value = 0
        words = np.concatenate([self.tables["exp"], self.tables["log"]]).ravel()
        dut.load_valid_i.value = 1
        for index, word in enumerate(words):
            dut.load_addr_i.value = FIRST_WORD + index
            dut.load_data_i.value = int(word) & 0xFFFFFFFF
            await RisingEdge(dut.clk_i)
        dut.load_valid_i.value = 0

    async def fill(self, logits, classes, bits, rng, gaps):
        """Feed the logits of one joint and check its maximum; rows beyond the classes hold garbage."""
        dut = self.dut
        dut.classes_i.value = classes
        dut.logit_bits_i.value = bits
        padded = list(logits) + [32767] * (-len(logits) % 4 + 4 * rng.randint(0, 2))
        padded = padded[: self.most]
        quads = len(padded) // 4
        for quad in range(quads):
            while gaps and rng.random() < 0.3:
                dut.logit_valid_i.value = 0
                await RisingEdge(dut.clk_i)
            dut.logit_valid_i.value = 1
            dut.logit_quad_i.value = quad
            dut.logit_last_i.value = int(quad == quads - 1)
            for lane in range(4):
                dut.logit_data_i[lane].value = int(padded[4 * quad + lane])
            await RisingEdge(dut.clk_i)
        dut.logit_valid_i.value = 0
        best = await self.until("max_valid_o")
        assert best
        want = ranking.argmax(logits)
        assert dut.max_class_o.value.to_unsigned() == want
        assert dut.max_logit_o.value.to_signed() == logits[want]
        await RisingEdge(dut.clk_i)

    async def until(self, name):
        """Wait for a flag, bounded; the clocks it took."""
        for clocks in range(WAIT_LIMIT):
            await ReadOnly()
            if getattr(self.dut, name).value == 1:
                return clocks + 1
            await RisingEdge(self.dut.clk_i)
        raise AssertionError(f"{name} did not come within {WAIT_LIMIT} clocks")

    async def scan(self, logits, k, temperature, bits, rng, fuzzy=False):
        """One scan and all that can be read of it."""
        dut = self.dut
        order, values = ranking.fuzzy(logits, k) if fuzzy else (ranking.top_k(logits, k), np.array(logits))
        dut.scan_valid_i.value = 1
        dut.scan_rank_i.value = int(k > 0)
        dut.scan_fuzzy_i.value = int(fuzzy)
        dut.scan_temperature_i.value = temperature
        await RisingEdge(dut.clk_i)
        dut.scan_valid_i.value = 0
        clocks = await self.until("done_o")
        assert clocks <= (2 if fuzzy else 1) * len(logits) + 150
        want = ranking.log_sum_exp(self.tables["exp"], self.tables["log"], values, temperature, bits)
        assert dut.lse_o.value.to_signed() == want, f"lse {dut.lse_o.value.to_signed()}, expected {want}"
        exact = np.logaddexp.reduce(values * (temperature * 2.0 ** -(bits + 14)))
        self.worst = max(self.worst, abs(want * 2.0**-16 - exact) / (LSE_BOUND + len(logits) * 2.0**-24))
        assert self.worst <= 1, f"lse {want * 2.0**-16}, exactly {exact}"
        await RisingEdge(dut.clk_i)
        for place in order:
            await ReadOnly()
            assert dut.rank_class_o.value.to_unsigned() == place
            assert dut.rank_logit_o.value.to_signed() == logits[place]
            await RisingEdge(dut.clk_i)
            dut.rank_pop_i.value = 1
            await RisingEdge(dut.clk_i)
            dut.rank_pop_i.value = 0
        for index in rng.sample(range(len(logits)), min(4, len(logits))):
            dut.class_re_i.value = 1
            dut.class_i.value = index
            await RisingEdge(dut.clk_i)
            dut.class_re_i.value = 0
            for _ in range(CLASS_CLOCKS - 1):
                await RisingEdge(dut.clk_i)
            await ReadOnly()
            assert dut.class_logit_o.value.to_signed() == values[index]
            await RisingEdge(dut.clk_i)


def draw(rng, classes):
    """Logits of one case: peaked, flat, tied, ascending or at the limits."""
    kind = rng.randrange(6)
    if kind == 0:
        return [rng.randint(-32768, 32767) for _ in range(classes)]
    if kind == 1:
        level = rng.randint(-32768, 32767)
        return [level] * classes
    if kind == 2:
        return [rng.choice((-32768, 32767)) for _ in range(classes)]
    if kind == 3:
        return [rng.randint(-3, 3) for _ in range(classes)]
    if kind == 4:
        return sorted(rng.randint(-500, 500) for _ in range(classes))
    spread = rng.choice((50, 500, 4000))
    return [max(-32768, min(32767, round(rng.gauss(0, spread)))) for _ in range(classes)]


@cocotb.test()
async def scans_equal_the_reference(dut):
    """Random joints, each scanned."""
    dut._log.info("seed %d", SEED)
    rng = random.Random(SEED)
    bench = Bench(dut)
    await bench.start()
    for _ in range(CASES):
        classes = rng.choice((1, 2, 5, 29, 64, 255, 256, rng.randint(1, 300)))
        bits = rng.randint(4, 12)
        logits = draw(rng, classes)
        await bench.fill(logits, classes, bits, rng, gaps=rng.random() < 0.5)
        k = min(classes, rng.choice((0, 1, 4, PLACES)))
        await bench.scan(logits, k, rng.choice((4096, 11703, 16384, 65535, 0)), bits, rng)
    for number in range(2 + CASES // 4):
        classes = rng.choice((256, 512))
        logits = draw(rng, classes)
        await bench.fill(logits, classes, 9, rng, gaps=False)
        # All survivors of one block: the last of them is no greater than what the others' logits become.
        k = (32, 33)[classes > 256] if number < 2 else rng.randint(1, 32)
        await bench.scan(logits, k, rng.choice((11703, 16384)), 9, rng, fuzzy=True)
        await bench.scan(logits, 4, 16384, 9, rng)
    dut._log.info("largest error against double precision, of the bound: %.2f", bench.worst)


@cocotb.test()
async def next_joint_may_come_during_a_scan(dut):
    """Two banks: the second joint's logits arrive while the first is scanned, and both are right."""
    rng = random.Random(SEED + 1)
    bench = Bench(dut)
    await bench.start()
    first, second = draw(rng, 128), draw(rng, 128)
    await bench.fill(first, 128, 9, rng, gaps=False)
    other = cocotb.start_soon(bench.scan(first, 4, 16384, 9, rng))
    await RisingEdge(dut.clk_i)
    await bench.fill(second, 128, 9, rng, gaps=True)
    await other
    await bench.scan(second, 4, 16384, 9, rng)
