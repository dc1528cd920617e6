# SPDX-License-Identifier: Apache-2.0
"""`gharial serve`, and two signals: SIGUSR1 has a device fail at its next command, SIGUSR2 collects garbage.

python -m scripts.soak.child serve --port 0
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import signal
import sys
from typing import Any

import gharial.recognise.recogniser as recogniser
from gharial.cli import main
from gharial.devices.emulator import EmulatorDevice
from gharial.devices.open import open_device
from gharial.isa.faults import Fault


def prepare() -> None:
    """Remember every device that is opened, and listen for the signals."""
    devices: list[EmulatorDevice] = []
    opened = open_device
    ways = itertools.cycle(("watchdog", "read", "write"))
    turns = itertools.count()

    def remembered(*args: Any, **options: Any) -> Any:
        device = opened(*args, **options)
        assert isinstance(device, EmulatorDevice)
        devices.append(device)
        return device

    def fail(number: int, frame: object) -> None:
        if devices:
            device, way = devices[next(turns) % len(devices)], next(ways)
            if way == "watchdog":
                device.inject_watchdog()
            else:
                device.inject_bus_error(Fault.BUS_READ if way == "read" else Fault.BUS_WRITE)

    def collect(number: int, frame: object) -> None:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what is free is given back, or it would count as taken

    vars(recogniser)["open_device"] = remembered
    signal.signal(signal.SIGUSR1, fail)
    signal.signal(signal.SIGUSR2, collect)


if __name__ == "__main__":
    prepare()
    sys.exit(main())
