# SPDX-License-Identifier: Apache-2.0
"""Tokens to text, words and subtitles."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from gharial.checkpoint import load_hardware
from gharial.errors import BadInput
from gharial.model import Detokeniser, Vocabulary, demo_model
from gharial.recognise import Token, Transcript
from gharial.recognise.subtitles import ctm, cues, srt, vtt
from gharial.recognise.transcript import joined, words_of

MODEL = load_hardware(demo_model()).sentencepiece
PROCESSOR = sentencepiece.SentencePieceProcessor(model_proto=MODEL)
VOCABULARY = Vocabulary(MODEL, 255, "demo")

# Bytes as SentencePiece spells characters that it has no piece for; the shipped model has none.
EURO = [0xE2, 0x82, 0xAC]


class Pieces(Vocabulary):
    """A vocabulary by hand: strings, or ints for single bytes."""

    def __init__(self, *pieces: str | int) -> None:
        self._pieces = list(pieces)


@given(st.lists(st.integers(0, 254), max_size=30))
def test_text_is_sentencepiece_text_with_single_spaces(tokens: list[int]) -> None:
    assert VOCABULARY.text(tokens) == " ".join(PROCESSOR.decode(tokens).split())


@given(st.lists(st.integers(0, 254), max_size=30))
def test_token_by_token_gives_the_same_text(tokens: list[int]) -> None:
    detokeniser = Detokeniser(VOCABULARY)
    shown = ""
    for count, token in enumerate(tokens, 1):
        shown += detokeniser.push(token)
        assert shown.strip() == VOCABULARY.text(tokens[:count])


def test_word_marks() -> None:
    pieces = Pieces(" ", " on", "off", " a b")
    assert pieces.text([0, 1]) == "on"
    assert pieces.text([1, 0, 0, 1, 2]) == "on onoff"
    assert pieces.text([1, 0]) == "on"
    assert pieces.text([0, 2, 3, 2]) == "off a boff"
    assert Detokeniser(pieces).push(1) == " on"


def test_characters_of_several_bytes() -> None:
    pieces = Pieces(" x", *EURO, "", " ")
    detokeniser = Detokeniser(pieces)
    assert [detokeniser.push(token) for token in (0, 1, 2, 3, 0)] == [" x", "", "", "€", " x"]
    broken = Detokeniser(pieces)
    assert [broken.push(token) for token in (1, 2, 0)] == ["", "", "� x"]
    assert pieces.text([0, 1, 2]) == "x"


def test_a_model_with_bytes_and_control_pieces(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join(["on off left right"] * 20))
    prefix = str(tmp_path / "m")
    options = {"vocab_size": 290, "model_type": "bpe", "byte_fallback": True, "hard_vocab_limit": False}
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=prefix, minloglevel=2, user_defined_symbols=["<EOS>"], **options
    )
    model = (tmp_path / "m.model").read_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocabulary = Vocabulary(model, processor.get_piece_size(), "m")
    for sentence in ("on off", "on €5 ü off", "left<EOS>right", "日本 on"):
        tokens = processor.encode(sentence)
        assert vocabulary.text(tokens) == sentence
        assert vocabulary.text([1, *tokens, 2]) == sentence  # <s> and </s> are not shown


@pytest.mark.parametrize("model", [b"", b"\0\1\2", b"version https://git-lfs", MODEL[:-100], MODEL[:1000]])
def test_models_that_are_none_are_refused(model: bytes) -> None:
    with pytest.raises(BadInput, match="demo: sentencepiece"):
        Vocabulary(model, 255, "demo")


def test_another_number_of_pieces_is_refused() -> None:
    with pytest.raises(BadInput, match="does not fit"):
        Vocabulary(MODEL, 254, "demo")


def tokens_of(*items: tuple[str, int]) -> list[Token]:
    return [Token(0, text, step, step * 0.06, (step + 1) * 0.06, 0.5) for text, step in items]


def transcript(tokens: list[Token]) -> Transcript:
    return Transcript(joined(tokens), tuple(tokens), 60.0, 0.1, "emulator:tiny", "greedy")


def test_words_have_the_times_of_their_tokens() -> None:
    words = words_of(tokens_of(("le", 0), ("ft", 2), (" ", 3), ("on", 4), (" a b", 5), ("c", 6), ("", 7)))
    assert [(word.text, round(word.start / 0.06), round(word.end / 0.06)) for word in words] == [
        ("left", 0, 3),
        ("on", 4, 5),
        ("a", 5, 6),
        ("bc", 5, 7),
    ]
    assert [word.confidence for word in words] == [0.25, 0.5, 0.5, 0.25]


@given(st.lists(st.tuples(st.sampled_from([" on", "off", " ", "", " a b", " left"]), st.integers(0, 40))))
def test_words_joined_are_the_text(items: list[tuple[str, int]]) -> None:
    items.sort(key=lambda item: item[1])
    tokens = tokens_of(*items)
    assert " ".join(word.text for word in words_of(tokens)).split() == joined(tokens).split()
    found = cues(words_of(tokens))
    assert " ".join(cue.text for cue in found).split() == joined(tokens).split()
    for cue, after in pairwise(found):
        assert cue.start <= cue.end <= after.start


def test_subtitles() -> None:
    text = tokens_of((" one", 0), (" two", 1), (" <3", 100), (" " + "x" * 40, 101), (" three", 60000))
    assert srt(transcript(text)) == (
        "1\n00:00:00,000 --> 00:00:00,120\none two\n\n"
        "2\n00:00:06,000 --> 00:00:06,060\n<3\n\n"
        f"3\n00:00:06,060 --> 00:00:06,120\n{'x' * 40}\n\n"
        "4\n01:00:00,000 --> 01:00:00,060\nthree\n"
    )
    assert vtt(transcript(text)).startswith("WEBVTT\n\n00:00:00.000 --> 00:00:00.120\none two\n\n")
    assert "&lt;3" in vtt(transcript(text))
    assert srt(transcript([])) == ""
    assert vtt(transcript([])) == "WEBVTT\n"


def test_ctm() -> None:
    lines = ctm(transcript(tokens_of((" one", 1), ("s", 2), (" two", 5))), "some folder/my talk.wav")
    assert lines == "my_talk 1 0.060 0.120 ones 0.2500\nmy_talk 1 0.300 0.060 two 0.5000\n"
    assert all(re.fullmatch(r"\S+ 1 \d+\.\d{3} \d+\.\d{3} \S+ [01]\.\d{4}", line) for line in lines.splitlines())
