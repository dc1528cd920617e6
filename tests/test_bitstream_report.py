# SPDX-License-Identifier: Apache-2.0
"""The report of an image: its numbers, and what stops a build."""

import json
import shutil

import pytest
from scripts.board import hashes, report, route
from scripts.board.boards import board, boards
from scripts.rtl.tools import ToolError

from gharial.isa import configs

CELLS = {"LUT4": 1000, "CCU2C": 10, "TRELLIS_DPR16X4": 5, "TRELLIS_FF": 700, "MULT18X18D": 140, "DP16KD": 184}


def made(key="ulx3s-85f", cells=CELLS, matrix=128, rates=None):
    rates = {"sys": 91.5, "oscillator": 300.0} if rates is None else rates
    return report.make(board(key), cells, matrix, rates, 3, "a" * 64, "b" * 64)


@pytest.fixture(autouse=True)
def versions(monkeypatch):
    """The tools need not be installed to tell of them."""
    monkeypatch.setattr(report, "tools", lambda: dict.fromkeys(hashes.PACKAGES, "1"))


def test_it_has_what_others_rely_on():
    told = made()
    assert (told["board"], told["config"]) == ("ulx3s-85f", "ecp5-85f")
    assert told["part"] == "LFE5U-85F-6BG381C" and told["interface_version"] == "1.1"
    assert told["fmax_mhz"] == {"oscillator": 300.0, "sys": 91.5}
    assert (told["multipliers"], told["matrix_multipliers"], told["products_per_clock"]) == (140, 128, 256)
    assert told["memories"] == 184 and told["luts"] == 1000 + 2 * 10 + 6 * 5 and told["flip_flops"] == 700
    assert (told["seed"], told["image_sha256"], told["source_hash"]) == (3, "a" * 64, "b" * 64)
    assert set(told["tools"]) == set(hashes.PACKAGES)
    assert json.loads(report.text(told)) == told


def test_a_right_image_has_no_fault():
    ulx3s = board("ulx3s-85f")
    assert report.faults(ulx3s, made(), report.wanted_rates(ulx3s)) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"rates": {"sys": 79.99, "oscillator": 300.0}}, "clock sys: reaches 79.99 MHz"),
        ({"rates": {"sys": 91.5, "oscillator": 24.0}}, "clock oscillator: reaches 24 MHz"),
        ({"rates": {"oscillator": 300.0}}, "clock sys: no rate"),
        ({"rates": {"sys": 91.5, "oscillator": 300.0, "other": 400.0}}, "clock other: not known"),
        ({"cells": {**CELLS, "MULT18X18D": 141}}, "multipliers: 141, 140 wanted"),
        ({"cells": {**CELLS, "MULT18X18D": 12}}, "multipliers: 12, 140 wanted"),
        ({"matrix": 127}, "multipliers of the matrix unit: 127, 128 wanted"),
    ],
)
def test_each_fault_is_told(change, fault):
    ulx3s = board("ulx3s-85f")
    (found,) = report.faults(ulx3s, made(**change), report.wanted_rates(ulx3s))
    assert found.startswith(fault)


def test_every_board_asks_for_its_clocks():
    for each in boards().values():
        wanted = report.wanted_rates(each)
        assert wanted["sys"] >= 80 and wanted["sys"] >= each.clock_mhz and wanted["oscillator"] == each.oscillator_mhz
        assert (wanted.get("eth_rx") == 125) == (each.ethernet is not None)
        config = configs.config(each.config)
        assert 2 * each.matrix_multipliers == config.rows * config.cols == 256


@pytest.mark.parametrize(
    ("net", "name"),
    [
        ("$glbnet$crg_clkout", "sys"),
        ("sys_clk", "sys"),
        ("$glbnet$gharial_onchip.u_core.u_engine.clk_i", "sys"),
        ("$glbnet$clk25$TRELLIS_IO_IN", "oscillator"),
        ("$glbnet$eth_clocks_rx$TRELLIS_IO_IN", "eth_rx"),
        ("clk100", "oscillator"),
        ("$glbnet$something", "something"),
    ],
)
def test_clocks_have_their_names(net, name):
    assert route.clock_rates({"fmax": {net: {"achieved": 90.123, "constraint": 80.0}}}) == {name: 90.12}


@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("LFE5U-85F-6BG381C", "--85k --package CABGA381 --speed 6"),
        ("LFE5UM5G-85F-8BG554I", "--um5g-85k --package CABGA554 --speed 8"),
    ],
)
def test_parts_are_told_to_nextpnr(part, options):
    assert part in {each.part for each in boards().values()}
    assert " ".join(route.device(part)) == options


def test_multipliers_are_counted_in_the_netlist(tmp_path):
    def cell(kind):
        return {"type": kind}

    cells = {f"gharial_onchip.u_core.u_engine.u_matrix.gen_lane[{n}].u_mul": cell("MULT18X18D") for n in range(5)}
    cells |= {"gharial_onchip.u_core.u_engine.u_vector.u_mul": cell("MULT18X18D")}
    cells |= {"gharial_onchip.u_core.u_engine.u_matrix.lut": cell("LUT4")}
    modules = {"box": {"attributes": {}, "cells": {"x.u_matrix.y": cell("MULT18X18D")}}}
    modules["top"] = {"attributes": {"top": "00000000000000000000000000000001"}, "cells": cells}
    path = tmp_path / "netlist.json"
    path.write_text(json.dumps({"modules": modules}))
    assert report.multipliers(path) == (6, 5)


def test_reports_are_compared_key_by_key():
    kept, built = made(), made()
    assert report.compare(kept, built) == []
    built["image_sha256"] = "c" * 64
    del built["luts"]
    said = report.compare(kept, built)
    assert [line.split(":")[0] for line in said] == ["image_sha256", "luts"]
    assert "c" * 64 in said[0] and "nothing in the one built" in said[1]


def test_progress_is_read_from_the_end_of_nextpnrs_log():
    placing = (
        "Info:     at iteration #6, type ALL: wirelen solved = 359295, spread = 499380, legal = 527953; time = 6.68s"
    )
    refining = "Info:   at iteration #15: temp = 0.000000, timing cost = 1848, wirelen = 446266 "
    routing = "Info:     465000 |   108840     346049 |  414   566 |     11127|       5.57     915.87|"
    assert route.progress("Info: Packing IOs..\n") is None
    assert route.progress(f"{placing}\nInfo: what\n") == "placement, round 6, 359,295 tiles of wire"
    assert route.progress(f"{placing}\n{refining}\n") == "placement, round 15, 446,266 tiles of wire"
    assert route.progress(f"{refining}\n{routing}\nInfo: 4") == "routing, 11,127 connections left"


def test_nextpnr_that_stops_is_told_with_what_it_said(tmp_path, monkeypatch):
    tool = tmp_path / "nextpnr"
    tool.write_text("#!/bin/sh\necho 'ERROR: no such package'\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setenv("GHARIAL_NEXTPNR", str(tool))
    with pytest.raises(ToolError, match=r"exit code 3; all of it: .*nextpnr\.log\nERROR: no such package"):
        route.place_and_route(board("ulx3s-85f"), "pins.lpf", tmp_path, 1)


@pytest.mark.skipif(not shutil.which("yowasp-ecppack"), reason="ecppack is not there: make bitstream brings it")
def test_usercode_is_in_the_image(tmp_path):
    (tmp_path / "routed.config").write_text(".device LFE5U-85F\n")
    assert bytes.fromhex("cd37ea3e") in route.pack(tmp_path, 0xCD37EA3E).read_bytes()[-64:]
