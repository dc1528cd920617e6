# SPDX-License-Identifier: Apache-2.0
"""The core's reading of KenLM binaries: KenLM's scores to the bit, its states, and no crash whatever a file says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from command import environment
from conftest import ROOT
from ngram_files import HIGH_BITS, KINDS, binary
from tests import ngram_random

from gharial.errors import BadInput
from gharial.ngram import read_file, tools
from gharial.ngram.native import described, native_ngram
from gharial.ngram.words import words

kenlm = pytest.importorskip("kenlm", reason="needs the package kenlm: pip install gharial[ngram]")

BUILT = tools.built_folder()
"""Where the user has built KenLM's programs: looked up before the tests get a cache of their own."""

TRIES = ((), ("-q", "5", "-b", "4"), ("-a", "22"), ("-q", "8", "-b", "8", "-a", "3"))


def same_as_kenlm(path: Path, seed: int, scores: int) -> int:
    """Random words behind one another, some unknown; the longest context that was met."""
    file = read_file(path)
    ours = native_ngram(file)
    assert ours is not None
    config = kenlm.Config()
    config.load_method = kenlm.LoadMethod.LAZY
    model = kenlm.Model(str(path), config)
    texts = [word.decode() for word in words(file)] + ["nothing", "<UNK>", ""]
    numbers = [ours.word(text.encode()) for text in texts]
    random, longest = Random(seed), 0
    start = kenlm.State(), ours.begin(ours.word(b"<s>"))
    model.BeginSentenceWrite(start[0])
    state, own = start
    pairs: dict[object, bytes] = {}
    for _ in range(scores):
        at = random.randrange(len(texts))
        following = kenlm.State()
        wanted = model.BaseScore(state, texts[at], following)
        found, own = ours.score(own, numbers[at])
        assert found == wanted, (path, texts[at])
        state = following
        longest = max(longest, len(own) // 8)
        # States that KenLM holds for the same are the same here, and others are not.
        context = own[: len(own) // 2]
        assert pairs.setdefault(state, context) == context
        if random.random() < 0.02:
            state, own = start
    assert len(set(pairs.values())) == len(pairs)
    return longest


@pytest.mark.parametrize("kind", [*KINDS, HIGH_BITS])
def test_every_kind(kind: str, seed: int) -> None:
    same_as_kenlm(binary(kind), seed, 20_000)


def test_golden_file(data_dir: Path, seed: int) -> None:
    assert same_as_kenlm(data_dir / "models" / "words_4gram.binary", seed, 20_000) == 3


@pytest.mark.parametrize("order", range(2, 7))
def test_random_hash_tables(tmp_path: Path, seed: int, order: int) -> None:
    """Values of any sign, zeros of both, n-grams whose shorter ones say that there is none longer."""
    rng = np.random.default_rng([seed, order])
    for number in range(2):
        path = tmp_path / f"{number}.binary"
        ngram_random.write_binary(path, rng, order)
        same_as_kenlm(path, seed, 30_000)


@pytest.mark.parametrize("order", range(2, 7))
def test_random_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, order: int) -> None:
    """All four kinds, with lists of high bits and without."""
    if tools.FOLDER not in os.environ and BUILT is not None and BUILT.is_dir():
        monkeypatch.setenv(tools.FOLDER, str(BUILT))
    try:
        build = str(tools.find("build_binary"))
    except BadInput as error:
        pytest.skip(str(error))
    arpa, path = tmp_path / "random.arpa", tmp_path / "random.binary"
    ngram_random.write_arpa(arpa, np.random.default_rng([seed, order]), order)
    for settings in TRIES:
        subprocess.run([build, *settings, "trie", str(arpa), str(path)], check=True, capture_output=True)
        same_as_kenlm(path, seed, 15_000)


@pytest.mark.parametrize("kind", [*KINDS, HIGH_BITS])
def test_bytes_that_the_tables_do_not_fit_into(kind: str) -> None:
    data = binary(kind).read_bytes()
    header = read_file(binary(kind)).header
    described(header, data)
    for length in (0, 8, header.words_at // 2, header.words_at - 9):
        with pytest.raises(ValueError, match="do not fit"):
            described(header, data[:length])


def test_another_file_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "f.binary"
    path.write_bytes(binary().read_bytes())
    file = read_file(path)
    (tmp_path / "other").write_bytes(binary().read_bytes())
    (tmp_path / "other").replace(path)
    with pytest.raises(BadInput, match="replaced"):
        native_ngram(file)


def test_arguments() -> None:
    header, data = read_file(binary()).header, binary().read_bytes()
    ours = described(header, data)
    for state in (b"1", bytes(8 * header.order), b"\xff" * 8):
        with pytest.raises(ValueError, match="no state"):
            ours.score(state, 0)
    with pytest.raises(IndexError):
        ours.score(b"", header.words)
    with pytest.raises(IndexError):
        ours.begin(header.words)


FUZZ = """
import faulthandler, sys
from pathlib import Path
from random import Random
from gharial.decoding._search import Ngram
from gharial.ngram import read_file
from gharial.ngram.native import described
random, loaded = Random(int(sys.argv[2])), 0

class Recorded:
    def __init__(self, data, *rest):
        self.rest = rest

import gharial.ngram.native as native
native.Ngram = Recorded

def changed(value):
    return random.choice([0, 1, value + 1, value * 2, value ^ 1 << random.randrange(31), 0xFFFFFFFF, value // 2])

def scored(ngram, words):
    state = ngram.begin(random.randrange(words))
    for _ in range(60):
        ngram.word(random.choice([b"f", b"t", b"<s>", b"", b"\\xe2\\x96\\x81go"]))
        state = ngram.score(state, random.randrange(words))[1]

for path in sorted(Path(sys.argv[1]).glob("*.binary")):
    good, header = path.read_bytes(), read_file(path).header
    parts = described(header, good).rest
    for index in range(300):
        print(path.name, index, flush=True)
        data, (trie, words, *places, bits, tables) = bytearray(good), parts
        for _ in range(random.randrange(40)):  # what the header's check would not let through as well
            data[random.randrange(140, len(data))] = random.randrange(256)
        places, bits, tables = list(places), list(bits), [list(one) for one in tables]
        for group in random.sample([places, bits, *tables], index % 3):
            at = random.randrange(len(group))
            group[at] = changed(group[at]) & 0xFFFFFFFF
        words = changed(words) & 0xFFFFFFFF if index % 5 == 4 else words
        try:
            ngram = Ngram(bytes(data), trie, words, *places, tuple(bits), tuple(map(tuple, tables)))
        except ValueError:
            continue
        loaded += 1
        scored(ngram, words)
print(loaded)
"""


def test_whatever_a_file_says(seed: int) -> None:
    """Bytes and places that are wrong: refused, or scored without leaving the bytes; in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", FUZZ, str(binary().parent), str(seed)],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-200:], done.stderr)
    assert int(done.stdout.splitlines()[-1]) > 100, "hardly a file was let through"
