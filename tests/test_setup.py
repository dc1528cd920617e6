# SPDX-License-Identifier: Apache-2.0
"""scripts/setup.py on machines that lack something: one line, exit code 2. No network, nothing is installed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

SCRIPT = ROOT / "scripts" / "setup.py"
FILES = ["scripts/setup.py", "scripts/gen_registers.py", "pyproject.toml", "constraints.txt", "setup.py"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the script reads, with no .venv: whatever it does, the real environment is not touched."""
    for name in FILES:
        target = tmp_path / "checkout" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return tmp_path / "checkout"


def executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def run(checkout: Path, *args: str, path: Path, pretend: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run the copy as its own process; `pretend` is Python run first in that process, `path` is all of its PATH."""
    script = str(checkout / "scripts" / "setup.py")
    code = (
        f"import sys, runpy\n{pretend}\nsys.argv = {[script, *args]!r}\nrunpy.run_path({script!r}, run_name='__main__')"
    )
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "PATH")}
    return subprocess.run(
        [sys.executable, "-c", code], env={**kept, "PATH": str(path), **env}, capture_output=True, text=True, timeout=60
    )


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line with which the run refused."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


OLD = "sys.version_info = (3, 9, 2, 'final', 0)"


def test_old_python_can_read_it() -> None:
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))


@pytest.mark.parametrize("args", [(), ("everything",), ("run", "test")])
def test_usage(checkout: Path, tmp_path: Path, args: tuple[str, ...]) -> None:
    assert "usage: scripts/setup.py run|test|lint|sim|synth|bitstream" in refusal(run(checkout, *args, path=tmp_path))


def test_old_python_alone(checkout: Path, tmp_path: Path) -> None:
    line = refusal(run(checkout, "run", path=tmp_path, pretend=OLD))
    for part in ("Python", "found 3.9.2", "wanted 3.11 or newer", "apt-get install python3.11"):
        assert part in line
    assert not (checkout / ".venv").exists()


def test_old_python_hands_over_to_a_newer_one(checkout: Path, tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "python3.11", "exit 127")  # a version manager's link to nothing
    executable(tmp_path / "bin" / "python3.12", f'[ "$1" = -c ] && exit 0\necho "$@" >"{tmp_path}/arguments"\nexit 7')
    done = run(checkout, "test", path=tmp_path / "bin", pretend=OLD)
    assert done.returncode == 7, done
    assert (tmp_path / "arguments").read_text() == f"{checkout}/scripts/setup.py test\n"


def test_no_compiler(checkout: Path, tmp_path: Path) -> None:
    line = refusal(run(checkout, "run", path=tmp_path))
    assert "C compiler: found no " in line and "apt-get install gcc libc6-dev" in line
    assert not (checkout / ".venv").exists()


def test_compiler_without_library_headers(checkout: Path, tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "mycc", 'echo "stdin:2:10: fatal error: math.h: No such file" >&2; exit 1')
    line = refusal(run(checkout, "run", path=tmp_path / "bin", CC="mycc -m64"))
    assert "C library headers: found stdin:2:10: fatal error: math.h" in line and "libc6-dev" in line


@pytest.mark.parametrize("target", ["test", "sim"])
def test_simulation_needs_a_cxx_compiler(checkout: Path, tmp_path: Path, target: str) -> None:
    executable(tmp_path / "bin" / "mycc", "exit 0")
    headers = f"import sysconfig; sysconfig.get_path = lambda name: {str(tmp_path)!r}"
    (tmp_path / "Python.h").touch()
    line = refusal(run(checkout, target, path=tmp_path / "bin", pretend=headers, CC="mycc", CXX="myc++ -m64"))
    assert "C++ compiler: found no myc++" in line and "apt-get install g++" in line


def test_no_python_headers(checkout: Path, tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "mycc", "exit 0")
    nowhere = f"import sysconfig; sysconfig.get_path = lambda name: {str(tmp_path)!r}"
    line = refusal(run(checkout, "run", path=tmp_path / "bin", pretend=nowhere, CC="mycc"))
    assert "Python headers: found no Python.h in" in line
    assert f"apt-get install python3.{sys.version_info.minor}-dev" in line


def test_no_venv_module(checkout: Path, tmp_path: Path) -> None:
    without = (
        "import importlib.util as u; old = u.find_spec; u.find_spec = lambda n: None if n == 'ensurepip' else old(n)"
    )
    line = refusal(run(checkout, "run", path=tmp_path, pretend=without))
    assert "module venv" in line and f"apt-get install python3.{sys.version_info.minor}-venv" in line


def test_venv_that_cannot_be_made(checkout: Path, tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "mycc", "exit 0")
    broken = f"sys.executable = {str(executable(tmp_path / 'python', 'echo Error: no space left; exit 1'))!r}"
    headers = f"import sysconfig; sysconfig.get_path = lambda name: {str(tmp_path)!r}"
    (tmp_path / "Python.h").touch()
    line = refusal_of_last_line(run(checkout, "run", path=tmp_path / "bin", pretend=f"{broken}\n{headers}", CC="mycc"))
    assert "python -m venv failed (exit 1): Error: no space left" in line
    assert not (checkout / ".venv" / "setup-stamp.json").exists()


def refusal_of_last_line(done: subprocess.CompletedProcess[str]) -> str:
    """The line with which the run failed after it had said what it was about to do."""
    assert done.returncode == 2, done
    note, line = done.stderr.splitlines()
    assert note.startswith("setup: installing")
    return line
