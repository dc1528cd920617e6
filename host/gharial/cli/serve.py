# SPDX-License-Identifier: Apache-2.0
"""`gharial serve`: live transcripts for many clients (docs/serving.md)."""

from __future__ import annotations

import argparse
import asyncio
import signal
from typing import TYPE_CHECKING, Any

from gharial.cli import terminal
from gharial.cli.decoding import add_decoding, decoding
from gharial.errors import BadInput
from gharial.serve.settings import DEVICE, HOST, PORT, ModelSettings, Settings

if TYPE_CHECKING:
    from gharial.serve import Server

NAME = "serve"

_EPILOG = """\
examples:
  gharial serve
  gharial serve --model model.hw.pt --device emulator:u50 --host 0.0.0.0 --port 3030
  gharial serve --decoder greedy --no-state-resets
  gharial serve --ngram words.ngram --keywords names.json --compat

Clients speak CAIMAN-ASR's WebSocket API, ws://HOST:PORT/asr/v0.1/stream: 16 kHz mono s16le in, text out every 60 ms.
docs/serving.md says what else there is.
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME,
        help="serve live transcripts to many clients",
        usage="%(prog)s [OPTION]...",
        description="Serve live transcripts to many clients over WebSockets.",
        epilog=_EPILOG,
    )
    parser.add_argument("--model", metavar="M", help="checkpoint (.hw.pt) or program (.gprog); default: the demo model")
    parser.add_argument(
        "--device", metavar="D", action="append", help=f"device ({DEVICE}); several times for several devices"
    )
    parser.add_argument("--host", metavar="H", default=HOST, help=f"address to listen on ({HOST})")
    parser.add_argument("--port", metavar="N", type=int, default=PORT, help=f"port to listen on ({PORT})")
    parser.add_argument("--compat", action="store_true", help="confidence 1.0, as CAIMAN-ASR's server sends it")
    add_decoding(parser, decoder="beam", resets=True, without=("alternatives",))
    parser.add_argument("--ngram-binary-path", metavar="F", dest="ngram_alias", help="the same as --ngram")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve."""
    if args.ngram_alias is not None:
        if args.ngram is not None:
            raise BadInput("given twice", "--ngram-binary-path", "--ngram", "one of them", "leave one of them out")
        args.ngram = args.ngram_alias
    if not 0 <= args.port < 1 << 16:
        raise BadInput("no port", "--port", args.port, "0 to 65535")
    how = decoding(args)
    model = ModelSettings(model=args.model, devices=tuple(args.device or (DEVICE,)), decoding=how)
    settings = Settings(host=args.host, port=args.port, models=(model,), compat=args.compat)
    from gharial.serve import Server

    asyncio.run(_serve(Server(settings, note=terminal.note)))
    return 0


async def _serve(server: Server) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    await server.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    terminal.say(f"listening on ws://{server.settings.host}:{server.port}")
    try:
        await stopping.wait()
    finally:
        await server.stop()
