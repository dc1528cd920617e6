# SPDX-License-Identifier: Apache-2.0
"""`gharial bench`: measurements."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gharial.cli import terminal
from gharial.errors import BadInput

NAME = "bench"

_EPILOG = """\
examples:
  gharial bench wer --set recordings/
  gharial bench wer --set recordings/ --model model.hw.pt --device emulator:u50 --json
"""

_WER_EPILOG = """\
examples:
  gharial bench wer --set recordings/
  gharial bench wer --set recordings/ --model model.hw.pt --limit 50 --json

A set is a folder with recordings and a manifest.json: [{"transcript": text, "files": [{"fname": name}]}]. The float
model needs PyTorch (pip install gharial[float]).
"""

PLANNED = ("rtl", "capacity", "decode", "server")
"""Benches that the documentation of the whole names, and this version does not have."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(NAME, help="measure: wer", description="Measurements.", epilog=_EPILOG)
    benches = parser.add_subparsers(metavar="BENCH", required=True, parser_class=type(parser))
    wer = benches.add_parser(
        "wer",
        help="word errors of the integer model against the float model",
        description="Word errors of a compiled model on a device, and of the float model in PyTorch, on one set.",
        epilog=_WER_EPILOG,
    )
    wer.add_argument("--set", metavar="DIR", type=Path, required=True, help="folder with recordings and manifest.json")
    wer.add_argument("--model", metavar="M", help="hardware checkpoint (.hw.pt); default: the demo model")
    wer.add_argument("--device", metavar="D", default="emulator", help="device (emulator)")
    wer.add_argument("--limit", metavar="N", type=int, help="only the first N utterances")
    wer.add_argument("--json", action="store_true", help="print a JSON object")
    wer.set_defaults(run=run_wer)


def run_wer(args: argparse.Namespace) -> int:
    """Measure word errors."""
    from gharial.bench.models import measure_wer

    if args.limit is not None and args.limit < 1:
        raise BadInput("number of utterances is out of range", "--limit", args.limit, "1 or more")
    progress = terminal.Progress("compiling the model, recordings measured", enabled=not args.json)
    found = measure_wer(args.set, args.model, args.device, limit=args.limit, progress=progress, note=terminal.note)
    if args.json:
        terminal.emit_json(found)
        return 0
    rows = [
        (f"{found[f'errors_{kind}']} of {found['words']} words", _percent(found[f"wer_{kind}"]), kind)
        for kind in ("float", "int")
    ]
    terminal.emit(f"{found['set']}, {found['model']}, {found['utterances']} utterances")
    for errors, rate, kind in rows:
        terminal.emit(f"  {kind:<6} {errors}, {rate}")
    terminal.emit(f"  texts changed: {found['changed_utterances']}")
    terminal.emit(f"  same class along the float path: {_percent(found['token_agreement'])} of {found['evaluations']}")
    for change in found["changed"]:
        terminal.emit(
            f"  {change['file']}: {change['reference']}\n    float {change['float']}\n    int   {change['int']}"
        )
    return 0


def _percent(fraction: float | None) -> str:
    return "no rate" if fraction is None else f"{100 * fraction:.2f} %"
