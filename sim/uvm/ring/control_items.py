# SPDX-License-Identifier: Apache-2.0
"""What a ring's driver is asked for besides commands."""

from __future__ import annotations

from pyuvm import uvm_sequence_item

from sim.uvm.ring.items import Fields


class SetupItem(uvm_sequence_item):
    """Rings anew: their places and sizes are written and the device is enabled, all indices being zero."""

    def __init__(self, command_log2: int, completion_log2: int, command_base: int, completion_base: int) -> None:
        super().__init__("setup")
        self.command_log2, self.completion_log2 = command_log2, completion_log2
        self.command_base, self.completion_base = command_base, completion_base


class FlushItem(uvm_sequence_item):
    """Ring the bell, and take completions until all commands have one, or the device halts.

    Attributes:
        notice: how completions are noticed: "pins", "poll" or "interrupt".
        completions: those taken, filled in.
        halted: whether the device halted before all were done, filled in.
    """

    def __init__(self, notice: str = "pins") -> None:
        super().__init__("flush")
        self.notice = notice
        self.completions: list[Fields] = []
        self.halted = False


class BellItem(uvm_sequence_item):
    """Write the doorbell, whatever has been posted.

    Attributes:
        ahead: added to the number of commands posted.
    """

    def __init__(self, ahead: int = 0) -> None:
        super().__init__("bell")
        self.ahead = ahead


class SoftResetItem(uvm_sequence_item):
    """Soft reset: what is on its way is given up. Returns when the device says that it is done."""

    def __init__(self) -> None:
        super().__init__("soft reset")
