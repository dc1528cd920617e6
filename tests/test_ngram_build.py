# SPDX-License-Identifier: Apache-2.0
"""From text to n-gram files: what is a sentence, how it is cut; KenLM's programs on it, where they are."""

from __future__ import annotations

import gzip
import json
import math
import os
import tarfile
from pathlib import Path
from random import Random

import pytest
import sentencepiece
from checkpoint_files import complete
from checkpoint_variants import with_symbols
from command import Run
from ngram_files import ARPA, FOLDER, demo_pieces

from gharial.errors import BadInput
from gharial.ngram import NgramModel, check_file, tools
from gharial.ngram.build import Options, build
from gharial.ngram.corpus import corpus_files, sentences
from gharial.ngram.cutting import Cutter

PIECES = demo_pieces()
LINES = [line.replace(" ", "").replace("▁", " ").strip() for line in (FOLDER / "tiny.txt").read_text().splitlines()]
SMALL = {"memory": "64M"}
BUILT = tools.built_folder()
"""Where the user has built KenLM's programs: looked up before the tests get a cache of their own."""


def read(*paths: Path) -> list[str]:
    return list(sentences(corpus_files(paths), lambda _done, _total: None))


def manifest(transcripts: list[str], **more: object) -> list[dict[str, object]]:
    return [
        {"transcript": text, "files": [{"fname": "a.wav"}], "original_duration": 1.0, **more} for text in transcripts
    ]


def test_sentences(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("\ufeffgo left\r\n\n  stop \nzwölf", encoding="utf-8")
    packed = tmp_path / "b.txt.gz"
    packed.write_bytes(gzip.compress(b"one\ntwo\n") + gzip.compress(b"three\n"))
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest(["up", "", "new\nline", "grün"], other=[{"a": "]"}])))
    assert read(text, packed, folder) == [
        "go left",
        "stop",
        "zwölf",
        "one",
        "two",
        "three",
        "up",
        "new",
        "line",
        "grün",
    ]
    done = []
    list(sentences(corpus_files([text, packed]), lambda at, total: done.append((at, total))))
    size = text.stat().st_size + packed.stat().st_size
    assert done[-1] == (size, size) and [at for at, _ in done] == sorted(at for at, _ in done)


def test_manifest_in_any_layout(tmp_path: Path, seed: int) -> None:
    """Longer than what is read at a time, characters of several bytes across the cuts, any white space."""
    random = Random(seed)
    transcripts = ["ä€😀"[random.randrange(3)] * random.randrange(1, 4000) for _ in range(1500)]
    path = tmp_path / "m.json"
    for options in ({}, {"indent": 2}, {"ensure_ascii": False}, {"ensure_ascii": False, "separators": (",", ":")}):
        path.write_text(" \n" + json.dumps(manifest(transcripts), **options) + "\n", encoding="utf-8")
        assert read(path) == transcripts
    path.write_text("[]")
    assert read(path) == []


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"good\nb\xe4d\n", "line 2"),
        (b"x" * (1 << 22), "line is too long"),
        (b'[{"transcript": "a"}, {"text": "b"}]', "utterance 1"),
        (b'[{"transcript": 5}]', "utterance 0"),
        (b'[{"transcript": "a"}', "its end"),
        (b'[{"transcript": "a"} {"transcript": "b"}]', "expected ,"),
        (b'[{"transcript": "a"},]', "not JSON"),
        (b'[{"transcript": "a', "not JSON"),
        (b'[{"transcript": "\xff\xff\xff\xff"}]', "UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b'["' + b"x" * (3 << 20) + b'"]', "not JSON"),
        (b'[{"transcript": "a \\ud800 b"}]', "utterance 0: transcript is no text"),
        (b'{"transcript": "one"}\n{"transcript": "two"}\n', "not a list of them"),
        (gzip.compress(b"text\n" * 1000, mtime=0)[:-20], "packed file is damaged"),
        (b'[{"transcript": "a"}] [{"transcript": "b"}]', "goes on behind its list"),
        (b"[] more", "goes on behind its list"),
        (b"[5]", "found 5"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "Git LFS pointer"),
    ],
)
def test_bad_texts(tmp_path: Path, data: bytes, part: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(data)
    with pytest.raises(BadInput) as caught:
        read(path)
    assert part in str(caught.value) and str(path) in str(caught.value)
    complete(caught.value)


def test_cut_by_the_model(tmp_path: Path) -> None:
    cutter = Cutter(PIECES)
    processor = sentencepiece.SentencePieceProcessor(model_proto=PIECES)
    assert cutter.cut(LINES).decode() == (FOLDER / "tiny.txt").read_text()
    assert cutter.sentences == len(LINES) and cutter.unknown == 0
    assert cutter.pieces == sum(len(processor.encode(line)) for line in LINES)
    cutter.begin()
    assert cutter.cut(["go 語 left", "語", ""]).decode() == "▁go ▁\n▁le f t\n▁\n"
    assert cutter.unknown == 2
    assert Cutter(PIECES, lowercase=True).cut(["GO Left"]).decode() == "▁go ▁le f t\n"


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_archives_are_no_text(tmp_path: Path, mode: str) -> None:
    """Datasets of WebDataset are tar archives of audio and text; of text alone, one would pass for text."""
    path = tmp_path / "train.tar"
    (tmp_path / "clip.txt").write_text("go left\n")
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.add(tmp_path / "clip.txt", "clip.txt")
    with pytest.raises(BadInput) as caught:
        read(path)
    assert "this is a tar archive" in str(caught.value) and str(path) in str(caught.value)
    complete(caught.value)


def test_small_letters_spare_the_symbols() -> None:
    """Their small letters would be pieces like any other."""
    pieces = with_symbols(PIECES, "<EOS><EO>")
    cutter = Cutter(pieces, lowercase=True)
    lines = ["GO<EOS>GO", "<EOS>GO", "GO<EO><EOS>"]
    assert cutter.cut(lines) == Cutter(pieces).cut([line.replace("GO", "go") for line in lines])
    assert cutter.unknown == 0


@pytest.fixture
def kenlm_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """KenLM's programs, or skip."""
    if tools.FOLDER not in os.environ and BUILT is not None and BUILT.is_dir():
        monkeypatch.setenv(tools.FOLDER, str(BUILT))
    try:
        for tool in tools.TOOLS:
            tools.find(tool)
    except BadInput:
        pytest.skip("needs KenLM's lmplz and build_binary: gharial ngram build --build-tools, or GHARIAL_KENLM")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES))
    return path


@pytest.mark.usefixtures("kenlm_tools")
def test_small_text(tmp_path: Path, text: Path, cli: Run) -> None:
    """The same n-gram as KenLM's programs make of the pieces by hand."""
    model = tmp_path / "tokens.model"
    model.write_bytes(PIECES)
    out, arpa = tmp_path / "o.binary", tmp_path / "o.arpa"
    words = ("ngram", "build", text, "--model", model, "-o", out, "--order", 3, "--memory", "64M")
    outcome = cli(*words, "--arpa", arpa)
    assert outcome.code == 0, outcome
    assert "discount_fallback" in outcome.err and "14 sentences" in outcome.out
    assert sorted(arpa.read_text().splitlines()) == sorted(ARPA.read_text().splitlines())
    file = check_file(out, PIECES)
    assert file.mark is not None and file.header.kind == "probing"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.arpa", "o.binary", "text.txt", "tokens.model"]
    outcome = cli(*words, "--json", "--type", "trie", "--quantise", 6, "--prune", "0,0,1")
    facts = json.loads(outcome.out)
    assert facts["type"] == "quantised trie" and facts["discount_fallback"] and facts["for_model"]
    assert facts["sentences"] == 14 and facts["counts"][2] < 42


@pytest.mark.usefixtures("kenlm_tools")
def test_an_arpa_file_is_made_a_binary_of(tmp_path: Path) -> None:
    out = tmp_path / "o.binary"
    made = build([ARPA], PIECES, out, Options(**SMALL))
    assert made.file.header.counts == (21, 41, 42) and made.sentences == 0 and made.file.mark is not None
    with pytest.raises(BadInput, match="by itself"):
        build([ARPA, ARPA], PIECES, out, Options(**SMALL))
    with pytest.raises(BadInput, match="--arpa"):
        build([ARPA], PIECES, out, Options(**SMALL), arpa=tmp_path / "o.arpa")
    foreign = tmp_path / "foreign.arpa"
    foreign.write_text(ARPA.read_text().replace("▁go", "▁nowhere"))
    notes: list[str] = []
    build([foreign], PIECES, out, Options(**SMALL), note=notes.append)
    assert any("1 of the n-gram's 18 words are no pieces" in note for note in notes)


@pytest.mark.usefixtures("kenlm_tools")
def test_golden_ngram(tmp_path: Path, data_dir: Path) -> None:
    """The n-gram that the golden decodes used, from its text."""
    arpa = tmp_path / "o.arpa"
    made = build([data_dir / "models" / "words.txt"], PIECES, tmp_path / "o.binary", Options(**SMALL), arpa=arpa)
    expected = (data_dir / "models" / "words_4gram.arpa").read_text().splitlines()
    assert sorted(arpa.read_text().splitlines()) == sorted(expected)
    pytest.importorskip("kenlm")
    model = NgramModel(tmp_path / "o.binary", PIECES)
    score, _ = model.score(model.begin(), sentencepiece.SentencePieceProcessor(model_proto=PIECES).encode("go")[0])
    line = next(line for line in expected if line.split("\t")[1:2] == ["<s> ▁go"])
    assert score == pytest.approx(math.log(10) * float(line.split("\t")[0]), abs=1e-5)
    assert not made.fallback


@pytest.mark.usefixtures("kenlm_tools")
def test_failures_leave_nothing(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "o.binary"
    out.write_bytes(b"what was there before")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"go\n" * 100_000 + b"\xe4\n")
    for source, options in (
        (empty, Options(**SMALL)),
        (latin, Options(**SMALL)),
        (text, Options(memory="nonsense")),
        (text, Options(memory="1K")),
        (text, Options(memory="9999T")),
        (text, Options(prune=(1 << 70,), **SMALL)),
        (tmp_path / "none.txt", Options(**SMALL)),
    ):
        with pytest.raises(BadInput) as caught:
            build([source], PIECES, out, options)
        complete(caught.value)
        assert out.read_bytes() == b"what was there before"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.txt", "latin.txt", "o.binary", "text.txt"]


@pytest.mark.usefixtures("kenlm_tools")
def test_text_of_another_writing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("語 go left\n" * 5)
    notes: list[str] = []
    made = build([path], PIECES, tmp_path / "o.binary", Options(order=2, **SMALL), note=notes.append)
    assert made.unknown == 5 and any("not known to the SentencePiece model" in note for note in notes)
