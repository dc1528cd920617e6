# SPDX-License-Identifier: Apache-2.0
"""The counters: every clock is one of them, and the active ones are the program's products."""

from __future__ import annotations

from collections.abc import Callable

from gharial.isa import _registers as reg
from sim.uvm.registers.item import RegisterSeen

COUNTERS = ("CYCLES", "ACTIVE", "WEIGHTS", "DEPENDENCY", "BACKPRESSURE", "LOADING", "IDLE")
WORDS = {
    register: (name, half)
    for register in reg.REGISTERS
    for name in COUNTERS
    for half, suffix in enumerate(("_LO", "_HI"))
    if register.name == name + suffix
}


class CounterChecks:
    """Gathers reads since COUNTER_SNAPSHOT was written; checks when all are there.

    Args:
        report: called with the values by name.

    Attributes:
        active: clocks in which the matrix unit should have multiplied since the counters were at zero, or None where
            that is not known: commands were given up or failed on their way.
    """

    def __init__(self, report: Callable[[dict[str, int]], None]) -> None:
        self.active: int | None = 0
        self._report = report
        self._halves: dict[tuple[str, int], int] = {}
        self._expected: int | None = None

    def clear(self) -> None:
        """The counters are at zero, and so is what was latched of them."""
        self.active = self._expected = 0
        self._halves.clear()

    def latch(self, settled: bool) -> None:
        """They were latched; `settled`: nothing was on its way."""
        self._halves.clear()
        self._expected = self.active if settled else None

    def check(self, seen: RegisterSeen) -> None:
        """One read."""
        if seen.register not in WORDS:
            return
        self._halves[WORDS[seen.register]] = seen.value
        if len(self._halves) < len(WORDS):
            return
        values = {name: self._halves[name, 0] | self._halves[name, 1] << 32 for name in COUNTERS}
        self._halves.clear()
        parts = sum(value for name, value in values.items() if name != "CYCLES")
        assert parts == values["CYCLES"], f"counters do not add up: {values}"
        assert values["WEIGHTS"] == 0, f"weights are on chip, and were waited for: {values}"
        assert self._expected in (None, values["ACTIVE"]), (
            f"the matrix unit multiplied in {values['ACTIVE']} clocks, the program has {self._expected} products"
        )
        self._report(values)
