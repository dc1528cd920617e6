# SPDX-License-Identifier: Apache-2.0
"""`gharial flash`: a board's image onto the board, and a look at what runs there then."""

from __future__ import annotations

import argparse
import shlex
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gharial.cli import terminal
from gharial.errors import BadInput

if TYPE_CHECKING:
    from gharial.isa.boards import Board

NAME = "flash"
NO_LINK = "none"

_EPILOG = """\
examples:
  gharial flash ulx3s-85f
  gharial flash ulx3s-85f --to flash
  gharial flash ecpix5-85f --link litex:eth:192.168.1.50
  gharial flash ulx3s-85f --dry-run
  gharial flash --udev | sudo tee /etc/udev/rules.d/70-gharial.rules

The image is that of bitstreams/BOARD, made by `make bitstream BOARD=...`. Its hash, board and part are checked before
anything is touched; then the part on the cable must be the board's. openFPGALoader does the rest, and what runs on the
board is read back over its link. --to sram is gone with the power, --to flash stays.

Nothing needs root but access to the cable, which the udev rule gives to whoever is logged in (docs/flash.md).
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME, help="load an image onto a board", description="Load a board's image onto the board.", epilog=_EPILOG
    )
    parser.add_argument("board", metavar="BOARD", nargs="?", help="ulx3s-85f or ecpix5-85f")
    parser.add_argument(
        "--to", choices=("sram", "flash"), default="sram", help="until the power goes, or for good (sram)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="check the image, print the loader's command, touch nothing"
    )
    parser.add_argument(
        "--serial", metavar="NUMBER", help="serial number of the board's cable, where there are several"
    )
    parser.add_argument(
        "--link", metavar="DEVICE", help=f"where to read back; default: its serial port; {NO_LINK}: not"
    )
    parser.add_argument("--bitstreams", metavar="DIR", type=Path, help="folder of images (bitstreams of the checkout)")
    parser.add_argument("--udev", action="store_true", help="print the udev rule that gives access to boards")
    parser.add_argument("--json", action="store_true", help="print a JSON object that says what was done")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check, load, read back."""
    from gharial.flash import loader
    from gharial.flash.cable import find_cable
    from gharial.flash.image import FOLDER, find_image
    from gharial.isa.boards import board as named
    from gharial.isa.boards import boards

    if args.udev:
        rule = files("gharial") / "data" / "udev" / "70-gharial.rules"
        terminal.emit(rule.read_text(encoding="utf-8"), end="")
        return 0
    if args.board is None:
        raise BadInput("which board?", expected=", ".join(boards()), remedy="see: gharial flash --help")
    board = named(args.board)
    _check_link(args.link)
    image = find_image(board, args.bitstreams or FOLDER)
    program = loader.find_loader()
    words = loader.command(program, board, image.path, args.to, args.serial)
    facts = {"board": board.key, "image": str(image.path), "image_sha256": image.report["image_sha256"]}
    facts |= {"to": args.to, "command": shlex.join(words), "done": False, "found": None}
    if args.dry_run:
        if args.json:
            terminal.emit_json(facts)
        else:
            terminal.emit(facts["command"])
        return 0
    cable = find_cable(board, args.serial)
    loader.detect(program, board, args.serial)
    progress = terminal.Progress(f"loading {board.key}", enabled=not args.json)
    try:
        loader.load(words, lambda what, percent: progress(percent, 100))
    finally:
        progress.close()
    facts["done"] = True
    if args.link != NO_LINK:
        facts["found"] = _read_back(board, args.link, args.serial or (cable.serial if cable is not None else None))
    if args.json:
        terminal.emit_json(facts)
    else:
        terminal.emit(_summary(facts))
    return 0


def _check_link(link: str | None) -> None:
    if link is not None and link != NO_LINK and not link.startswith("litex:"):
        expected = f"litex:uart:PORT, litex:eth:HOST or {NO_LINK}"
        raise BadInput("boards are read back over their own bridges", "--link", link, expected)


def _read_back(board: Board, link: str | None, serial: str | None) -> dict[str, str]:
    from gharial.flash.cable import serial_port
    from gharial.flash.link import read_back

    def find() -> str | None:
        if link is not None:
            return link
        port = serial_port(board, serial or None)
        return None if port is None else f"litex:uart:{port}@{board.uart_baud}"

    return read_back(board, find)


def _summary(facts: dict[str, Any]) -> str:
    where = "the part's memory, until the power goes" if facts["to"] == "sram" else "flash memory"
    lines = [f"{facts['board']}: {facts['image']} is in {where}"]
    found = facts["found"]
    if found is not None:
        lines.append(f"  {found['identifier']}, interface {found['interface_version']}, by {found['link']}")
        lines.append(f"  use it: gharial transcribe --device {found['link']} talk.wav")
    return "\n".join(lines)
