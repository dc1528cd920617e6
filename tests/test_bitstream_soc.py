# SPDX-License-Identifier: Apache-2.0
"""What LiteX makes of a board: addresses, pins, and the same text every time."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("litex", reason="comes with make bitstream and make test")

from scripts.board import soc
from scripts.board.boards import ADDRESSES, board, boards
from scripts.rtl.tools import ROOT

from gharial.devices.litex import etherbone

_WRITE = """
import pathlib, sys
from scripts.board import boards, soc
soc.write(boards.board(sys.argv[1]), pathlib.Path(sys.argv[2]))
"""


def written(key, folder, hash_seed="0"):
    """What soc.write leaves that an image is made of, file by file."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run([sys.executable, "-c", _WRITE, key, str(folder)], cwd=ROOT, env=environment, check=True)
    return {path.name: path.read_text() for path in folder.iterdir() if path.suffix in (".v", ".lpf", ".init")}


@pytest.mark.parametrize("key", boards())
def test_the_same_text_every_time(key, tmp_path):
    first, second = (written(key, tmp_path / name, name) for name in "12")
    assert first == second and len(first) == 3
    verilog = first[f"{soc.TOP}.v"]
    assert f"module {soc.TOP}" in verilog and len(re.findall(r"^gharial_onchip ", verilog, re.MULTILINE)) == 1
    letters = bytes(int(line, 16) for line in first[f"{soc.TOP}_mem.init"].split())
    assert letters == board(key).identifier.encode() + b"\0"


@pytest.mark.parametrize("key", boards())
def test_places_are_those_of_the_map(key):
    made = soc.Soc(board(key))
    made.finalize()
    regions = made.bus.regions
    assert {name: (region.origin, region.size) for name, region in regions.items() if name != "csr"} == {
        "registers": (ADDRESSES.registers, ADDRESSES.registers_size),
        "memory": (ADDRESSES.memory, board(key).memory_bytes),
    }
    assert regions["csr"].origin == ADDRESSES.csr and regions["csr"].size >= ADDRESSES.csr_size
    assert made.csr_regions["ctrl"].origin == ADDRESSES.ctrl
    assert made.csr_regions["identifier_mem"].origin == ADDRESSES.identifier


@pytest.mark.parametrize("key", boards())
def test_every_port_has_a_pin(key, tmp_path):
    texts = written(key, tmp_path)
    ports = set()
    head = texts[f"{soc.TOP}.v"].split(");", 1)[0]
    for width, name in re.findall(r"(?:input|output|inout)\s+(?:wire|reg)\s+(?:\[(\d+):0\])?\s*(\w+)", head):
        ports |= {f"{name}[{bit}]" for bit in range(int(width) + 1)} if width else {name}
    assert ports == set(re.findall(r'LOCATE COMP "(\S+)"', texts[f"{soc.TOP}.lpf"]))
    clocks = dict(re.findall(r'FREQUENCY PORT "(\S+)" (\S+) MHz', texts[f"{soc.TOP}.lpf"]))
    assert float(clocks["clk25" if key == "ulx3s-85f" else "clk100"]) == board(key).oscillator_mhz


def test_the_host_knows_how_much_a_packet_may_hold():
    assert soc.ETHERBONE_WORDS == etherbone.BUFFER
