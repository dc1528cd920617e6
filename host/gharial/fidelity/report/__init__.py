# SPDX-License-Identifier: Apache-2.0
"""A report about the error of quantising: one page that needs nothing else, and the same figures as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from gharial.checkpoint.hardware import HardwareCheckpoint
from gharial.compiler.calibrate import Calibration
from gharial.compiler.network import quantise_network
from gharial.compiler.quantise import WeightType
from gharial.compiler.units import choose_units
from gharial.errors import BadInput
from gharial.fidelity.compare import Comparison, Recording, compare
from gharial.fidelity.report.figures import figures
from gharial.fidelity.report.page import page
from gharial.fidelity.weights import weight_noise
from gharial.files import write_atomically
from gharial.floating.network import FloatNetwork
from gharial.program import Program

PAGE, FIGURES = "index.html", "report.json"
WORST = 8
"""Rows and units that are named of each tensor."""

_OPTION = "--report"


def check(folder: str | os.PathLike[str]) -> None:
    """Find out, before anything takes long, whether a report can be written; makes the folder.

    Raises:
        BadInput: it is no folder, cannot be made, or may not be written to.
    """
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise BadInput("is no folder", f"{_OPTION} {path}", "a file", "a folder", "name another one")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput("the folder cannot be made", f"{_OPTION} {path}", error.strerror or error) from None
    for name in (PAGE, FIGURES):
        file = path / name
        if file.is_dir() or not os.access(file if file.exists() else path, os.W_OK):
            raise BadInput("may not be written to", f"{_OPTION} {file}", expected="a writable folder")


def write(
    folder: str | os.PathLike[str],
    checkpoint: HardwareCheckpoint,
    network: FloatNetwork,
    calibration: Calibration,
    weights: WeightType,
    program: Program,
    recordings: Iterable[Recording],
    progress: Callable[[int], object] | None = None,
) -> Comparison:
    """Measure a program and write the report.

    Args:
        folder: as given to `check`.
        checkpoint: the model.
        network: the same, to be run.
        calibration: what the program was compiled with.
        weights: type of its weights.
        program: compiled from the checkpoint.
        recordings: speech to measure it on; taken one at a time.
        progress: called with the number of recordings done since the last call.

    Returns:
        What was measured.

    Raises:
        GharialError: a file cannot be written; it is as it was before.
    """
    units = choose_units(calibration.ranges, calibration.feature_bits)
    quantised = quantise_network(checkpoint, program.config, units, weights)
    matrices = list(weight_noise(checkpoint, quantised, WORST))
    found = compare(program, network, recordings, progress=progress)
    told = figures(program, weights, matrices, found, WORST)
    data = json.dumps(told, indent=1, allow_nan=False) + "\n"
    write_atomically(Path(folder) / FIGURES, iter([data.encode()]))
    write_atomically(Path(folder) / PAGE, iter([page(told).encode()]))
    return found
