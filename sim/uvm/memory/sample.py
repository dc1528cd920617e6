# SPDX-License-Identifier: Apache-2.0
"""One clock of the AXI4 port."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Sample:
    """Handshakes of one clock, as the registers see them; addresses and data where something is offered.

    `ar`, `r`, `aw`, `w`, `b`: whether the channel transfers in this clock.
    """

    ar: bool
    r: bool
    aw: bool
    w: bool
    b: bool
    read_address: int = 0
    read_beats: int = 0
    write_address: int = 0
    write_word: int = 0
