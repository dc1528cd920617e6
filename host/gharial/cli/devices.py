# SPDX-License-Identifier: Apache-2.0
"""`gharial devices`: what can be named with --device."""

from __future__ import annotations

import argparse
from typing import Any

from gharial.cli import terminal

NAME = "devices"

_EPILOG = """\
examples:
  gharial devices
  gharial devices --json
  gharial transcribe --device emulator:u50 talk.wav
  gharial transcribe --device litex:uart:/dev/ttyUSB0 talk.wav

A device without :CONFIG takes the hardware configuration that the program was compiled for; a board has its own, and
says so when it is opened. Boards that this machine has are listed without anything being sent to them.
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME, help="list the devices", description="List the devices that --device can name.", epilog=_EPILOG
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    from gharial.devices import boards
    from gharial.devices.open import DEFAULT, list_devices

    found = list_devices()
    if args.json:
        terminal.emit_json([device.as_json() for device in found])
        return 0
    width = max(len(device.name) for device in found)
    for device in found:
        mark = " (default)" if device.name == DEFAULT else ""
        config = device.config or ("its own" if device.kind in boards.KINDS else "the program's")
        terminal.emit(f"{device.name:<{width}}  {config:<13}  {device.interface_version}  {device.state}{mark}")
    return 0
