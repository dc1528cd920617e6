# SPDX-License-Identifier: Apache-2.0
"""`gharial inspect`: what a file is, good or bad."""

from __future__ import annotations

import argparse
from typing import Any

from gharial.cli import terminal

NAME = "inspect"

_EPILOG = """\
examples:
  gharial inspect model.hw.pt
  gharial inspect --json model.hw.pt model.gprog | jq .good
  gharial inspect --instructions model.gprog

Checkpoints (hardware and training), programs, n-grams, SentencePiece models, training configurations, traces, saved
slots and recordings are told in full; pointers of Git LFS and git-annex, web pages and bitstreams by what they are. Of
a model it tells on which hardware configurations it runs, and what it takes there.

exit codes: 0 all files are good, 2 one is not
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME,
        help="tell what a file is, good or bad: checkpoint, program, n-gram, recording, ...",
        description="Tell what files are and whether they are good, and of models where they run.",
        epilog=_EPILOG,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="files of any kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object a file, each on a line")
    parser.add_argument("--instructions", action="store_true", help="list the instructions of programs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Describe each file."""
    from gharial.errors import BadInput
    from gharial.inspect import describe

    good = True
    for file in args.files:
        found = describe(file, instructions=args.instructions)
        good = good and found.good
        if args.json:
            terminal.emit_json(found.facts)
        else:
            terminal.emit(found.text)
    return 0 if good else BadInput.exit_code
