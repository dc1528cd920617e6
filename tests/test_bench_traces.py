# SPDX-License-Identifier: Apache-2.0
"""Emulator, reference model and RTL agree on every tensor of whole utterances, and the comparison would tell."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rtl_device import needed
from scripts import bench_traces


@pytest.fixture
def traces() -> ModuleType:
    needed()
    return bench_traces


def test_all_three_agree(traces: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert traces.main(["--limit", "4", "--json", str(tmp_path / "found.json")]) == 0
    results = json.loads((tmp_path / "found.json").read_text())
    assert [result["config"] for result in results] == ["tiny"] * 4 + ["ecp5-85f"] * 4
    assert all(result["tensors"] > 20 and result["steps"] > 0 and result["differ"] == [] for result in results)
    assert sum(result["tokens"] for result in results) > 4
    assert "ecp5-85f: 4 of 4 utterances equal" in capsys.readouterr().out


def test_one_value_that_differs_is_told(
    traces: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = traces.trace_recording

    def wrong(program: Any, recording: Path, device: str) -> Any:
        tensors = right(program, recording, device)
        if device.startswith("verilator"):
            tensors["encoder.post_rnn.1.c"][-1, -1] += 1
        return tensors

    monkeypatch.setattr(traces, "trace_recording", wrong)
    assert traces.main(["--limit", "1", "--config", "tiny"]) == 1
    out = capsys.readouterr().out
    assert "tiny: 0 of 1 utterances equal" in out and "encoder.post_rnn.1.c (verilator)" in out


def test_without_larger_sets_there_are_enough(
    traces: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "data_folder", lambda: None)
    found = traces.utterances(20, tmp_path)
    assert len({path.name for path in found}) == 20 and all(path.is_file() for path in found)
