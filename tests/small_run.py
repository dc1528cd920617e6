# SPDX-License-Identifier: Apache-2.0
"""A short conversation with a device that runs the small program: everything it can be asked, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gharial.devices.base import Device
from gharial.driver import DecodeEntry, Driver, EncodeEntry, GreedyEntry
from gharial.isa.commands import Kind, Mode
from gharial.isa.configs import Config
from gharial.program import Program


def features(seed: int, steps: int, vectors: int = 2, count: int = 4) -> list[np.ndarray]:
    """int8 (vectors, count) each."""
    random = np.random.default_rng(seed)
    return [random.integers(-127, 128, (vectors, count)).astype(np.int8) for _ in range(steps)]


def transcript(opener: Callable[[Config], Device], program: Program) -> list[Any]:
    """What comes back: greedy steps, one of them short, and steps of a search from slot to slot."""
    found: list[Any] = []
    with Driver(opener(program.config), program, timeout=60) as driver:
        e, p = driver.allocate("encoder", 2), driver.allocate("prediction", 3)
        for step, x in enumerate(features(5, 3)):
            entries = [GreedyEntry(e[0], x, step & 1, step == 0, p[0])]
            (result,) = driver.greedy(entries).result()
            found += [result.tokens.tolist(), result.logits.tolist(), result.lse.tolist(), result.joints]
        (last,) = driver.greedy([GreedyEntry(e[0], features(6, 1, 1)[0], prediction=p[0])]).result()
        found += [last.tokens.tolist(), last.lse.tolist()]
        (x,) = features(7, 1)
        driver.encode([EncodeEntry(e[1], x, bank=1, reset=True)]).result()
        kinds = ((Kind.START, p[1], p[1]), (Kind.TOKEN, p[1], p[2]), (Kind.TOKEN, p[2], p[2]), (Kind.NONE, p[1], p[1]))
        for token, (kind, source, destination) in enumerate(kinds):
            entry = DecodeEntry(e[1], 1, kind, source, destination, 3 + token)
            result = driver.decode([entry], mode=Mode.ALL).result()
            found += [result.logits.tolist(), result.lse.tolist()]
        found += [image.data for image in driver.save("prediction", p[1:]).result()]
        found += [image.data for image in driver.save("encoder", e[1:]).result()]
    return found
