# SPDX-License-Identifier: Apache-2.0
"""Devices by name.

| name | device |
|---|---|
| `emulator`, `emulator:CONFIG` | the machine on the CPU, bit-exact and fast |
| `reference`, `reference:CONFIG` | the integer reference model, from a source checkout |
| `verilator`, `verilator:CONFIG` | the RTL in simulation, from a source checkout with the tools that `make sim` gets |
| `litex:uart:PORT`, `litex:uart:PORT@BAUD` | a board at a serial port |
| `litex:eth:HOST`, `litex:eth:HOST:PORT` | a board on the network |
| `xdma:N` | PCIe card N |
| `pynq:N` | the overlay of a Zynq at /dev/uioN |

Without CONFIG a device takes the configuration that the program was compiled for; the RTL is that of ecp5-85f. Boards
say themselves which they have.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gharial.devices import boards, checkout
from gharial.devices.base import Device
from gharial.errors import BadInput
from gharial.isa import configs as named
from gharial.isa.configs import Config
from gharial.isa.header import INTERFACE_TEXT

DEFAULT = "emulator"
KINDS = ("emulator", "reference", "verilator", *boards.KINDS)
RTL = "ecp5-85f"
"""Configuration of the device `verilator` where its name has none."""

_READY = "ready"
# Kinds that the package does not hold, and a file by which a checkout is known to have them.
_OUTSIDE = {
    "reference": ("the reference model", "sim/reference/__init__.py"),
    "verilator": ("the RTL", "rtl/csr/gharial.rdl"),
}


@dataclass(frozen=True)
class DeviceInfo:
    """A device that can be named.

    Attributes:
        name: name to open it by.
        kind: what it is.
        config: its hardware configuration; None where it takes the program's, or where it is a board, which is not
            asked before it is opened.
        interface_version: version of the command interface that it must speak.
        state: "ready", "found" for a board that is there, or why it cannot be used.
    """

    name: str
    kind: str
    config: str | None
    interface_version: str
    state: str

    def as_json(self) -> dict[str, str | None]:
        """The object that `gharial devices --json` lists."""
        return asdict(self)


def device_config(name: str) -> Config | None:
    """The configuration that a device's name asks for, None where it takes the program's. A board is asked.

    Raises:
        BadInput: there is no such device or configuration, or it needs a source checkout.
        DeviceError: a board that cannot be asked.
    """
    kind, _, config = name.partition(":")
    if kind in boards.KINDS:
        return boards.board_config(name)
    if kind not in KINDS:
        raise BadInput("unknown device", found=name, expected=_names(), remedy="list them with: gharial devices")
    if kind in _OUTSIDE and not checkout.has(_OUTSIDE[kind][1]):
        raise BadInput(
            f"{_OUTSIDE[kind][0]} is not part of the installed package",
            f"device {name}",
            remedy="use it from a source checkout (make demo sets one up), or take --device emulator",
        )
    if name == "verilator":
        return named.config(RTL)
    if not config:
        if name != kind:
            raise BadInput("a configuration must follow the colon", f"device {name}", expected=f"{kind}:CONFIG")
        return None
    return named.config(config)


def open_device(name: str, config: Config, manifest: Mapping[str, Any]) -> Device:
    """Open a device for a program.

    Args:
        name: as listed above.
        config: the program's configuration.
        manifest: the program's manifest. The reference model needs what it says about the layers; no other device
            looks at it.

    Raises:
        BadInput: there is no such device, it has another configuration, or it needs a source checkout.
        DeviceError: the device could not be opened.
    """
    kind = name.partition(":")[0]
    if kind in boards.KINDS:
        return boards.open_board(name, config)  # whose configuration the driver looks at
    wanted = device_config(name)
    if wanted is not None and wanted.config_id != config.config_id:
        raise BadInput(
            "the program is for another configuration than the device",
            f"device {name}",
            config.name,
            wanted.name,
            f"compile it for this device: gharial compile CKPT -o PROGRAM --config {wanted.name}",
        )
    if kind == "reference":
        device: Device = checkout.module("sim.reference").ReferenceDevice(config, manifest)
        return device
    if kind == "verilator":
        from gharial.devices.verilator import open_verilator

        return open_verilator(config)
    from gharial.devices.emulator import open_emulator

    return open_emulator(config)


def list_devices() -> list[DeviceInfo]:
    """Every device that this version knows, ready or not."""
    every = list(named.configs())
    kinds = [
        ("emulator", None, every, _emulator_state()),
        ("reference", None, every, _reference_state()),
        ("verilator", RTL, every, _rtl_state()),
    ]
    return [
        DeviceInfo(kind if config is None else f"{kind}:{config}", kind, config or default, INTERFACE_TEXT, state)
        for kind, default, configs, state in kinds
        for config in (None, *configs)
    ] + [DeviceInfo(name, name.partition(":")[0], None, INTERFACE_TEXT, state) for name, state in boards.found()]


def _names() -> str:
    simulated = f"emulator, reference, verilator, each with or without :CONFIG ({', '.join(named.configs())})"
    return f"{simulated}; {', '.join(boards.FORMS)}"


def _emulator_state() -> str:
    if importlib.util.find_spec("gharial.devices.emulator._engine") is None:
        return "not built: install the package with a C compiler"
    return _READY


def _reference_state() -> str:
    return _READY if checkout.has(_OUTSIDE["reference"][1]) else "needs a source checkout"


def _rtl_state() -> str:
    from gharial.devices.verilator.build import problem

    return problem() or _READY
