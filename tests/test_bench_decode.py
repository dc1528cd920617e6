# SPDX-License-Identifier: Apache-2.0
"""`gharial bench decode`: its table is one that a device could give, and its figures are what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import process
from ngram_files import binary

from gharial.bench import decode_ngram
from gharial.bench.decode import bench_decode
from gharial.bench.decode_device import RATE, TableDevice
from gharial.bench.decode_ngram import Language
from gharial.cli import main
from gharial.errors import BadInput


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A language of few words, and a cache of its own."""
    pytest.importorskip("kenlm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(decode_ngram, "ENTRIES", 20_000)
    monkeypatch.setattr(decode_ngram, "_TOKENS", 20_000)


def test_ngrams_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each n-gram's words without the last are an n-gram, and so are those without the first; none is there twice."""
    monkeypatch.setattr(decode_ngram, "_TOKENS", 5000)
    language = Language.seeded(299, 3)
    assert len(set(language.pieces)) == 299
    grams = [set(one.tolist()) for one in decode_ngram._grams(language.text(3), 299)]
    for order in range(1, 4):
        assert {one // 299 for one in grams[order]} <= grams[order - 1]
        assert {one % 299**order for one in grams[order]} <= grams[order - 1]


def test_the_table_says_the_same_to_the_same_hypothesis() -> None:
    """Whatever slot it lies in and whoever else is asked for; and something else to others."""
    language = Language.seeded(299, 3)
    one, other = (TableDevice(language, 5, 64, 4, 32, 0.003) for _ in range(2))
    start = np.array([[7 | 2 << 21, 0x0003_0003, 0, 0]], "<u4").view(np.uint8)
    token = np.array([[7 | 1 << 21, 0x0004_0003, 9, 0]], "<u4").view(np.uint8)
    shifted = np.array([[8 | 2 << 21, 0x0009_0009, 0, 0], [7 | 2 << 21, 0x000A_000A, 0, 0]], "<u4").view(np.uint8)
    again = np.array([[7 | 1 << 21, 0x000B_000A, 9, 0]], "<u4").view(np.uint8)
    first, second = one.decode(start, 2), other.decode(shifted, 2)
    assert first[0].tobytes() == second[1].tobytes() != second[0].tobytes()
    assert one.decode(token, 2)[0].tobytes() == other.decode(again, 2)[0].tobytes() != first[0].tobytes()


def test_figures(small: None, capsys: pytest.CaptureFixture[str]) -> None:
    found = bench_decode(300, 4, streams=32, steps=40)
    assert found["streams_per_core"] > 0 and found["p50_us"] <= found["p99_us"]
    assert found["reference_streams_per_core"] > 0
    assert 1 <= found["kept"] <= 4 and found["evaluations"] >= 1 and found["ngram_queries"] > 0
    assert 0 < found["tokens"] < 4 * RATE
    peer = found["peer"]
    assert peer is None or peer["ratio"] == pytest.approx(found["streams_per_core"] / peer["streams_per_core"], rel=0.1)
    sizes = ["--vocab", "300", "--beam", "2", "--batch", "4", "--streams", "8", "--steps", "10"]
    assert main(["bench", "decode", *sizes, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() == found.keys() and printed["beam"] == 2 and printed["batch"] == 4


def test_the_search_agrees_with_the_plain_one(small: None) -> None:
    """Same finals on the same table: what the two speeds are measured on is the same work."""
    from gharial.bench import decode

    language = Language.seeded(299, 1)
    scorer = decode.Scorer(None, language, 1, lambda text: None)
    run = decode._Run(language, scorer, 4, 4, 4, 1)
    plain = decode._plain_searches(language, scorer, run, 1, 4)
    for _ in range(60):
        run.measure(1)
        for stream, (one, _) in enumerate(plain):
            one.step()
            wanted = [[token.id for token in h.tokens[one.finals :]] for h in one.kept]
            assert [[token.id for token in h.tokens] for h in run.search.kept(stream)] == wanted


@pytest.mark.parametrize("name", ["vocab", "beam", "batch"])
def test_numbers_out_of_range(name: str) -> None:
    with pytest.raises(BadInput) as error:
        bench_decode(**{name: 0})
    assert error.value.where == name


def test_the_plain_version_is_found_from_anywhere(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    words = ["bench", "decode", "--vocab", "300", "--streams", "16", "--steps", "8", "--ngram", str(binary()), "--json"]
    done = process(*words, cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path))
    assert done.code == 0 and json.loads(done.out)["reference_streams_per_core"] > 0
