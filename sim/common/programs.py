# SPDX-License-Identifier: Apache-2.0
"""Programs for benches of the whole core: small models of random weights, as the tests have them."""

from __future__ import annotations

import sys
from pathlib import Path

from gharial.program import Program

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from compiled import program as compiled
from random_checkpoint import SMALL

BLANK = SMALL.classes - 1
"""Class of blank."""


def lively(config: str = "tiny") -> Program:
    """A program that emits tokens at some steps, blanks at others, and now and then too many: stack 2, SMALL sizes."""
    return compiled(21, config, blank_bias=2.0)
