# SPDX-License-Identifier: Apache-2.0
"""Boards that have an image, from rtl/boards.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gharial.errors import BadInput
from gharial.isa import configs

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "rtl" / "boards.yaml"


@dataclass(frozen=True)
class Ethernet:
    """Address of an Etherbone bridge."""

    ip: str
    udp_port: int
    mac: str


@dataclass(frozen=True)
class Board:
    """One board. Fields as rtl/boards.yaml explains them."""

    key: str
    name: str
    part: str
    idcode: int
    loader: str
    config: str
    oscillator_mhz: float
    clock_mhz: float
    seed: int
    multipliers: int
    uart_baud: int
    ethernet: Ethernet | None

    @property
    def identifier(self) -> str:
        """What the image says of itself."""
        return f"Gharial {self.key} {self.config}"

    @property
    def memory_bytes(self) -> int:
        """Bytes of device memory."""
        return configs.config(self.config).window_bytes

    @property
    def matrix_multipliers(self) -> int:
        """Multipliers of the matrix unit: each does two products a clock."""
        config = configs.config(self.config)
        return config.rows * config.cols // 2


@dataclass(frozen=True)
class Map:
    """Where things lie on the bridges' bus: byte addresses."""

    csr: int
    csr_size: int
    ctrl: int
    identifier: int
    registers: int
    registers_size: int
    memory: int


def _file() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def _map() -> Map:
    places = _file()["map"]
    csr, registers = places["csr"], places["registers"]
    return Map(
        csr=csr["base"],
        csr_size=csr["size"],
        ctrl=csr["base"] + csr["ctrl"],
        identifier=csr["base"] + csr["identifier"],
        registers=registers["base"],
        registers_size=registers["size"],
        memory=places["memory"]["base"],
    )


ADDRESSES = _map()


@cache
def boards() -> dict[str, Board]:
    """All boards by their keys."""
    found = {}
    for key, entry in _file()["boards"].items():
        ethernet = Ethernet(**entry["ethernet"]) if entry["ethernet"] else None
        found[key] = Board(key=key, **{**entry, "ethernet": ethernet})
    return found


def board(key: str) -> Board:
    """The board of that key.

    Raises:
        BadInput: there is none.
    """
    if key not in boards():
        raise BadInput("unknown board", found=key or "none", expected=", ".join(boards()), remedy="BOARD=ulx3s-85f")
    return boards()[key]
