# SPDX-License-Identifier: Apache-2.0
"""From the name of a model to its program, and what the host needs of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from gharial import __version__
from gharial.checkpoint import Prefixes
from gharial.checkpoint.prefix_spec import parse_prefix_spec
from gharial.checkpoint.torchzip import open_checkpoint
from gharial.compiler.calibrate import calibration_files
from gharial.errors import BadInput
from gharial.features.spec import SETTINGS, FeatureSpec
from gharial.files import open_regular
from gharial.isa.configs import Config
from gharial.model.cache import cached, digest
from gharial.model.compiling import compile_model, is_program
from gharial.model.ngram import settle_embedded
from gharial.model.vocabulary import Vocabulary
from gharial.program import Program

_AGAIN = "compile the checkpoint again"

# Packages whose code decides what a program is; `isa` carries the configurations as well.
_COMPILER = ("audio", "checkpoint", "compiler", "features", "fidelity", "floating", "isa", "program")


def demo_model() -> Path:
    """The hardware checkpoint that ships with the package."""
    return Path(str(files("gharial"))) / "data" / "demo" / "demo-small.hw.pt"


def open_model(
    model: str | os.PathLike[str] | None = None,
    config: Config | None = None,
    *,
    calibration: Path | None = None,
    progress: Callable[[int, int], object] | None = None,
    note: Callable[[str], object] | None = None,
) -> Program:
    """The verified program of a model.

    A checkpoint is compiled and kept in the user's cache folder under a digest of the checkpoint, the calibration
    recordings, the configuration and the compiler's own code; an n-gram inside it is kept beside the program
    (`gharial.model.ngram_of`).

    Args:
        model: a hardware checkpoint or a program; its content decides. None for the shipped demo model.
        config: the configuration of the device it is for; None for a program's own, or the smallest that holds a
            checkpoint.
        calibration: folder of recordings to calibrate a checkpoint with; None for the shipped ones.
        progress: as in `compile_model`; not called where nothing is compiled.
        note: called with a sentence about a cache that could not be used, or recordings that tell little of the model.

    Raises:
        BadInput: the file cannot be used, is a program for another configuration, or does not fit.
    """
    path = os.fspath(demo_model() if model is None else model)
    if is_program(path):
        if calibration is not None:
            raise BadInput(
                "a program has been calibrated already",
                path,
                f"calibration folder {calibration}",
                "none",
                "leave it out, or give the checkpoint",
            )
        program = Program.read(path)
        if config is not None and config.config_id != program.config.config_id:
            raise BadInput(
                "the program is for another configuration than the device",
                path,
                program.config.name,
                config.name,
                f"compile it for this device: gharial compile CKPT -o PROGRAM --config {config.name}; or give one that "
                f"it is for, as --device emulator:{program.config.name}",
            )
        return program
    with open_checkpoint(path) as file:
        source = hashlib.file_digest(file, "sha256").digest()
    key = digest(_dependencies(source, config, calibration))
    tell = note or (lambda _: None)
    program = cached(key, source.hex(), lambda: compile_model(path, config, calibration, progress, note=tell), tell)
    settle_embedded(path, program, tell)
    return replace(program, given=path)


def _dependencies(source: bytes, config: Config | None, calibration: Path | None) -> Iterator[tuple[str, bytes]]:
    """All that a compiled program depends on."""
    yield "checkpoint", source
    yield "configuration", b"" if config is None else f"{config.name} {config.config_id}".encode()
    yield "compiler", f"{__version__} {_compiler_digest()}".encode()
    yield "numpy", np.__version__.encode()  # calibration is in float
    for path in calibration_files(calibration):
        with open_regular(path, "a recording") as file:
            yield "recording", hashlib.file_digest(file, "sha256").digest()


@cache
def _compiler_digest() -> str:
    """Digest of the compiler's own code, so that a program made by another state of it is not taken for this one's."""
    package = Path(str(files("gharial")))
    sources = [path for name in _COMPILER for path in (package / name).rglob("*") if path.suffix in (".py", ".yaml")]
    return digest((path.relative_to(package).as_posix(), path.read_bytes()) for path in sorted(sources))


def front_end(program: Program) -> FeatureSpec:
    """The front end that a program's network was trained with, without dither.

    Raises:
        BadInput: the mel statistics are missing or do not fit, or a setting is out of range.
    """
    settings = program.manifest["features"]
    means, variances = (program.array(name, "<f8").astype(np.float64) for name in ("melmeans", "melvars"))
    given = settings.get("given", False)
    try:
        spec = FeatureSpec(
            **{name: settings[name] for name in SETTINGS}, melmeans=means, melvars=variances, given=given
        )
    except BadInput as error:
        raise BadInput(
            error.what, f"{program.where}: {error.where}", error.found, error.expected, error.remedy or _AGAIN
        ) from error
    if spec.vector_size != settings["count"]:
        raise BadInput(
            "features a vector", program.where, settings["count"], f"{spec.vector_size} by the settings", _AGAIN
        )
    return spec


def prefixes(program: Program) -> Prefixes:
    """Prefixes that a program's network takes.

    Raises:
        BadInput: the program's `prefix_spec` contradicts itself.
    """
    spec = parse_prefix_spec(program.manifest["decoding"].get("prefix_spec"), f"{program.where}: prefix_spec")
    return Prefixes(spec, program.sections.get("sentencepiece", b""), program.where)


def vocabulary(program: Program) -> Vocabulary:
    """Text of a program's tokens.

    Raises:
        BadInput: the SentencePiece model is missing or does not fit.
    """
    tokens = program.header["classes"] - 1
    blank = program.manifest["decoding"]["blank"]
    if blank != tokens:
        raise BadInput("blank is not the last class", program.where, blank, tokens, _AGAIN)
    return Vocabulary(program.section("sentencepiece"), tokens, program.where)
