# SPDX-License-Identifier: Apache-2.0
"""Boards by their device names, and which of them this machine has. Nothing is sent to a board to find it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gharial.devices.base import Device
from gharial.devices.remote import identify
from gharial.errors import BadInput
from gharial.isa.configs import Config, configs

KINDS = ("litex", "xdma", "pynq")
FORMS = ("litex:uart:PORT", "litex:eth:HOST", "xdma:N", "pynq:N")

_MOST = 255  # devices of a kind, as the drivers count them
_FOUND = "found"
_DENIED = "no permission: install the udev rule (gharial flash --udev)"


def open_board(name: str, config: Config) -> Device:
    """Open a board as one of that configuration, without asking it.

    Raises:
        BadInput: the name is not of its kind's form, or a package is missing.
        LinkError: the board is not there, may not be used, or does not answer.
    """
    kind, _, place = name.partition(":")
    if kind == "litex":
        from gharial.devices.litex import open_litex

        return open_litex(name, config)
    if not place.isascii() or not place.isdecimal() or int(place) > _MOST:
        raise BadInput("a number must follow the colon", f"device {name}", place, f"{kind}:0 to {kind}:{_MOST}")
    if kind == "xdma":
        from gharial.devices.xdma import open_xdma

        return open_xdma(int(place), config)
    from gharial.devices.pynq import open_pynq

    return open_pynq(int(place), config)


def board_config(name: str) -> Config:
    """The configuration that a board says it has.

    Raises:
        BadInput: as `open_board`; or this version does not know its configuration.
        LinkError: as `open_board`; or what answers is no Gharial.
    """
    smallest = next(iter(configs().values()))  # does for reading registers, which all have
    device = open_board(name, smallest)
    try:
        return identify(device)
    finally:
        device.close()


def found(root: Path = Path("/")) -> Iterator[tuple[str, str]]:
    """Names of boards that this machine has, or the form of a name where it has none; each with its state."""
    for kind in (_serial_ports(root), _network(), _cards(root), _overlays(root)):
        yield from kind


def _serial_ports(root: Path) -> list[tuple[str, str]]:
    try:
        from serial.tools import list_ports
    except ImportError:
        return [("litex:uart:PORT", "needs pyserial: pip install pyserial, or gharial[links]")]
    usb = sorted(port.device for port in list_ports.comports() if port.vid is not None)
    names = [(f"litex:uart:{path}", _state(root / path.lstrip("/"))) for path in usb]
    return names or [("litex:uart:PORT", "no USB serial port found")]


def _network() -> list[tuple[str, str]]:
    return [("litex:eth:HOST", "not looked for: name the board's address")]


def _cards(root: Path) -> list[tuple[str, str]]:
    nodes = sorted((root / "dev").glob("xdma[0-9]*_user"))
    names = [(f"xdma:{node.name.removeprefix('xdma').removesuffix('_user')}", _state(node)) for node in nodes]
    return names or [("xdma:N", "no card found: /dev/xdmaN_user is not there")]


def _overlays(root: Path) -> list[tuple[str, str]]:
    from gharial.devices.pynq.device import UIO_NAME

    names = []
    for folder in sorted((root / "sys" / "class" / "uio").glob("uio[0-9]*")):
        try:
            name = (folder / "name").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        if name == UIO_NAME:
            names.append((f"pynq:{folder.name.removeprefix('uio')}", _state(root / "dev" / folder.name)))
    return names or [("pynq:N", f"no overlay found: no UIO device has the name {UIO_NAME}")]


def _state(node: Path) -> str:
    if not node.exists():
        return f"{node} is not there"
    return _FOUND if os.access(node, os.R_OK | os.W_OK) else _DENIED
