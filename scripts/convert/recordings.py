# SPDX-License-Identifier: Apache-2.0
"""Recordings as the converted networks hear them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gharial.audio import open_audio, read_all
from gharial.compiler.calibrate import calibration_files
from gharial.errors import GharialError

RATE = 16000


def samples(path: Path) -> np.ndarray:
    """A recording at 16 kHz, (n,) float64 with full scale 1.

    Raises:
        BadInput: it cannot be read.
    """
    with open_audio(path, RATE) as audio:
        values = read_all(audio)
    return values / 32768.0 if values.dtype == np.int16 else values.astype(np.float64)


def folder(path: Path | None) -> list[np.ndarray]:
    """The recordings in a folder and below it, in the order of their names; None for those that ship with the package.

    Raises:
        BadInput: the folder is missing, or holds no recording that can be read.
    """
    return [samples(file) for file in calibration_files(path)]


def run(main: Callable[[argparse.Namespace], None], parser: argparse.ArgumentParser, argv: list[str] | None) -> int:
    """Run a converter's command line: its exit code, errors told in one to three lines."""
    try:
        main(parser.parse_args(argv))
    except GharialError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return error.exit_code
    return 0
