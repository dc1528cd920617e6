# SPDX-License-Identifier: Apache-2.0
"""Which files make a build: packages in the order they need each other, and folders to look modules up in.

A module's file has the module's name, so a build names its top only; the rest is found in the folders.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.rtl import config_pkg, csr
from scripts.rtl.tools import ROOT, ToolError

RTL = ROOT / "rtl"
SIM = ROOT / "sim"
WAIVERS = RTL / "waivers.vlt"  # for Verilator: what packages and generated files may do that our modules may not


def packages(config: str) -> list[Path]:
    """Package files for the configuration `config`, made up to date, in compile order."""
    csr.generate()
    return [config_pkg.generate(config), *sorted((RTL / "pkg").glob("*.sv")), csr.PACKAGE]


def folders(*extra: Path) -> list[Path]:
    """Folders whose files hold the module of their name: `extra`, rtl/, register block, models of vendor cells."""
    own = sorted({path.parent for path in RTL.rglob("*.sv")} - {RTL / "pkg"})
    return [*extra, *own, csr.FOLDER, SIM / "primitives"]


def modules(*extra: Path) -> list[Path]:
    """All module files of rtl/ and of the folders `extra`."""
    within = [path for path in RTL.rglob("*.sv") if path.parent != RTL / "pkg"]
    return sorted([*within, *(path for folder in extra for path in folder.glob("*.sv"))])


def find(top: str, looked_in: Sequence[Path]) -> Path:
    """File of the module `top` in one of the folders.

    Raises:
        ToolError: no folder has one.
    """
    for folder in looked_in:
        if (folder / f"{top}.sv").is_file():
            return folder / f"{top}.sv"
    raise ToolError(f"{top}: no file {top}.sv under rtl/ or the bench's folder")


def library(looked_in: Sequence[Path]) -> list[str]:
    """Options, as Verilator and slang both take them, that look modules up in the folders."""
    return ["+libext+.sv", *(option for folder in looked_in for option in ("-y", str(folder)))]
