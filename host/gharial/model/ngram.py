# SPDX-License-Identifier: Apache-2.0
"""The n-gram that came inside a checkpoint: a file beside the program, written once (docs/ngram.md)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gharial.errors import BadInput, GharialError
from gharial.files import write_atomically
from gharial.ngram.checking import read_file
from gharial.ngram.marking import marked
from gharial.ngram.pieces import embedded_ngram
from gharial.ngram.trailer import encode
from gharial.program import Program

SUFFIX = ".ngram"
_PROGRAM = ".gprog"
_CHUNK = 1 << 20


def beside(program: str | os.PathLike[str]) -> Path:
    """Name of the n-gram that belongs to a program file: M.ngram for M.gprog."""
    path = Path(program)
    return path.with_suffix(SUFFIX) if path.suffix == _PROGRAM else path.with_name(path.name + SUFFIX)


def ngram_of(program: Program) -> Path | None:
    """The n-gram file beside a program; None if there is none, or the program is in no file. It is not checked here."""
    if program.path is None:
        return None
    path = beside(program.path)
    return path if path.is_file() else None


def write_embedded(
    checkpoint: str | os.PathLike[str],
    program: Program,
    path: str | os.PathLike[str],
    note: Callable[[str], object],
) -> Path | None:
    """Write the n-gram that a checkpoint carries beside its program, marked; nothing where it is there already.

    Args:
        checkpoint: the hardware checkpoint.
        program: the program compiled from it.
        path: file of the program.
        note: called with a sentence about an n-gram that cannot be used, a file that it replaces, or one that stays.

    Returns:
        The n-gram file, None if the checkpoint carries none that can be used.

    Raises:
        BadInput: the checkpoint cannot be read.
        GharialError: the file cannot be written; what was there before still is.
    """
    target = beside(path)
    binary = embedded_ngram(checkpoint)
    if binary is None:
        _tell_of_another(target, note)
        return None
    sentencepiece = program.section("sentencepiece")
    if _holds(target, binary, encode(sentencepiece)):
        return target
    try:
        pieces = marked(binary, sentencepiece, f"{os.fspath(checkpoint)}: ngram")
    except BadInput as error:
        note(f"the n-gram inside the checkpoint is left out: {error.what}")
        _tell_of_another(target, note)
        return None
    replaced = target.exists()
    write_atomically(target, pieces, cached=False)
    if replaced:
        note(f"{target} is replaced by the n-gram inside the checkpoint")
    return target


def _tell_of_another(target: Path, note: Callable[[str], object]) -> None:
    if target.is_file():
        note(f"{target} was there before and is taken as this program's n-gram: remove it if it is another model's")


def settle_embedded(checkpoint: str | os.PathLike[str], program: Program, note: Callable[[str], object]) -> None:
    """See that the n-gram of a checkpoint that was compiled on the fly lies beside its cached program.

    Args:
        checkpoint: the hardware checkpoint.
        program: its program, read from the cache or put there, or in memory alone.
        note: called with a sentence about an n-gram that cannot be kept or used.
    """
    left_out = "the n-gram inside the checkpoint is left out"
    try:
        if program.path is None:
            if embedded_ngram(checkpoint) is not None:
                note(f"{left_out}: compiled programs are not kept here")
        elif not _marked_for(beside(program.path), program.section("sentencepiece")):
            # Else it is this checkpoint's: an entry of the cache belongs to one.
            write_embedded(checkpoint, program, program.path, note)
    except GharialError as error:  # the program is there and good
        note(f"{left_out}: {str(error).splitlines()[0]}")


def _marked_for(path: Path, sentencepiece: bytes) -> bool:
    try:
        mark = read_file(path).mark if path.is_file() else None
    except (BadInput, OSError):
        return False
    return mark is not None and mark.fits(sentencepiece)


def _holds(path: Path, *parts: bytes) -> bool:
    """Whether a file holds these parts and nothing else."""
    try:
        if not path.is_file() or path.stat().st_size != sum(map(len, parts)):
            return False
        with path.open("rb") as file:
            for part in parts:
                for at in range(0, len(part), _CHUNK):
                    if file.read(len(part[at : at + _CHUNK])) != part[at : at + _CHUNK]:
                        return False
    except OSError:
        return False
    return True
