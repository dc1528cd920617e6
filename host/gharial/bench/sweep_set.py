# SPDX-License-Identifier: Apache-2.0
"""The n-gram's scale on a set of recordings: `gharial ngram sweep`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gharial.bench.bootstrap import RESAMPLES, SEED
from gharial.bench.manifest import Utterance, read_set
from gharial.bench.sweep import GRID, REFINEMENTS, check_grid, runs_planned, summary, sweep
from gharial.decoding import DecoderOptions
from gharial.devices.open import DEFAULT, device_config
from gharial.errors import BadInput, GharialError
from gharial.model import demo_model, ngram_of, open_model
from gharial.ngram import check_file
from gharial.program import Program
from gharial.recognise import Recogniser, StreamOptions

Streams = Callable[[Recogniser], StreamOptions]


def sweep_set(
    set_dir: Path,
    model: str | os.PathLike[str] | None = None,
    device: str = DEFAULT,
    *,
    ngram: str | os.PathLike[str] | None = None,
    options: DecoderOptions | None = None,
    streams: Streams | None = None,
    grid: Sequence[float] = GRID,
    refinements: int = REFINEMENTS,
    limit: int | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    compiling: Callable[[int, int], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
    note: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Word errors of beam search on a set by the scale of the n-gram.

    Args:
        set_dir: folder of the set.
        model: hardware checkpoint or program; None for the shipped demo model.
        device: name of the device.
        ngram: the n-gram; None for the one beside the program.
        options: other settings of the search; their `ngram_scale` is not looked at.
        streams: how streams are opened, given the open model; None for the usual way.
        grid, refinements: as in `sweep`.
        limit: only so many utterances from the start of the set.
        resamples, seed: of the bootstrap.
        compiling: as `progress` of `open_model`.
        progress: called with recordings decoded so far and in all, as far as that is known.
        note: called with a sentence about the n-gram or the cache, each once.

    Returns:
        set, model, device, config, beam (its width), ngram (the file), and what `gharial.bench.sweep.summary` returns.

    Raises:
        BadInput: set, model, n-gram, settings, grid or a recording cannot be used.
        GharialError: the device failed.
    """
    grid = check_grid(grid)
    said: set[str] = set()

    def once(text: str) -> None:
        if note is not None and text not in said:
            note(text)
        said.add(text)

    utterances = read_set(set_dir)[:limit]
    program = open_model(model, device_config(device), progress=compiling, note=once)
    file = ngram_of(program) if ngram is None else ngram
    if file is None:
        what = "there is no n-gram to sweep"
        raise BadInput(what, "--ngram", "none beside the program", "an n-gram file", "gharial ngram build makes one")
    # Now, and not after two runs without it.
    check_file(file, program.section("sentencepiece"), once)
    settings = options or DecoderOptions()
    total = len(utterances) * runs_planned(grid, refinements)
    runs, opened = 0, StreamOptions()

    def texts(scale: float | None) -> list[str]:
        nonlocal runs, opened
        before, runs = runs * len(utterances), runs + 1

        def decoded(done: int) -> None:
            if progress is not None:
                progress(before + done, max(total, runs * len(utterances)))

        if scale is None:  # at the end: those of the beam search are there
            with Recogniser(program, device) as recogniser:
                return _heard(recogniser, replace(opened, keywords=None), utterances, decoded)
        chosen = replace(settings, ngram_scale=scale)
        with Recogniser(program, device, decoder="beam", options=chosen, ngram=file, note=once) as recogniser:
            opened = opened if streams is None else streams(recogniser)
            return _heard(recogniser, opened, utterances, decoded)

    swept = sweep([utterance.transcript for utterance in utterances], texts, grid, refinements)
    return {
        "set": set_dir.resolve().name,
        "model": _name(model, program),
        "device": device,
        "config": program.config.name,
        "beam": settings.width,
        "ngram": os.fspath(file),
    } | summary(swept, resamples, seed)


def _heard(
    recogniser: Recogniser,
    options: StreamOptions,
    utterances: Sequence[Utterance],
    decoded: Callable[[int], object],
) -> list[str]:
    """The text of each utterance."""
    found: list[str] = []
    for outcome in recogniser.transcribe_many([utterance.path for utterance in utterances], options=options):
        if isinstance(outcome, GharialError):
            raise outcome
        found.append(outcome.text)
        decoded(len(found))
    return found


def _name(model: str | os.PathLike[str] | None, program: Program) -> str:
    path = Path(demo_model() if model is None else model)
    return path.name.removesuffix(".hw.pt").removesuffix(".gprog")
