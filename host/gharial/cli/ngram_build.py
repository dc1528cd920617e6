# SPDX-License-Identifier: Apache-2.0
"""`gharial ngram build`: text to a marked n-gram file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from gharial.cli import terminal
from gharial.cli.paths import check_output
from gharial.errors import BadInput
from gharial.files import output_path

if TYPE_CHECKING:
    from gharial.ngram.build import Built

_EPILOG = """\
examples:
  gharial ngram build transcripts.txt more.txt.gz --model model.hw.pt -o words.binary
  gharial ngram build train/manifest.json --model model.hw.pt -o words.binary --order 5 --prune 0,0,1
  gharial ngram build words.arpa --model model.hw.pt -o words.binary --type trie --quantise 8
  gharial ngram build --build-tools

Text files hold a sentence a line (UTF-8, gzip too), manifests are CAIMAN-ASR's; a folder is read by its manifest.json.
The text should be written as the model's transcripts are. It is cut by the model's SentencePiece model and given to
KenLM's lmplz and build_binary, which are looked for in the folder GHARIAL_KENLM, on PATH, and where --build-tools
built them (that needs cmake, g++ and Boost).
"""

_OTHER = "name another file for the text, or leave --arpa out"
_HELP = "see: gharial ngram build --help"


def add(actions: Any) -> None:
    """Add the action to the parser."""
    parser = actions.add_parser(
        "build",
        help="build a file from text",
        description="Build an n-gram over a model's pieces from text, and mark it as made for the model.",
        epilog=_EPILOG,
    )
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="text file, manifest, set, or one ARPA file")
    parser.add_argument(
        "--model", metavar="M", help="checkpoint (.hw.pt), program (.gprog) or SentencePiece model (.model)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="n-gram file to write")
    parser.add_argument("--order", metavar="N", type=int, default=4, help="longest n-gram, 2 to 6 (4)")
    parser.add_argument("--type", choices=("probing", "trie"), default="probing", help="faster, or smaller (probing)")
    parser.add_argument("--quantise", metavar="BITS", type=int, help="bits of a trie's probabilities (not quantised)")
    parser.add_argument("--prune", metavar="N,N,..", help="leave out n-grams of each order seen up to so often (0)")
    parser.add_argument("--lowercase", action="store_true", help="put the text into small letters")
    parser.add_argument("--memory", metavar="SIZE", default="1G", help="memory for sorting, as lmplz takes it (1G)")
    parser.add_argument("--arpa", metavar="FILE", help="keep the n-gram as text too")
    parser.add_argument("--build-tools", action="store_true", help="build lmplz and build_binary first")
    parser.add_argument("--source", metavar="FILE", help="KenLM's source package for --build-tools, else it is fetched")
    parser.add_argument("--json", action="store_true", help="print a JSON object that says what was made")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Build."""
    if args.source is not None and not args.build_tools:
        what = "a source package is for building KenLM's programs"
        raise BadInput(what, "--source", args.source, "--build-tools with it", "add --build-tools, or leave it out")
    if args.build_tools:
        from gharial.ngram.tools import build_tools

        folder = build_tools(args.source, terminal.note)
        if not args.texts:
            terminal.emit_json({"tools": str(folder)}) if args.json else terminal.emit(f"{folder}: lmplz, build_binary")
            return 0
    for option, value in (("TEXT", args.texts), ("--model", args.model), ("--output", args.output)):
        if not value:
            raise BadInput("is needed", option, "none", "it is given", _HELP)
    from gharial.ngram.build import Options, build
    from gharial.ngram.corpus import corpus_files
    from gharial.ngram.inspect import describe
    from gharial.ngram.pieces import sentencepiece_of

    options = Options(args.order, args.type, args.quantise, _counts(args.prune), args.lowercase, args.memory)
    options.check()
    for output in filter(None, (args.output, args.arpa)):
        check_output(output, args.model, *map(str, corpus_files(args.texts)))
    if args.arpa is not None and output_path(args.arpa) == output_path(args.output):
        raise BadInput("the text form would be written over by the binary", "--arpa", args.arpa, "another file", _OTHER)
    sentencepiece = sentencepiece_of(args.model)
    progress = terminal.Progress("bytes of text read", enabled=not args.json)
    try:
        made = build(
            args.texts,
            sentencepiece,
            args.output,
            options,
            arpa=args.arpa,
            read=progress,
            note=lambda text: _note(progress, text),
        )
    finally:
        progress.close()
    if args.json:
        counted = {"sentences": made.sentences, "pieces": made.pieces, "unknown": made.unknown}
        terminal.emit_json(counted | {"discount_fallback": made.fallback} | describe(args.output, sentencepiece))
    else:
        terminal.emit(_summary(args.output, made))
    return 0


def _note(progress: terminal.Progress, text: str) -> None:
    progress.close()
    terminal.note(text)


def _counts(text: str | None) -> tuple[int, ...]:
    try:
        return () if text is None else tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadInput("thresholds are numbers with commas between", "--prune", text, "0,0,1 say", _HELP) from None


def _summary(output: str, made: Built) -> str:
    header = made.file.header
    counts = ", ".join(f"{count:,}" for count in header.counts)
    lines = [f"{output}: {made.file.bytes:,} bytes", f"  order {header.order}: {counts} n-grams, {header.kind}"]
    if made.sentences:
        unknown = f", {made.unknown:,} more not known" if made.unknown else ""
        lines.append(f"  from {made.sentences:,} sentences of {made.pieces:,} pieces{unknown}")
    lines.append(f"  made for SentencePiece model {made.file.mark}")
    return "\n".join(lines)
