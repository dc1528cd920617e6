# SPDX-License-Identifier: Apache-2.0
"""Makes the register block from rtl/csr/gharial.rdl with PeakRDL: `gharial_csr` and `gharial_csr_pkg` in build/rtl/csr.

AXI4-Lite with flat ports, synchronous reset, active high. `python -m scripts.rtl.csr` prints where it is.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import subprocess
import sys
from pathlib import Path

from scripts.rtl.tools import BUILD, ROOT, ToolError

SOURCE = ROOT / "rtl" / "csr" / "gharial.rdl"
FOLDER = BUILD / "rtl" / "csr"
PACKAGE = FOLDER / "gharial_csr_pkg.sv"
OPTIONS = ["--cpuif", "axi4-lite-flat", "--module-name", "gharial_csr", "--package-name", "gharial_csr_pkg"]
OPTIONS += ["--rt-read-fanin", "--rt-read-response"]  # a read takes a few clocks longer, for shorter paths


def generate() -> Path:
    """Bring the block up to date; the folder with its two files.

    Raises:
        ToolError: PeakRDL is missing or refused the source.
    """
    try:
        version = importlib.metadata.version("peakrdl-regblock")
    except importlib.metadata.PackageNotFoundError:
        raise ToolError("peakrdl-regblock: not found; get it with: make sim") from None
    wanted = "\n".join([version, *OPTIONS, SOURCE.read_text(encoding="utf-8")])
    stamp = FOLDER / "stamp"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.is_file() and stamp.read_text() == wanted and PACKAGE.is_file():
            return FOLDER
        command = [sys.executable, "-m", "peakrdl", "regblock", str(SOURCE), "-o", str(FOLDER), *OPTIONS]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise ToolError(f"peakrdl: {done.stdout.strip()}")
        stamp.write_text(wanted)
    return FOLDER


def main() -> int:
    """Exit code: 0 made, 2 not."""
    try:
        print(generate().relative_to(ROOT))
    except ToolError as error:
        print(f"csr: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
