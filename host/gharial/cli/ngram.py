# SPDX-License-Identifier: Apache-2.0
"""`gharial ngram`: n-gram files marked, checked, told, built, weighed."""

from __future__ import annotations

import argparse
from typing import Any

from gharial.cli import terminal
from gharial.cli.ngram_build import add as add_build
from gharial.cli.ngram_sweep import add as add_sweep

NAME = "ngram"

_EPILOG = """\
examples:
  gharial ngram info words.binary
  gharial ngram check words.binary --model model.hw.pt
  gharial ngram append words.binary --model model.hw.pt
  gharial ngram build transcripts.txt --model model.hw.pt -o words.binary
  gharial ngram sweep --set dev/ --model model.hw.pt --ngram words.binary
"""

_APPEND_EPILOG = """\
examples:
  gharial ngram append words.binary --model model.hw.pt
  gharial ngram append words.binary --model tokens.model

The mark says which SentencePiece model an n-gram was made for; KenLM loads the file as before. A file that has the
same mark already is left as it is.
"""

_CHECK_EPILOG = """\
examples:
  gharial ngram check words.binary --model model.hw.pt
  gharial ngram check words.binary --model model.gprog --json

exit codes: 0 it is for this model, 1 it does not say whom it is for, 2 it is for another, or cannot be used
"""

_INFO_EPILOG = """\
examples:
  gharial ngram info words.binary
  gharial ngram info words.binary --model model.hw.pt --json

exit codes: 0 the file is good, 2 it is not
"""

_MODEL = "checkpoint (.hw.pt), program (.gprog) or SentencePiece model (.model)"
_NOT_SAID = 1


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME,
        help="mark, check, describe, build and weigh n-gram files",
        description="N-gram files for beam search: KenLM binaries with a mark of the model that they were made for.",
        epilog=_EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=type(parser))
    append = actions.add_parser(
        "append",
        help="mark a file as made for a model",
        description="Mark an n-gram file as made for a model's SentencePiece model.",
        epilog=_APPEND_EPILOG,
    )
    append.add_argument("file", metavar="FILE", help="KenLM binary")
    append.add_argument("--model", metavar="M", required=True, help=_MODEL)
    append.add_argument(
        "--force", action="store_true", help="replace another model's mark, or bytes that are not known"
    )
    append.add_argument("--json", action="store_true", help="print a JSON object")
    append.set_defaults(run=run_append)
    check = actions.add_parser(
        "check",
        help="tell whether a file is for a model",
        description="Tell whether an n-gram file was made for a model's SentencePiece model.",
        epilog=_CHECK_EPILOG,
    )
    check.add_argument("file", metavar="FILE", help="n-gram file")
    check.add_argument("--model", metavar="M", required=True, help=_MODEL)
    check.add_argument("--json", action="store_true", help="print a JSON object")
    check.set_defaults(run=run_check)
    info = actions.add_parser(
        "info",
        help="tell what a file is",
        description="Tell what n-gram files are, and whether they are good.",
        epilog=_INFO_EPILOG,
    )
    info.add_argument("files", metavar="FILE", nargs="+", help="n-gram file")
    info.add_argument("--model", metavar="M", help=_MODEL)
    info.add_argument("--json", action="store_true", help="print one JSON object a file, each on a line")
    info.set_defaults(run=run_info)
    add_build(actions)
    add_sweep(actions)


def run_append(args: argparse.Namespace) -> int:
    """Mark a file."""
    from gharial.ngram import append_mark, read_file
    from gharial.ngram.pieces import sentencepiece_of

    sentencepiece = sentencepiece_of(args.model)
    written = append_mark(args.file, sentencepiece, force=args.force)
    share = _share(args.file, sentencepiece)
    if written and share is not None and 2 * share[0] < share[1]:
        terminal.note(f"{args.file}: only {_words(share)}; was it made with another one?")
    mark = read_file(args.file).mark
    if args.json:
        terminal.emit_json({"file": args.file, "mark": str(mark), "written": written})
    else:
        terminal.emit(f"{args.file}: {'marked' if written else 'marked already'}, {mark}")
    return 0


def run_check(args: argparse.Namespace) -> int:
    """Hold a file against a model."""
    from gharial.errors import BadInput
    from gharial.ngram import check_file, read_file
    from gharial.ngram.pieces import sentencepiece_of
    from gharial.ngram.trailer import digest_text

    sentencepiece = sentencepiece_of(args.model)
    try:
        mark = check_file(args.file, sentencepiece, terminal.note).mark
        result = "not marked" if mark is None else "same"
    except BadInput:
        if not args.json:
            raise
        mark, result = read_file(args.file).mark, "other"  # raises again where the file cannot be used
    if args.json:
        shown = None if mark is None else str(mark)
        terminal.emit_json({"file": args.file, "result": result, "mark": shown, "model": digest_text(sentencepiece)})
    elif mark is not None:
        terminal.emit(f"{args.file}: made for this model's SentencePiece model, {mark}")
    else:
        terminal.emit(f"{args.file}: not marked; {_words(_share(args.file, sentencepiece))}")
    return {"same": 0, "not marked": _NOT_SAID, "other": BadInput.exit_code}[result]


def _share(file: str, sentencepiece: bytes) -> tuple[int, int] | None:
    from gharial.checkpoint.sentencepiece_model import read_pieces
    from gharial.ngram import read_file
    from gharial.ngram.inspect import known_share

    return known_share(read_file(file), [piece.text for piece in read_pieces(sentencepiece, file)])


def _words(share: tuple[int, int] | None) -> str:
    """What a file's words say about whom it is for."""
    if share is None:
        return "it does not hold its words"
    return f"{share[0]:,} of its {share[1]:,} words are pieces of this model"


def run_info(args: argparse.Namespace) -> int:
    """Describe files."""
    from gharial.errors import BadInput
    from gharial.ngram.inspect import describe, format_description
    from gharial.ngram.pieces import sentencepiece_of

    sentencepiece = sentencepiece_of(args.model) if args.model is not None else None
    good = True
    for file in args.files:
        facts = describe(file, sentencepiece)
        good = good and facts["good"]
        if args.json:
            terminal.emit_json(facts)
        else:
            terminal.emit(format_description(facts))
    return 0 if good else BadInput.exit_code
