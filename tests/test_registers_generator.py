# SPDX-License-Identifier: Apache-2.0
"""scripts/gen_registers.py: what it makes of a register map, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

SMALL = r"""
enum Fault { none = 0 { desc = "No fault."; }; bad_opcode = 7 { desc = "Unknown \"opcode\"."; }; };
addrmap small {
    desc = "A small block | for tests.";
    default regwidth = 32; default sw = rw; default hw = r;
    reg { desc = "Who
        answers."; field { sw = r; hw = na; } magic[32] = 0x47485231; } ID @ 0x0;
    reg { desc = "Start and count.";
          field { desc = "Go."; sw = w; singlepulse; } start[0:0] = 0;
          field { desc = "How many."; } n[15:8] = 3; } control @ 0x4;
    reg { desc = "Fault."; field { encode = Fault; desc = "Which."; sw = r; hw = w; } code[7:0] = 0;
          field { desc = "Seen."; onwrite = woclr; hwset; hw = rw; } seen[31:31] = 0; } fault @ 0x8;
    regfile {
        reg { desc = "Lost \"cycles\""; field { sw = r; hw = w; } value[32] = 0; } cycles @ 0;
        reg { field { sw = w; } clear[1:1] = 1; } reset @ 4;
    } perf[2] @ 0x100 += 8;
};
"""


@pytest.fixture
def generator(load_script: Callable[..., ModuleType]) -> ModuleType:
    return load_script("scripts/gen_registers.py")


@pytest.fixture
def small(tmp_path: Path, generator: ModuleType, load_script: Callable[..., ModuleType]) -> tuple[dict[str, Any], str]:
    """Names of the module made from SMALL, and the page."""
    (tmp_path / "small.rdl").write_text(SMALL)
    out, page = tmp_path / "new" / "out.py", tmp_path / "page.md"
    assert generator.main([str(tmp_path / "small.rdl"), "-o", str(out), "--markdown", str(page)]) == 0
    return vars(load_script("out.py", out.parent)), page.read_text()


def test_registers(small: tuple[dict[str, Any], str]) -> None:
    names, _ = small
    reg, field = names["Reg"], names["Field"]
    assert names["ID"] == reg("ID", 0, "ro", 0x47485231, (field("magic", 0, 32),))
    assert names["CONTROL"] == reg("CONTROL", 4, "rw", 0x300, (field("start", 0, 1), field("n", 8, 8)))
    assert names["PERF_1_RESET"] == reg("PERF_1_RESET", 0x10C, "wo", 2, (field("clear", 1, 1),))
    assert [one.offset for one in names["REGISTERS"]] == [0, 4, 8, 0x100, 0x104, 0x108, 0x10C]
    assert [one.name for one in names["PERF_CYCLES"]] == ["PERF_0_CYCLES", "PERF_1_CYCLES"]
    with pytest.raises(AttributeError):
        names["ID"].offset = 1


def test_enumerations_and_texts(small: tuple[dict[str, Any], str], tmp_path: Path) -> None:
    names, _ = small
    assert {member.name: int(member) for member in names["Fault"]} == {"NONE": 0, "BAD_OPCODE": 7}
    text = (tmp_path / "new" / "out.py").read_text()
    for docstring in ('"""Who answers."""', '"""Unknown "opcode"."""', '"""Lost "cycles\\""""'):
        assert docstring in text


def test_page(small: tuple[dict[str, Any], str]) -> None:
    _, page = small
    for line in (
        "A small block | for tests.",
        "| `0x0004` | `CONTROL` | rw | `0x300` | Start and count. |",
        "| 15:8 | `n` | rw | `0x3` | How many. |",
        "| 0 | `start` | w, clears itself | `0x0` | Go. |",
        "| 7:0 | `code` | r | `0x0` | Which. ([Fault](#fault)) |",
        "| 31 | `seen` | rw, write 1 clears | `0x0` | Seen. |",
        '| `0x7` | `BAD_OPCODE` | Unknown "opcode". |',
    ):
        assert line in page.splitlines()
    assert "## `ID`" not in page  # one value, explained in the first table


def test_check_notices_a_change_and_writes_nothing(tmp_path: Path, generator: ModuleType) -> None:
    (tmp_path / "small.rdl").write_text(SMALL)
    arguments = [str(tmp_path / "small.rdl"), "-o", str(tmp_path / "out.py"), "--markdown", str(tmp_path / "page.md")]
    assert generator.main([*arguments, "--check"]) == 1
    assert not (tmp_path / "out.py").exists()
    assert generator.main(arguments) == 0
    assert generator.main([*arguments, "--check"]) == 0
    (tmp_path / "page.md").write_text("other")
    assert generator.main([*arguments, "--check"]) == 1
    assert (tmp_path / "page.md").read_text() == "other"


def test_an_unchanged_file_is_not_written(tmp_path: Path, generator: ModuleType) -> None:
    assert generator.write_if_changed(tmp_path / "a", "text")
    assert not generator.write_if_changed(tmp_path / "a", "text")
    assert generator.write_if_changed(tmp_path / "a", "other")
    assert (tmp_path / "a").read_text() == "other"


@pytest.mark.parametrize(
    ("rdl", "fault"),
    [
        ("addrmap x { reg { field {} a[4]=0; } one; reg { regwidth=64; field {} b[4]=0; } two; };", "one width"),
        ("addrmap x { reg { field {} a[4]=0; } a_b; regfile { reg { field {} b[4]=0; } b; } a; };", "names collide"),
        ("addrmap x { reg { field { sw=na; hw=w; } a[4]; } one; };", "Elaborate aborted"),
        ("addrmap x { reg {", "Parse aborted"),
    ],
)
def test_refusals(
    tmp_path: Path, generator: ModuleType, capsys: pytest.CaptureFixture[str], rdl: str, fault: str
) -> None:
    (tmp_path / "bad.rdl").write_text(rdl)
    assert generator.main([str(tmp_path / "bad.rdl"), "-o", str(tmp_path / "out.py")]) == 2
    assert fault in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out.py").exists()


def test_missing_file(tmp_path: Path, generator: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert generator.main([str(tmp_path / "none.rdl"), "-o", str(tmp_path / "out.py")]) == 2
    assert "none.rdl: no such file" in capsys.readouterr().err


def test_package_and_page_are_those_of_the_map(generator: ModuleType) -> None:
    assert generator.main(["--check", "--markdown", str(ROOT / "docs" / "registers.md")]) == 0
