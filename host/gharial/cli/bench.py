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
  gharial bench rtl --config ecp5-85f
"""

_WER_EPILOG = """\
examples:
  gharial bench wer --set recordings/
  gharial bench wer --set recordings/ --model model.hw.pt --limit 50 --json

A set is a folder with recordings and a manifest.json: [{"transcript": text, "files": [{"fname": name}]}]. The float
model needs PyTorch (pip install gharial[float]).
"""

_RTL_EPILOG = """\
examples:
  gharial bench rtl --config ecp5-85f
  gharial bench rtl --config ecp5-85f --model model.hw.pt --audio talk.wav --json

Runs the RTL itself, compiled on first use (needs a source checkout, and once: make sim). Utilisation is the share of
the array's multiplications that the model's shapes ask for, over all clocks from the first command to the last result.
Tokens, logits and log-sum-exps are checked against the emulator; exit code 1 if one differs.
"""

PLANNED = ("capacity", "decode", "server")
"""Benches that the documentation of the whole names, and this version does not have."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(NAME, help="measure: wer, rtl", description="Measurements.", epilog=_EPILOG)
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
    rtl = benches.add_parser(
        "rtl",
        help="clocks and utilisation of the RTL in simulation",
        description="Clocks that the RTL takes for an utterance, where they go, and how well the array is used.",
        epilog=_RTL_EPILOG,
    )
    rtl.add_argument("--config", metavar="C", required=True, help="hardware configuration")
    rtl.add_argument("--model", metavar="M", help="checkpoint (.hw.pt) or program (.gprog); default: the demo model")
    rtl.add_argument("--audio", metavar="FILE", help="recording; default: a shipped one")
    rtl.add_argument("--json", action="store_true", help="print a JSON object")
    rtl.set_defaults(run=run_rtl)


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


def run_rtl(args: argparse.Namespace) -> int:
    """Measure the RTL."""
    from gharial.bench.rtl import bench_rtl

    progress = terminal.Progress("compiling the model, recordings measured", enabled=not args.json)
    try:
        found = bench_rtl(args.config, args.model, args.audio, progress=progress, note=terminal.note)
    finally:
        progress.close()
    if args.json:
        terminal.emit_json(found)
        return 0
    cycles = found["cycles"]
    terminal.emit(f"{found['config']}, {found['model']}: {found['workload']}")
    terminal.emit(f"  text         {found['text']}")
    terminal.emit(f"  {found['n_encode']} encoder steps, {found['n_pred']} prediction steps, {found['n_joint']} joints")
    terminal.emit(f"  clocks       {cycles:>9,}")
    rows = {"multiplying": found["active"], **found["stalls"]}
    for cause, clocks in rows.items():
        if clocks:
            terminal.emit(f"    {cause:<13}{clocks:>7,}  {_percent(clocks / cycles)}")
    terminal.emit(f"  utilisation  {_percent(found['utilisation']):>9}")
    terminal.emit(f"  encoder only {_percent(found['encode_utilisation']):>9}")
    terminal.emit("  tokens, logits and log-sum-exps are those of the emulator")
    return 0


def _percent(fraction: float | None) -> str:
    return "no rate" if fraction is None else f"{100 * fraction:.2f} %"
