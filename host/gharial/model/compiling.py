# SPDX-License-Identifier: Apache-2.0
"""From a checkpoint to a program that is near enough to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gharial.checkpoint import Prefixes, load_hardware
from gharial.compiler.calibrate import calibrate, calibration_files, recorded_features
from gharial.compiler.compile import check_size, compile_checkpoint
from gharial.compiler.quantise import WEIGHT_TYPES
from gharial.errors import BadInput
from gharial.features import FeatureSpec
from gharial.files import open_regular
from gharial.floating.network import FloatNetwork
from gharial.isa.configs import Config
from gharial.isa.configs import config as configuration
from gharial.program import Program
from gharial.program.container import MAGIC

if TYPE_CHECKING:
    from gharial.fidelity import Verdict

FEWEST_TOKENS = 10
"""Tokens that a model writes for all calibration recordings, at least: with fewer it was mostly silence to it."""


def is_program(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a compiled program; a file that cannot be read does if its name says so."""
    try:
        with open_regular(path, "a checkpoint or a program") as file:
            head = file.read(len(MAGIC))
    except BadInput:
        head = b""
    return head == MAGIC or (not head and os.fspath(path).endswith(".gprog"))


def compile_model(
    model: str | os.PathLike[str],
    config: Config | str | None = None,
    calibration: Path | None = None,
    progress: Callable[[int, int], object] | None = None,
    *,
    weights: str = "int8",
    allow_error: bool = False,
    report: str | os.PathLike[str] | None = None,
    judged: Callable[[Verdict], object] | None = None,
    note: Callable[[str], object] | None = None,
) -> Program:
    """Compile a hardware checkpoint.

    Args:
        model: the checkpoint.
        config: hardware configuration to compile for, or its name; None for the smallest that holds the model.
        calibration: folder of recordings (of vectors, for a network that takes these) to measure activation ranges
            with; None for the shipped ones.
        progress: called with the number of calibration recordings done and of all.
        weights: type of the weights: "int8", or "int4" for steps of -7 to 7, which take as many bytes.
        allow_error: give back a program that is further from the float model than the bound of docs/quantisation.md.
        report: folder for a page and a JSON file that tell where the error comes from; made if it is not there.
            It is written for a program that is refused as well.
        judged: called with what the program was measured to be, before it may be refused.
        note: called with a sentence about recordings that tell little of the model.

    Returns:
        The program; its method `write` makes a file of it.

    Raises:
        BadInput: the checkpoint or the folder cannot be used, the model does not fit (bytes needed and there),
            the program would be too far from the float model, or the folder of the report cannot be written.
        GharialError: the report could not be written.
    """
    # Here, as it looks at traces, whose recorder opens models.
    from gharial.fidelity import Recording, judge, require, sample, verdict
    from gharial.fidelity import report as fidelity_report

    if isinstance(config, str):
        config = configuration(config)
    if is_program(model):
        raise BadInput(
            "this is a program, compiled already",
            os.fspath(model),
            "a program (.gprog)",
            "a hardware checkpoint (.hw.pt)",
            "use the program as it is, or compile the checkpoint that it was made of",
        )
    if weights not in WEIGHT_TYPES:
        raise BadInput(
            "no such type of weights", "weights", weights, " or ".join(WEIGHT_TYPES), "leave it out for int8"
        )
    if report is not None:
        fidelity_report.check(report)
    checkpoint = load_hardware(model)
    # Before the minutes that calibration may take.
    check_size(checkpoint, config)
    paths = calibration_files(calibration, checkpoint.features.given)
    done, total = 0, len(paths) if report is None else 2 * len(paths)

    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    spec, prefix = FeatureSpec.from_checkpoint(checkpoint), Prefixes.of(checkpoint).usual()

    def recorded(path: Path) -> Recording:
        return Recording(path.name, recorded_features(path, spec), prefix=prefix)

    network = FloatNetwork(checkpoint)
    found = calibrate(checkpoint, calibration, count, network)
    said = found.ranges.joint_evaluations - found.ranges.encoder_steps
    if note is not None and not spec.given and said < FEWEST_TOKENS:
        note(
            f"the model writes {said} tokens in all for the calibration recordings: its units, and the error that is "
            "measured, tell little of speech; give some minutes of what it will hear (--calibrate DIR)"
        )
    kind = WEIGHT_TYPES[weights]
    program = compile_checkpoint(checkpoint, config, found, kind)
    if report is not None:
        told = fidelity_report.write(report, checkpoint, network, found, kind, program, map(recorded, paths), count)
        seen = verdict(program, told)
    else:
        seen = judge(program, network, [recorded(path) for path in sample(paths)])
    if judged is not None:
        judged(seen)
    if not allow_error:
        require(seen, checkpoint.path)
    return program
