# SPDX-License-Identifier: Apache-2.0
"""The coverage of sim/uvm: what is not declared cannot be hit, and what was not hit is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

plan = pytest.importorskip("sim.uvm.coverage.plan", reason="needs a source checkout")
from sim.uvm.coverage import report  # noqa: E402
from sim.uvm.coverage.group import CoverGroup  # noqa: E402


def test_bins_have_to_be_declared() -> None:
    group = CoverGroup("sizes", "of something", ["1", "2"])
    group.hit(1)
    group.hit("1")
    assert (group.hits, group.holes) == ({"1": 2, "2": 0}, ["2"])
    with pytest.raises(KeyError, match="group sizes has no bin 3"):
        group.hit(3)


def test_combinations() -> None:
    assert plan.crossed(["a", "b"], [0, 1]) == ["a, 0", "a, 1", "b, 0", "b, 1"]


def test_the_plan_covers_what_it_has_to() -> None:
    groups = plan.groups()
    assert sum(len(group.hits) for group in groups.values()) > 350
    assert all(group.about and group.hits for group in groups.values())
    assert len(report.holes(groups)) == sum(len(group.hits) for group in groups.values())


def test_reports(tmp_path: Path) -> None:
    groups = {"sizes": CoverGroup("sizes", "of <something>", ["small", "large"])}
    groups["sizes"].hit("small")
    report.write(groups, tmp_path, "Title")
    assert "hole: sizes: large" in (tmp_path / "coverage.txt").read_text()
    assert json.loads((tmp_path / "coverage.json").read_text()) == {"sizes": {"small": 1, "large": 0}}
    page = (tmp_path / "coverage.html").read_text()
    assert "class='bin hole'" in page and "of &lt;something&gt;" in page and "1 of 2 bins" in page
