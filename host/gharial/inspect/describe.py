# SPDX-License-Identifier: Apache-2.0
"""Which kind of file it is; the first that fits has the word."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from gharial.checkpoint.recognise import HEAD_BYTES, refusal
from gharial.errors import BadInput
from gharial.files import hollow, open_regular
from gharial.inspect import models, others
from gharial.inspect.description import Description, bad
from gharial.model import is_program

_KNOWN = (
    "a checkpoint, a program, an n-gram, a SentencePiece model, a training configuration, a trace, a slot's state or a "
    "recording"
)


@dataclass(frozen=True)
class Looked:
    """A file at first sight: its name, its first bytes and its size."""

    file: str
    head: bytes
    size: int
    instructions: bool


def describe(path: str | os.PathLike[str], *, instructions: bool = False) -> Description:
    """What a file is, good or bad; never raises for what it holds.

    Args:
        path: the file.
        instructions: list the instructions of a program.
    """
    file = os.fspath(path)
    try:
        with open_regular(file, "a file") as opened:
            size = os.fstat(opened.fileno()).st_size
            problem = hollow(opened, file, _KNOWN)
            if problem is not None:
                return bad(file, "unknown", problem, bytes=size)
            looked = Looked(file, opened.read(HEAD_BYTES), size, instructions)
        for kind in KINDS:
            found = kind(looked)
            if found is not None:
                return found
    except BadInput as error:
        return bad(file, "unknown", BadInput(error.what, error.where, error.found, remedy=error.remedy))
    refused = refusal(looked.head, looked.size, file)
    seen, remedy = (None, None) if refused is None else (refused.found, refused.remedy)
    unknown = BadInput("not a file that is known here", file, seen, _KNOWN, remedy)
    return bad(file, "unknown", unknown, bytes=looked.size)


def _program(looked: Looked) -> Description | None:
    return models.program(looked.file, looked.instructions) if is_program(looked.file) else None


def _stand_in(looked: Looked) -> Description | None:
    """A file that is in another's place: nothing, a pointer, a web page."""
    return others.stand_in(looked.file, looked.head, looked.size)


def _ngram(looked: Looked) -> Description | None:
    return others.ngram(looked.file, looked.head)


def _zip(looked: Looked) -> Description | None:
    return models.archive(looked.file) if looked.head.startswith(b"PK\3\4") else None


def _other(looked: Looked) -> Description | None:
    for kind in (others.slot_state, others.bitstream, others.sentencepiece, others.configuration, others.recording):
        found = kind(looked.file, looked.head, looked.size)
        if found is not None:
            return found
    return None


KINDS: tuple[Callable[[Looked], Description | None], ...] = (_stand_in, _program, _ngram, _zip, _other)
"""Asked one after the other; None means: not mine."""
