# SPDX-License-Identifier: Apache-2.0
"""scripts/check_tree.py finds what it is for, and nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

LICENCE = "# SPDX-License-Identifier: Apache-2.0\n"
HOME = "/" + "root"  # put together here: the check reads this file too


@pytest.fixture
def faults(tmp_path: Path, load_script: Callable[..., ModuleType]) -> Callable[[str, str | bytes], list[str]]:
    check = load_script("scripts/check_tree.py")

    def of(name: str, content: str | bytes) -> list[str]:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        found: list[str] = check.faults(path, tmp_path)
        return found

    return of


@pytest.mark.parametrize("name", ["a.py", "a.c", "a.sv", "a.rdl", "a.yaml", "Makefile"])
def test_licence_line(faults: Callable[..., list[str]], name: str) -> None:
    assert faults(name, LICENCE + "x\n") == []
    assert faults(name, "x\n" * 4 + LICENCE) == []
    assert len(faults(name, "x\n" * 5 + LICENCE)) == 1
    assert len(faults(name, "x\n")) == 1
    assert faults("empty.py", "") == []


def test_scripts_without_suffix_are_source(faults: Callable[..., list[str]]) -> None:
    assert len(faults("run", "#!/usr/bin/env bash\n")) == 1
    assert faults("LICENSE", "Apache\n") == []


def test_length(faults: Callable[..., list[str]]) -> None:
    assert faults("a.py", LICENCE + "x\n" * 399) == []
    assert faults("a.py", LICENCE + "x\n" * 400) == ["a.py:401: 401 lines, at most 400 wanted: split it by subject"]
    assert faults("a.md", "x\n" * 1000) == []


def test_machine_paths(faults: Callable[..., list[str]]) -> None:
    assert faults("a.md", f"see\n`{HOME}/data`\n") == [f"a.md:2: path of one machine: {HOME}/data"]
    assert len(faults("a.py", f"{LICENCE}open('{HOME}/x'), open('{HOME}/y')\n")) == 2
    assert faults("a.md", f"build{HOME}/x, https://example.org{HOME}/x, ${{X}}{HOME}/x, ~{HOME}/, /usr/bin\n") == []
    assert faults("a.bin", b"\xff\xfe" + HOME.encode() + b"/x") == []


def test_only_tracked_files_count(tmp_path: Path, load_script: Callable[..., ModuleType]) -> None:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    for name in ("kept.py", "gone.py", "untracked.py"):
        (tmp_path / name).write_text("x\n")
    subprocess.run([*git, "add", "kept.py", "gone.py"], check=True)
    (tmp_path / "gone.py").unlink()
    assert load_script("scripts/check_tree.py").tracked(tmp_path) == [tmp_path / "kept.py"]
