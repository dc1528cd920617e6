# SPDX-License-Identifier: Apache-2.0
"""One access to a register."""

from __future__ import annotations

from pyuvm import uvm_sequence_item

from gharial.isa import _registers as reg


class RegisterItem(uvm_sequence_item):
    """A write of `value`, or a read that leaves what it found there.

    Attributes:
        register: which.
        is_write: the direction.
        value: 32 bits.
        hold: clocks for which the response is not taken.
    """

    def __init__(self, register: reg.Reg, value: int | None = None, hold: int = 0) -> None:
        super().__init__(register.name)
        self.register, self.is_write, self.value, self.hold = register, value is not None, value or 0, hold


class RegisterSeen:
    """An access as it passed the port: with its write word, or with the read response."""

    def __init__(self, register: reg.Reg, is_write: bool, value: int) -> None:
        self.register, self.is_write, self.value = register, is_write, value
