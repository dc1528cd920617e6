# SPDX-License-Identifier: Apache-2.0
"""USB cables of boards, as Linux lists them: which there are, whether they may be used, which serial port is theirs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gharial.errors import BadInput, DeviceError
from gharial.isa.boards import Board

# USB vendor and product of the cable that is on a board, by the loader's name of the board.
CABLES = {"ulx3s": (0x0403, 0x6015), "ecpix5": (0x0403, 0x6010)}

RULE = "install the udev rule (gharial flash --udev), then plug the board in again"


@dataclass(frozen=True)
class Cable:
    """A cable that is plugged in.

    Attributes:
        serial: its serial number, '' if it has none.
        node: the device file that the loader opens.
        usable: whether this user may open it.
        place: where it is plugged in, as Linux names it.
    """

    serial: str
    node: Path
    usable: bool
    place: str


def find_cable(board: Board, serial: str | None = None, root: Path = Path("/")) -> Cable | None:
    """The cable of a board; None where the system does not list USB devices, so that the loader has to look.

    Args:
        board: whose.
        serial: its serial number, where there are several.
        root: where `sys` and `dev` are.

    Raises:
        DeviceError: there is none, or it may not be used.
        BadInput: there are several.
    """
    folder = root / "sys" / "bus" / "usb" / "devices"
    if board.loader not in CABLES or not folder.is_dir():
        return None
    found = [cable for path in sorted(folder.iterdir()) if (cable := _cable(path, CABLES[board.loader], root))]
    if serial is not None:
        found = [cable for cable in found if cable.serial == serial]
    vendor, product = CABLES[board.loader]
    if not found:
        named = "" if serial is None else f" with serial number {serial}"
        raise DeviceError(
            f"no cable of a {board.key} found{named} (USB {vendor:04x}:{product:04x}); plug the board in, with a cable "
            "that carries data",
            unit="cable",
        )
    if len(found) > 1:
        numbers = ", ".join(cable.serial or "(none)" for cable in found)
        raise BadInput(f"several boards could be a {board.key}", "--serial", numbers, "one serial number", "choose one")
    (cable,) = found
    if not cable.usable:
        raise DeviceError(f"{cable.node}: no permission to use the cable; {RULE}", unit="cable")
    return cable


def _cable(path: Path, wanted: tuple[int, int], root: Path) -> Cable | None:
    try:
        if (int(_text(path / "idVendor"), 16), int(_text(path / "idProduct"), 16)) != wanted:
            return None
        bus, number = int(_text(path / "busnum")), int(_text(path / "devnum"))
    except (OSError, ValueError):
        return None  # an interface, or a device that was just pulled out
    try:
        serial = _text(path / "serial")
    except OSError:
        serial = ""
    node = root / "dev" / "bus" / "usb" / f"{bus:03d}" / f"{number:03d}"
    return Cable(serial, node, os.access(node, os.R_OK | os.W_OK), path.name)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").strip()


def serial_port(board: Board, serial: str | None = None) -> str | None:
    """The serial port that the board's cable is as well: of those of one cable the last, as the first is for JTAG.

    Raises:
        BadInput: pyserial is not installed.
    """
    try:
        from serial.tools import list_ports
    except ImportError:
        what = "serial ports need pyserial, which is not installed"
        raise BadInput(what, remedy="pip install pyserial, or gharial[links]") from None
    wanted = CABLES.get(board.loader)
    ports = [port for port in list_ports.comports() if (port.vid, port.pid) == wanted]
    ports = [port for port in ports if serial is None or port.serial_number == serial]
    return max((port.device for port in ports), default=None)
