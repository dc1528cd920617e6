# SPDX-License-Identifier: Apache-2.0
"""Output files, looked at before the work whose result they are to hold."""

from __future__ import annotations

import os

from gharial.errors import BadInput
from gharial.files import check_not_read, output_path
from gharial.partial import clear_leftovers

_ANOTHER = "name another output file"


def check_output(output: str, *inputs: str) -> None:
    """Find out whether a file could be written, and clear away what a killed process left of it.

    Args:
        output: its name.
        inputs: files that it must not be.

    Raises:
        BadInput: it could not, or is one of the inputs.
    """
    path = output_path(output)
    check_not_read(output, *inputs)
    folder = path.parent
    if not os.access(folder, os.W_OK):
        raise BadInput("the folder may not be written to", folder, "no permission", "write permission", _ANOTHER)
    clear_leftovers(folder, path.name)
