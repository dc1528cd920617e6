# SPDX-License-Identifier: Apache-2.0
"""A board's image as `make bitstream` leaves it, with its report: looked at before a board is touched."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gharial.devices import checkout
from gharial.errors import BadInput
from gharial.files import open_regular
from gharial.inspect.bitstreams import bitstream_kind
from gharial.isa.boards import Board
from gharial.isa.boards import board as named
from gharial.isa.header import INTERFACE_TEXT

IMAGE, REPORT = "image.bit", "report.json"
FOLDER = checkout.ROOT / "bitstreams"

_MOST = 64 << 20  # bytes of an image
_MOST_REPORT = 1 << 20
_AGAIN = "build it again: make bitstream BOARD="
_KEYS = {"board": str, "part": str, "config": str, "image_sha256": str, "interface_version": str}


@dataclass(frozen=True)
class Image:
    """An image that belongs to a board and is whole.

    Attributes:
        path: the file.
        report: report.json.
    """

    path: Path
    report: dict[str, Any]


def find_image(board: Board, folder: Path = FOLDER) -> Image:
    """The image of a board.

    Args:
        board: which.
        folder: that holds a folder for each board.

    Raises:
        BadInput: there is none, it is of another board, part, configuration or interface, or it was changed since.
    """
    place = folder / board.key
    return _checked(board, place / IMAGE, _report(place / REPORT, _AGAIN + board.key))


def read_image(path: Path) -> Image:
    """An image with its report beside it, for the board that this names.

    Raises:
        BadInput: as for `find_image`, or this version does not know the board.
    """
    report = _report(path.with_name(REPORT), "look at an image where `make bitstream` left it")
    return _checked(named(report["board"]), path, report)


def _checked(board: Board, path: Path, report: dict[str, Any]) -> Image:
    again, told = _AGAIN + board.key, path.with_name(REPORT)
    expected = {"board": board.key, "part": board.part, "config": board.config}
    for key, value in expected.items():
        if report[key] != value:
            raise BadInput(f"the image is for another {key}", told, report[key], value, again)
    if _numbers(report["interface_version"]) != _numbers(INTERFACE_TEXT):
        what = "the image has another interface version than this package"
        raise BadInput(what, told, report["interface_version"], INTERFACE_TEXT, again)
    with open_regular(path, "an image", again) as file:
        data = file.read(_MOST + 1)
    if not data or len(data) > _MOST:
        raise BadInput("cannot be an image", path, f"{len(data)} bytes", f"1 to {_MOST}", again)
    found = hashlib.sha256(data).hexdigest()
    if found != report["image_sha256"].lower():
        what = "the image is not the one that its report is about"
        raise BadInput(what, path, f"SHA-256 {found}", report["image_sha256"], again)
    device = "-".join(board.part.split("-")[:2])
    kind = bitstream_kind(data[:4096])
    if kind is None or (" for " in kind and device not in kind):
        raise BadInput("no bitstream for the board's part", path, kind or "something else", board.part, again)
    return Image(path, report)


def _report(path: Path, again: str) -> dict[str, Any]:
    with open_regular(path, "an image's report", again) as file:
        text = file.read(_MOST_REPORT)
    try:
        report = json.loads(text)
    except ValueError as error:
        raise BadInput("not JSON", path, error, "an image's report", again) from None
    if not isinstance(report, dict):
        raise BadInput("not an image's report", path, type(report).__name__, "a JSON object", again)
    for key, kind in _KEYS.items():
        if not isinstance(report.get(key), kind):
            raise BadInput(f"the report has no {key}", path, report.get(key), "a text", again)
    return report


def _numbers(version: str) -> list[str]:
    return re.findall(r"\d+", version)
