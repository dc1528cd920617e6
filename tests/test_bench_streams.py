# SPDX-License-Identifier: Apache-2.0
"""The traffic of many streams that benches of batches run: every stream's work, in its order, whatever the batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from compiled import program

from gharial.bench.random_model import SHAPES
from gharial.bench.streams import BURSTS, MOST, Traffic
from gharial.devices.open import open_device
from gharial.driver import Driver, EncodeEntry
from gharial.errors import BadInput
from gharial.isa.commands import Kind
from gharial.program import Program


@pytest.fixture(scope="module")
def small() -> Program:
    return program(1, "tiny-batch")


@pytest.fixture
def driver(small: Program) -> Iterator[Driver]:
    with Driver(open_device("emulator", small.config, small.manifest), small) as driver:
        yield driver


def test_shapes_are_those_of_the_contract() -> None:
    base, large = SHAPES["base"], SHAPES["large"]
    assert round(base.parameters / 1e6) == 85 and round(large.parameters / 1e6) == 196


@pytest.mark.parametrize(("batch", "ragged"), [(1, False), (3, False), (4, False), (1, True), (4, True)])
def test_every_step_is_encoded_and_decoded(small: Program, driver: Driver, batch: int, ragged: bool, seed: int) -> None:
    traffic = Traffic(small, batch, 24, True, seed, ragged=ragged)
    commands = 0
    encoded: dict[int, int] = defaultdict(int)
    joints: dict[int, int] = defaultdict(int)
    tokens = 0
    for command in traffic.commands():
        if isinstance(command[0], EncodeEntry):
            commands += 1
            assert 1 <= len(command) <= (max(1, batch - 1) if ragged else batch)
            for entry in command:
                encoded[entry.slot] += 1
            driver.encode(command).result()
            continue
        assert 1 <= len(command) <= (2 * batch if ragged else batch)
        streams = [entry.encoder for entry in command]
        assert len(set(streams)) == len(streams)
        for entry in command:
            assert joints[entry.encoder] > 0 or entry.kind == Kind.START
            joints[entry.encoder] += 1
            tokens += entry.kind == Kind.TOKEN
        driver.decode(command, k=2).result()  # the device refuses what is out of order
    assert sum(encoded.values()) == traffic.encodes == 24 * batch
    assert sum(joints.values()) == traffic.joints == traffic.encodes + tokens
    assert traffic.predictions == tokens + traffic.streams
    assert traffic.passes == commands == (48 if ragged and batch > 1 else 24)


def test_bursts_are_as_stated(small: Program, seed: int) -> None:
    """Tokens a step: 0.1 bursts of 1 (half of them), 2, 3 or 4. Within seven standard deviations of 24 000 steps."""
    traffic = Traffic(small, 4, 6000, True, seed)
    for _ in traffic.commands():
        pass
    tokens = traffic.joints - traffic.encodes
    mean = BURSTS * (1 / 2 + 2 / 4 + 3 / 8 + 4 / 8)  # 0.2, less what the longest burst cuts off
    deviation = (BURSTS * (1 / 2 + 4 / 4 + 9 / 8 + 16 / 8) - mean**2) ** 0.5
    assert MOST == 4 and abs(tokens / traffic.encodes - mean) < 7 * deviation / traffic.encodes**0.5


def test_results_do_not_depend_on_the_batch(small: Program, driver: Driver, seed: int) -> None:
    """A step's result is the same alone and among others."""
    random = np.random.default_rng(seed)
    count, stack = small.manifest["features"]["count"], small.header["vectors"]
    features = random.integers(-64, 65, (3, 4, stack, count), np.int8)
    for step, batch in enumerate(features):
        driver.encode([EncodeEntry(s, f, step & 1, step == 0) for s, f in enumerate(batch)]).result()
        for s, f in enumerate(batch):
            driver.encode([EncodeEntry(8 + s, f, step & 1, step == 0)]).result()
    together, alone = driver.save("encoder", range(4)).result(), driver.save("encoder", range(8, 12)).result()
    assert together == alone


def test_numbers_out_of_range_are_refused(small: Program) -> None:
    with pytest.raises(BadInput, match="out of range"):
        Traffic(small, 0, 1, False, 1)
