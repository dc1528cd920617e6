# SPDX-License-Identifier: Apache-2.0
"""Verilator's own objects, the same for every bench: `python -m sim.runtime FOLDER MAIN` puts them into a build folder.

That is done between verilating and compiling, so that each is compiled once in all: it takes three quarters of a small
bench's build. They are kept in build/sim/runtime, by what they were compiled with.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.rtl import tools
from scripts.rtl.tools import BUILD

STORE = BUILD / "sim" / "runtime"
SWITCHES = "Vtop_classes.mk"  # what of Verilator the design uses
FLAG = re.compile(r"^VM_(?!PARALLEL_BUILDS)\w+ = \d", re.MULTILINE)  # those that the compiler is told
GLOBALS = re.compile(r"^VM_GLOBAL_\w+ \+= \\\n((?:  \w+ \\\n)*)", re.MULTILINE)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps other processes out of a build folder meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def objects(switches: str) -> list[str]:
    """File names of the objects that do not depend on the design."""
    return [f"{name}.o" for found in GLOBALS.findall(switches) for name in re.findall(r"\w+", found)]


def join(folder: Path, main: Path) -> None:
    """Have the source `main` compiled as one of the design's, not by itself: reading Verilator's headers takes longest.

    `make -f Vtop_bench.mk` then does what Vtop.mk says.
    """
    own = folder / "Vtop_bench.cpp"
    for path, text in (
        (own, main.read_text(encoding="utf-8")),
        (folder / "Vtop_bench.mk", f"VM_CLASSES_FAST = {own.stem}\ninclude Vtop.mk\n"),
    ):
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def supply(folder: Path) -> None:
    """Compile the objects, or take them from an earlier bench of the same switches, compiler and Verilator.

    Raises:
        subprocess.CalledProcessError: they do not compile.
    """
    switches = (folder / SWITCHES).read_text(encoding="utf-8")
    wanted = objects(switches)
    if all((folder / name).is_file() for name in wanted):
        return
    version = subprocess.run([tools.cxx(), "--version"], capture_output=True, text=True, check=True).stdout
    state = "\n".join([*FLAG.findall(switches), *wanted, version, (tools.TOOLS / "stamp").read_text(encoding="utf-8")])
    store = STORE / hashlib.sha256(state.encode()).hexdigest()[:16]
    with alone(store):
        if not all((store / name).is_file() for name in wanted):
            jobs = ["-j", str(min(os.cpu_count() or 1, len(wanted)))]
            subprocess.run(["make", *jobs, "-C", str(folder), "-f", "Vtop.mk", *wanted], check=True)
            for name in wanted:
                shutil.copyfile(folder / name, store / f"{name}.part")
                (store / f"{name}.part").rename(store / name)
        for name in wanted:
            shutil.copyfile(store / name, folder / name)


if __name__ == "__main__":
    join(Path(sys.argv[1]), Path(sys.argv[2]))
    supply(Path(sys.argv[1]))
