# SPDX-License-Identifier: Apache-2.0
"""Constants that are taken out of a netlist: what is left does the same."""

import json

import pytest
from scripts.board import constants

INIT = "x" * 64


def rewritten(tmp_path, cells):
    """The cells of a netlist after constants were taken out, and how often each was done."""
    path = tmp_path / "netlist.json"
    for cell in cells.values():
        cell.setdefault("parameters", {})
    modules = {"box": {"attributes": {}, "cells": {}}}
    modules["top"] = {"attributes": {"top": "1".zfill(32)}, "cells": cells}
    path.write_text(json.dumps({"modules": modules}))
    done = constants.take_out(path)
    return json.loads(path.read_text())["modules"]["top"]["cells"], dict(done)


def carry_out(cell):
    """Carry out of a CCU2C whose inputs are constants, by the definition of the cell; its carry in is not known."""
    found = {}
    for carry_in in (0, 1):
        carry = carry_in
        for half in "01":
            init = int(cell["parameters"][f"INIT{half}"], 2)
            a, b, c, d = (int(cell["connections"][f"{letter}{half}"][0]) for letter in "ABCD")
            lut4 = init >> (a + 2 * b + 4 * c + 8 * d) & 1
            lut2 = 0 if cell["parameters"][f"INJECT1_{half}"] == "YES" else init >> (a + 2 * b) & 1
            carry = carry if lut4 else lut2
        found[carry_in] = carry
    assert found[0] == found[1], "must not depend on its carry in"
    return found[0]


@pytest.mark.parametrize("constant", ["0", "1"])
def test_a_chain_begins_with_a_cell_that_makes_the_constant(tmp_path, constant):
    chain = {"type": "CCU2C", "connections": {"A0": [5], "CIN": [constant], "COUT": [6]}}
    cells, done = rewritten(tmp_path, {"chain": chain})
    assert done == {"carries": 1} and set(cells) == {"chain", "chain$feed"}
    feed = cells["chain$feed"]
    assert feed["connections"]["COUT"] == cells["chain"]["connections"]["CIN"]
    (bit,) = feed["connections"]["COUT"]
    assert bit not in (5, 6) and feed["port_directions"]["COUT"] == "output"
    assert carry_out(feed) == int(constant)


@pytest.mark.parametrize("carry", [[7], ["x"], None])
def test_a_chain_that_begins_otherwise_is_left(tmp_path, carry):
    connections = {"A0": [5]} | ({"CIN": carry} if carry else {})
    cells, done = rewritten(tmp_path, {"chain": {"type": "CCU2C", "connections": connections}})
    assert done == {} and cells["chain"]["connections"] == connections


def ram(read, write, init=INIT):
    return {"type": "TRELLIS_DPR16X4", "parameters": {"INITVAL": init}, "connections": {"RAD": read, "WAD": write}}


@pytest.mark.parametrize(
    ("read", "write", "then"),
    [
        ([1, 2, "0", "0"], [3, 4, "0", "0"], ([1, 2, 2, 2], [3, 4, 4, 4])),
        ([1, 2, 5, "0"], [3, 4, 6, "0"], ([1, 2, 5, 5], [3, 4, 6, 6])),
        ([1, "0", "0", "1"], [3, "0", "0", "1"], ([1, 1, 1, 1], [3, 3, 3, 3])),
        ([1, 2, 5, 7], [3, 4, 6, 8], ([1, 2, 5, 7], [3, 4, 6, 8])),
    ],
)
def test_unused_address_bits_repeat_a_used_one(tmp_path, read, write, then):
    """Whatever the used bits are, both addresses meet if and only if they did before."""
    cells, _ = rewritten(tmp_path, {"ram": ram(list(read), list(write))})
    found = cells["ram"]["connections"]
    assert (found["RAD"], found["WAD"]) == then
    places = {1: 3, 2: 4, 5: 6, 7: 8}
    assert [places[bit] for bit in found["RAD"]] == found["WAD"]


@pytest.mark.parametrize(
    ("read", "write", "init"),
    [
        (["0", "0", "0", "0"], ["0", "0", "0", "0"], INIT),  # none to repeat
        ([1, 2, 5, "0"], [3, 4, 6, "1"], INIT),  # written elsewhere than read
        ([1, 2, 5, "0"], [3, 4, 6, 9], INIT),
        ([1, 2, 5, "0"], [3, 4, 6, "0"], "0" * 64),  # contents from the start
    ],
)
def test_addresses_that_mean_something_are_left(tmp_path, read, write, init):
    cells, done = rewritten(tmp_path, {"ram": ram(list(read), list(write), init)})
    assert not done.get("addresses")
    assert (cells["ram"]["connections"]["RAD"], cells["ram"]["connections"]["WAD"]) == (read, write)


def test_idle_clocks_of_a_multiplier_are_its_clock(tmp_path):
    connections = {"CLK0": [5], "CLK1": ["0"], "CLK2": [6], "CLK3": ["0"], "SOURCEA": ["0"]}
    used = {"type": "MULT18X18D", "parameters": {"REG_OUTPUT_CLK": "CLK3"}, "connections": connections}
    cells, done = rewritten(tmp_path, {"mult": used})
    assert done == {"clocks": 1}
    assert cells["mult"]["connections"] == {**connections, "CLK1": [5]}
