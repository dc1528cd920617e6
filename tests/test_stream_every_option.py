# SPDX-License-Identifier: Apache-2.0
"""Every setting of the search with every option of a stream: how the audio is cut changes nothing."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from ngram_files import binary
from recordings import FILES, SHORT, cuts, samples
from stream_models import HEARD, PREFIXES, symbolic

from gharial.decoding import DecoderOptions
from gharial.model import compile_model
from gharial.program import Program
from gharial.recognise import EosMode, Recogniser, StateResets, StreamOptions, Transcript

LOOSE = {"topk_threshold": 4.0, "score_threshold": 1.0, "final_limit_s": 0.6}
SETTINGS: dict[str, dict[str, Any]] = {
    "width": {"width": 7},
    "temperature": {"temperature": 0.8},
    "max_symbols": {"max_symbols": 1, "blank_penalty": 3.0},
    "max_expansions": {"max_expansions": 3, "blank_penalty": 3.0},
    "topk_threshold": {"topk_threshold": -1.0},
    "score_threshold": {"score_threshold": 0.1},
    "final_limit_s": {"final_limit_s": 0.18},
    "blank_penalty": {"blank_penalty": -1.5},
    "ngram_scale": {"ngram_scale": 0.4},
    "eos": {"eos": "blank"},
    "eos_alpha": {"eos": "predict", "eos_alpha": 0.6},
    "eos_beta": {"eos": "predict", "eos_beta": 0.2},
    "merge_lone_marks": {"merge_lone_marks": True, "eos": "ignore"},
}
STREAMS: dict[str, dict[str, Any]] = {
    "prefix": {"prefix": HEARD},
    "keywords": {"keywords": {"right d": 0.7, "on": 0.4, "no": -0.5}},
    "eos_mode": {"eos_mode": EosMode.STREAM},
    "state_resets": {"state_resets": StateResets(1.8, 0.6)},
    "silence_s": {"silence_s": 0.9},
    "alternatives": {"alternatives": 4},
}
TOGETHER = StreamOptions(
    prefix=PREFIXES[-1],
    keywords={"right d": 0.7, "on": 0.4},
    eos_mode=EosMode.TERMINAL,
    state_resets=StateResets(2.4, 0.9),
    silence_s=1.5,
    alternatives=3,
)


def test_none_is_forgotten() -> None:
    assert set(SETTINGS) == set(DecoderOptions.names())
    assert set(STREAMS) == {field.name for field in fields(StreamOptions)}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A network that ends sequences, and takes prefixes."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "talk.flac").write_bytes(SHORT.read_bytes())
    return compile_model(symbolic(folder), "u50", folder)


def cut(recogniser: Recogniser, options: StreamOptions, audio: np.ndarray, random: np.random.Generator) -> Transcript:
    """As it comes in pieces, whose tokens are taken now and then and never change."""
    taken = []
    with recogniser.stream(options) as stream:
        for piece in cuts(audio, random, int(random.choice([300, 4000, 30000]))):
            taken += stream.push(piece)
        transcript = stream.finish()
        taken += stream.take()
    assert tuple(taken) == transcript.tokens
    return replace(transcript, compute_s=0.0, cycles=None)


@pytest.mark.parametrize("name", SETTINGS)
def test_cuts_change_nothing(program: Program, name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    audio = np.concatenate([samples(FILES[5]), samples(FILES[7])])
    options = DecoderOptions(**(LOOSE | SETTINGS[name]))
    ngram: Any = False
    if name == "ngram_scale":
        pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")
        ngram = binary()
    streams = [StreamOptions(), TOGETHER, *[StreamOptions(**one) for one in STREAMS.values()]]
    with Recogniser(program, "emulator:u50", decoder="beam", options=options, ngram=ngram, note=lambda _: None) as one:
        for stream in streams:
            wanted = replace(one.transcribe(audio, stream), compute_s=0.0, cycles=None)
            assert cut(one, stream, audio, random) == wanted, stream
