# SPDX-License-Identifier: Apache-2.0
"""Cards, from rtl/cards.yaml, and the buses between a card's platform and the accelerator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from gharial.isa import configs
from gharial.isa.configs import Config
from scripts.rtl.tools import ROOT

FILE = ROOT / "rtl" / "cards.yaml"
SCRIPTS = ROOT / "rtl" / "cards"
PLATFORM = "card_platform"
"""Name of the block design that Vivado makes of rtl/cards/PLATFORM.tcl; its module is this and _wrapper."""


@dataclass(frozen=True)
class Card:
    """One card. Fields as rtl/cards.yaml explains them."""

    key: str
    name: str
    part: str
    board_part: str
    platform: str
    config: str
    memory_base: int
    hbm: str | None
    lanes: int
    pins: Mapping[str, Sequence[str | None]]

    @property
    def build(self) -> Config:
        """Its hardware configuration."""
        return configs.config(self.config)

    @property
    def script(self) -> Path:
        """The script that makes its platform."""
        return SCRIPTS / f"{self.platform}.tcl"


@cache
def cards() -> dict[str, Card]:
    """All cards by their keys."""
    return {key: Card(key=key, **entry) for key, entry in yaml.safe_load(FILE.read_text(encoding="utf-8")).items()}


@dataclass(frozen=True)
class Bus:
    """An AXI bus of the accelerator at which the platform is the slave.

    Attributes:
        name: of the platform's interface port.
        bits: of data.
        writes: whether it writes too.
        source: how the accelerator's ports are called: prefix, and the index of one of many.
        bursts: whether writes are bursts; else they are single words, all bytes enabled.
    """

    name: str
    bits: int
    writes: bool
    source: tuple[str, int | None]
    bursts: bool


def buses(card: Card) -> list[Bus]:
    """All of them: the host block's, the state mover's, and one for each weight port."""
    config = card.build
    wide = 8 * config.port_bytes
    weights = [Bus(f"WEIGHTS_{n:02}", wide, False, ("m_axi_weights", n), False) for n in range(config.ports)]
    host = Bus("HOST", 32, True, ("m_axi", None), False)
    return [host, Bus("STATE", wide, True, ("m_axi_state", None), True), *weights]
