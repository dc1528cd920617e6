# SPDX-License-Identifier: Apache-2.0
"""`gharial export`: a training checkpoint and its configuration to a hardware checkpoint."""

from __future__ import annotations

import argparse
from typing import Any

from gharial.cli import terminal
from gharial.cli.paths import check_output

NAME = "export"

_EPILOG = """\
examples:
  gharial export --ckpt RNN-T_best_checkpoint.pt --config base-8703sp_run.yaml -o base.hw.pt
  gharial export --ckpt best.pt --config run.yaml -o base.hw.pt --skip-ngram
  gharial export --ckpt best.pt --config run.yaml -o base.hw.pt --override-ngram-path other/ngram.binary
  gharial export --ckpt best.pt --config run.yaml -o base.hw.pt --skip-ngram \\
      --sentpiece-model spm8703.model --melmeans stats/melmeans.pt --melvars stats/melvars.pt

Taken are the averaged (EMA) weights, the mel statistics, the SentencePiece model and the configuration that inference
needs. The n-gram that the configuration names is checked and its path printed: it stays where it is.
Underscores in the names of options are accepted too: --output_ckpt, --skip_ngram.
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME,
        help="make a hardware checkpoint of a training checkpoint",
        description="Make a hardware checkpoint (.hw.pt) of a training checkpoint of CAIMAN-ASR.",
        epilog=_EPILOG,
    )
    add_option = parser.add_argument
    add_option("--ckpt", metavar="TRAIN", required=True, help="training checkpoint (.pt)")
    add_option("--config", metavar="YAML", required=True, help="configuration that it was trained with")
    add_option("-o", "--output", "--output-ckpt", metavar="OUT", required=True, help="file to write (.hw.pt)")
    add_option("--skip-ngram", action="store_true", help="leave the n-gram out")
    add_option("--override-ngram-path", metavar="FILE", help="n-gram in place of the configuration's")
    add_option("--sentpiece-model", metavar="FILE", help="SentencePiece model in place of the configuration's")
    add_option("--melmeans", metavar="FILE", help="means of the mel bins in place of the configuration's")
    add_option("--melvars", metavar="FILE", help="variances of the mel bins, likewise")
    add_option("--melalpha", metavar="RATE", type=float, help="for a model of 1.8 or before: rate of its normalisation")
    add_option("--valid-prefix", metavar="REGEX", help="the prefixes seen in training, where nothing else states them")
    add_option("--default-prefix", metavar="TEXT", help="the prefix that is used when none is asked for")
    add_option(
        "--hard-activations",
        action=argparse.BooleanOptionalAction,
        help="for a configuration that asks for hard activations: whether the training followed it",
    )
    add_option("--json", action="store_true", help="print a JSON object that says what was made")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Export, say what was made."""
    from gharial.checkpoint import describe, format_description
    from gharial.errors import BadInput
    from gharial.export import export_checkpoint

    alpha = args.melalpha
    if alpha is not None and not 0.0 <= alpha < 1.0:
        usual = "0.001 is what CAIMAN-ASR exported up to 1.8"
        raise BadInput("this is no rate", "--melalpha", alpha, "0 or more and below 1", usual)
    check_output(args.output, args.ckpt, args.config)
    exported = export_checkpoint(
        args.ckpt,
        args.config,
        args.output,
        skip_ngram=args.skip_ngram,
        override_ngram_path=args.override_ngram_path,
        sentencepiece=args.sentpiece_model,
        melmeans=args.melmeans,
        melvars=args.melvars,
        melalpha=alpha,
        valid_prefix=args.valid_prefix,
        default_prefix=args.default_prefix,
        hard_activations=args.hard_activations,
    )
    for note in exported.notes:
        terminal.note(note)
    facts = describe(exported.path)
    if args.json:
        terminal.emit_json(facts | {"ngram_path": exported.ngram_path})
    else:
        ngram = exported.ngram_path or "left out"
        terminal.emit(f"{format_description(facts)}\n  n-gram to use with it: {ngram}")
    return 0 if facts["good"] else BadInput.exit_code
