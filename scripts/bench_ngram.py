#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an n-gram file costs a process: `python -m scripts.bench_ngram` writes docs/measured/ngram-sharing.json.

A random n-gram of over 100 MB is written. One process opens it and scores random tokens; a second one does the same
with other tokens, and its private memory (USS, by /proc/self/smaps_rollup) is told before and after: by KenLM's package
("mapped") and as the search's core reads it ("native"). The same is measured with a loader that copies, which shows
what the figure would be. Exit code 1 where a mapped file costs the second process more than 5 % of the file's size.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gharial
from gharial.checkpoint.sentencepiece_model import PieceKind, read_pieces
from gharial.model import demo_model
from gharial.ngram import NgramModel, append_mark
from gharial.ngram.model import LN_10
from gharial.ngram.pieces import sentencepiece_of
from scripts.bench_batches import MEASURED, commit
from scripts.random_ngram import write

WORDS = 120
COUNTS = (122**2, 122**3, 5_400_000)
"""N-grams of order 2 to 4: all there are, all there are, and some: 142 MB."""

SCORES = 100_000
LIMIT = 0.05
_PLACE = "ngram-sharing.json"


def make(path: Path, words: int = WORDS, counts: tuple[int, ...] = COUNTS, seed: int = 1) -> None:
    """Write a random n-gram over pieces of the demo model, and mark it."""
    sentencepiece = sentencepiece_of(demo_model())
    write(path, seed, [text for _, text in _pieces(sentencepiece)[:words]], counts)
    append_mark(path, sentencepiece)


def measured(path: Path, words: int = WORDS, scores: int = SCORES) -> dict[str, Any]:
    """What the file costs a second process: mapped by KenLM, by the core, and copied."""
    results = {}
    for how in ("mapped", "native", "copied"):
        with _started(path, words, scores, how, seed=1) as first:
            assert first.stdout is not None
            first.stdout.readline()  # it has scored, and keeps the file open
            with _started(path, words, scores, how, seed=2) as second:
                out, _ = second.communicate()
            first.communicate()
            if first.returncode or second.returncode:
                raise gharial.GharialError("a process of the bench failed")
        results[how] = json.loads(out)
    size = path.stat().st_size
    shares = {f"{how}_share": round(results[how]["uss_growth"] / size, 4) for how in results}
    return {"bytes": size, "scores": scores, **shares, **results}


def _started(path: Path, words: int, scores: int, how: str, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "scripts.bench_ngram", "--worker", how, str(path), str(words), str(scores)]
    root = Path(__file__).resolve().parents[1]
    return subprocess.Popen([*command, str(seed)], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def work(how: str, path: str, words: int, scores: int, seed: int) -> tuple[NgramModel, dict[str, Any]]:
    """One process: open, score, tell. The model must be kept, or the file is no longer mapped."""
    sentencepiece = sentencepiece_of(demo_model())
    tokens = np.array([token for token, _ in _pieces(sentencepiece)[:words]])
    chosen = np.random.default_rng(seed).choice(tokens, scores).tolist()
    if how == "copied":
        import kenlm

        kenlm.LoadMethod.LAZY = kenlm.LoadMethod.READ
    NgramModel(path, sentencepiece).score(None, len(read_pieces(sentencepiece, path)))  # all code has run once
    before = private_bytes()
    began = time.perf_counter()
    model = NgramModel(path, sentencepiece)
    opened = time.perf_counter()
    opened_bytes = private_bytes()
    state: Any = model.begin()
    score_of: Callable[[Any, int], tuple[float, Any]] = model.score
    if how == "native":
        native = model.native
        if native is None:
            raise gharial.GharialError("the core does not read this file")
        state = native.begin(native.word(b"<s>"))
        score_of, by_token = (
            native.score,
            {token: native.word(str(model.words[token]).encode()) for token in set(chosen)},
        )
        chosen = [by_token[token] for token in chosen]
    total = 0.0
    timed = time.perf_counter()
    for token in chosen:
        score, state = score_of(state, token)
        total += score if how != "native" else LN_10 * score
    seconds = time.perf_counter() - timed
    after = private_bytes()
    return model, {
        "uss_before": before,
        "uss_opened": opened_bytes,
        "uss_after": after,
        "uss_growth": after - before,
        "open_ms": round(1000 * (opened - began), 3),
        "scores_per_s": round(scores / seconds),
        "mean_ln_p": round(total / scores, 4),
    }


def private_bytes() -> int:
    """Memory of this process that it shares with no other."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _pieces(sentencepiece: bytes) -> list[tuple[int, str]]:
    pieces = enumerate(read_pieces(sentencepiece, "demo"))
    return [(token, piece.text) for token, piece in pieces if piece.kind == PieceKind.NORMAL]


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 within the limit, 1 not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.worker:
        how, path, *numbers = args.worker
        model, found = work(how, path, *map(int, numbers))
        print(json.dumps(found), flush=True)
        sys.stdin.read()  # until the other is done
        del model
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.binary"
        make(path)
        found = measured(path)
    MEASURED.mkdir(exist_ok=True)
    (MEASURED / _PLACE).write_text(json.dumps({"commit": commit(), **found}, indent=1) + "\n")
    mapped, native, copied = found["mapped"], found["native"], found["copied_share"]
    print(
        f"n-gram of {found['bytes'] / 1e6:.0f} MB, {found['scores']:,} random scores in a second process: private "
        f"memory grows by {mapped['uss_growth'] / 1e6:.2f} MB, {100 * found['mapped_share']:.2f} % of the file "
        f"(as the core reads it {native['uss_growth'] / 1e6:.2f} MB, copied {100 * copied:.0f} %); "
        f"{mapped['scores_per_s']:,} scores a second from Python"
    )
    return 0 if max(found["mapped_share"], found["native_share"]) < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
