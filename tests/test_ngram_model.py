# SPDX-License-Identifier: Apache-2.0
"""Scores: against a second reading of the ARPA file, by stock KenLM too; what a hypothesis carries; shared memory."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
import sentencepiece
from command import environment
from conftest import ROOT
from ngram_files import ARPA, OTHER, binary, copy, demo_pieces
from scripts import bench_ngram

from gharial.checkpoint.sentencepiece_model import PieceKind, read_pieces
from gharial.errors import BadInput
from gharial.ngram import NgramModel, append_mark

kenlm = pytest.importorskip("kenlm", reason="needs the package kenlm: pip install gharial[ngram]")

PIECES = demo_pieces()
PROCESSOR = sentencepiece.SentencePieceProcessor(model_proto=PIECES)


class Arpa:
    """An ARPA file and back-off as its authors describe it, in double precision."""

    def __init__(self, path: Path) -> None:
        self.entries: dict[tuple[str, ...], tuple[float, float]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            parts = line.split("\t")
            if len(parts) > 1:
                back_off = float(parts[2]) if len(parts) > 2 else 0.0
                self.entries[tuple(parts[1].split(" "))] = float(parts[0]), back_off
        self.order = max(map(len, self.entries))

    def log10(self, history: list[str], word: str) -> float:
        """log10 p(word | history)."""
        known = [part if (part,) in self.entries else "<unk>" for part in [*history, word]]
        total = 0.0
        for start in range(max(0, len(known) - self.order), len(known)):
            found = self.entries.get(tuple(known[start:]))
            if found is not None:
                return total + found[0]
            total += self.entries.get(tuple(known[start:-1]), (0.0, 0.0))[1]
        raise AssertionError("every word is a unigram")


def sequence(random: Random, length: int) -> list[int]:
    """Tokens of which many follow each other in the text, and some are not in it at all."""
    text = " ".join(random.choices(["go", "left", "right", "up", "down", "no", "stop", "seven", "zebra"], k=length))
    tokens = PROCESSOR.encode(text)[:length]
    return [random.randrange(len(PROCESSOR)) if random.random() < 0.1 else token for token in tokens]


@pytest.mark.parametrize("kind", ["probing", "rest", "trie", "compressed"])
def test_scores_are_those_of_the_arpa_file(tmp_path: Path, seed: int, kind: str) -> None:
    path = copy(tmp_path, kind)
    append_mark(path, PIECES)
    model, arpa, random = NgramModel(path, PIECES), Arpa(ARPA), Random(seed)
    assert model.order == arpa.order == 3
    for _ in range(20):
        state, history = model.begin(), ["<s>"]
        for token in sequence(random, 12):
            score, state = model.score(state, token)
            piece = PROCESSOR.id_to_piece(token)
            assert score == pytest.approx(math.log(10) * arpa.log10(history, piece), abs=1e-5)
            history.append(piece)


def test_quantised_scores_are_near(tmp_path: Path) -> None:
    arpa = Arpa(ARPA)
    for kind in ("quantised", "quantised_compressed"):
        model = NgramModel(binary(kind), PIECES, lambda _: None)
        state, history = model.begin(), ["<s>"]
        for token in PROCESSOR.encode("go left"):
            score, state = model.score(state, token)
            assert score == pytest.approx(math.log(10) * arpa.log10(history, PROCESSOR.id_to_piece(token)), abs=0.5)
            history.append(PROCESSOR.id_to_piece(token))


def test_stock_kenlm_on_a_marked_file(tmp_path: Path) -> None:
    path = copy(tmp_path)
    plain = kenlm.Model(str(path)).score("▁go ▁le f t", bos=True, eos=False)
    append_mark(path, PIECES)
    assert kenlm.Model(str(path)).score("▁go ▁le f t", bos=True, eos=False) == plain
    model = NgramModel(path, PIECES)
    state, total = model.begin(), 0.0
    for token in PROCESSOR.encode("go left"):
        score, state = model.score(state, token)
        total += score
    assert total == pytest.approx(plain * math.log(10), abs=1e-5)


def test_golden_file(data_dir: Path) -> None:
    """The 4-gram of the golden decodes: a whole line, and its ARPA."""
    folder = data_dir / "models"
    model, arpa = NgramModel(folder / "words_4gram.binary", PIECES, lambda _: None), Arpa(folder / "words_4gram.arpa")
    state, history = model.begin(), ["<s>"]
    for token in PROCESSOR.encode("eight seven go down"):
        score, state = model.score(state, token)
        assert score == pytest.approx(math.log(10) * arpa.log10(history, PROCESSOR.id_to_piece(token)), abs=1e-5)
        history.append(PROCESSOR.id_to_piece(token))


def test_what_is_no_word(tmp_path: Path) -> None:
    """Blank, control and user-defined symbols change nothing; what the n-gram does not know is its unknown word."""
    model_bytes = trained(tmp_path)
    kinds = {piece.text: (token, piece.kind) for token, piece in enumerate(read_pieces(model_bytes, "trained"))}
    path = copy(tmp_path)
    append_mark(path, model_bytes)
    model = NgramModel(path, model_bytes)
    state = model.begin()
    assert kinds["<EOS>"][1] == PieceKind.USER_DEFINED and kinds["<s>"][1] == PieceKind.CONTROL
    for token in (kinds["<EOS>"][0], kinds["<s>"][0], kinds["</s>"][0], len(kinds)):
        score, after = model.score(state, token)
        assert score == 0.0 and after is state and not model.knows(token)
    unknown = kinds["<unk>"][0]
    assert kinds["<unk>"][1] == PieceKind.UNKNOWN
    strange = next(token for text, (token, _) in kinds.items() if text in ("▁zebra", "▁z", "z"))
    score, after = model.score(state, unknown)
    assert model.score(state, strange) == (score, after) and not model.knows(strange)
    expected = math.log(10) * Arpa(ARPA).log10(["<s>"], "<unk>")
    assert score == pytest.approx(expected, abs=1e-5)
    with pytest.raises(IndexError):
        model.score(state, len(kinds) + 1)


def trained(folder: Path, *lines: str) -> bytes:
    """A SentencePiece model with a user-defined symbol."""
    text = folder / "zebra.txt"
    text.write_text("\n".join([*(lines or ("zebra go left", "zebra right", "go zebra"))] * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(folder / "zebra"),
        vocab_size=9 if lines else 24,
        model_type="bpe",
        user_defined_symbols=["<EOS>"],
        minloglevel=2,
    )
    return (folder / "zebra.model").read_bytes()


def test_states_are_values(tmp_path: Path) -> None:
    model = NgramModel(copy(tmp_path), PIECES, lambda _: None)
    go, left = PROCESSOR.encode("go")[0], PROCESSOR.encode("left")[0]
    _, first = model.score(model.begin(), go)
    _, second = model.score(model.begin(), go)
    _, other = model.score(model.begin(), left)
    assert first == second and hash(first) == hash(second) and first != other
    assert model.score(first, left)[0] == model.score(first, left)[0], "scoring does not change the state"


def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copy(tmp_path)
    append_mark(path, OTHER)
    with pytest.raises(BadInput, match="another SentencePiece model"):
        NgramModel(path, PIECES)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(BadInput, match="truncated"):
        NgramModel(path, PIECES)
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(BadInput, match=r"pip install gharial\[ngram\]"):
        NgramModel(binary(), PIECES)


def test_a_file_that_says_not_whose_it_is(tmp_path: Path) -> None:
    """Its words tell whether it is over the model's pieces: others would all be unknown, in silence."""
    other = trained(tmp_path, "xxyy yyxx xyxy")
    with pytest.raises(BadInput, match="not this model's pieces") as error:
        NgramModel(binary(), other, lambda _: None)
    assert " of 18 words are" in str(error.value.found) and error.value.where == str(binary())
    path = copy(tmp_path)
    append_mark(path, other)  # who marks it says so
    NgramModel(path, other)


def test_nothing_needs_kenlm_until_it_scores(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["kenlm"] = None
import gharial, gharial.ngram
from gharial.ngram.inspect import describe
assert describe({str(binary())!r})["good"]
import gharial.recognise, gharial.cli.transcribe, gharial.cli.ngram
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_file_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The long form is scripts/bench_ngram.py: 142 MB, 100,000 scores."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    path = tmp_path / "random.binary"
    words = 28
    bench_ngram.make(path, words, (30**2, 30**3, 200_000))
    found = bench_ngram.measured(path, words, 20_000)
    assert found["copied_share"] > 0.9, "the measure does not see a copy"
    assert max(found["mapped_share"], found["native_share"]) < bench_ngram.LIMIT
    assert found["mapped"]["mean_ln_p"] == found["native"]["mean_ln_p"] == found["copied"]["mean_ln_p"]
