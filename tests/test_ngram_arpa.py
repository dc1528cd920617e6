# SPDX-License-Identifier: Apache-2.0
"""N-grams as text (ARPA): told from other text, built from, and refused with their line where they are damaged."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from checkpoint_files import complete
from command import Run
from ngram_files import ARPA, COUNTS, demo_pieces
from test_ngram_build import SMALL, kenlm_tools  # noqa: F401 - a fixture

from gharial.errors import BadInput
from gharial.ngram import arpa
from gharial.ngram.build import TYPES, Options, build

PIECES = demo_pieces()
GOOD = ARPA.read_bytes()
GO = "▁go".encode()


def value(probability: bytes, backoff: bytes = b"-0.30103") -> bytes:
    """The file with other values of one word."""
    changed = re.sub(rb"\n\S+\t" + GO + rb"\t\S+", b"\n" + probability + b"\t" + GO + b"\t" + backoff, GOOD, count=1)
    assert changed != GOOD
    return changed


def without(start: bytes, end: bytes) -> bytes:
    """The file without what lies between."""
    return GOOD[: GOOD.index(start)] + GOOD[GOOD.index(end) :]


def orders(count: int) -> bytes:
    """A file of that order."""
    parts = [b"\\%d-grams:\n-1\t%s\n\n" % (n, b" ".join([b"<unk>"] * n)) for n in range(1, count + 1)]
    return b"\\data\\\n" + b"".join(b"ngram %d=1\n" % n for n in range(1, count + 1)) + b"\n" + b"".join(parts)


COUNTED = {
    "negative": (GOOD.replace(b"2=41", b"2=-41"), "line 3: this is no count", "ngram 2=-41"),
    "huge": (GOOD.replace(b"2=41", b"2=1000000000000"), "line 3: the file has no room", "ngram 2=1000000000000"),
    "without limit": (GOOD.replace(b"2=41", b"2=" + b"9" * 30), "line 3: this is no count", "999"),
    "not in order": (GOOD.replace(b"ngram 2=41\n", b""), "line 3: this is no count", "expected ngram 2=COUNT"),
    "order 1": (orders(1) + b"\\end\\\n", "the order is not supported", "found 1, expected 2 to 6"),
    "order 9": (orders(9) + b"\\end\\\n", "the order is not supported", "found 9, expected 2 to 6"),
    "noise": (b"\\data\\\n" + bytes(range(1, 256)) * 20, "line 2: this is no count", "ngram 1=COUNT"),
    "counts alone": (GOOD[: GOOD.index(b"\\1-grams:")], "line 2: the file has no room", "ngram 1=21"),
    "begins with a space": (b" " + GOOD, "line 1: an ARPA file begins otherwise", "expected \\data\\"),
    "packed, cut": (gzip.compress(GOOD, mtime=0)[:40], "the packed file is damaged", "a whole gzip file"),
}
"""Refused before KenLM is given them."""

DAMAGED = {
    "too few": (GOOD.replace(b"2=41", b"2=45"), "line 72: 2-grams are missing", "found 41 of them, then \\3-grams:"),
    "too many": (GOOD.replace(b"2=41", b"2=37"), "line 67: a part", "expected \\3-grams:, after 37 2-grams"),
    "no end": (GOOD.replace(b"\\end\\", b""), "line 116: a part", "found the end of the file, expected \\end\\"),
    "no 1-grams": (without(b"\\1-grams:", b"\\2-grams:"), "line 6: a part", "found \\2-grams:, expected \\1-grams:"),
    "cut": (GOOD[: len(GOOD) * 2 // 3], "line 77: this is no 3-gram", "found -0.351"),
    "above 1": (value(b"0.5"), "line 10: this is no log10 of a probability", "found 0.5, expected a number up to 0"),
    "no number": (value(b"nan"), "line 10: this is no log10 of a probability", "found nan"),
    "words for a number": (value(b"much"), "line 10: this is no log10 of a probability", "found much"),
    "endless back-off": (value(b"-1", b"-inf"), "line 10: this is no back-off", "found -inf"),
    "three values": (value(b"-1", b"-1\t5"), "line 10: this is no 1-gram", "expected log10 of its probability, a tab"),
    "no tabs": (GOOD.replace(b"\t", b" "), "line 7: this is no 1-gram", "a tab"),
    "back-off too high": (re.sub(rb"(3-grams:\n[^\n]+)", rb"\1\t-0.5", GOOD), "highest order has a back-off", "-0.5"),
    "unknown word": (re.sub(rb"(2-grams:\n\S+\t)\S+", rb"\1zzz", GOOD), "is not among the 1-grams", "found zzz"),
    "no start": (GOOD.replace(b"<s>", b"<q>"), "a 1-gram is missing", "expected <s>"),
    "goes on": (GOOD + b"more\n", "line 117: the file goes on behind its end", "found more"),
    "zero byte": (
        GOOD.replace(b"1=21", b"1=22").replace(b"\n\n\\2-", b"\n-1\ta\0b\n\n\\2-"),
        "line 28: this is no 1-gram",
        "a\\x00b",
    ),
}
"""Given to KenLM."""


def test_told_from_other_text(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for data in (GOOD, gzip.compress(GOOD), b"\xef\xbb\xbf" + GOOD, b"\n# made by hand\n\n" + GOOD, b" " + GOOD):
        path.write_bytes(data)
        assert arpa.is_arpa(path), data[:20]
    for data in (b"", b"go left\n" + GOOD, b"# left\n", b"#" * (1 << 21), b"\n" * (1 << 21), gzip.compress(b"go")):
        path.write_bytes(data)
        assert not arpa.is_arpa(path), data[:20]


def test_what_is_good(tmp_path: Path) -> None:
    path = tmp_path / "f"
    fields = GOOD.replace(b" ", b"\t"), value(b"-1e2"), value(b"-inf"), value(b".0", b"+.5"), value(b"-99", b"0")
    for data in (GOOD, gzip.compress(GOOD), b"\xef\xbb\xbf" + GOOD, GOOD.replace(b"\n", b"\r\n"), *fields):
        path.write_bytes(data)
        arpa.check(path)
        assert b"".join(arpa.blocks(path)).endswith(b"\\end\\\n") or b"\r" in data
    for order in range(2, 7):
        path.write_bytes(orders(order) + b"\\end\\\n")
        arpa.check_counts(path)


@pytest.mark.parametrize("name", [*COUNTED, *DAMAGED])
def test_the_first_fault_is_told(tmp_path: Path, name: str) -> None:
    data, *parts = (COUNTED | DAMAGED)[name]
    path = tmp_path / "f.arpa"
    path.write_bytes(data)
    checks: tuple[Callable[[Path], None], ...] = (arpa.check, arpa.check_counts) if name in COUNTED else (arpa.check,)
    for check in checks:
        with pytest.raises(BadInput) as caught:
            check(path)
        complete(caught.value)
        assert str(path) in str(caught.value)
        for part in parts:
            assert part in str(caught.value), caught.value


def test_a_line_without_end(tmp_path: Path) -> None:
    path = tmp_path / "f.arpa"
    path.write_bytes(value(b"-1", b"x" * (2 << 20)))
    with pytest.raises(BadInput, match="line 10: a line is too long"):
        arpa.check(path)


@pytest.mark.usefixtures("kenlm_tools")
@pytest.mark.parametrize("kind", TYPES)
def test_damaged_ones_are_bad_input(tmp_path: Path, cli: Run, kind: str) -> None:
    """Exit code 2 with the line, whichever of the two finds the fault; nothing is left behind."""
    model, path, out = tmp_path / "tokens.model", tmp_path / "f.arpa", tmp_path / "o.binary"
    model.write_bytes(PIECES)
    words = ("ngram", "build", path, "--model", model, "-o", out, "--memory", "64M", "--type", kind)
    for data, *parts in (COUNTED | DAMAGED).values():
        path.write_bytes(data)
        cli(*words).refused(str(path), "found", "expected", *parts)
    # KenLM's trie needs every context; its hash tables do not.
    path.write_bytes(re.sub(rb"(3-grams:\n\S+\t)\S+ \S+ \S+", rb"\1" + b" ".join([GO] * 3), GOOD))
    if kind == "trie":
        cli(*words).refused("KenLM does not take this ARPA file", "3-gram has context", "--type probing")
    else:
        assert cli(*words).code == 0
        out.unlink()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["f.arpa", "tokens.model"]


@pytest.mark.usefixtures("kenlm_tools")
@pytest.mark.parametrize("kind", TYPES)
def test_packed_and_commented_ones_are_no_text(tmp_path: Path, kind: str) -> None:
    """They used to be cut into pieces and counted, as if they were sentences."""
    path, out = tmp_path / "f", tmp_path / "o.binary"
    plain = build([ARPA], PIECES, out, Options(type=kind, **SMALL)).file
    expected = out.read_bytes()
    for data in (gzip.compress(GOOD), b"\xef\xbb\xbf" + GOOD, gzip.compress(b"# made\n\n" + GOOD)):
        path.write_bytes(data)
        made = build([path], PIECES, out, Options(type=kind, **SMALL))
        assert made.file.header.counts == plain.header.counts == COUNTS and made.sentences == 0
        assert out.read_bytes() == expected


@pytest.mark.usefixtures("kenlm_tools")
def test_whatever_kenlm_does_not_take_is_bad_input(tmp_path: Path, seed: int) -> None:
    """Files with one byte changed: built, or refused in words of their own; KenLM is laxer about ends of lines."""
    random = Random(seed)
    path, out = tmp_path / "f.arpa", tmp_path / "o.binary"
    refused = 0
    for _ in range(100):
        data = bytearray(GOOD)
        data[random.randrange(len(GOOD) - 6)] = random.choice(b"\t\n -09.aE\\\x80\x00")
        path.write_bytes(data)
        if not arpa.is_arpa(path):
            continue
        try:
            build([path], PIECES, out, Options(type=random.choice(TYPES), **SMALL))
        except BadInput as error:
            complete(error)
            refused += 1
    assert refused
