# SPDX-License-Identifier: Apache-2.0
"""The tools around the RTL: configuration package, descriptions of benches, limits of synthesis."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from scripts.rtl import config_pkg, synth, tools
from sim import benches

from gharial.isa.configs import configs


@pytest.mark.parametrize("name", configs())
def test_config_package_has_every_number(name: str) -> None:
    config = configs()[name]
    text = config_pkg.text(config)
    found = dict(re.findall(r"localparam (?:int|longint) unsigned (\w+) = (?:64'd)?(\d+);", text))
    assert len(found) == 20
    for key, value in (("Rows", config.rows), ("EncAUnits", config.enc_a_units), ("WindowBytes", config.window_bytes)):
        assert int(found[key]) == value
    assert f"ConfigId = 32'h{config.config_id:08x};" in text
    assert f"WeightsOnChip = 1'b{int(config.weights == 'onchip')};" in text


def test_bench_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "adders").mkdir()
    file = tmp_path / "adders" / "bench.toml"
    monkeypatch.setattr(benches, "SIM", tmp_path)
    file.write_text(
        '[plain]\n[wide]\ntop = "adder"\nconfigs = ["tiny", "u50"]\nparameters = { W = 9 }\n'
        'variants = { a = { V = 1 }, b = { V = "x" } }\n'
    )
    plain, *wide = benches.runs()
    assert (plain.name, plain.top, plain.modules, plain.parameters) == (
        "plain/tiny",
        "plain",
        ("sim.adders.test_plain",),
        {},
    )
    assert [run.name for run in wide] == ["wide/tiny/a", "wide/tiny/b", "wide/u50/a", "wide/u50/b"]
    assert wide[1].parameters == {"W": 9, "V": "x"} and wide[1].top == "adder"
    file.write_text('[plain]\nmodule = ["test_a", "test_b"]\n')
    assert benches.runs()[0].modules == ("sim.adders.test_a", "sim.adders.test_b")
    file.write_text("[plain]\ntops = 1\n")
    with pytest.raises(ValueError, match="tops"):
        benches.runs()


def test_synthesis_faults() -> None:
    most = {"luts": 100, "mhz": 80}
    assert synth.faults({"LUT4": 100}, {"luts": 100, "mhz": 80}, {"small": 512}, most) == []
    found = synth.faults({"$_DLATCH_P_": 1, "$mul": 2}, {"luts": 101, "mhz": 79.9}, {"mem": 513}, most)
    assert len(found) == 6, found  # memory, latch, two kinds of cells, luts, mhz


def test_a_small_block_is_synthesised(tmp_path: Path) -> None:
    """Two products take one block and no more logic than they were found to."""
    problem = tools.lacking([tools.VERILATOR, tools.PYOSYS])
    if problem:
        pytest.skip(problem)
    tools.prepare()
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
def test_blocks_keep_to_their_budgets(top: str) -> None:
    """The smallest configuration stands for the others: no latch, memories in memories, no more logic than allowed."""
    problem = tools.lacking([tools.VERILATOR, tools.PYOSYS])
    if problem:
        pytest.skip(problem)
    tools.prepare()
    assert synth.run(top, "tiny", {}, routed=False, seed=1) == []
