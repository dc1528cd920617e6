# SPDX-License-Identifier: Apache-2.0
"""Devices by name.

| name | device |
|---|---|
| `emulator`, `emulator:CONFIG` | the machine on the CPU, bit-exact and fast |
| `reference`, `reference:CONFIG` | the integer reference model, from a source checkout |

Without CONFIG a device takes the configuration that the program was compiled for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from gharial.devices.base import Device
from gharial.errors import BadInput
from gharial.isa import configs as named
from gharial.isa.configs import Config
from gharial.isa.header import INTERFACE_TEXT

DEFAULT = "emulator"
KINDS = ("emulator", "reference")
PLANNED = ("verilator", "litex", "xdma", "pynq")

_READY = "ready"


@dataclass(frozen=True)
class DeviceInfo:
    """A device that can be named.

    Attributes:
        name: name to open it by.
        kind: what it is.
        config: its hardware configuration; None where it takes the program's.
        interface_version: version of the command interface it speaks.
        state: "ready", or why it cannot be used.
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
    """The configuration that a device's name asks for, None where it takes the program's.

    Raises:
        BadInput: there is no such device or configuration, or it needs a source checkout.
    """
    kind, _, config = name.partition(":")
    if kind in PLANNED:
        raise BadInput("this device is not part of this version yet", f"device {name}", expected=_names())
    if kind not in KINDS:
        raise BadInput("unknown device", found=name, expected=_names(), remedy="list them with: gharial devices")
    if kind == "reference" and _checkout() is None:
        raise BadInput(
            "the reference model is not part of the installed package",
            f"device {name}",
            remedy="use it from a source checkout (make demo sets one up), or take --device emulator",
        )
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
    wanted = device_config(name)
    if wanted is not None and wanted.config_id != config.config_id:
        raise BadInput(
            "the program is for another configuration than the device",
            f"device {name}",
            config.name,
            wanted.name,
            f"compile it for this device: gharial compile CKPT -o PROGRAM --config {wanted.name}",
        )
    if name.partition(":")[0] == "reference":
        device: Device = _reference().ReferenceDevice(config, manifest)
        return device
    from gharial.devices.emulator import open_emulator

    return open_emulator(config)


def list_devices() -> list[DeviceInfo]:
    """Every device that this version knows, ready or not."""
    states = {"emulator": _emulator_state(), "reference": _reference_state()}
    return [
        DeviceInfo(kind if config is None else f"{kind}:{config}", kind, config, INTERFACE_TEXT, states[kind])
        for kind in KINDS
        for config in (None, *named.configs())
    ]


def _names() -> str:
    return "emulator, reference, each with or without :CONFIG (" + ", ".join(named.configs()) + ")"


def _emulator_state() -> str:
    if importlib.util.find_spec("gharial.devices.emulator._engine") is None:
        return "not built: install the package with a C compiler"
    return _READY


def _reference_state() -> str:
    return _READY if _checkout() is not None else "needs a source checkout"


def _checkout() -> Path | None:
    """The source checkout that this package is used from, if it is."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "sim" / "reference" / "__init__.py").is_file() else None


def _reference() -> ModuleType:
    """The package sim.reference of the checkout, without putting the checkout's folder on the module path."""
    root = _checkout()
    assert root is not None, "device_config has looked"
    if "sim" not in sys.modules:
        folder = root / "sim"
        spec = importlib.util.spec_from_file_location(
            "sim", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if spec is None or spec.loader is None:
            raise BadInput("the checkout's folder sim cannot be used", folder)
        module = importlib.util.module_from_spec(spec)
        sys.modules["sim"] = module
        spec.loader.exec_module(module)
    return importlib.import_module("sim.reference")
