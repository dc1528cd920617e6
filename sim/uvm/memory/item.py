# SPDX-License-Identifier: Apache-2.0
"""An order to the memory: be of that profile, or answer with an error."""

from __future__ import annotations

from pyuvm import uvm_sequence_item

from sim.uvm.memory.profile import Profile


class MemoryItem(uvm_sequence_item):
    """A change of the memory's behaviour.

    Attributes:
        profile: the profile from now on, or None to leave it.
        error: "read" or "write": the first such access within `low .. high` gets an error response. "": none.
        forget: drop errors that were ordered and have not happened.
    """

    def __init__(
        self, profile: Profile | None = None, error: str = "", low: int = 0, high: int = 0, forget: bool = False
    ) -> None:
        super().__init__("memory item")
        self.profile, self.error, self.low, self.high, self.forget = profile, error, low, high, forget
