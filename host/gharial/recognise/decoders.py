# SPDX-License-Identifier: Apache-2.0
"""Which decoders there are, and what each is made of."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from gharial.checkpoint.sentencepiece_model import PieceKind, read_pieces
from gharial.decoding import DecoderOptions, SearchModel
from gharial.driver import Driver
from gharial.errors import BadInput
from gharial.isa.commands import Mode
from gharial.model import Vocabulary, ngram_of
from gharial.model.ngram import beside
from gharial.ngram import NgramModel
from gharial.program import Program
from gharial.recognise.beam import BeamEngine
from gharial.recognise.engine import Engine
from gharial.recognise.greedy import ON_THE_HOST, GreedyEngine

DECODERS = ("greedy", "beam")

NGRAM_SCALE = 0.05
"""Weight of an n-gram where neither the settings nor the checkpoint name one."""

NgramChoice = str | os.PathLike[str] | bool | None
"""A file; False for none; None for the one that lies beside the program, if there is one; True for that in any case."""


def check_decoder(decoder: str, options: DecoderOptions | None, ngram: NgramChoice, mode: Mode = Mode.TOP_K) -> None:
    """Refuse a decoder that there is not, and settings that it has no use for.

    Raises:
        BadInput: as said.
    """
    if decoder not in DECODERS:
        raise BadInput("unknown decoder", "decoder", decoder, ", ".join(DECODERS), "name one of these")
    if not isinstance(options, DecoderOptions | None):
        raise BadInput("no settings of a decoder", "options", options, "DecoderOptions(...) or None")
    if decoder == "beam":
        return
    usual = DecoderOptions()
    changed = [
        field.name for field in fields(usual) if getattr(options or usual, field.name) != getattr(usual, field.name)
    ]
    if ngram not in (None, False):
        changed.append("ngram")
    if mode != Mode.TOP_K:
        changed.append("mode")
    if changed:
        what, found = "the device's greedy search has no such setting", ", ".join(changed)
        raise BadInput(what, "decoder greedy", found, "the settings left as they are", ON_THE_HOST)


def make_engine(
    driver: Driver,
    vocabulary: Vocabulary,
    decoder: str,
    options: DecoderOptions | None = None,
    ngram: NgramChoice = None,
    mode: Mode = Mode.TOP_K,
    note: Callable[[str], object] | None = None,
) -> Engine[Any]:
    """The engine of a decoder; arguments and errors as for `Recogniser`."""
    program = driver.program
    if decoder == "greedy":
        return GreedyEngine(driver, program.manifest["decoding"]["max_symbols"])
    options, scorer = search_settings(program, options, ngram, note)
    return BeamEngine(driver, search_model(program, vocabulary), options, ngram=scorer, mode=mode)


def search_settings(
    program: Program,
    options: DecoderOptions | None = None,
    ngram: NgramChoice = None,
    note: Callable[[str], object] | None = None,
) -> tuple[DecoderOptions, NgramModel | None]:
    """Settings with the n-gram's scale in them, and the n-gram or None; arguments and errors as for `Recogniser`."""
    options = options or DecoderOptions()
    path = ngram_of(program) if ngram is None or ngram is True else ngram
    if ngram is True and path is None:
        expected = "a program that is in a file" if program.path is None else str(beside(program.path))
        raise BadInput("there is no n-gram beside the program", program.where, "none", expected, "name its file")
    if path is None or path is False:
        return options, None
    options = replace(options, ngram_scale=_scale(program, options, path, note))
    if not options.ngram_scale:  # it would be asked for nothing
        return options, None
    return options, NgramModel(path, program.section("sentencepiece"), note)


def search_model(program: Program, vocabulary: Vocabulary) -> SearchModel:
    """What the search has to know of a program's model."""
    kinds = [piece.kind for piece in read_pieces(program.section("sentencepiece"), program.where)]
    return SearchModel(
        pieces=(*vocabulary.names, ""),
        blank=program.manifest["decoding"]["blank"],
        logit_bits=program.header["logit_bits"],
        eos=vocabulary.eos,
        user_tokens=frozenset(token for token, kind in enumerate(kinds) if kind == PieceKind.USER_DEFINED),
    )


def _scale(
    program: Program, options: DecoderOptions, path: str | os.PathLike[str], note: Callable[[str], object] | None
) -> float:
    if options.ngram_scale is not None:
        return options.ngram_scale
    stated = program.manifest["decoding"].get("ngram_scale")
    if stated is not None:
        return float(stated)
    if note is not None:
        note(f"{os.fspath(path)}: the model states no scale for an n-gram: {NGRAM_SCALE:g} is taken")
    return NGRAM_SCALE
