# SPDX-License-Identifier: Apache-2.0
"""What Vivado is given for a card: rehearsed without it, and its absence is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

pytest.importorskip("tkinter", reason="the scripts are rehearsed in Python's Tcl")

from scripts.cards import check, facts, tcl, top
from scripts.rtl import tools
from scripts.rtl.tools import ToolError

KEYS = ("kv260", "u50", "u55c")


@pytest.fixture(autouse=True)
def needed() -> None:
    problem = tools.lacking([tools.VERILATOR])
    if problem:
        pytest.skip(problem)


def test_cards_have_configurations() -> None:
    """A card's device is that of its configuration; its memory has room for what the configuration reaches."""
    assert tuple(sorted(facts.cards())) == KEYS
    for card in facts.cards().values():
        assert card.build.in_memory
        assert card.memory_base % card.build.window_bytes == 0
        room = {"8GB": 8 << 30, "16GB": 16 << 30, None: 2 << 30}[card.hbm]
        assert card.build.window_bytes <= room
        burst = card.build.rows * card.build.cols // card.build.ports
        assert not card.hbm or burst <= 16 * card.build.port_bytes


@pytest.mark.parametrize("key", KEYS)
def test_scripts_run_to_their_end(key: str, tmp_path: Path) -> None:
    """Everything named is there, and platform and top level have the same ports."""
    card = facts.cards()[key]
    tcl.write(card, tmp_path)
    assert check.scripts(card, tmp_path) == []
    named = re.findall(r"^  \{(.*)\}$", (tmp_path / tcl.FACTS).read_text(), re.MULTILINE)
    assert len(named) == len(set(named)) > 100
    text = (tmp_path / f"{top.TOP}.sv").read_text()
    assert text.count("_araddr = MemoryBase |") == card.build.ports + 2


def test_mistakes_in_scripts_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that is not made, a cell that is not made, a file that is not there."""
    card = facts.cards()["kv260"]
    changed = tmp_path / "changed.tcl"
    monkeypatch.setattr(facts.Card, "script", changed)
    script = (facts.SCRIPTS / "zynq.tcl").read_text()
    for old, new, said in (
        ("bus registers/M00_AXI @CSR\n", "", "CSR leads nowhere"),
        ("wire processors/pl_clk0", "wire processor/pl_clk0", "processor/pl_clk0 is used"),
        ("STATE HPC1 ", "", "STATE leads nowhere"),
    ):
        assert script.count(old) == 1
        changed.write_text(script.replace(old, new))
        tcl.write(card, tmp_path)
        assert any(said in fault for fault in check.scripts(card, tmp_path)), said
    changed.write_text(script)
    tcl.write(card, tmp_path)
    (tmp_path / f"{top.TOP}.sv").unlink()
    with pytest.raises(ToolError, match=r"no file .*gharial_card\.sv"):
        tcl.rehearse(card, tmp_path)


def test_without_vivado(tmp_path: Path) -> None:
    """One message with the remedy, exit code 2."""
    env = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join([str(ROOT / "host"), str(ROOT)])}
    for arguments, said in (["u50"], "Vivado"), (["u50", "--stale"], "no image of this card is kept"):
        command = [sys.executable, "-m", "scripts.board.build", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr and "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) <= 3
