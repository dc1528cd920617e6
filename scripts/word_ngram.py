#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An n-gram over a model's pieces from a list of words, as a command grammar has it: any word may follow any other.

`python -m scripts.word_ngram commands -o commands.binary` writes strings of words, drawn at random with a fixed seed,
and has `gharial ngram build` make the n-gram. Nothing but the list of words goes into it, no transcript of a set. The
n-gram that ships beside the demo model is made so: `python -m scripts.word_ngram --shipped`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import gharial
from gharial.cli import terminal
from gharial.model import demo_model
from gharial.ngram.build import Options, build
from gharial.ngram.pieces import sentencepiece_of
from scripts.training.recordings import WORDS

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LISTS = {"commands": WORDS, "digits": DIGITS, "tasks": (*WORDS, *DIGITS)}
SHIPPED = demo_model().with_name("commands.ngram")
_MOST_WORDS = 100_000


@dataclass(frozen=True)
class Grammar:
    """Strings of words.

    Attributes:
        strings: how many are drawn; 0: each word by itself, once.
        longest: words of the longest; every length from 1 on is as likely.
        seed: of the draws.
    """

    strings: int = 6000
    longest: int = 7
    seed: int = 1

    def lines(self, words: Sequence[str]) -> list[str]:
        """The strings, one a line."""
        if not self.strings:
            return list(words)
        draw = random.Random(self.seed)  # its draws are the same in every Python
        return [
            " ".join(words[int(draw.random() * len(words))] for _ in range(1 + int(draw.random() * self.longest)))
            for _ in range(self.strings)
        ]


def word_list(name: str) -> list[str]:
    """Words of a list: one of `LISTS`, or a file with a word or a phrase a line.

    Raises:
        BadInput: no such file, or nothing in it.
    """
    if name in LISTS:
        return list(LISTS[name])
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise gharial.BadInput("no such list of words", name, error, f"{', '.join(LISTS)}, or a text file") from None
    words = list(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip()))
    if not 1 <= len(words) <= _MOST_WORDS:
        raise gharial.BadInput("this is no list of words", name, f"{len(words)} words", f"1 to {_MOST_WORDS}")
    return words


def make(
    words: Sequence[str],
    model: Path,
    output: Path,
    order: int = 3,
    grammar: Grammar | None = None,
    note: Callable[[str], object] = terminal.note,
) -> None:
    """Write the n-gram of a list of words, marked for a model.

    Args:
        words: the list.
        model: checkpoint, program or SentencePiece model.
        output: the file.
        order: its longest n-grams.
        grammar: how the words follow one another.
        note: as of `gharial.ngram.build.build`.

    Raises:
        BadInput, GharialError: as `gharial ngram build`.
    """
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "words.txt"
        text.write_text("\n".join((grammar or Grammar()).lines(words)) + "\n", encoding="utf-8")
        build([str(text)], sentencepiece_of(model), str(output), Options(order=order, memory="64M"), note=note)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0 made, 1 failed, 2 bad input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="?", metavar="LIST", help=f"{', '.join(LISTS)}, or a file of a word a line")
    parser.add_argument("--model", metavar="M", type=Path, default=demo_model(), help="whose pieces (the demo model)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="n-gram file to write")
    parser.add_argument("--order", metavar="N", type=int, default=3, help="longest n-gram (3)")
    parser.add_argument("--strings", metavar="N", type=int, default=6000, help="0: each word by itself (6000)")
    parser.add_argument("--longest", metavar="N", type=int, default=7, help="words of the longest string (7)")
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="of the strings (1)")
    parser.add_argument("--shipped", action="store_true", help="make the one beside the demo model again")
    args = parser.parse_args(argv)
    if args.shipped:
        make(WORDS, demo_model(), SHIPPED)
        print(SHIPPED)
        return 0
    if args.words is None or args.output is None:
        raise gharial.BadInput("a list of words and an output are needed", "LIST, --output", remedy="see --help")
    if args.strings < 0 or args.longest < 1:
        raise gharial.BadInput("number is out of range", "--strings, --longest", expected="0 or more, 1 or more")
    make(word_list(args.words), args.model, args.output, args.order, Grammar(args.strings, args.longest, args.seed))
    print(args.output)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"word_ngram: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
