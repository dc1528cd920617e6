# SPDX-License-Identifier: Apache-2.0
"""Output files, looked at before the work whose result they are to hold."""

from __future__ import annotations

import os
from pathlib import Path

from gharial.errors import BadInput

_ANOTHER = "name another output file"


def check_output(output: str, *inputs: str) -> None:
    """Find out whether a file could be written.

    Args:
        output: its name.
        inputs: files that it must not be.

    Raises:
        BadInput: it could not, or is one of the inputs.
    """
    path = Path(output)
    if path.is_dir():
        raise BadInput("is a folder", output, "a folder", "a file to write", "name a file in it")
    if path.exists():
        for name in inputs:
            if Path(name).exists() and path.samefile(name):
                raise BadInput("would be written over what is read", output, name, "another file", _ANOTHER)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise BadInput("the folder does not exist", folder, "nothing", "a folder", f"make it, or {_ANOTHER}")
    if not os.access(folder, os.W_OK):
        raise BadInput("the folder may not be written to", folder, "no permission", "write permission", _ANOTHER)
