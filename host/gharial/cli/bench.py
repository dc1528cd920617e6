# SPDX-License-Identifier: Apache-2.0
"""`gharial bench`: measurements."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gharial.cli import bench_server, terminal
from gharial.cli.decoding import add_decoding, decoding
from gharial.cli.rates import difference, interval
from gharial.errors import BadInput

if TYPE_CHECKING:
    from gharial.bench.observed import Observed

NAME = "bench"

_EPILOG = """\
examples:
  gharial bench wer --set recordings/
  gharial bench wer --set recordings/ --model model.hw.pt --device emulator:u50 --json
  gharial bench rtl --config ecp5-85f
  gharial bench capacity --config u55c --model base --streams 2000
  gharial bench decode --vocab 8704 --beam 4
  gharial bench server --streams 100 --set recordings/
"""

_DECODE_EPILOG = """\
examples:
  gharial bench decode --vocab 8704 --beam 4
  gharial bench decode --vocab 8704 --beam 4 --ngram pieces.bin --json

The beam search alone, on one core: results come from a seeded table and cost nothing, an n-gram is always on. Without
--ngram it is a seeded 4-gram of 2 M entries over the pieces, made and kept on first use (needs kenlm: pip install
gharial[ngram]). What is counted is told in docs/decoding.md.
"""

_CAPACITY_EPILOG = """\
examples:
  gharial bench capacity --config u55c --model base --streams 2000
  gharial bench capacity --config u50 --model base --streams 1000 --decoder beam4 --limit-ms 10 --json

An event simulation of live streams with random phases, fed with clocks that were measured on the RTL; what it counts
is told in docs/performance.md.
"""

_WER_EPILOG = """\
examples:
  gharial bench wer --set recordings/
  gharial bench wer --set recordings/ --model model.hw.pt --limit 50 --json
  gharial bench wer --set recordings/ --decoder beam --ngram words.ngram --ngram-scale 0.1

Both models are decoded by the same search; with a beam search, greedy decoding is told beside it. Rates come with 95 %
intervals from sets drawn of this one's utterances (docs/accuracy.md).

A set is a folder with recordings and a manifest.json: [{"transcript": text, "files": [{"fname": name}]}]. The float
model needs PyTorch (pip install gharial[float]).
"""

_RTL_EPILOG = """\
examples:
  gharial bench rtl --config ecp5-85f
  gharial bench rtl --config ecp5-85f --model model.hw.pt --audio talk.wav --json
  gharial bench rtl --config u50 --model base --batch 16 --workload mix --batches 24
  gharial bench rtl --config kv260 --model testing --batches 4 --report page/

Runs the RTL itself, compiled on first use (needs a source checkout, and once: make sim). Utilisation is the share of
the array's multiplications that the model's shapes ask for, over all clocks from the first command to the last result.
With weights on chip one recording is decoded; with weights in memory many streams of random features go through in
batches, of a model or of the shapes base, large or testing with random weights. What comes out is checked against the
emulator; exit code 1 if anything differs. --report writes DIR/index.html, one file to look at: figures, roofline,
what each unit does over the clocks of the run, and for each layer the clocks in which the array stood still, and why
(needs Matplotlib: pip install gharial[plots]).
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME, help="measure: wer, rtl, capacity, decode, server", description="Measurements.", epilog=_EPILOG
    )
    benches = parser.add_subparsers(metavar="BENCH", required=True, parser_class=type(parser))
    wer = benches.add_parser(
        "wer",
        help="word errors of the integer model against the float model",
        usage="%(prog)s --set DIR [OPTION]...",
        description="Word errors of a compiled model on a device, and of the float model in PyTorch, on one set, with "
        "intervals; greedily or by beam search.",
        epilog=_WER_EPILOG,
    )
    wer.add_argument("--set", metavar="DIR", type=Path, required=True, help="folder with recordings and manifest.json")
    wer.add_argument("--model", metavar="M", help="hardware checkpoint (.hw.pt); default: the demo model")
    wer.add_argument("--device", metavar="D", default="emulator", help="device (emulator)")
    wer.add_argument("--limit", metavar="N", type=int, help="only the first N utterances")
    wer.add_argument("--json", action="store_true", help="print a JSON object")
    # Utterances are decoded whole: what ends or divides a stream would make another comparison of it.
    add_decoding(wer, without=("alternatives", "silence", "state_resets"))
    wer.set_defaults(run=run_wer)
    rtl = benches.add_parser(
        "rtl",
        help="clocks and utilisation of the RTL in simulation",
        description="Clocks that the RTL takes for an utterance, where they go, and how well the array is used.",
        epilog=_RTL_EPILOG,
    )
    rtl.add_argument("--config", metavar="C", required=True, help="hardware configuration")
    rtl.add_argument("--model", metavar="M", help="checkpoint (.hw.pt), program (.gprog), or base, large, testing")
    rtl.add_argument("--audio", metavar="FILE", help="recording (weights on chip); default: a shipped one")
    rtl.add_argument("--batch", metavar="B", type=int, help="entries of a command (weights in memory)")
    rtl.add_argument(
        "--workload",
        metavar="W",
        help="encode; mix: and what the steps leave to decode; or ragged (encode)",
    )
    rtl.add_argument("--batches", metavar="N", type=int, help="encoder batches to run (12; mix: 40)")
    rtl.add_argument("--seed", metavar="S", type=int, help="of random weights, features and tokens (1)")
    rtl.add_argument("--report", metavar="DIR", help="write a page with plots to DIR/index.html, as in --report page/")
    rtl.add_argument("--json", action="store_true", help="print a JSON object")
    rtl.set_defaults(run=run_rtl)
    capacity = benches.add_parser(
        "capacity",
        help="live streams that a device keeps up with",
        description="Compute latency of live streams on a device, and the most streams under a limit.",
        epilog=_CAPACITY_EPILOG,
    )
    capacity.add_argument("--config", metavar="C", required=True, help="hardware configuration")
    capacity.add_argument("--model", metavar="M", default="base", help="model whose clocks were measured (base)")
    capacity.add_argument("--streams", metavar="N", type=int, required=True, help="live streams")
    capacity.add_argument("--decoder", metavar="D", default="greedy", help="greedy or beam4 (greedy)")
    capacity.add_argument("--limit-ms", metavar="MS", type=float, help="99th percentile that counts as keeping up")
    capacity.add_argument("--turnaround-us", metavar="US", type=float, default=50.0, help="of the host a round (50)")
    capacity.add_argument("--seed", metavar="S", type=int, default=1, help="of phases and tokens (1)")
    capacity.add_argument("--json", action="store_true", help="print a JSON object")
    capacity.set_defaults(run=run_capacity)
    decode = benches.add_parser(
        "decode",
        help="streams that the beam search keeps up with",
        description="Speed of the beam search on one core, in live streams, and what a batch of streams waits for it.",
        epilog=_DECODE_EPILOG,
    )
    decode.add_argument("--vocab", metavar="V", type=int, default=8704, help="classes, blank included (8704)")
    decode.add_argument("--beam", metavar="W", type=int, default=4, help="hypotheses of a stream (4)")
    decode.add_argument("--ngram", metavar="FILE", help="KenLM file; default: a seeded one")
    decode.add_argument("--batch", metavar="B", type=int, default=16, help="streams of a batch (16)")
    decode.add_argument("--streams", metavar="N", type=int, default=512, help="streams to run (512)")
    decode.add_argument("--steps", metavar="N", type=int, default=200, help="steps of each (200)")
    decode.add_argument("--seed", metavar="S", type=int, default=1, help="of results, pieces and n-gram (1)")
    decode.add_argument("--json", action="store_true", help="print a JSON object")
    decode.set_defaults(run=run_decode)
    bench_server.add(benches)


def run_wer(args: argparse.Namespace) -> int:
    """Measure word errors."""
    from gharial.bench.models import measure_wer

    if args.limit is not None and args.limit < 1:
        raise BadInput(
            "number of utterances is out of range", "--limit", args.limit, "1 or more", "leave it out for all"
        )
    how = decoding(args)
    progress = terminal.Progress("compiling the model, recordings measured", enabled=not args.json)
    with how.named():
        found = measure_wer(
            args.set,
            args.model,
            args.device,
            decoder=how.decoder,
            options=how.options,
            ngram=how.ngram,
            keywords=how.keywords,
            keyword_file=how.keyword_file,
            prefix=how.prefix,
            eos_mode=how.eos_mode,
            limit=args.limit,
            progress=progress,
            note=terminal.note,
        )
    if args.json:
        terminal.emit_json(found)
        return 0
    terminal.emit(f"{found['set']}, {found['model']}, {found['utterances']} utterances{_decoder(found)}")
    for kind in ("float", "int"):
        errors = f"{found[f'errors_{kind}']} of {found['words']} words, {_percent(found[f'wer_{kind}'])}"
        terminal.emit(f"  {kind:<6} {errors}{interval(found['wer_ci'][kind])}")
        if "greedy" in found:
            greedy, against = found["greedy"], found["against_greedy"][kind]
            apart = "" if against is None else f": {difference(against)}"
            terminal.emit(f"         greedy {greedy[f'errors_{kind}']}, {_percent(greedy[f'wer_{kind}'])}{apart}")
    terminal.emit(f"  texts changed: {found['changed_utterances']}")
    terminal.emit(f"  same class along the float path: {_percent(found['token_agreement'])} of {found['evaluations']}")
    for change in found["changed"]:
        terminal.emit(
            f"  {change['file']}: {change['reference']}\n    float {change['float']}\n    int   {change['int']}"
        )
    return 0


def _decoder(found: dict[str, Any]) -> str:
    """What decoded, behind the headline."""
    if found["decoder"] == "greedy":
        return ""
    ngram = "" if found["ngram"] is None else f", {found['ngram']} times {found['ngram_scale']:g}"
    return f", beam {found['beam']}{ngram}"


def run_rtl(args: argparse.Namespace) -> int:
    """Measure the RTL."""
    from gharial.bench import report
    from gharial.bench.rtl import bench_rtl
    from gharial.bench.rtl_streams import bench_streams
    from gharial.isa.configs import config

    chosen = config(args.config)
    streams = {key: getattr(args, key) for key in ("batch", "workload", "batches", "seed")}
    given = {key: value for key, value in streams.items() if value is not None}
    if chosen.in_memory and args.audio is not None:
        raise BadInput(
            "a recording is for configurations with weights on chip",
            "--audio",
            args.audio,
            "--batch and --workload",
            "leave it out, or name another --config",
        )
    if not chosen.in_memory and given:
        key = next(iter(given))
        raise BadInput(
            "this is for configurations with weights in memory",
            f"--{key}",
            given[key],
            "--audio",
            "leave it out, or name another --config",
        )
    observed: list[Observed] = []
    observe = None
    if args.report is not None:
        report.check(args.report)
        observe = observed.append
    compiling = terminal.Progress("compiling the model, recordings measured", enabled=not args.json)
    clocks = terminal.Progress("clocks simulated")
    try:
        if chosen.in_memory:
            found = bench_streams(chosen, args.model, progress=clocks, note=terminal.note, observe=observe, **given)
        else:
            found = bench_rtl(
                args.config,
                args.model,
                args.audio,
                progress=compiling,
                note=terminal.note,
                clocks=clocks,
                observe=observe,
            )
    finally:
        compiling.close()
        clocks.close()
    if observed:
        terminal.say(f"report: {report.write(args.report, found, observed[0])}")
    if args.json:
        terminal.emit_json(found)
        return 0
    _tell(found)
    return 0


def _tell(found: dict[str, Any]) -> None:
    cycles = found["cycles"]
    terminal.emit(f"{found['config']}, {found['model']}: {found['workload']}, batch {found['batch']}")
    if "text" in found:
        terminal.emit(f"  text         {found['text']}")
    terminal.emit(f"  {found['n_encode']} encoder steps, {found['n_pred']} prediction steps, {found['n_joint']} joints")
    terminal.emit(f"  clocks       {cycles:>11,}")
    rows = {"multiplying": found["active"], **found["stalls"]}
    for cause, clocks in rows.items():
        if clocks:
            terminal.emit(f"    {cause:<13}{clocks:>9,}  {_percent(clocks / cycles)}")
    terminal.emit(f"  utilisation  {_percent(found['utilisation']):>9}")
    terminal.emit(f"  encoder only {_percent(found['encode_utilisation']):>9}")
    if found["linear_read_bytes_per_cycle"]:
        rate = found["bytes_read"] / cycles
        linear = found["linear_read_bytes_per_cycle"]
        terminal.emit(f"  memory       {rate:.1f} bytes a clock read, {linear:.1f} by a plain linear read")
    terminal.emit(f"  roofline     {found['roofline_ratio']:.3f} times the clocks that array and memory allow")
    terminal.emit("  what comes out is what the emulator gives")


def run_capacity(args: argparse.Namespace) -> int:
    """Simulate live streams."""
    from gharial.bench.capacity import bench_capacity
    from gharial.isa.configs import config

    progress = terminal.Progress("loads simulated", enabled=not args.json)
    try:
        found = bench_capacity(
            config(args.config),
            args.model,
            args.streams,
            decoder=args.decoder,
            limit_ms=args.limit_ms,
            turnaround_us=args.turnaround_us,
            seed=args.seed,
            progress=progress,
        )
    finally:
        progress.close()
    if args.json:
        terminal.emit_json(found)
        return 0
    terminal.emit(f"{found['config']}, {found['model']}, {found['decoder']}: {found['streams']} live streams")
    if found["cl99_ms"] is None:
        terminal.emit("  the device does not keep up")
    else:
        terminal.emit(f"  compute latency {found['cl50_ms']:.2f} ms (median), {found['cl99_ms']:.2f} ms (99 %)")
    terminal.emit(f"  array at work   {_percent(found['load'])}")
    terminal.emit(
        f"  most streams    {found['max_streams']} with a 99th percentile of {found['limit_ms']:g} ms or less"
    )
    return 0


def run_decode(args: argparse.Namespace) -> int:
    """Measure the beam search."""
    from gharial.bench.decode import bench_decode

    found = bench_decode(
        args.vocab,
        args.beam,
        args.ngram,
        batch=args.batch,
        streams=args.streams,
        steps=args.steps,
        seed=args.seed,
        note=terminal.note,
    )
    if args.json:
        terminal.emit_json(found)
        return 0
    terminal.emit(f"beam {found['beam']} over {found['vocab']} classes, n-gram {found['ngram']}, one core")
    terminal.emit(f"  streams         {found['streams_per_core']} in real time")
    terminal.emit(f"  batch of {found['batch']:<6} {found['p50_us']:g} us (median), {found['p99_us']:g} us (99 %)")
    if found["reference_streams_per_core"] is not None:
        terminal.emit(f"  plain Python    {found['reference_streams_per_core']:g} streams")
    if found["peer"] is not None:
        peer = found["peer"]
        terminal.emit(f"  {peer['name']} {peer['version']}: {peer['streams_per_core']:g} streams ({peer['does_not']})")
    terminal.emit(
        f"  a stream's step {found['evaluations']:.2f} evaluations, {found['ngram_queries']:.2f} n-gram scores,"
        f" {found['kept']:.2f} hypotheses kept, {found['tokens']:.2f} tokens"
    )
    return 0


def _percent(fraction: float | None) -> str:
    return "no rate" if fraction is None else f"{100 * fraction:.2f} %"
