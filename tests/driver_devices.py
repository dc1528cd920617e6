# SPDX-License-Identifier: Apache-2.0
"""What the tests of the driver on devices that compute share: programs, the devices, greedy runs.

Programs come from the compiler, with random weights and sizes that need padding everywhere.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from compiled import program as compiled
from driver_cases import LONG
from random_checkpoint import SMALL
from rtl_device import open_rtl
from small_run import features

from gharial.devices.base import Device
from gharial.driver import Driver, GreedyEntry
from gharial.program import Program

emulator = pytest.importorskip("gharial.devices.emulator", reason="the emulator's engine is not built")
reference = pytest.importorskip("sim.reference", reason="needs a source checkout")

COUNT, BLANK = SMALL.features, SMALL.classes - 1
CAP = 4


@cache
def lively() -> tuple[int, float]:
    """Seed and bias of blank of a program that emits tokens at some steps and none at others."""
    for seed in range(13, 40):
        for bias in np.arange(0.5, 4, 0.25).tolist():
            p = compiled(seed, "tiny", blank_bias=bias)
            with Driver(emulated(p), p, timeout=LONG) as driver:
                counts = [len(tokens) for tokens, *_ in greedy_run(driver, [stream(1, 8)], [0])[0]]
            if 0 in counts[1:] and len(set(counts)) > 2:
                return seed, bias
    pytest.fail("no random program emits tokens at some steps only")


@cache
def program(name: str = "tiny", another: int = 0) -> Program:
    """A program for that configuration; `another` gives other weights."""
    seed, bias = lively()
    return compiled(seed + another, name, blank_bias=bias)


def emulated(p: Program) -> Device:
    device: Device = emulator.open_emulator(p.config)
    return device


def modelled(p: Program) -> Device:
    device: Device = reference.ReferenceDevice(p.config, _manifest(p))
    return device


def _manifest(p: Program) -> dict[str, Any]:
    return p.manifest


def simulated(p: Program) -> Device:
    return open_rtl(p.config)


OPENERS = {"emulator": emulated, "reference": modelled, "verilator": simulated}


Shown = list[tuple[list[int], list[int], list[int], bool, int]]


def greedy_run(driver: Driver, streams: list[list[np.ndarray]], slots: list[int], start: int = 0) -> list[Shown]:
    """Greedy decoding of several streams, all in one batch; slots are the encoder's, prediction slots 20 beyond."""
    shown: list[Shown] = [[] for _ in streams]
    for step in range(max(map(len, streams))):
        live = [n for n, stream in enumerate(streams) if step < len(stream)]
        entries = [
            GreedyEntry(slots[n], streams[n][step], step & 1, step + start == 0, prediction=slots[n] + 20) for n in live
        ]
        for n, r in zip(live, driver.greedy(entries, max_symbols=CAP).result(), strict=True):
            shown[n].append((r.tokens.tolist(), r.logits.tolist(), r.lse.tolist(), r.capped, r.joints))
    return shown


def stream(seed: int, steps: int) -> list[np.ndarray]:
    return features(seed, steps, SMALL.stack, COUNT)


def two_streams(driver: Driver, steps: int = 3) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Streams on slots 0 and 1, some steps into them."""
    a, b = stream(6, 8), stream(7, 8)
    greedy_run(driver, [a[:steps], b[:steps]], [0, 1])
    return a, b
