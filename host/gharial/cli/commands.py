# SPDX-License-Identifier: Apache-2.0
"""All commands, and how a command line is taken apart. Imports nothing heavy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from gharial import __version__
from gharial.cli import (
    bench,
    compile,
    devices,
    export,
    flash,
    inspect,
    listen,
    ngram,
    serve,
    terminal,
    trace,
    transcribe,
)
from gharial.errors import BadInput

_COMMANDS = (transcribe, export, compile, inspect, ngram, trace, bench, serve, listen, devices, flash)


_EPILOG = """\
examples:
  gharial transcribe talk.wav
  gharial transcribe --json *.flac > transcripts.jsonl
  gharial compile model.hw.pt -o model.gprog --config u50
  gharial transcribe --model model.gprog talk.wav

exit codes: 0 done, 1 failed, 2 bad input or usage
"""


class Parser(argparse.ArgumentParser):
    """argparse with errors in two lines, and examples that keep their line ends."""

    def __init__(self, **options: object) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # an option that is added later must not change what a script means
            **options,  # type: ignore[arg-type]
        )

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, and exit."""
        terminal.say(f"{self.prog}: {message}\nsee: {self.prog} --help")
        raise SystemExit(BadInput.exit_code)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options of a command line; `run` among them is the function that carries it out.

    Raises:
        SystemExit: wrong usage, or help was asked for.
    """
    words = hyphenated(argv)
    return _parser().parse_args(trace.split_diff(words))


def hyphenated(argv: Sequence[str]) -> list[str]:
    """The words with the underscores in the names of long options made hyphens: both are accepted."""
    words: list[str] = []
    for index, word in enumerate(argv):
        if word == "--":
            return [*words, *argv[index:]]
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            word = name.replace("_", "-") + equals + value
        words.append(word)
    return words


def _parser() -> Parser:
    parser = Parser(
        prog="gharial",
        description="Speech recognition on the Gharial accelerator: emulated, or on a device.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"gharial {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for command in _COMMANDS:
        command.add(commands)
    return parser
