# SPDX-License-Identifier: Apache-2.0
"""The SentencePiece model of whatever names one: a hardware checkpoint, a program, or a `.model` file."""

from __future__ import annotations

import os
from typing import Any

from gharial.checkpoint.sentencepiece_model import count_pieces
from gharial.checkpoint.text import shown
from gharial.checkpoint.torchzip import load
from gharial.errors import BadInput
from gharial.files import open_regular
from gharial.program import Program
from gharial.program.container import MAGIC

_LONGEST = 64 << 20
_EXPECTED = "a hardware checkpoint (.hw.pt), a program (.gprog) or a SentencePiece model (.model)"
_ZIP = b"PK\3\4"


def sentencepiece_of(model: str | os.PathLike[str]) -> bytes:
    """Bytes of a SentencePiece `.model` file.

    Args:
        model: a hardware checkpoint, a program, or such a file; its content decides.

    Raises:
        BadInput: it is none of these, or cannot be read as what it seems to be.
    """
    path = os.fspath(model)
    with open_regular(path, _EXPECTED) as file:
        head = file.read(len(MAGIC))
        if head == MAGIC:
            return Program.read(path).section("sentencepiece")
        if not head.startswith(_ZIP):
            data = head + file.read(_LONGEST + 1)
            return _checked(data, path)
    found = load(path, _select)
    if not isinstance(found, bytes):
        what, remedy = "the checkpoint holds no SentencePiece model", "give a hardware checkpoint (gharial export)"
        raise BadInput(what, path, shown(found), "the key sentpiece_model, bytes", remedy)
    return found


def embedded_ngram(checkpoint: str | os.PathLike[str]) -> bytes | None:
    """The KenLM binary that a hardware checkpoint carries (versions 1.11 to 1.14), None if it has none. Not checked.

    Raises:
        BadInput: the checkpoint cannot be read, or its key `ngram` is not of the types that it should be.
    """
    path = os.fspath(checkpoint)
    ngram = load(path, lambda tree: tree.get("ngram") if isinstance(tree, dict) else None)
    binary = ngram.get("binary") if isinstance(ngram, dict) else None
    if binary is not None and not isinstance(binary, bytes):
        where, remedy = f"{path}: ngram", "export the checkpoint again"
        raise BadInput("binary is no bytes", where, shown(binary), "bytes or None", remedy)
    return binary


def _select(tree: Any) -> Any:
    return tree.get("sentpiece_model") if isinstance(tree, dict) else None


def _checked(data: bytes, path: str) -> bytes:
    problem = "too long" if len(data) > _LONGEST else "something else"
    try:
        if len(data) <= _LONGEST:
            count_pieces(data, path)
            return data
    except BadInput:
        pass
    raise BadInput("this names no SentencePiece model", path, problem, _EXPECTED, "give the model that it is for")
