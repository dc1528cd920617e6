# SPDX-License-Identifier: Apache-2.0
"""The mutants of the RTL are up to date, and what tries them tells killed from survived, stale and broken ones.

`make mutants` tries them.
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from conftest import ROOT
from sim import benches
from sim.mutants import catalogue
from sim.mutants.__main__ import main
from sim.mutants.catalogue import Mutant, Stale
from sim.mutants.trial import TAKEN_ALONG, Commands, Court, Ended, Verdict
from sim.run import needs

MUTANTS = catalogue.read()

PROBE = """\
// SPDX-License-Identifier: Apache-2.0
// A register.
module probe (
    input  logic       clk_i,
    input  logic       rst_i,
    input  logic [7:0] data_i,
    output logic [7:0] data_o
);
  always_ff @(posedge clk_i) data_o <= rst_i ? 8'd0 : data_i;
endmodule
"""
PROBE_TEST = """\
import cocotb
from cocotb.triggers import RisingEdge
from sim.common import bench

@cocotb.test()
async def follows(dut):
    await bench.start(dut)
    for value in (1, 255, 7):
        dut.data_i.value = value
        await RisingEdge(dut.clk_i)
        await RisingEdge(dut.clk_i)
        assert int(dut.data_o.value) == value
"""
PROBE_MUTANTS = """\
[wrong]
text = "8'd0 : data_i"
replacement = "8'd0 : ~data_i"
[harmless]
text = "// A register."
replacement = "// Another register."
[no_verilog]
text = "endmodule"
replacement = "endmodul"
[gone]
text = "negedge"
replacement = "posedge"
[twice]
text = "[7:0]"
replacement = "[6:0]"
"""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_up_to_date(mutant: Mutant) -> None:
    assert mutant.file.startswith("rtl/") and mutant.wrong
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutant.of(source) != source
    runs = {run.name: run for run in benches.runs()}
    for name in mutant.benches:
        bench, _, test = name.partition(":")
        modules = [(ROOT / module.replace(".", "/")).with_suffix(".py").read_text() for module in runs[bench].modules]
        assert any(f"async def {test}" in module for module in modules), name
    for test in mutant.tests:
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert name.partition("[")[0] in names, test


def test_there_are_enough() -> None:
    assert len(MUTANTS) >= 20
    folders = {mutant.file.split("/")[1] for mutant in MUTANTS}
    assert folders >= {"host", "matrix", "memory", "sequencer", "top", "topk", "vector"}
    page = (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8")
    assert catalogue.table(MUTANTS) in page, "python -m sim.mutants --list prints the table"


def test_catalogue(tmp_path: Path) -> None:
    good = {"wrong": "w", "file": "rtl/a.sv", "text": "x", "replacement": "y", "killed_by": ["a/b", "t.py::c"]}
    mutant = Mutant("a", **{**good, "killed_by": tuple(good["killed_by"])})  # type: ignore[arg-type]
    assert (mutant.benches, mutant.tests) == (("a/b",), ("t.py::c",))
    assert mutant.of("1 x 2") == "1 y 2"
    for source in ("", "x x"):
        with pytest.raises(Stale, match="times"):
            mutant.of(source)

    def read(*tables: Mapping[str, object]) -> list[Mutant]:
        for number, table in enumerate(tables):
            lines = ["[a]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
            (tmp_path / f"{number}.toml").write_text("\n".join(lines))
        return catalogue.read(tmp_path)

    assert read(good) == [mutant]
    for changed in ({"replacement": "x"}, {"text": ""}, {"killed_by": []}, {"more": 1}):
        with pytest.raises(ValueError, match="a:"):
            read(good | changed)
    with pytest.raises(ValueError, match="share a name"):
        read(good, good)


class Scripted(Commands):
    """Ends each command as told, and leaves results that say so."""

    def __init__(self, ends: Sequence[int | None], results: str) -> None:
        super().__init__()
        self.ends, self.results, self.ran = list(ends), results, []  # type: ignore[var-annotated]

    def run(self, command: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path, seconds: float) -> Ended:
        self.ran.append(list(command))
        assert env["PYTHONPATH"].split(":")[0] == str(cwd / "host")
        (cwd / "build").mkdir(exist_ok=True)
        (cwd / "build" / "results.xml").write_text(f"<testsuites>{self.results}</testsuites>")
        return Ended(self.ends.pop(0))


@pytest.mark.parametrize(
    ("ends", "results", "expected"),
    [
        ((0, 0), "<testcase name='c'/>", Verdict.SURVIVED),
        ((0, 1), "<testcase name='c'><failure/></testcase>", Verdict.KILLED),
        ((0, 1), "<testcase name='c'><error/></testcase>", Verdict.KILLED),
        ((0, None), "", Verdict.KILLED),  # hangs
        ((0, 0), "<testcase name='c'><skipped/></testcase>", Verdict.ERROR),
        ((0, 4), "", Verdict.ERROR),  # no such test
        ((1,), "", Verdict.NOT_BUILT),
    ],
)
def test_verdicts_on_tests(tmp_path: Path, ends: Sequence[int | None], results: str, expected: Verdict) -> None:
    root = tmp_path / "checkout"
    (root / "rtl").mkdir(parents=True)
    (root / "rtl" / "a.sv").write_text("x")
    commands = Scripted(ends, results)
    court = Court(root, tmp_path / "place", 1, commands, keep=True)
    outcome = court.trial(Mutant("m", "w", "rtl/a.sv", "x", "y", ("tests/t.py::c",)))
    assert outcome.verdict == expected, outcome
    assert not commands.ends
    assert "tests/t.py::c" in commands.ran[-1] or expected == Verdict.NOT_BUILT
    assert (root / "rtl" / "a.sv").read_text() == "x"
    assert (tmp_path / "place" / "m" / "tree" / "rtl" / "a.sv").read_text() == "y"
    # Without the mistake only what passes is good enough.
    commands.ends = list(ends)
    assert (court.without("none", ["tests/t.py::c"]) is None) == (expected == Verdict.SURVIVED)


def test_tried_on_a_small_bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = needs()
    if problem:
        pytest.skip(problem)
    root = Court(ROOT, tmp_path, 1, Commands()).copy("checkout")
    for name in TAKEN_ALONG:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, dirs_exist_ok=True)
    shutil.rmtree(root / "tests")
    folder = root / "sim" / "probe"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "bench.toml").write_text("[probe]\n")
    (folder / "test_probe.py").write_text(PROBE_TEST)
    (root / "rtl" / "probe.sv").write_text(PROBE)
    mutants = tmp_path / "mutants"
    mutants.mkdir()
    common = 'wrong = "w"\nfile = "rtl/probe.sv"\nkilled_by = ["probe/tiny:follows"]\n'
    (mutants / "probe.toml").write_text(PROBE_MUTANTS.replace("]\ntext", f"]\n{common}text"))
    assert main(["--jobs", "1"], root, mutants) == 1
    printed = capsys.readouterr()
    report = json.loads((root / "build" / "mutants" / "report.json").read_text())
    assert {entry["name"]: entry["verdict"] for entry in report["mutants"]} == {
        "wrong": "killed", "harmless": "survived", "no_verilog": "not built", "gone": "stale", "twice": "stale",
    }, printed  # fmt: skip
    assert "1 of 5 mutants killed" in printed.out and "survived: harmless" in printed.err
    assert report["mutants"][0]["by"] == "test_probe::follows"
    assert (root / "rtl" / "probe.sv").read_text() == PROBE


def test_tests_that_fail_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kill by them counts for nothing: no mutant is tried."""
    problem = needs()
    if problem:
        pytest.skip(problem)
    commands = Scripted([1], "<testcase name='c'><failure/></testcase>")
    monkeypatch.setattr("sim.mutants.__main__.Commands", lambda: commands)
    (tmp_path / "rtl").mkdir()
    mutants = tmp_path / "mutants"
    mutants.mkdir()
    common = 'wrong = "w"\nfile = "rtl/probe.sv"\nkilled_by = ["probe/tiny"]\n'
    (mutants / "probe.toml").write_text(PROBE_MUTANTS.replace("]\ntext", f"]\n{common}text"))
    assert main([], tmp_path, mutants) == 1
    assert "fails without any mistake" in capsys.readouterr().err
    assert len(commands.ran) == 1


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert MUTANTS[0].name in capsys.readouterr().out
    assert main(["no_such_mutant"]) == 2
    assert "no mutant no_such_mutant" in capsys.readouterr().err
