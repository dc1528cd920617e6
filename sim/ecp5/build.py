# SPDX-License-Identifier: Apache-2.0
"""A netlist as a device of the driver: the same shim as around the RTL in simulation, around netlist.cpp.

Made of the netlist as it goes to placement: constants that nextpnr would route are taken out of it, as in an image.
What is made is kept in build/netlist/CONFIG, by the netlist's digest.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from scripts.board import constants
from scripts.rtl import sources, synth, tools
from scripts.rtl.tools import BUILD, ToolError

from gharial.devices.verilator import VerilatorDevice
from gharial.devices.verilator import build as rtl
from gharial.errors import DeviceError
from gharial.files import write_atomically
from gharial.isa.configs import Config, config
from sim.ecp5 import table
from sim.runtime import alone

HERE = Path(__file__).resolve().parent
FOLDER = BUILD / "netlist"
_LOOK_S = 0.2
_OPTIONS = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-Wall", "-Wextra"]


class NetlistDevice(VerilatorDevice):
    """A netlist with its clock; what the driver asks of it, it does as the RTL in simulation.

    Attributes:
        most: clocks since power-on after which nothing is waited for any more; None: for ever.
    """

    kind = "netlist"
    most: int | None = None

    def __init__(self, own: Config, path: Path, seed: int = 1) -> None:
        super().__init__(own, path, seed)
        self.name = f"netlist:{own.name}"

    def wait(self, completions: int, timeout: float) -> bool:
        """As the RTL; DeviceError where it goes on beyond `most` clocks."""
        until = time.monotonic() + timeout
        while not super().wait(completions, max(0.0, min(_LOOK_S, until - time.monotonic()))):
            if self.most is not None and self.cycles > self.most:
                raise DeviceError(f"not done after {self.most} clocks")
            if time.monotonic() >= until:
                return False
        return True


def library(name: str, netlist: Path, change: Callable[[Path], object] | None = None) -> Path:
    """The library of a configuration's netlist.

    Args:
        name: configuration.
        netlist: what `make synth` left of gharial_onchip.
        change: makes another netlist of it, in place.

    Raises:
        ToolError: a cell that is not modelled, or it does not compile.
    """
    folder = FOLDER / (name if change is None else f"{name}-changed")
    with alone(folder):
        return compiled(config(name), content(netlist, folder, change), folder)


def content(netlist: Path, folder: Path, change: Callable[[Path], object] | None = None) -> bytes:
    """The table of a netlist (table.py), less what an image's build takes out of it; `folder` is for what it needs.

    Raises:
        ToolError: a cell that is not modelled.
    """
    own, made = folder / "netlist.json", folder / "netlist.table"
    shutil.copyfile(netlist, own)
    constants.take_out(own)
    if change is not None:
        change(own)
    table.write(own, made)
    found = made.read_bytes()
    own.unlink()
    made.unlink()
    return found


def compiled(own: Config, words: bytes, folder: Path) -> Path:
    """The shim around a table; what is there already is taken."""
    kept = folder / f"{hashlib.sha256(words).hexdigest()[:16]}.table"
    if not kept.is_file():  # another process may be reading it
        write_atomically(kept, iter([words]))
    shims = sorted(rtl.SHIM.glob("*.cpp"))
    command = [tools.cxx(), *_OPTIONS, f'-DGHARIAL_NETLIST="{kept}"', f"-DGHARIAL_ROWS={own.rows}"]
    command += [f"-DGHARIAL_COLS={own.cols}", *(f"-I{folder}" for folder in (HERE, HERE / "include", rtl.SHIM))]
    command += [*map(str, (HERE / "netlist.cpp", *shims)), "-pthread"]
    sources = [path for place in (HERE, HERE / "include", rtl.SHIM) for path in sorted(place.glob("*.[ch]*"))]
    key = hashlib.sha256(b"\0".join([repr(command).encode(), *(path.read_bytes() for path in sources)])).hexdigest()
    made, part = kept.with_suffix(f".{key[:16]}.so"), folder / "part.so"
    if made.is_file():
        return made
    done = subprocess.run(
        [*command, "-o", str(part)],
        env=tools.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise ToolError(f"the netlist's device does not compile\n{done.stdout[-2000:]}")
    part.replace(made)
    return made


def synthesised(name: str) -> Path:
    """The netlist of gharial_onchip in a configuration, as `make synth` leaves it; one of the same sources is taken.

    Raises:
        ToolError: Yosys refused the design.
    """
    folder = BUILD / "synth" / f"{synth.WHOLE}-{name}"
    made, stamp = folder / "netlist.json", folder / "sources"
    with alone(folder):
        if not present(name):
            stamp.unlink(missing_ok=True)
            synth.synthesise(synth.WHOLE, name, folder, {})
            stamp.write_text(sources_digest())
    return made


def present(name: str) -> bool:
    """Whether the netlist of today's sources is there."""
    folder = BUILD / "synth" / f"{synth.WHOLE}-{name}"
    stamp, made = folder / "sources", folder / "netlist.json"
    if not (stamp.is_file() and made.is_file() and stamp.stat().st_mtime >= made.stat().st_mtime):
        return False  # another build of it came after the one that was marked
    return stamp.read_text() == sources_digest()


def sources_digest() -> str:
    """Digest of all that a netlist depends on."""
    paths = sorted([*sources.RTL.rglob("*.sv"), sources.RTL / "csr" / "gharial.rdl", sources.RTL / "configs.yaml"])
    texts = [path.read_bytes() for path in [*paths, Path(synth.__file__)]]
    versions = [importlib.metadata.version(package).encode() for package in ("pyosys", "peakrdl-regblock")]
    return hashlib.sha256(b"\0".join([*texts, *versions])).hexdigest()
