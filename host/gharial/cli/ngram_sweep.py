# SPDX-License-Identifier: Apache-2.0
"""`gharial ngram sweep`: the weight of an n-gram that suits a set."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gharial.cli import terminal
from gharial.cli.decoding import add_decoding, decoding
from gharial.cli.paths import check_output
from gharial.cli.rates import difference, interval
from gharial.errors import BadInput

_EPILOG = """\
examples:
  gharial ngram sweep --set dev/ --model model.hw.pt --ngram words.binary --plot sweep.svg
  gharial ngram sweep --set dev/ --ngram words.binary --scales 0,0.05,0.1 --json
  gharial ngram sweep --set dev/ --ngram words.binary --beam-width 8 --limit 100

Decodes the set with each scale of a grid (0 to 0.3, and on while it gets better), then with scales around the best
one; 12 runs or so. Rates come with 95 % intervals from sets drawn of this one's utterances. A set is a folder with
recordings and a manifest.json, as for gharial bench wer: not the one whose word errors are reported afterwards.
Take the scale with --ngram-scale, or put it into the configuration that gharial export reads, as scale_factor.
"""

_HELP = "see: gharial ngram sweep --help"


def add(actions: Any) -> None:
    """Add the action to the parser."""
    parser = actions.add_parser(
        "sweep",
        help="find the weight of a file on a set",
        usage="%(prog)s --set DIR [OPTION]...",
        description="Find the scale of an n-gram on a set: word error rate over the scale, with intervals.",
        epilog=_EPILOG,
    )
    parser.add_argument("--set", metavar="DIR", type=Path, required=True, help="folder with recordings and manifest")
    parser.add_argument("--model", metavar="M", help="checkpoint (.hw.pt) or program (.gprog); default: the demo model")
    parser.add_argument("--device", metavar="D", default="emulator", help="device (emulator)")
    parser.add_argument("--scales", metavar="X,X,..", help="exactly these (0,0.05,.. to 0.3, and around the best one)")
    parser.add_argument("--refine", metavar="N", type=int, help="times that steps around the best are halved (2)")
    parser.add_argument("--limit", metavar="N", type=int, help="only the first N utterances")
    parser.add_argument("--plot", metavar="FILE", help="draw rate over scale: .svg, .png or .pdf")
    parser.add_argument("--resamples", metavar="N", type=int, default=10_000, help="sets drawn for intervals (10000)")
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="of the draws (1)")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_decoding(parser, decoder="beam", without=("alternatives", "ngram_scale"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Sweep."""
    from gharial.bench import sweep_plot
    from gharial.bench.sweep import GRID, REFINEMENTS, check_grid

    how = decoding(args)
    if how.decoder != "beam" or how.ngram is False:
        option, given = ("--decoder", how.decoder) if how.decoder != "beam" else ("--ngram", "none")
        raise BadInput(
            "an n-gram is weighed by beam search alone", option, given, "beam, with an n-gram", "leave it out"
        )
    for name, least, most in (("limit", 1, None), ("resamples", 100, 10_000_000), ("refine", 0, 10), ("seed", 0, None)):
        value = getattr(args, name)
        if value is not None and (value < least or (most is not None and value > most)):
            expected = f"{least} or more" if most is None else f"{least} to {most}"
            raise BadInput("number is out of range", f"--{name}", value, expected, _HELP)
    grid = GRID if args.scales is None else check_grid(_numbers(args.scales))
    refinements = args.refine if args.refine is not None else REFINEMENTS if args.scales is None else 0
    if args.plot is not None:
        check_output(args.plot, str(args.set / "manifest.json"), *filter(None, (args.model, how.ngram)))
        sweep_plot.check(args.plot)
    from gharial.bench.sweep_set import sweep_set

    compiling = terminal.Progress("compiling the model, recordings measured", enabled=not args.json)
    progress = terminal.Progress("recordings decoded", enabled=not args.json)
    try:
        with how.named():
            found = sweep_set(
                args.set,
                args.model,
                args.device,
                ngram=how.ngram or None,
                options=how.options,
                streams=how.streams,
                grid=grid,
                refinements=refinements,
                limit=args.limit,
                resamples=args.resamples,
                seed=args.seed,
                compiling=compiling,
                progress=progress,
                note=terminal.note,
            )
    finally:
        compiling.close()
        progress.close()
    if args.plot is not None:
        sweep_plot.write(args.plot, found, f"{found['set']}, {found['model']}, beam {found['beam']}")
    if args.json:
        terminal.emit_json(found)
    else:
        terminal.emit(_told(found))
    return 0


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadInput(
            "scales are numbers with commas between",
            "--scales",
            text,
            "0,0.05,0.1 say",
            "see: gharial ngram sweep --help",
        ) from None


def _told(found: dict[str, Any]) -> str:
    """The sweep as text."""
    best, points = found["best"], found["points"]
    lines = [
        f"{found['set']}, {found['model']}, beam {found['beam']}, {found['ngram']}: {found['utterances']} utterances, "
        f"{found['words']} words"
    ]
    for name, row in [("greedy", found["greedy"]), *((f"{point['scale']:g}", point) for point in points)]:
        mark = "  best" if row.get("scale") == best["scale"] else ""
        rate = f"{100 * row['wer']:.2f} %"
        lines.append(f"  {name:<8} {row['errors']:>6} errors  {rate:>8}{interval(row['ci'])}{mark}")
    low, high = (f"{scale:g}" for scale in best["scale_ci"])
    lines.append(f"recommended scale {best['scale']:g} (95 %: {low} to {high})")
    for key, name in (("against_none", "no n-gram"), ("against_greedy", "greedy decoding")):
        if best[key] is not None:
            lines.append(f"  against {name}: {difference(best[key])}")
    first, last = found["alike"]
    if first < last:
        lines.append(f"  this set does not tell scales {first:g} to {last:g} apart")
    return "\n".join(lines)
