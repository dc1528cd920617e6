# SPDX-License-Identifier: Apache-2.0
"""Many streams on the batch machine beside the emulator: full and ragged batches, forks, one stream alone."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import program, random_dims
from rtl_device import needed

from gharial.bench import rtl_streams
from gharial.bench.rtl_streams import bench_streams
from gharial.devices.open import open_device
from gharial.driver import Driver, EncodeEntry
from gharial.isa.configs import config

BATCH = config("tiny-batch")


@pytest.mark.parametrize(("batch", "workload"), [(4, "encode"), (4, "mix"), (3, "mix"), (1, "mix"), (4, "ragged")])
def test_streams_in_batches(batch: int, workload: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    needed()
    rng = np.random.default_rng(seed)
    dims = random_dims(rng)
    print(f"model: {dims}")
    monkeypatch.setattr(rtl_streams, "open_model", lambda *_, **__: program(seed & 0xFFFF, BATCH.name, dims))
    found = bench_streams(BATCH, "random", batch=batch, workload=workload, batches=14, seed=seed & 0xFFFF)
    assert found["checked_against_emulator"] and found["n_encode"] == 14 * batch
    assert found["active"] + sum(found["stalls"].values()) == found["cycles"]
    assert found["active"] > 0 and found["stalls"]["dependency"] > 0
    assert found["bytes_read"] > 0 and found["roofline_ratio"] > 1
    # Every step has a joint, and one more for each token, of which a few streams may emit none.
    assert found["n_joint"] == found["n_pred"] == 0 if workload == "encode" else found["n_joint"] >= 14 * batch
    assert workload == "encode" or found["n_pred"] >= batch  # each stream's first step at least


def test_a_pass_over_the_weights_serves_the_whole_batch(seed: int) -> None:
    """Four steps in one command take little more of the memory than one step alone."""
    needed()
    small = program(5, BATCH.name)
    count, stack = small.manifest["features"]["count"], small.header["vectors"]
    features = np.random.default_rng(seed).integers(-64, 65, (4, stack, count), np.int8)
    device = open_device("verilator:tiny-batch", small.config, small.manifest)
    read = []
    with Driver(device, small, timeout=120) as driver:
        for entries in (features[:1], features):
            before = device.bytes_moved
            _encode(driver, entries)
            read.append(device.bytes_moved - before)
    assert read[0] > len(small.section("weights")) / 2  # predict and joint have the rest
    assert read[1] - read[0] < 0.6 * read[0]  # three states and features more, and no weights


def _encode(driver: Driver, features: np.ndarray) -> None:
    driver.encode([EncodeEntry(slot, step, 0, True) for slot, step in enumerate(features)]).result()


def test_weights_that_cannot_be_read_fail_their_batch_and_the_machine_recovers(seed: int) -> None:
    needed()
    small = program(5, BATCH.name)
    count, stack = small.manifest["features"]["count"], small.header["vectors"]
    features = np.random.default_rng(seed).integers(-64, 65, (2, stack, count), np.int8)
    device = open_device("verilator:tiny-batch", small.config, small.manifest)
    with Driver(device, small, timeout=120) as driver:
        _encode(driver, features)
        kept = driver.save("encoder", [0]).result()
        assert driver.plan.weights is not None
        device.break_memory(driver.plan.weights.address)
        ticket = driver.encode([EncodeEntry(1, features[1], 1)])
        with pytest.raises(Exception, match="BUS_READ"):
            ticket.result()
        device.break_memory(None)
        driver.recover()
        assert driver.save("encoder", [0]).result() == kept
        _encode(driver, features)
