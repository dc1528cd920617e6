# SPDX-License-Identifier: Apache-2.0
"""Which prefixes a model takes, and the tokens of each: docs/prefixes.md, case by case."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from checkpoint_files import demo
from command import Run
from prefix_models import ANY, DEFAULT, PATTERN, SYMBOLS, VALID, checkpoint, tokens_of, vocabulary
from recordings import SHORT

from gharial.checkpoint import Prefixes, load_hardware
from gharial.checkpoint.prefix_spec import parse_prefix_spec
from gharial.checkpoint.sentencepiece_model import PieceKind, count_kinds, read_pieces
from gharial.compiler.calibrate import calibrate
from gharial.errors import BadInput
from gharial.floating import calibrate_ranges


def prefixes(pattern: str | None, default: str | None = None, symbols: tuple[str, ...] = SYMBOLS) -> Prefixes:
    """Those of a model with this spec; a pattern of None is a model without one."""
    value = None if pattern is None else {"valid_prefix": pattern, "default_prefix": default}
    return Prefixes(parse_prefix_spec(value, "m"), vocabulary(symbols), "m")


def test_tokens_are_the_symbols() -> None:
    found = prefixes(PATTERN)
    assert found.valid == VALID
    assert found.symbols == {symbol: number for number, symbol in enumerate(SYMBOLS, 1)}
    assert [found.tokens(prefix) for prefix in VALID] == [(2, 3), (2, 4), (1, 3), (1, 4)]


@pytest.mark.parametrize(
    ("pattern", "default", "asked", "tokens"),
    [
        (PATTERN, DEFAULT, None, tokens_of(DEFAULT)),
        (PATTERN, DEFAULT, "<nopnc><lang_fr>", (2, 4)),
        (PATTERN, None, "<pnc><lang_fr>", (1, 4)),
        (ANY, None, None, ()),
        (ANY, "<pnc>", None, (1,)),
        (ANY, "<pnc>", "", ()),
        (ANY, "", None, ()),
        ("^$", None, None, ()),
        ("^$", "", "", ()),
        (None, None, None, ()),
        (None, None, "", ()),
        ("^(<pnc>)+$", None, None, ()),
        ("^(<pnc>)+$", None, "", ()),
        ("^(<pnc>)+$", "<pnc>", None, (1,)),
        ("^(<pnc>)+$", "<pnc>", "<pnc>", (1,)),
        ("^(<pnc>)+$", "<pnc>", "", ()),
    ],
)
def test_taken(pattern: str | None, default: str | None, asked: str | None, tokens: tuple[int, ...]) -> None:
    assert prefixes(pattern, default).tokens(asked) == tokens


@pytest.mark.parametrize(
    ("pattern", "default", "asked", "parts"),
    [
        (PATTERN, DEFAULT, "", ("needs a prefix", *VALID)),
        (PATTERN, None, None, ("needs a prefix", "no default", *VALID)),
        (PATTERN, DEFAULT, "<pnc>", ("does not take", "found <pnc>", *VALID)),
        (PATTERN, DEFAULT, "<pnc><lang_en>\n", ("does not take", r"\n")),
        (PATTERN, DEFAULT, "<PNC><lang_en>", ("does not take",)),
        ("^$", None, "<pnc>", ("takes no prefix", "leave the prefix out")),
        (None, None, "<pnc>", ("cannot be checked", "does not say", *SYMBOLS, "export")),
        ("^(<pnc>)+$", None, "<pnc>", ("cannot be checked", "^(<pnc>)+$")),
        ("^(<pnc>)+$", "<pnc>", "<pnc><pnc>", ("cannot be checked", "the default, <pnc>")),
        ("|".join(f"<{i}>" for i in range(100)), None, "", ("<0>", "and 92 more")),
        # Taken by the spec, and not to be spelled with the vocabulary.
        ("^<pnc>up$", None, "<pnc>up", ("user-defined symbols", "goes on with up", *SYMBOLS)),
        ("^<pnc>(?: <lang_en>)$", None, "<pnc> <lang_en>", ("user-defined symbols",)),
        ("^<lang_de>$", "<lang_de>", None, ("user-defined symbols", "m: default_prefix")),
    ],
)
def test_refused(pattern: str | None, default: str | None, asked: str | None, parts: tuple[str, ...]) -> None:
    with pytest.raises(BadInput) as caught:
        prefixes(pattern, default).tokens(asked)
    message = str(caught.value)
    assert len(message.split("\n")) <= 3 and message.startswith("m: ")
    for part in parts:
        assert part in message


def test_a_vocabulary_without_symbols() -> None:
    with pytest.raises(BadInput, match="expected none"):
        prefixes("^<pnc>$", None, ()).tokens("<pnc>")


def test_the_longest_symbol_counts_as_in_sentencepiece() -> None:
    symbols = ("<a>", "<a><b>", "<b>", "<b><c>", "<c>")
    found = prefixes("^<a><b><c>$", None, symbols)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=vocabulary(symbols)).encode("<a><b><c>", out_type=str)
    assert pieces == ["▁", "<a><b>", "<c>"]  # the word mark is the tokeniser's own: no prefix has it
    assert found.tokens("<a><b><c>") == (2, 5)


@pytest.mark.parametrize(
    ("pattern", "default", "tokens"),
    [(PATTERN, DEFAULT, (1, 3)), (PATTERN, None, (2, 3)), (ANY, None, ()), ("^$", None, ()), (None, None, ())],
)
def test_what_recordings_are_measured_with(pattern: str | None, default: str | None, tokens: tuple[int, ...]) -> None:
    assert prefixes(pattern, default).usual() == tokens


def test_recordings_are_measured_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def measured(*arguments: Any) -> Any:
        given.extend(arguments[3:5])
        return calibrate_ranges(*arguments)

    monkeypatch.setattr("gharial.compiler.calibrate.calibrate_ranges", measured)
    shutil.copy(SHORT, tmp_path / "talk.flac")
    calibrate(load_hardware(checkpoint(tmp_path, 1)), tmp_path)
    assert given == [tokens_of(DEFAULT), [tokens_of(prefix) for prefix in VALID if prefix != DEFAULT]]


def test_pieces_are_the_tokenisers() -> None:
    for model in (vocabulary(), demo()["sentpiece_model"]):
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces = read_pieces(model, "m")
        assert [piece.text for piece in pieces] == [processor.id_to_piece(i) for i in range(len(processor))]
        assert [piece.kind == PieceKind.UNKNOWN for piece in pieces] == [
            processor.is_unknown(i) for i in range(len(processor))
        ]
    kinds = count_kinds(read_pieces(vocabulary(), "m"))
    assert kinds["user_defined"] == len(SYMBOLS) and kinds["unknown"] == 1 and sum(kinds.values()) == 48


@pytest.mark.parametrize(
    "piece",
    [
        b"",  # no text
        b"\x0a\x00",
        b"\x0a\x01\xff",  # no UTF-8
        b"\x0a\x01a\x18\x07",  # a kind that there is not
        b"\x0a\x05a",
        b"\x0a\x01a\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ],
)
def test_damaged_pieces(piece: bytes) -> None:
    with pytest.raises(BadInput, match="m: this is no SentencePiece model"):
        read_pieces(b"\x0a" + bytes([len(piece)]) + piece, "m")


def test_on_the_command_line(cli: Run, tmp_path: Path) -> None:
    path, model = checkpoint(tmp_path, 1), tmp_path / "program.gprog"
    (tmp_path / "calibration").mkdir()
    shutil.copy(SHORT, tmp_path / "calibration")
    folder = tmp_path / "calibration"
    assert cli("compile", path, "-o", model, "--config", "tiny", "--calibrate", folder).code == 0
    said = cli("transcribe", "--model", model, SHORT)
    assert (said.code, said.err) == (0, "")
    assert cli("transcribe", "--model", model, SHORT, "--prefix", DEFAULT).out == said.out
    assert cli("transcribe", "--model", model, SHORT, "--stream", "--prefix", DEFAULT).out == said.out
    other = cli("transcribe", "--model", model, SHORT, "--prefix=<nopnc><lang_en>")
    assert other.code == 0 and other.out != said.out
    for option in ([], ["--stream"]):
        # By the name that was given, not that of the program in the cache.
        cli("transcribe", "--model", model, SHORT, "--prefix", "<pnc>", *option).refused(f"{model}: prefix", VALID[0])
    cli("transcribe", SHORT, "--prefix", "<pnc>").refused("does not say which it takes")
    cli("trace", model, SHORT, "-o", tmp_path / "t.npz", "--prefix", "").refused("needs a prefix")
    cli("bench", "wer", "--set", SHORT.parent, "--prefix", "<pnc>").refused("does not say which it takes")
    assert not (tmp_path / "t.npz").exists()
    assert cli("transcribe", SHORT, "--prefix", "").out == "on no\n"


def test_a_default_that_cannot_be_spelled_is_refused_when_compiled(cli: Run, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 1, {"valid_prefix": "^<de>$", "default_prefix": "<de>"})
    output = tmp_path / "m.gprog"
    cli("compile", path, "-o", output, "--config", "tiny").refused(str(path), "default_prefix", "found <de>")
    assert not output.exists()
