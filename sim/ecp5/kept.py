# SPDX-License-Identifier: Apache-2.0
"""The netlist of `tiny` in the repository: `python -m sim.ecp5.kept` makes it anew, which the RTL's changes call for.

Synthesis of the whole machine takes two minutes, its simulation seconds. So what synthesis left is kept, as the table
that netlist.cpp reads, with the digest of all that it was made of: it is taken as long as that is today's. That
synthesis still leaves the same is seen to by the long form of tests/test_netlist_whole.py.
"""

from __future__ import annotations

import hashlib
import lzma
import sys
from pathlib import Path

from scripts.board import constants
from scripts.rtl import tools

from gharial.files import write_atomically
from gharial.isa.configs import config
from sim.ecp5 import build, table
from sim.runtime import alone

CONFIG = "tiny"
FILE = Path(__file__).with_name("tiny.table.xz")
"""64 digits of the digest, then the table."""


def words() -> bytes | None:
    """The table, or None where it is of other sources than today's."""
    found = lzma.decompress(FILE.read_bytes())
    return found[64:] if found[:64] == _digest() else None


def made() -> bytes:
    """The table as synthesis leaves it today (two minutes, if its netlist is not there)."""
    netlist, folder = build.synthesised(CONFIG), build.FOLDER / CONFIG
    with alone(folder):
        return build.content(netlist, folder)


def library() -> Path:
    """The library of the netlist of today's sources: of the kept one, else of one that is synthesised.

    Raises:
        ToolError: Yosys refused the design, or the library does not compile.
    """
    found, folder = words(), build.FOLDER / CONFIG
    if found is None:
        found = made()
    with alone(folder):
        return build.compiled(config(CONFIG), found, folder)


def _digest() -> bytes:
    """Of all that the table depends on."""
    ways = [Path(module.__file__ or "").read_bytes() for module in (constants, table)]
    return hashlib.sha256(b"\0".join([build.sources_digest().encode(), *ways])).hexdigest().encode()


def main() -> int:
    """See the head of this file."""
    problem = tools.lacking([tools.VERILATOR, tools.PYOSYS])
    if problem:
        print(f"kept: {problem}", file=sys.stderr)
        return 2
    tools.prepare()
    write_atomically(FILE, iter([lzma.compress(_digest() + made(), preset=9)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
