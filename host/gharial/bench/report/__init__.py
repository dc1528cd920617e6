# SPDX-License-Identifier: Apache-2.0
"""A page for people about a run of the RTL: one HTML file with its pictures inside, which needs nothing else."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from gharial.bench.observed import Observed
from gharial.errors import BadInput

PAGE = "index.html"
_OPTION = "--report"


def check(folder: str | os.PathLike[str]) -> None:
    """Find out, before anything takes long, whether a report can be written; makes the folder.

    Args:
        folder: where it is to go.

    Raises:
        BadInput: no folder, not writable, or Matplotlib is not installed.
    """
    path = Path(folder)
    if importlib.util.find_spec("matplotlib") is None:
        raise BadInput("a report needs Matplotlib", _OPTION, "none", "matplotlib", "pip install gharial[plots]")
    if path.exists() and not path.is_dir():
        raise BadInput("is no folder", f"{_OPTION} {path}", "a file", "a folder", "name another one")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput("the folder cannot be made", f"{_OPTION} {path}", error.strerror or error) from None
    page = path / PAGE
    if page.is_dir() or not os.access(page if page.exists() else path, os.W_OK):
        raise BadInput("may not be written to", f"{_OPTION} {page}", expected="a writable folder")


def write(folder: str | os.PathLike[str], found: dict[str, Any], observed: Observed) -> Path:
    """Write the page about a run.

    Args:
        folder: as given to `check`.
        found: the object of `gharial bench rtl --json`.
        observed: what the run showed beyond it.

    Returns:
        The file.

    Raises:
        OSError: it cannot be written.
    """
    from gharial.bench.report.page import page  # here, as it imports Matplotlib, which takes long

    path = Path(folder) / PAGE
    part = path.with_name(f"{PAGE}.part")
    part.write_text(page(found, observed), encoding="utf-8")
    part.replace(path)
    return path
