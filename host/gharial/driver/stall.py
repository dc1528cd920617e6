# SPDX-License-Identifier: Apache-2.0
"""Why a command does not end: what status, indices and counters say about a device that is late."""

from __future__ import annotations

from dataclasses import dataclass

from gharial.devices.base import Device
from gharial.driver.registers import MASK, Counters, Registers
from gharial.errors import DeviceError
from gharial.isa import _registers as reg

LOOK = 0.02  # seconds between two looks at the counters

_REASONS = {
    "active": ("matrix unit", "it still multiplies: the limit may be too short"),
    "weights": ("memory", "the matrix unit waits for weights"),
    "dependency": ("sequencer", "an instruction waits for the results of an earlier one"),
    "backpressure": ("vector unit", "a full unit or ring holds the others back"),
    "loading": ("memory", "program, state, entries or features are being loaded"),
    "idle": ("sequencer", "the device idles although a command is outstanding"),
}


@dataclass(frozen=True)
class Stall:
    """Unit that stands still, and why that is thought."""

    unit: str
    reason: str


def diagnose(registers: Registers, device: Device, wanted: int) -> Stall:
    """Look at a device that has not reached the completion index `wanted` (free-running) in time.

    A link that fails meanwhile is one more reason.
    """
    try:
        registers.check_alive()
        return _look(registers, device, wanted)
    except DeviceError as error:
        return Stall("link", error.what)


def _look(registers: Registers, device: Device, wanted: int) -> Stall:
    status = registers.status()
    if not status.ready:
        return Stall("host interface", "the device is not enabled: someone else reset it, or it lost power")
    behind = (wanted - registers.read(reg.CMD_HEAD)) & MASK
    if 0 < behind < 1 << 31 and not status.busy:
        return Stall("host interface", f"{behind} commands were never fetched, and nothing is being done")
    before = registers.counters()
    device.wait(wanted, LOOK)
    return _from_counters(registers.counters().since(before), status.busy)


def _from_counters(spent: Counters, busy: bool) -> Stall:
    if not spent.cycles:
        return Stall("clock", "the counters stand still: the device has no clock, or counts none")
    cause = max(_REASONS, key=lambda name: int(getattr(spent, name)))
    unit, reason = _REASONS[cause]
    share = 100 * getattr(spent, cause) // spent.cycles
    return Stall(unit, f"{reason} ({share} % of {spent.cycles} clocks{', busy' if busy else ''})")
