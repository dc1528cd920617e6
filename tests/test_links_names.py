# SPDX-License-Identifier: Apache-2.0
"""Boards by name: which are listed, what is said of those that are not there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from command import Outcome
from conftest import ROOT
from links import board
from sim.links.bridges import UartServer
from small_program import TINY

from gharial.devices import boards
from gharial.devices.base import Device
from gharial.devices.litex import LitexDevice
from gharial.devices.litex.device import BusMap
from gharial.devices.open import device_config, open_device
from gharial.errors import BadInput, LinkError
from gharial.isa import _registers as reg

pytest.importorskip("serial", reason="needs pyserial")

Run = Callable[..., Outcome]
SHORT = ROOT / "host" / "gharial" / "data" / "recordings" / "u084.flac"


def test_the_map_is_that_of_the_images() -> None:
    """And what both sides must agree on besides."""
    table = yaml.safe_load((ROOT / "rtl" / "boards.yaml").read_text(encoding="utf-8"))
    places = BusMap()
    assert places.registers == table["map"]["registers"]["base"] and places.memory == table["map"]["memory"]["base"]
    for image in table["boards"].values():
        assert image["uart_baud"] == 1_000_000
        assert image["ethernet"] is None or image["ethernet"]["udp_port"] == 1234


def listed(root: Path) -> dict[str, str]:
    return dict(boards.found(root))


def test_boards_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """USB ports alone of the serial ones, UIO devices alone that have the accelerator's name. None is opened."""
    ports = [
        SimpleNamespace(device="/dev/ttyUSB1", vid=0x403),
        SimpleNamespace(device="/dev/ttyUSB0", vid=0x403),
        SimpleNamespace(device="/dev/ttyS0", vid=None),
    ]
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: ports)
    (tmp_path / "dev").mkdir()
    for node in ("ttyUSB0", "xdma1_user", "xdma1_h2c_0", "uio0", "uio1"):
        (tmp_path / "dev" / node).touch()
    for number, name in enumerate(("gharial", "something else")):
        folder = tmp_path / "sys" / "class" / "uio" / f"uio{number}"
        folder.mkdir(parents=True)
        (folder / "name").write_text(name + "\n")
    monkeypatch.setattr(os, "open", lambda *given: pytest.fail("a board was opened"))
    found = listed(tmp_path)
    assert found["litex:uart:/dev/ttyUSB0"] == found["xdma:1"] == found["pynq:0"] == "found"
    assert "is not there" in found["litex:uart:/dev/ttyUSB1"]
    assert "name the board's address" in found["litex:eth:HOST"]
    assert set(found) == {"litex:uart:/dev/ttyUSB0", "litex:uart:/dev/ttyUSB1", "litex:eth:HOST", "xdma:1", "pynq:0"}
    monkeypatch.setattr(os, "access", lambda *given: False)
    assert "udev rule" in listed(tmp_path)["xdma:1"]


def test_boards_that_there_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serial.tools.list_ports.comports", list)
    found = listed(tmp_path)
    assert list(found) == list(boards.FORMS)
    assert "no USB serial port" in found["litex:uart:PORT"] and "no card" in found["xdma:N"]


@pytest.mark.parametrize(
    ("device", "parts"),
    [
        ("litex:uart:/dev/no-such-port", ["/dev/no-such-port: no such port", "gharial devices"]),
        ("litex:uart:/dev/null", ["/dev/null: no serial port"]),
        ("xdma:200", ["xdma200_user: no such card", "lspci"]),
        ("pynq:200", ["/dev/uio200: no such device", "overlay"]),
    ],
)
def test_boards_that_are_named_and_not_there(cli: Run, device: str, parts: list[str]) -> None:
    cli("transcribe", "--device", device, SHORT).refused(*parts, code=1)


def test_pyserial_is_missing(monkeypatch: pytest.MonkeyPatch, cli: Run, tmp_path: Path) -> None:
    for name in ("serial", "serial.tools"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    cli("transcribe", "--device", "litex:uart:/dev/ttyUSB0", SHORT).refused("pip install pyserial")
    assert "pip install pyserial" in listed(tmp_path)["litex:uart:PORT"]


@pytest.fixture
def there() -> Iterator[tuple[Device, str]]:
    """An accelerator, and the name of the board that it is on."""
    with board(UartServer) as found:
        found.link.close()
        yield found.device, f"litex:uart:{found.server.path}"


def test_a_board_says_what_it_is(there: tuple[Device, str], monkeypatch: pytest.MonkeyPatch) -> None:
    card, name = there
    assert device_config(name) == TINY
    device = open_device(name, TINY, {})
    assert isinstance(device, LitexDevice) and device.name == name
    device.close()
    real = card.read_register
    for register, value, kind, words in (
        (reg.ID, 0x12345678, LinkError, "no Gharial: its identity reads 0x12345678"),
        (reg.ID, 0xFFFFFFFF, LinkError, "does not answer"),
        (reg.CONFIG_ID, 7, BadInput, "does not know"),
    ):
        other = {register.offset: value}
        monkeypatch.setattr(card, "read_register", lambda offset, other=other: other.get(offset) or real(offset))
        with pytest.raises(kind, match=words) as caught:
            device_config(name)
        assert len(str(caught.value).splitlines()) <= 3


def test_names_with_rates_and_ports(there: tuple[Device, str], monkeypatch: pytest.MonkeyPatch) -> None:
    _, name = there
    device = open_device(f"{name}@115200", TINY, {})
    assert isinstance(device, LitexDevice) and "115200 baud" in device.bridge.where
    device.close()
    for text in ("0", "-1", "long", "nan", "1e9"):
        monkeypatch.setenv("GHARIAL_LINK_SECONDS", text)
        with pytest.raises(BadInput, match="GHARIAL_LINK_SECONDS"):
            open_device(name, TINY, {})
    monkeypatch.setenv("GHARIAL_LINK_SECONDS", "0.02")
    with pytest.raises(LinkError, match=r"no answer from 127.0.0.3, UDP port 4321 in 5 tries of 0.02 s"):
        open_device("litex:eth:127.0.0.3:4321", TINY, {})
