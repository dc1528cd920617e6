# SPDX-License-Identifier: Apache-2.0
"""Boards that have an image, from the file that the build of images and the host share (rtl/boards.yaml)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gharial.errors import BadInput

# The package carries a copy made when it is built.
_COPY = Path(__file__).with_name("_boards.yaml")


@dataclass(frozen=True)
class Board:
    """One board.

    Attributes:
        key: by which it is named.
        name: what its maker calls it.
        part: as its maker names it: device, speed grade, package.
        idcode: what the part says of itself over JTAG.
        loader: its name for openFPGALoader.
        config: hardware configuration of its image.
        uart_baud: of its UART bridge.
        ethernet: IP address of its Ethernet bridge, if it has one.
    """

    key: str
    name: str
    part: str
    idcode: int
    loader: str
    config: str
    uart_baud: int
    ethernet: str | None

    @property
    def identifier(self) -> str:
        """What its image says of itself (docs/bitstream.md)."""
        return f"Gharial {self.key} {self.config}"


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load(_COPY.read_text(encoding="utf-8"))
    return table


def identifier_address() -> int:
    """Bus address of the image's identifier: a character a word, ended by 0."""
    csr = _table()["map"]["csr"]
    return int(csr["base"]) + int(csr["identifier"])


@cache
def boards() -> dict[str, Board]:
    """All boards by their keys, in the file's order."""
    found = {}
    for key, entry in _table()["boards"].items():
        ethernet = entry["ethernet"]["ip"] if entry["ethernet"] else None
        plain = {name: entry[name] for name in ("name", "part", "idcode", "loader", "config", "uart_baud")}
        found[key] = Board(key=key, ethernet=ethernet, **plain)
    return found


def board(key: str) -> Board:
    """The board of that key.

    Raises:
        BadInput: there is none.
    """
    try:
        return boards()[key]
    except KeyError:
        raise BadInput("unknown board", found=key, expected=", ".join(boards()), remedy="choose one of these") from None
