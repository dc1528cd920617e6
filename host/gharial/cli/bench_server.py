# SPDX-License-Identifier: Apache-2.0
"""`gharial bench server`: latency, transcripts and CPU time of a server under real-time streams."""

from __future__ import annotations

import argparse
import secrets
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gharial.cli import terminal
from gharial.cli.decoding import Decoding, add_decoding, decoding
from gharial.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from gharial.bench.server import Observed

NAME = "server"

_EPILOG = """\
examples:
  gharial bench server --streams 100 --set recordings/
  gharial bench server --streams 100 --set recordings/ --seconds 60 --plot latency.svg --json
  gharial bench server --streams 20 --set recordings/ --decoder greedy --no-state-resets
  gharial bench server --streams 100 --set recordings/ --url ws://elsewhere:3030 --csv results.csv

Streams the set's recordings in real time, in frames of 60 ms, so many at a time, each with a phase of its own, from one
process; the server is started for it, unless --url names one that runs. Latency is counted from the last byte of a
frame sent to its reply received; user-perceived latency from the end of a spoken word to the first reply that shows it
for good. Ends of words come from a CTM file (manifest.ctm beside the manifest, or --ctm), else from the loudness of the
recordings. Every transcript is held against the one that the same model gives without a server: with --url tell the
same options as it was started with, or --no-check. Exit code 1 where one differs, a stream failed, or latency is above
--limit-ms. docs/clients.md says how it is measured.
"""

_DEVICE = "emulator:u50"
_WITHOUT = ("alternatives", "silence")


def add(benches: Any) -> None:
    """Add the bench to the parser of `gharial bench`."""
    parser = benches.add_parser(
        NAME,
        help="latency of a server under real-time streams",
        usage="%(prog)s --streams N --set DIR [OPTION]...",
        description="Latency, transcripts and CPU time of a server under many real-time streams.",
        epilog=_EPILOG,
    )
    parser.add_argument("--streams", metavar="N", type=int, required=True, help="streams at a time")
    parser.add_argument(
        "--set", metavar="DIR", type=Path, required=True, help="folder with recordings and manifest.json"
    )
    parser.add_argument("--seconds", metavar="S", type=float, default=30.0, help="begin recordings for so long (30)")
    parser.add_argument("--limit", metavar="N", type=int, help="only the first N recordings of the set")
    parser.add_argument("--seed", metavar="S", type=int, help="of phases and order; default: another one each time")
    parser.add_argument("--model", metavar="M", help="checkpoint (.hw.pt) or program (.gprog); default: the demo model")
    parser.add_argument("--device", metavar="D", default=_DEVICE, help=f"device of the server ({_DEVICE})")
    parser.add_argument(
        "--limit-ms", metavar="MS", type=float, help="99th percentile of a frame's latency to keep within"
    )
    running = parser.add_argument_group("a server that runs")
    running.add_argument("--url", metavar="URL", help="of the server; default: one is started")
    running.add_argument("--key", metavar="KEY", help="its API key")
    running.add_argument("--no-check", action="store_true", help="do not compare transcripts")
    output = parser.add_argument_group("output")
    output.add_argument("--ctm", metavar="F", type=Path, help="when the words are spoken, as a CTM file")
    output.add_argument("--plot", metavar="F", help="draw latencies (.svg, .png, .pdf)")
    output.add_argument("--csv", metavar="F", type=Path, help="add a line with the columns of CAIMAN-ASR's benchmark")
    output.add_argument("--run-name", metavar="T", help="name in that line; default: the set's")
    output.add_argument("--json", action="store_true", help="print a JSON object")
    add_decoding(parser, decoder="beam", resets=True, without=_WITHOUT)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure a server."""
    _check(args)
    how = decoding(args)
    from gharial.bench import server_csv, server_plot
    from gharial.bench.manifest import read_set
    from gharial.bench.server import bench_server, read_samples
    from gharial.bench.server_process import own_server, served_seconds
    from gharial.bench.server_words import Endings
    from gharial.client.protocol import stream_url

    if args.plot is not None:
        server_plot.check(args.plot)
    if args.csv is not None:
        server_csv.check(args.csv)
    seed = secrets.randbits(32) if args.seed is None else args.seed
    utterances = read_set(args.set)[: args.limit]
    endings = Endings(args.set, args.ctm)
    samples = [read_samples(utterance) for utterance in utterances]
    offline = None if args.no_check else _offline(args, how, samples)
    progress = terminal.Progress("seconds streamed", enabled=not args.json)
    observed: list[Observed] = []
    server = (
        own_server(_served(args))
        if args.url is None
        else nullcontext((stream_url(args.url), lambda: served_seconds(stream_url(args.url), args.key)))
    )
    with server as (address, cpu):
        url = stream_url(address)
        terminal.say(f"{url.partition('?')[0]}, seed {seed}")
        try:
            found = bench_server(
                url,
                cpu,
                utterances,
                samples,
                offline,
                endings,
                streams=args.streams,
                seconds=args.seconds,
                seed=seed,
                headers=None if args.key is None else {"Authorization": f"Bearer {args.key}"},
                progress=progress,
                observe=observed.append,
            )
        finally:
            progress.close()
    found = {"set": args.set.resolve().name, "decoder": args.decoder, **found}
    if args.plot is not None:
        title = f"{found['set']}: {found['streams']} streams, {found['decoder']}"
        server_plot.write(args.plot, observed[0], found, title)
    if args.csv is not None:
        server_csv.append(args.csv, found, args.run_name or found["set"])
    if args.json:
        terminal.emit_json(found)
    else:
        _tell(found)
    slow = args.limit_ms is not None and not (found["cl99_ms"] or 0.0) <= args.limit_ms
    if slow:
        terminal.error(f"99 % of frames within {found['cl99_ms']} ms: found more than --limit-ms {args.limit_ms:g}")
    return 1 if slow or found["mismatches"] or found["failed"] or found["unanswered"] else 0


def _check(args: argparse.Namespace) -> None:
    if args.streams < 1:
        raise BadInput("number of streams is out of range", "--streams", args.streams, "1 or more")
    if not 0 < args.seconds <= 1e6:
        raise BadInput("this is no span of time", "--seconds", args.seconds, "seconds, above 0")
    if args.limit_ms is not None and not args.limit_ms > 0:
        raise BadInput("this is no span of time", "--limit-ms", args.limit_ms, "milliseconds, above 0")
    if args.limit is not None and args.limit < 1:
        raise BadInput("number of recordings is out of range", "--limit", args.limit, "1 or more")
    if args.url is not None:
        from gharial.client.protocol import stream_url

        if stream_url(args.url).startswith("wss:"):
            raise BadInput("the load is sent without TLS", "--url", args.url, "ws://HOST:PORT")
    if args.url is None and args.key is not None:
        raise BadInput("the server that is started asks for no key", "--key", "no --url", "--url", "leave one out")


def _served(args: argparse.Namespace) -> list[str]:
    """The options that a server of its own is started with."""
    options = ["--device", args.device, *([] if args.model is None else ["--model", args.model])]
    parser = argparse.ArgumentParser(add_help=False)
    add_decoding(parser, decoder="beam", resets=True, without=_WITHOUT)
    for action in parser._actions:
        value = getattr(args, action.dest)
        if value is None or value == parser.get_default(action.dest):
            continue
        if action.nargs == 0:
            options.append(action.option_strings[0 if value else 1])
        else:
            options += [action.option_strings[0], str(value)]
    return options


def _offline(args: argparse.Namespace, how: Decoding, samples: Sequence[np.ndarray]) -> list[str]:
    """The transcript of each recording without a server."""
    from gharial.recognise import load

    progress = terminal.Progress("compiling the model, recordings measured", enabled=not args.json)
    with how.named():
        try:
            recogniser = load(
                args.model,
                args.device,
                decoder=how.decoder,
                options=how.options,
                ngram=how.ngram,
                progress=progress,
                note=terminal.note,
            )
        finally:
            progress.close()
    with recogniser:
        texts = []
        for outcome in recogniser.transcribe_many(samples, None, how.streams(recogniser)):
            if isinstance(outcome, Exception):
                raise outcome
            texts.append(outcome.text)
    return texts


def _tell(found: dict[str, Any]) -> None:
    def figures(name: str, parts: Sequence[int]) -> str:
        values = [found[name.format(part)] for part in parts]
        return ", ".join(
            "none" if value is None else f"{value:.1f} ms ({part} %)" for value, part in zip(values, parts, strict=True)
        )

    parts = (50, 90, 99)
    terminal.emit(
        f"{found['set']}, {found['decoder']}: {found['streams']} streams in real time, {found['seconds']:.0f} s"
    )
    terminal.emit(f"  latency of a frame  {figures('cl{}_ms', parts)}, of {found['frames']:,}")
    terminal.emit(
        f"  latency of a word   {figures('upl_p{}_ms', parts)}, of {found['upl_words']:,} ({found['upl_source']})"
    )
    rate = "no rate" if found["wer"] is None else f"{100 * found['wer']:.2f} %"
    terminal.emit(f"  word errors         {found['errors']} of {found['words']:,}, {rate}")
    same = "not compared" if found["mismatches"] is None else f"{found['mismatches']} of {found['utterances']} differ"
    terminal.emit(f"  against offline     {same}")
    server = "not known" if found["server_cpu_s"] is None else f"{found['server_cpu_s']:.1f} s"
    terminal.emit(
        f"  CPU                 server {server}, client {found['client_cpu_s']:.1f} s of {found['seconds']:.0f} s"
    )
    terminal.emit(f"  the client's delay  {found['client_late_ms']} ms (99 %)")
    for kind in ("mismatched", "failures"):
        for one in found[kind]:
            terminal.emit("  " + ", ".join(f"{key}: {value}" for key, value in one.items()))
    if found["unanswered"]:
        terminal.emit(f"  frames without a reply: {found['unanswered']}")
