# SPDX-License-Identifier: Apache-2.0
"""What a configuration takes of its UltraScale+ device: parts that cover the machine, counted and multiplied rightly.

The machines themselves are synthesised by `make synth CONFIG=...`.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from scripts.rtl import cost, netlist, sources, synth, tools, ultrascale
from scripts.rtl.ultrascale import Part

from gharial.isa import configs

LEAF = Part("array_rows", (("Rows", "2"),))
SMALL = Part("array_rows", (("Rows", "1"),))
RTLIL = r"""
module \top
  cell \array_rows \gen_group[0].u_rows
    parameter \Rows 16
    parameter \Multiplier "DSP48E2"
    parameter \SumW 17
    connect \clk_i \clk_i
  end
  cell \array_rows \gen_group[1].u_rows
    parameter \Rows 16
    parameter \Multiplier "DSP48E2"
    parameter \SumW 17
  end
  cell \command_block \u_command
    parameter \MemBytes 64'0000000000000000000000000000000010000000000000000000000000000000
  end
  cell $add $1
    parameter \A_WIDTH 3
  end
end
module \array_rows
  parameter \Rows
  parameter \SumW
  wire input 1 \clk_i
end
"""


@pytest.fixture
def yosys() -> None:
    """The tools, or a skip."""
    problem = tools.lacking([tools.VERILATOR, tools.PYOSYS, tools.PYSLANG])
    if problem:
        pytest.skip(problem)
    tools.prepare()


def test_parts_are_multiplied_and_added() -> None:
    """Instances within instances, and one module with two sets of parameters."""
    top, unit = Part("gharial_memory"), Part("array_unit")
    design = {
        top: ({"LUT6": 7, "FDRE": 1}, Counter({unit: 3, LEAF: 1})),
        unit: ({"LUT2": 10, "RAMB18E2": 1, "RAMB36E2": 2}, Counter({LEAF: 4, SMALL: 2})),
        LEAF: ({"DSP48E2": 16, "RAM64M8": 2, "CARRY8": 5}, Counter()),
        SMALL: ({"DSP48E2": 1, "URAM288": 1}, Counter()),
    }
    done = cost.report("u50", top, lambda part: (*design[part], []))
    assert [(row["module"], row["instances"]) for row in done["parts"]] == [
        ("gharial_memory", 1),
        ("array_unit", 3),
        ("array_rows", 13),
        ("array_rows", 6),
    ]
    assert done["sum"] == {
        "luts": 7 + 3 * 10 + 13 * 16,
        "flip_flops": 1,
        "dsps": 13 * 16 + 6,
        "block_rams": 3 * 2.5,
        "ultra_rams": 6,
    }
    lines = cost.table(done)
    assert lines[-3].split()[1:] == ["245", "1", "214", "7.5", "6"]
    assert lines[-2].split()[1] == "871680"


def test_instances_are_read_with_their_parameters() -> None:
    """Those that may be given, as the next elaboration takes them; then they are boxes without."""
    modules = ["array_rows", "command_block"]
    assert ultrascale.boxes(RTLIL, modules) == {
        Part("array_rows", (("Rows", "16"), ("Multiplier", '"DSP48E2"'))): 2,
        Part("command_block", (("MemBytes", "64'd2147483648"),)): 1,
    }
    bare = ultrascale.without_parameters(RTLIL, modules)
    assert "Rows" not in bare and "MemBytes" not in bare
    assert bare.count("cell \\array_rows") == 2 and "A_WIDTH" in bare and "clk_i" in bare


def test_unknown_cells_are_faults() -> None:
    assert ultrascale.unknown({"LUT6": 1, "CARRY8": 1, "MUXF7": 2}) == []
    assert len(ultrascale.unknown({"$mul": 1, "RAMB48": 2})) == 2


def test_parts_cover_the_machine(yosys: None) -> None:
    """Every instance under the top is in just one part's share, and counts as often as it is there."""
    from pyslang import driver

    run = driver.Driver()
    run.addStandardArgs()
    looked_in = sources.folders()
    files = [*sources.packages("tiny-batch"), sources.find(cost.TOP, looked_in)]
    line = ["slang", "--top", cost.TOP, "-G", 'Multiplier=\\"DSP48E2\\"', *sources.library(looked_in), *map(str, files)]
    assert run.parseCommandLine(" ".join(line)) and run.processOptions() and run.parseAllSources()
    (top,) = run.createCompilation().getRoot().topInstances

    def inside(scope: object) -> list:  # instances right below, through generate blocks
        found = []
        for member in scope:  # type: ignore[attr-defined]
            kind = type(member).__name__
            if kind == "InstanceSymbol":
                found.append(member)
            elif kind == "GenerateBlockArraySymbol" or (kind == "GenerateBlockSymbol" and not member.isUninstantiated):
                found += inside(member)
        return found

    flat: Counter[str] = Counter()
    shares: dict[Part, Counter[str]] = {}
    bodies = {Part(top.definition.name): top.body}

    def share(body: object) -> tuple[Counter[str], Counter[Part]]:
        own: Counter[str] = Counter()
        below: Counter[Part] = Counter()
        for instance in inside(body):
            name = instance.definition.name
            own[name] += 1
            if name in cost.PARTS:
                parameters = tuple((p.name, str(p.value)) for p in instance.body.parameters)
                below[part := Part(name, parameters)] += 1
                bodies.setdefault(part, instance.body)
            else:
                inner, parts = share(instance.body)
                own, below = own + inner, below + parts
        return own, below

    def synthesise(part: Part) -> tuple[dict[str, int], Counter[Part], list[str]]:
        shares[part], below = share(bodies[part])
        return {}, below, []

    def count(body: object) -> None:
        for instance in inside(body):
            flat[instance.definition.name] += 1
            count(instance.body)

    count(top.body)
    _, parts = cost.walk(Part(cost.TOP), synthesise)
    multiplied: Counter[str] = Counter()
    for part, times in parts.items():
        multiplied.update({name: times * number for name, number in shares[part].items()})
    assert multiplied == flat
    assert {part.module for part in parts} == set(cost.PARTS), "a part that is not in the machine"
    size = configs.config("tiny-batch")
    assert flat["mul2x8_dsp48e2"] == size.rows * size.cols / 2
    assert flat["stream_port"] == size.ports and flat["finish_lane"] == size.lanes


def test_a_part_is_synthesised(yosys: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ports are boxes in the stream, then a part of their own; two products take one block."""
    monkeypatch.setattr(cost, "BUILD", tmp_path)
    monkeypatch.setattr(ultrascale, "BUILD", tmp_path)
    assert cost.run("tiny-batch", "weight_stream") == []
    done = json.loads((tmp_path / "synth" / "tiny-batch" / "report-weight_stream.json").read_text())
    stream, port = done["parts"]
    assert (stream["instances"], port["instances"]) == (1, configs.config("tiny-batch").ports)
    assert port["cells"]["FDRE"] > 100 and any(cell.startswith("RAM") for cell in port["cells"])
    for name in ("luts", "flip_flops"):
        assert done["sum"][name] == stream["each"][name] + port["instances"] * port["each"][name]

    rows = (("Rows", "2"), ("Cols", "4"), ("Accumulators", "4"), ("ResultWords", "8"), ("Multiplier", '"DSP48E2"'))
    folder = tmp_path / "rows"
    cells, below = ultrascale.synthesise(Part("array_rows", rows), "tiny-batch", cost.PARTS, folder, netlist.FORBIDDEN)
    assert cells["DSP48E2"] == 4 and not below
    assert ultrascale.unknown(cells) == [] and netlist.flip_flop_memories(folder) == {}


def test_devices() -> None:
    """Each configuration with weights in memory that stands for a board has its device, and blocks for its products."""
    table = tomllib.loads(cost.DEVICES.read_text())
    boards = {name for name, config in configs.configs().items() if config.in_memory and config.automatic}
    assert set(table) == boards
    for name, has in table.items():
        assert set(has) == {"name", *ultrascale.NUMBERS}
        size = configs.config(name)
        assert size.rows * size.cols / 2 + 12 * size.lanes <= has["dsps"], f"{name}: products packed two to a block"


def test_no_placement_for_ultrascale(yosys: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert synth.main(["--config", "u50", "--route"]) == 2
    assert "--route" in capsys.readouterr().err
