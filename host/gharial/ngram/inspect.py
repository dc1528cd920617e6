# SPDX-License-Identifier: Apache-2.0
"""What an n-gram file is, as data and as text: its sizes, its words, whose it is, and whether it is good."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import asdict
from itertools import islice
from typing import Any

from gharial.checkpoint.text import listed, shown
from gharial.errors import BadInput
from gharial.ngram.checking import NgramFile, read_file
from gharial.ngram.words import words

_FIRST = 12
_KENLM = (b"mmap lm http://kheafield.com/code", b"\\data\\")


def recognised(head: bytes) -> bool:
    """Whether a file that begins so is an n-gram, binary or text."""
    return head.lstrip().startswith(_KENLM)


def describe(path: str | os.PathLike[str], sentencepiece: bytes | None = None) -> dict[str, Any]:
    """Facts about an n-gram file, good or bad, that can be written as JSON.

    Args:
        path: the file.
        sentencepiece: bytes of the SentencePiece model that it is to be used with, if that is known.

    Returns:
        file, kind ("n-gram"), good, problem (None, or the parts of the BadInput: what, where, found, expected, remedy).
        Of a good file further: bytes, order, counts (n-grams by order), type (KenLM's data structure), quantised
        ({prob_bits, backoff_bits} or None), multiplier (None for tries), vocabulary (words), words (the first ones, or
        None where the file holds none), mark ({algorithm, digest, layout} or None), foreign_bytes, for_model (None
        where not known or not asked).
    """
    name = os.fspath(path)
    facts: dict[str, Any] = {"file": name, "kind": "n-gram", "good": False, "problem": None}
    try:
        file = read_file(name)
    except BadInput as error:
        parts = {part: getattr(error, part) for part in ("what", "where", "found", "expected", "remedy")}
        facts["problem"] = {part: None if value is None else str(value) for part, value in parts.items()}
        return facts
    return facts | {"good": True} | _facts(file, sentencepiece)


def _facts(file: NgramFile, sentencepiece: bytes | None) -> dict[str, Any]:
    header, mark = file.header, file.mark
    return {
        "bytes": file.bytes,
        "order": header.order,
        "counts": list(header.counts),
        "type": header.kind,
        "quantised": None if header.quantised is None else asdict(header.quantised),
        "multiplier": round(header.multiplier, 6) if header.kind.startswith("probing") else None,
        "vocabulary": header.words,
        "words": [word.decode("utf-8", "replace") for word in islice(words(file), _FIRST)] or None,
        "mark": None
        if mark is None
        else {"algorithm": mark.algorithm, "digest": mark.digest.hex(), "layout": mark.layout},
        "foreign_bytes": file.foreign,
        "for_model": None if mark is None or sentencepiece is None else mark.fits(sentencepiece),
    }


def format_description(facts: dict[str, Any]) -> str:
    """Text for a person of what `describe` returned: a headline and one line a fact, without a line end at the end."""
    lines = [f"{facts['file']}: {facts['kind']}, {'good' if facts['good'] else 'BAD'}"]
    if facts["problem"] is not None:
        return "\n".join([*lines, *(f"  {line}" for line in str(BadInput(**facts["problem"])).split("\n"))])
    counts = ", ".join(f"{count:,}" for count in facts["counts"])
    rows = [
        ("size", f"{facts['bytes']:,} bytes"),
        ("order", f"{facts['order']}; n-grams of each order: {counts}"),
        ("type", _type(facts)),
        ("vocabulary", f"{facts['vocabulary']:,} words" + _first(facts)),
        ("made for", _made_for(facts)),
    ]
    return "\n".join([*lines, *(f"  {label:<10}  {text}" for label, text in rows)])


def _type(facts: dict[str, Any]) -> str:
    if facts["quantised"] is not None:
        bits = facts["quantised"]
        return f"{facts['type']} (probabilities {bits['prob_bits']} bits, back-offs {bits['backoff_bits']})"
    return (
        str(facts["type"]) if facts["multiplier"] is None else f"{facts['type']}, {facts['multiplier']:g} places each"
    )


def _first(facts: dict[str, Any]) -> str:
    if facts["words"] is None:
        return ", not in the file"
    return ": " + listed(map(_readable, facts["words"])) + (", ..." if facts["vocabulary"] > _FIRST else "")


def _readable(word: str) -> str:
    """A word with its letters, a piece's word mark among them; anything that could steer a terminal escaped."""
    return word[:40] if word.isprintable() else shown(word, 40)


def _made_for(facts: dict[str, Any]) -> str:
    mark = facts["mark"]
    if mark is None:
        unknown = f", but for {facts['foreign_bytes']} bytes at its end that are no mark known here"
        return "not marked" + (unknown if facts["foreign_bytes"] else "")
    fits = {None: "", True: ", this model's", False: ", ANOTHER model's"}[facts["for_model"]]
    return f"SentencePiece model {mark['algorithm']}:{mark['digest']}{fits}"


def known_share(file: NgramFile, pieces: Collection[str]) -> tuple[int, int] | None:
    """How many of a file's words are pieces of a model, and how many there are; None where the file holds no words.

    Unknown word and sentence marks are not counted. Of a file that is not marked it tells something of whose it is.
    """
    if not file.header.has_words:
        return None
    special = {b"<unk>", b"<s>", b"</s>"}
    wanted = {piece.encode() for piece in pieces}
    own = [word for word in words(file) if word not in special]
    return sum(word in wanted for word in own), len(own)
