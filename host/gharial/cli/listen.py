# SPDX-License-Identifier: Apache-2.0
"""`gharial listen`: a microphone, or a recording in real time, heard by a speech server; text as it becomes known."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any

from gharial.cli import terminal
from gharial.errors import BadInput

if TYPE_CHECKING:
    from gharial.client.listener import Listener

NAME = "listen"
KEY = "GHARIAL_KEY"

_EPILOG = """\
examples:
  gharial listen
  gharial listen talk.wav
  gharial listen --url wss://speech.example.org --key KEY --format json
  gharial listen --input USB --seconds 60
  gharial listen --parameter keywords='{"right": 0.5}' talk.wav
  arecord -q -t raw -f S16_LE -r 16000 -c 1 | gharial listen -

Hears the microphone until Ctrl-C (the extra 'microphone': pip install gharial[microphone]), or a recording as fast as
it was spoken. Start a server with: gharial serve. On a terminal text that may still change is shown in colour and
rewritten in place (without colour where NO_COLOR is set); elsewhere only what is final is printed. After a pause of 2 s
text goes on in a new line.

A connection that is lost, or a server that goes away, is tried again for --retry seconds, after 0.5 s, then 1, 2, 4
and every 5 s. What was spoken meanwhile is kept, 30 s of it at most, and heard then; final text does not come twice.
A server that cannot be reached from the start, or refuses the stream, is an error at once.

exit codes: 0 the stream is complete, 1 server or microphone failed, 2 bad input, or a stream that the server refuses
"""

_PAUSE_S = 2.0


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME,
        help="hear a microphone or a recording through a server",
        usage="%(prog)s [OPTION]... [FILE]",
        description="Send a microphone, or a recording in real time, to a speech server, and print text as it comes.",
        epilog=_EPILOG,
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="recording; '-' for samples from standard input")
    parser.add_argument("--url", metavar="URL", help="of the server (ws://localhost:3030)")
    parser.add_argument("--key", metavar="KEY", help=f"the server's API key; default: ${KEY}")
    parser.add_argument("--certificate", metavar="FILE", help="PEM file that signed a wss:// server's certificate")
    parser.add_argument("--retry", metavar="S", type=float, help="seconds to try a lost connection again (30)")
    source = parser.add_argument_group("microphone")
    source.add_argument(
        "--input", metavar="NAME", help="part of the input's name, or its number; default: the system's"
    )
    source.add_argument("--seconds", metavar="S", type=float, help="stop after so many seconds")
    stream = parser.add_argument_group("stream")
    stream.add_argument("--model", metavar="NAME", help="name of a model at the server; default: the server's first")
    stream.add_argument("--model-version", metavar="V", help="its version (latest)")
    stream.add_argument("--alternatives", metavar="N", type=int, help="readings to ask for (1); shown as JSON")
    stream.add_argument(
        "--parameter", metavar="NAME=VALUE", action="append", default=[], help="another one of docs/serving.md"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=("text", "json"), help="what to print (text)")
    output.add_argument("--json", action="store_true", help="the same as --format json: one object a change, on a line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Listen."""
    form = _format(args)
    parameters = _parameters(args)
    retry = _span("--retry", args.retry, least=0.0)
    seconds = _span("--seconds", args.seconds)
    from gharial.cli.captions import JsonLines, TextLines
    from gharial.client.connection import connect
    from gharial.client.listener import RETRY_S, Found, Listener, Lost
    from gharial.client.protocol import DEFAULT_URL, stream_url

    url = DEFAULT_URL if args.url is None else args.url
    key = args.key if args.key is not None else os.environ.get(KEY) or None
    stream_url(url, parameters)
    printer = JsonLines(args.alternatives or 1) if form == "json" else TextLines(_PAUSE_S)
    with _source(args, seconds) as frames:
        listener = Listener(
            frames,
            lambda: connect(url, key=key, parameters=parameters, certificate=args.certificate),
            RETRY_S if retry is None else retry,
        )
        with _ctrl_c(listener) if args.file is None else nullcontext():
            try:
                for event in listener:
                    if isinstance(event, Lost):
                        printer.pause()
                        terminal.note(f"{event.error.what}; trying again in {event.wait_s:g} s")
                    elif isinstance(event, Found):
                        lost = f", {event.dropped_s:.1f} s of audio are lost" if event.dropped_s else ""
                        terminal.note(f"connected again, from {event.start_s:.1f} s on{lost}")
                    else:
                        printer.take(event.reply)
            finally:
                printer.pause()
    printer.end(listener.audio_s, listener.connections)
    return 0


def _format(args: argparse.Namespace) -> str:
    if args.json and args.format == "text":
        raise BadInput("--json and --format contradict each other", "--json", "--format text", "json", "leave one out")
    form = "json" if args.json else args.format or "text"
    if args.alternatives is not None and args.alternatives > 1 and form != "json":
        raise BadInput("other readings have no place", "--alternatives", "--format text", "json", "add --json")
    return str(form)


def _parameters(args: argparse.Namespace) -> dict[str, object]:
    named = {"model": args.model, "version": args.model_version, "alternatives": args.alternatives}
    parameters: dict[str, object] = {name: value for name, value in named.items() if value is not None}
    for text in args.parameter:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise BadInput("this is no parameter", "--parameter", text, "NAME=VALUE")
        if name in parameters:
            raise BadInput("given twice", f"--parameter {name}", value, "once")
        parameters[name] = value
    return parameters


def _span(option: str, value: float | None, least: float = 1e-9) -> float | None:
    if value is not None and not least <= value <= 1e9:
        raise BadInput("this is no span of time", option, value, "seconds, above 0" if least else "seconds, 0 or more")
    return value


@contextmanager
def _source(args: argparse.Namespace, seconds: float | None) -> Iterator[Iterable[bytes]]:
    """Frames in real time of whatever is to be heard, for so many seconds."""
    from gharial.audio import open_audio, open_raw
    from gharial.client.pace import FRAME_S, frames, real_time

    def limited(found: Iterator[bytes]) -> Iterator[bytes]:
        return found if seconds is None else islice(found, max(1, round(seconds / FRAME_S)))

    if args.input is not None and args.file is not None:
        raise BadInput("there is a file to be heard", "--input", args.input, "no FILE", "leave one of them out")
    if args.file is None:
        from gharial.client.microphone import microphone

        name = int(args.input) if args.input is not None and args.input.isdecimal() else args.input
        with microphone(name, terminal.note) as blocks:
            terminal.say("listening; Ctrl-C ends it" if sys.stderr is not None and sys.stderr.isatty() else "listening")
            yield limited(frames(blocks))
    elif args.file == "-":
        if sys.stdin is None or sys.stdin.isatty():
            found = "no input" if sys.stdin is None else "a keyboard"
            remedy = "arecord -q -t raw -f S16_LE -r 16000 -c 1 | gharial listen -"
            raise BadInput("no samples can come from there", "-", found, "s16le mono samples at 16 kHz", remedy)
        yield limited(frames(open_raw(sys.stdin.buffer).blocks()))
    else:
        with open_audio(args.file) as source:
            for note in source.notes:
                terminal.note(f"{args.file}: {note}")
            yield limited(real_time(source.blocks()))


@contextmanager
def _ctrl_c(listener: Listener) -> Iterator[None]:
    """Let the first Ctrl-C end the audio, and the second the command."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Callable[..., object] | int | None = signal.getsignal(signal.SIGINT)

    def stop(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        listener.stop()

    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
