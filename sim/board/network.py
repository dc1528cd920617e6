# SPDX-License-Identifier: Apache-2.0
"""The image of a board with Ethernet as it is simulated: the PHY's stream of bytes leads to pins, instead of RGMII."""

from __future__ import annotations

import logging
from pathlib import Path

from liteeth.phy.model import LiteEthPHYModel
from litex.build.generic_platform import Pins, Subsignal
from scripts.board import soc
from scripts.board.boards import Board

PINS = "eth_phy"
"""Pins of the PHY's stream: `sink` leads to the board, `source` away from it, a byte a clock, a frame without a gap."""


class Soc(soc.Soc):
    """As on the board, all of LiteEth's core included, but for the PHY."""

    def _phy(self) -> LiteEthPHYModel:
        stream = [Subsignal(f"{way}_{name}", Pins(bits)) for way in ("source", "sink") for name, bits in _STREAM]
        self.platform.add_extension([(PINS, 0, *stream)])
        return LiteEthPHYModel(self.platform.request(PINS))


_STREAM = (("valid", 1), ("data", 8))


def write(board: Board, folder: Path) -> None:
    """Write soc.TOP.v into the folder, and the memory files that it reads."""
    logging.disable(logging.INFO)
    made = Soc(board)
    made.finalize()
    made.build(build_dir=str(folder), build_name=soc.TOP, run=False)
