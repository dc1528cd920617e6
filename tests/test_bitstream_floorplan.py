# SPDX-License-Identifier: Apache-2.0
"""The floorplan of images: every multiplier and block RAM has a place of the device to itself."""

import json
import random
import re

import pytest
from scripts.board import floorplan
from scripts.rtl.tools import ToolError

LANES, PAIRS, COLUMNS, BANKS = 8, 2, 8, 8  # of ecp5-85f
REST = {
    "u_vector.u_sums.gen_row[{}].u_requantise.u_mul.gen_ecp5.u_block.u_mult": ("MULT18X18D", 4),
    "u_vector.u_cell.gen_gate[{}].u_function.u_mul.gen_ecp5.u_block.u_mult": ("MULT18X18D", 4),
    "u_vector.u_cell.u_input{}.gen_ecp5.u_block.u_mult": ("MULT18X18D", 4),
    "u_vector.u_sums.u_sums.mem.0.{}": ("DP16KD", 4),
    "u_cells.u_memory.gen_lane[{}].u_ram.mem.0.0": ("DP16KD", 8),
    "u_window.u_memory.gen_lane[{}].u_ram.mem.0.0": ("DP16KD", 8),
}


def matrix():
    """Names of the matrix unit's multipliers and of the block RAMs of its weights, as Yosys gives them."""
    cells = {}
    for lane in range(LANES):
        for pair in range(PAIRS):
            for column in range(COLUMNS):
                cells[
                    f"gharial_onchip.u_matrix.gen_lane[{lane}].u_lane.gen_pair[{pair}].gen_col[{column}].u_mul.u_mult"
                ] = "MULT18X18D"
        for bank in range(BANKS):
            for part in range(2):
                cells[f"gharial_onchip.u_weights.gen_group[{lane}].u_banks.gen_bank[{bank}].u_ram.mem.0.{part}"] = (
                    "DP16KD"
                )
    return cells


def whole():
    cells = matrix()
    for name, (kind, count) in REST.items():
        cells |= {f"gharial_onchip.{name.format(number)}": kind for number in range(count)}
    return cells


def test_every_cell_has_a_site_of_its_kind_to_itself():
    places = floorplan.plan(whole())
    assert set(places) == set(whole()) and len(set(places.values())) == len(places)
    for name, kind in whole().items():
        column, row, number = map(int, re.fullmatch(r"X(\d+)/Y(\d+)/(?:MULT18_|EBR)(\d)", places[name]).groups())
        assert ("MULT18" in places[name]) == (kind == "MULT18X18D")
        # As nextpnr names them: a multiplier's number is its column in its block, a block RAM's half of that.
        in_block = number if kind == "MULT18X18D" else 2 * number
        assert number in ((0, 1, 4, 5) if kind == "MULT18X18D" else (0, 1, 2, 3))
        assert column - in_block in (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114)
        assert row in ((10, 34, 58) if kind == "MULT18X18D" else (22, 46, 70, 82))


def test_a_lane_lies_with_its_weights():
    places = floorplan.plan(whole())
    spans = {}
    for name, place in places.items():
        if found := re.search(r"gen_(?:lane|group)\[(\d)\].*(?:u_mult|mem)", name) if "u_memory" not in name else None:
            column, row = map(int, re.match(r"X(\d+)/Y(\d+)", place).groups())
            spans.setdefault(found[1], []).append((column, row))
    assert len(spans) == LANES
    for those in spans.values():
        columns, rows = zip(*those, strict=True)
        assert len(those) == 32 and max(columns) - min(columns) < 40 and max(rows) - min(rows) == 12


def test_the_order_in_a_netlist_does_not_count(seed):
    cells = list(whole().items())
    random.Random(seed).shuffle(cells)
    assert floorplan.plan(dict(cells)) == floorplan.plan(whole())


def test_places_are_written_into_the_netlist(tmp_path):
    path = tmp_path / "netlist.json"
    cells = {name: {"type": kind} for name, kind in matrix().items()}
    cells["lut"] = {"type": "LUT4", "attributes": {}}
    cells["core_mac_sram.0.0"] = {"type": "DP16KD", "attributes": {}}  # LiteX's
    path.write_text(json.dumps({"modules": {"top": {"attributes": {"top": "1".zfill(32)}, "cells": cells}}}))
    assert floorplan.fix(path) == len(matrix()) + 1
    written = json.loads(path.read_text())["modules"]["top"]["cells"]
    expected = floorplan.plan(matrix() | {"core_mac_sram.0.0": "DP16KD"})
    assert {name: cell["attributes"].get("BEL") for name, cell in written.items()} == {
        **expected,
        "lut": None,
        "core_mac_sram.0.0": "X40/Y22/EBR0",
    }


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"gharial_onchip.u_new.u_mult": "MULT18X18D"}, "u_new.u_mult"),
        ({"gharial_onchip.u_matrix.gen_lane[8].u_lane.gen_pair[0].gen_col[0].u_mul.u_mult": "MULT18X18D"}, "8 lanes"),
        ({f"gharial_onchip.u_window.gen_lane[{n}].u_ram.mem.0.1": "DP16KD" for n in range(60)}, "u_window"),
        ({f"gharial_onchip.u_topk.mem.0.{n}": "DP16KD" for n in range(60)}, "no place left"),
    ],
    ids=["unknown", "lane", "taken", "full"],
)
def test_a_design_that_it_does_not_know_is_refused(more, told):
    with pytest.raises(ToolError, match=re.escape(told)):
        floorplan.plan(whole() | more)
