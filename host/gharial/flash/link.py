# SPDX-License-Identifier: Apache-2.0
"""What runs on a board, read back over its link: nothing is written."""

from __future__ import annotations

import time
from collections.abc import Callable

from gharial.devices.litex import open_bridge
from gharial.devices.litex.bridge import WORD, Bridge
from gharial.devices.litex.device import BusMap
from gharial.errors import DeviceError, LinkError
from gharial.isa import _registers as reg
from gharial.isa.boards import Board, identifier_address
from gharial.isa.configs import config
from gharial.isa.header import INTERFACE_TEXT

PATIENCE_S = 8.0
"""Seconds in which a board must answer after it was loaded: it starts, and its port comes back."""

_AGAIN_S = 0.25
_LONGEST = 64  # characters of an identifier


def read_back(board: Board, find: Callable[[], str | None], patience: float | None = None) -> dict[str, str]:
    """See that a board runs its image.

    Args:
        board: which it must be.
        find: gives the name of its link, None while there is none.
        patience: seconds in which it must answer; None for 8.

    Returns:
        link, identifier and interface_version.

    Raises:
        LinkError: there is no link, or nothing answers.
        DeviceError: something else runs on it.
    """
    deadline = time.monotonic() + (PATIENCE_S if patience is None else patience)
    while True:
        try:
            name = find()
            if name is None:
                raise LinkError(
                    "no serial port of the board found; name its link: --link litex:uart:PORT or litex:eth:HOST",
                    unit="link",
                )
            bridge = open_bridge(name)
            try:
                return {"link": name} | _identity(bridge, board)
            finally:
                bridge.close()
        except LinkError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_S)


def _identity(bridge: Bridge, board: Board) -> dict[str, str]:
    found = _text(bridge)
    if found != board.identifier:
        what = f"another image runs on the board: found {found!r}, expected {board.identifier!r}; check --link"
        raise DeviceError(what, unit="link")
    identity, version, number = (
        int.from_bytes(bridge.read(BusMap().registers + register.offset, WORD), "little")
        for register in (reg.ID, reg.VERSION, reg.CONFIG_ID)
    )
    told = f"{version >> 16}.{version & 0xFFFF}"
    expected = {"identity": reg.ID.reset, "configuration": config(board.config).config_id}
    for what, value in (("identity", identity), ("configuration", number)):
        if value != expected[what]:
            raise DeviceError(
                f"the accelerator's {what} reads {value:#010x}, expected {expected[what]:#010x}; load the image again",
                unit="link",
            )
    if told != INTERFACE_TEXT:
        what = f"the accelerator's interface version is {told}, expected {INTERFACE_TEXT}; build the image again"
        raise DeviceError(what, unit="link")
    return {"identifier": found, "interface_version": told}


def _text(bridge: Bridge) -> str:
    """The image's identifier: a character in the low byte of each word, ended by 0."""
    words = bridge.read(identifier_address(), _LONGEST * WORD)
    return bytes(words[::WORD]).split(b"\0")[0].decode("ascii", "replace")
