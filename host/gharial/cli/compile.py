# SPDX-License-Identifier: Apache-2.0
"""`gharial compile`: a hardware checkpoint to a program for one hardware configuration."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gharial.cli import terminal
from gharial.cli.paths import check_output

if TYPE_CHECKING:
    from gharial.fidelity import Verdict
    from gharial.program import Program

NAME = "compile"

_EPILOG = """\
examples:
  gharial compile model.hw.pt -o model.gprog
  gharial compile model.hw.pt -o model.gprog --config u50 --calibrate recordings/
  gharial compile model.hw.pt -o model.gprog --report quantisation/

Activation ranges are measured on recordings of speech: those of the folder that --calibrate names (WAV, FLAC, OGG or
MP3, some minutes in all, like what the model will hear), else a dozen that ship with the package. A network that takes
vectors made elsewhere needs a folder of such vectors, .npy files (docs/bring_your_lstm.md).

A program whose logits are too far from those of the checkpoint in float is refused; docs/quantisation.md has the bound.
--report tells where the error comes from, layer by layer, in DIR/index.html and DIR/report.json.
int4 weights have 15 steps. They take as many bytes as int8 on this hardware: the option shows what they would cost.
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME,
        help="compile a checkpoint for a hardware configuration",
        description="Quantise a hardware checkpoint and compile it for one hardware configuration.",
        epilog=_EPILOG,
    )
    parser.add_argument("checkpoint", metavar="CKPT", help="hardware checkpoint (.hw.pt)")
    parser.add_argument("-o", "--output", metavar="PROGRAM", required=True, help="program file to write (.gprog)")
    parser.add_argument("--config", metavar="NAME", help="hardware configuration; default: the smallest that holds it")
    parser.add_argument("--calibrate", metavar="DIR", type=Path, help="folder of recordings to measure ranges with")
    parser.add_argument("--weights", choices=("int8", "int4"), default="int8", help="type of the weights (int8)")
    parser.add_argument("--report", metavar="DIR", type=Path, help="write a page about the error of quantising")
    parser.add_argument("--allow-error", action="store_true", help="compile even if the program is far from the model")
    parser.add_argument("--json", action="store_true", help="print a JSON object that says what was made")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compile, write, say what was made."""
    from gharial.isa.configs import config as configuration
    from gharial.model import compile_model
    from gharial.model.ngram import write_embedded
    from gharial.program import describe

    config = configuration(args.config) if args.config is not None else None
    check_output(args.output, args.checkpoint)
    progress = terminal.Progress("calibrating", enabled=not args.json)
    verdicts: list[Verdict] = []
    try:
        program = compile_model(
            args.checkpoint,
            config,
            args.calibrate,
            progress,
            weights=args.weights,
            allow_error=args.allow_error,
            report=args.report,
            judged=verdicts.append,
            note=terminal.note,
        )
    finally:
        progress.close()
    program.write(args.output)
    ngram = write_embedded(args.checkpoint, program, args.output, terminal.note)
    facts = describe(args.output) | {"ngram": None if ngram is None else str(ngram)}
    facts["fidelity"] = verdicts[0].as_json()
    if args.json:
        terminal.emit_json(facts)
    else:
        terminal.emit(_summary(args.output, program, facts, verdicts[0]))
    return 0


def _summary(output: str, program: Program, facts: dict[str, Any], verdict: Verdict) -> str:
    model, config = facts["model"], facts["config"]
    lines = [
        f"{output}: {facts['bytes']:,} bytes",
        f"  model {model['name']}, {model['parameters']:,} parameters, for {config['name']} ({config['stands_for']})",
        "  space             bytes    capacity",
    ]
    for name, entry in facts["sections"].items():
        if entry["capacity"]:
            lines.append(f"  {name:<12} {entry['bytes']:>10,}  {entry['capacity']:>10,}  {entry['percent']:5.1f} %")
    slots = ", ".join(f"{entry['slots']:,} {kind}" for kind, entry in facts["slots"].items())
    lines.append(f"  state slots: {slots}")
    lines.append(f"  against float: {verdict}")
    if facts["ngram"] is not None:
        lines.append(f"  n-gram of the checkpoint: {facts['ngram']}")
    return "\n".join(lines)
