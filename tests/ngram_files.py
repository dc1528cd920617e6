# SPDX-License-Identifier: Apache-2.0
"""N-gram files for the tests: one for each kind that KenLM writes, made of tests/data/ngram/tiny.txt."""

from __future__ import annotations

import shutil
from pathlib import Path

from gharial.checkpoint import load_hardware
from gharial.model import demo_model

FOLDER = Path(__file__).resolve().parent / "data" / "ngram"
KINDS = {
    "probing": "probing",
    "rest": "probing with rest costs",
    "trie": "trie",
    "quantised": "quantised trie",
    "compressed": "trie with compressed pointers",
    "quantised_compressed": "quantised trie with compressed pointers",
}
"""File (without .binary): what KenLM calls it."""

HIGH_BITS = "high_bits"
"""One more: a quantised trie of a 4-gram that keeps high bits of its pointers apart, which the small ones do not."""

ARPA = FOLDER / "tiny.arpa"
COUNTS = (21, 41, 42)
"""N-grams of each order in ARPA."""

OTHER = b"the bytes of another SentencePiece model"


def binary(kind: str = "probing") -> Path:
    """A file of that kind, not marked; not to be written to."""
    return FOLDER / f"{kind}.binary"


def copy(folder: Path, kind: str = "probing", name: str = "words.binary") -> Path:
    """A copy to be changed."""
    return Path(shutil.copyfile(binary(kind), folder / name))


def demo_pieces() -> bytes:
    """The SentencePiece model of the demo model, over whose pieces the files are."""
    return load_hardware(demo_model()).sentencepiece


def written(path: Path) -> tuple[int, int]:
    """Which file it is and when it was written: differs after any writing."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns
