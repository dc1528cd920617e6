# SPDX-License-Identifier: Apache-2.0
"""The tools around the RTL: configuration package, descriptions of benches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.rtl import config_pkg
from sim import benches

from gharial.isa.configs import configs


@pytest.mark.parametrize("name", configs())
def test_config_package_has_every_number(name: str) -> None:
    config = configs()[name]
    text = config_pkg.text(config)
    found = dict(re.findall(r"localparam (?:int|longint) unsigned (\w+) = (?:64'd)?(\d+);", text))
    assert len(found) == 28
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
