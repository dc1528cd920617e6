#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check what no linter sees: length and licence line of tracked source files, and paths of one machine in any text.

Prints one line a fault and exits 1, or prints nothing and exits 0.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 400
SOURCE_SUFFIXES = frozenset(
    {".py", ".pyi", ".c", ".h", ".cpp", ".hpp", ".sv", ".svh", ".v", ".vlt", ".rdl", ".sby", ".lpf", ".xdc", ".tcl"}
    | {".sh", ".toml", ".yaml", ".yml", ".html", ".css", ".js"}
)
SOURCE_NAMES = frozenset({"Makefile", "constraints.txt", "MANIFEST.in"})
LICENCE_LINE = "SPDX-License-Identifier: Apache-2.0"
LICENCE_WITHIN = 5  # lines: a shebang or a doctype may stand above it

# Absolute ones only: the same names inside a longer path or a link are nobody's home.
MACHINE_PATH = re.compile(r"(?<![\w.~/})-])/(?:work|root|tmp|home)/[\w.-]*")


def tracked(root: Path) -> list[Path]:
    """Files that git tracks in `root` and that are there, as paths under it."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    return [root / name for name in listing.split("\0") if name and (root / name).is_file()]


def faults(path: Path, root: Path) -> list[str]:
    """What is wrong with the file `path`, each "file:line: fault"; nothing for a file that is not text."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    name = path.relative_to(root).as_posix()
    lines = text.splitlines()
    found = [
        f"{name}:{number}: path of one machine: {match.group()}"
        for number, line in enumerate(lines, 1)
        for match in MACHINE_PATH.finditer(line)
    ]
    if path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES or text.startswith("#!"):
        if len(lines) > LONGEST:
            found.append(f"{name}:{len(lines)}: {len(lines)} lines, at most {LONGEST} wanted: split it by subject")
        if lines and not any(LICENCE_LINE in line for line in lines[:LICENCE_WITHIN]):
            found.append(f"{name}:1: no line '{LICENCE_LINE}' in the first {LICENCE_WITHIN}")
    return found


def main() -> int:
    """Exit code: 0 all well, 1 faults were printed."""
    found = [fault for path in tracked(ROOT) for fault in faults(path, ROOT)]
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
