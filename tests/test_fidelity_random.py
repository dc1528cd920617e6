# SPDX-License-Identifier: Apache-2.0
"""What `make bench` measures on base and large, on a smaller shape: random weights, fixed labels, five seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripts import bench_fidelity, random_models

from gharial.checkpoint import ModelDims
from gharial.model import compile_model

SHAPE = ModelDims(240, 192, 2, 3, 2, 128, 2, 160, 512)
MEASURED = Path(__file__).resolve().parent.parent / "docs" / "measured"


def test_random_weights(tmp_path: Path) -> None:
    """A seed of its own: a draw decides a decibel or two, and the claim is about these weights."""
    path = tmp_path / "small.hw.pt"
    random_models.write(path, SHAPE)
    found = bench_fidelity.fidelity(compile_model(path, "kv260"), path)
    assert found["evaluations"] > found["labels"] + 80
    assert found["sqnr_db"] >= bench_fidelity.LEAST_DB
    assert found["sqnr_changes_db"] >= bench_fidelity.LEAST_DB
    assert found["decisive"] >= 20
    assert found["decisive_agreeing"] >= bench_fidelity.LEAST_AGREEMENT * found["decisive"]


@pytest.mark.parametrize("name", list(bench_fidelity.LIMITS))
def test_what_was_measured_holds(name: str) -> None:
    found = json.loads((MEASURED / f"{name}-fidelity.json").read_text())
    assert found["model"] == name
    assert bench_fidelity.faults(found) == []


def test_faults_are_found() -> None:
    good = json.loads((MEASURED / "base-fidelity.json").read_text())
    for key, value in (
        ("seconds", 61.0),
        ("peak_bytes", 5 << 30),
        ("sqnr_db", 24.9),
        ("sqnr_changes_db", 24.9),
        ("decisive_agreeing", int(0.9 * good["decisive"])),
        ("decisive", 0),
    ):
        assert len(bench_fidelity.faults(good | {key: value})) == 1, key
