# SPDX-License-Identifier: Apache-2.0
"""KenLM's header, and files that are cut or damaged: refused before KenLM gets them."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from command import environment
from ngram_files import ARPA, COUNTS, HIGH_BITS, KINDS, binary, copy

from gharial.errors import BadInput
from gharial.ngram import read_file
from gharial.ngram.header import MAX_COUNT

HEADER = 88
"""Bytes of magic and test values; then order (1), multiplier (4), kind (4), vocabulary (1), version (4), counts."""


def changed(folder: Path, kind: str, at: int, value: bytes) -> Path:
    path = copy(folder, kind)
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.write_bytes(data)
    return path


def refused(path: Path, *parts: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_file(path)
    message = str(caught.value)
    assert len(message.split("\n")) <= 3
    for part in (str(path), *parts):
        assert part in message


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str) -> None:
    """The computed end of the data is the file's: KenLM pads nothing and leaves nothing out."""
    file = read_file(binary(kind))
    header = file.header
    assert (header.order, header.counts, header.kind) == (3, COUNTS, KINDS[kind])
    assert header.end == file.bytes == binary(kind).stat().st_size
    assert header.words == COUNTS[0] and header.has_words
    assert (header.quantised is not None) == ("quantised" in kind)


def test_larger_file(data_dir: Path) -> None:
    file = read_file(data_dir / "models" / "words_4gram.binary")
    assert file.header.counts == (42, 348, 1304, 4108) and file.foreign == 0 and file.mark is None


def test_what_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "f"
    good = binary().read_bytes()
    for data, *parts in (
        (b"", "empty"),
        (good[:30], "truncated"),
        (b"\n" + ARPA.read_bytes(), "ARPA", "gharial ngram build"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS pointer"),
        (b"mmap lm http://kheafield.com/code incomplete\n".ljust(200, b"\0"), "never finished"),
        (good.replace(b"version 5", b"version 4"), "another format", "version 4"),
        (b"RIFF" + bytes(100), "no n-gram file", "52 49 46 46"),
        (good[:60] + b"\1" + good[61:], "another kind of machine"),
    ):
        path.write_bytes(data)
        refused(path, *parts)
    refused(tmp_path, "is a directory")


@pytest.mark.parametrize(
    ("at", "value", "part"),
    [
        (0, b"\x01", "order"),
        (0, b"\x07", "order"),
        (4, struct.pack("<f", 0.5), "multiplier"),
        (4, struct.pack("<f", float("nan")), "multiplier"),
        (4, struct.pack("<f", float("inf")), "multiplier"),
        (8, b"\x06", "kind"),
        (12, b"\x02", "vocabulary 2"),
        (16, b"\x01", "version"),
        (20, bytes(8), "counts"),
        (20, struct.pack("<Q", MAX_COUNT), "truncated"),
        (20, struct.pack("<Q", MAX_COUNT + 1), "counts"),
        (28, b"\xff" * 8, "counts"),
        (56, struct.pack("<I", 99), "vocabulary is of another version"),
        (60, struct.pack("<I", 0), "0 words"),
        (60, struct.pack("<I", COUNTS[0] + 2), "words"),
    ],
)
def test_header_fields(tmp_path: Path, at: int, value: bytes, part: str) -> None:
    at += HEADER + (0 if at < 56 else -(HEADER + 44) % 8 - 12)
    refused(changed(tmp_path, "probing", at, value), part)


def test_vocabulary_table(tmp_path: Path) -> None:
    """A number beyond the words would be looked up outside the unigrams; a full table is searched without end."""
    lookup = 136 + 8
    data = bytearray(binary().read_bytes())
    places = int(1.5 * COUNTS[0])
    used = next(i for i in range(places) if any(data[lookup + 12 * i : lookup + 12 * i + 8]))
    path = changed(tmp_path, "probing", lookup + 12 * used + 8, struct.pack("<I", COUNTS[0]))
    refused(path, "vocabulary table", "beyond the words")
    for i in range(places):
        data[lookup + 12 * i : lookup + 12 * i + 12] = struct.pack("<QI", 1 + i, 0)
    path.write_bytes(data)
    refused(path, "no empty place")


def test_trie_pointers(tmp_path: Path) -> None:
    first = 136 + 8 + 8 * COUNTS[0] + 8  # of the first unigram
    refused(changed(tmp_path, "trie", first, struct.pack("<Q", COUNTS[1] + 1)), "unigrams")
    last = first + 16 * COUNTS[0]
    refused(changed(tmp_path, "trie", last, struct.pack("<Q", 1 << 63)), "unigrams")
    refused(changed(tmp_path, "trie", 136, struct.pack("<Q", COUNTS[0])), "words")
    # Of bigrams: 5 bits of the word, 63 of the values, 6 of the pointer, of which the first is now 63.
    at = 136 + 8 + 8 * COUNTS[0] + 16 * (COUNTS[0] + 2) + 8
    refused(changed(tmp_path, "trie", at, b"\xff\xff"), "2-grams")


def test_high_bits_of_a_tries_pointers(tmp_path: Path) -> None:
    """Kept apart in a list that must begin with 0 and rise, so that the pointers do."""
    header = read_file(binary(HIGH_BITS)).header
    assert (header.counts, header.kind) == ((42, 348, 1304, 4108), "quantised trie with compressed pointers")
    at = 1528  # the first list, of 11 numbers
    good = struct.unpack_from("<11Q", binary(HIGH_BITS).read_bytes(), at)
    assert good[0] == 0 and list(good) == sorted(good) and good[-1] < 348
    for value, index in ((1, 0), (1 << 40, 5), (0, 10)):
        refused(changed(tmp_path, HIGH_BITS, at + 8 * index, struct.pack("<Q", value)), "2-grams", "high bits")
    for value in (good[4], good[6]):  # the list still rises, the pointers no longer do
        refused(changed(tmp_path, HIGH_BITS, at + 8 * 5, struct.pack("<Q", value)), "2-grams", "pointers out of order")


@pytest.mark.parametrize("kind", KINDS)
def test_every_length(tmp_path: Path, kind: str) -> None:
    """Cut anywhere it is refused: not one byte of KenLM's data may be missing."""
    path = copy(tmp_path, kind)
    data = path.read_bytes()
    for length in range(0, len(data), 11):
        path.write_bytes(data[:length])
        with pytest.raises(BadInput):
            read_file(path)


FUZZ = """
import json, random, sys, faulthandler
from pathlib import Path
import kenlm
from gharial.errors import BadInput
from gharial.ngram import read_file
folder, seed = Path(sys.argv[1]), int(sys.argv[2])
random = random.Random(seed)
words = ["\\u2581go", "\\u2581le", "f", "t", "<unk>", "nothing", "\\u2581u", "p", "\\u2581no", "<s>", "</s>"]
config = kenlm.Config()
config.load_method = kenlm.LoadMethod.LAZY
loaded = 0
for path in sorted(folder.iterdir()):
    print(path.name, flush=True)
    try:
        read_file(path)
    except BadInput:
        continue
    try:
        model = kenlm.Model(str(path), config)
    except OSError:
        continue
    loaded += 1
    state, following = kenlm.State(), kenlm.State()
    model.BeginSentenceWrite(state)
    for _ in range(300):
        model.BaseScore(state, random.choice(words), following)
        state, following = following, state
print(json.dumps(loaded))
"""


def test_damaged_files_do_not_take_the_process_along(tmp_path: Path, seed: int) -> None:
    """Bits flipped anywhere, in files of every kind; what is let through is scored with, in a process of its own."""
    pytest.importorskip("kenlm", reason="needs the package kenlm: pip install gharial[ngram]")
    random = Random(seed)
    for kind in (*KINDS, HIGH_BITS):
        data = binary(kind).read_bytes()
        for index in range(60):
            damaged = bytearray(data)
            # Half of them where the header and the vocabulary are.
            at = random.randrange(200 if index % 2 else len(data))
            damaged[at] ^= 1 << random.randrange(8)
            (tmp_path / f"{kind}-{index:02}-{at}").write_bytes(damaged)
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, str(tmp_path), str(seed)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-200:], done.stderr)
    assert json.loads(done.stdout.splitlines()[-1]) > 0, "no file was let through: nothing was tested"
