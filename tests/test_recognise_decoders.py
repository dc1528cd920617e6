# SPDX-License-Identifier: Apache-2.0
"""What a decoder is made of: the n-gram that is taken, its scale, the model's tokens as the search has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import saved
from ngram_files import binary, copy
from prefix_models import SYMBOLS, TOKENS, checkpoint
from recordings import SHORT

from gharial.decoding import DecoderOptions
from gharial.driver import Driver
from gharial.errors import BadInput
from gharial.model import compile_model, vocabulary
from gharial.ngram import append_mark
from gharial.recognise import Recogniser, load
from gharial.recognise.beam import BeamEngine
from gharial.recognise.decoders import NGRAM_SCALE, search_model

pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")


@pytest.fixture
def calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "calibration"
    folder.mkdir()
    (folder / SHORT.name).write_bytes(SHORT.read_bytes())
    return folder


def with_ngram(folder: Path, scale: float | None) -> Path:
    def change(top: dict[str, Any]) -> None:
        top["ngram"] = {"binary": binary().read_bytes(), "scale_factor": scale}

    return saved(folder, change)


def scale_of(recogniser: Recogniser) -> float | None:
    """The scale that the search has; None if it has no n-gram."""
    engine = recogniser.engine
    assert isinstance(engine, BeamEngine)
    assert engine.search.options.ngram_scale is not None or engine.search.pools["ngrams"][1] == 1
    return engine.search.options.ngram_scale if engine.search.pools["ngrams"][1] > 1 else None


@pytest.mark.parametrize(
    ("stated", "options", "ngram", "wanted", "noted"),
    [
        (0.07, None, None, 0.07, False),
        (0.07, DecoderOptions(ngram_scale=0.2), True, 0.2, False),
        (0.07, DecoderOptions(), False, None, False),
        (None, None, None, NGRAM_SCALE, True),
        (0.07, DecoderOptions(ngram_scale=0.0), None, None, False),
        (-0.5, None, None, -0.5, False),
    ],
)
def test_scales(
    tmp_path: Path,
    calibration: Path,
    stated: float | None,
    options: DecoderOptions | None,
    ngram: bool | None,
    wanted: float | None,
    noted: bool,
) -> None:
    notes: list[str] = []
    model = with_ngram(tmp_path, stated)
    with load(
        model, decoder="beam", options=options, ngram=ngram, calibrate=calibration, note=notes.append
    ) as recogniser:
        assert scale_of(recogniser) == wanted
        assert recogniser.program.path is not None
    notes = [note for note in notes if "for the calibration recordings" not in note]  # one short one is few
    assert [f"{NGRAM_SCALE:g} is taken" in note for note in notes] == [True] * noted


def test_a_file_that_is_named(tmp_path: Path) -> None:
    notes: list[str] = []
    unmarked = copy(tmp_path, name="unmarked.binary")  # of which is told once: nobody else has opened it
    with load(decoder="beam", ngram=unmarked, note=notes.append) as recogniser:
        assert scale_of(recogniser) == NGRAM_SCALE
        sentencepiece = recogniser.program.section("sentencepiece")
    said = [note for note in notes if str(unmarked) in note]
    assert len(said) == 2  # no mark, no scale
    marked = copy(tmp_path)
    append_mark(marked, b"the bytes of another SentencePiece model")
    for path in (marked, tmp_path / "none", ""):
        with pytest.raises(BadInput):
            load(decoder="beam", ngram=path)
    append_mark(marked, sentencepiece, force=True)
    with load(decoder="beam", ngram=str(marked), options=DecoderOptions(ngram_scale=0.1), note=notes.append) as again:
        assert scale_of(again) == 0.1
    assert not any(str(marked) in note for note in notes)


def test_a_failure_lets_go_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, closed = [], []
    begin = Driver.__init__

    def init(driver: Driver, *given: Any, **named: Any) -> None:
        opened.append(driver)
        begin(driver, *given, **named)

    monkeypatch.setattr(Driver, "__init__", init)
    monkeypatch.setattr(Driver, "close", lambda driver: closed.append(driver))
    with pytest.raises(BadInput):
        load(decoder="beam", options=DecoderOptions(width=32))
    # A driver that an earlier test left to the garbage collector may be closed meanwhile.
    assert len(opened) == 1 and [driver for driver in closed if driver in opened] == opened


def test_tokens_of_the_model(tmp_path: Path) -> None:
    (tmp_path / SHORT.name).write_bytes(SHORT.read_bytes())
    program = compile_model(checkpoint(tmp_path, 1, None), "tiny", tmp_path)
    model = search_model(program, vocabulary(program))
    assert model.eos == TOKENS["<EOS>"] and model.user_tokens == frozenset(TOKENS.values())
    assert model.blank == len(model.pieces) - 1 and model.pieces[-1] == ""
    assert [model.pieces[TOKENS[symbol]] for symbol in SYMBOLS] == list(SYMBOLS)
    assert any(piece.startswith("▁") for piece in model.pieces)
