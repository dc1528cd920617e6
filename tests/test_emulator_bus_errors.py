# SPDX-License-Identifier: Apache-2.0
"""Bus errors on the emulator: the same cases, and the same of each, as on the core's bench (sim/top)."""

from __future__ import annotations

import pytest
from driver_devices import emulator, modelled

from gharial.isa.faults import Fault

bus_errors = pytest.importorskip("sim.top.bus_errors", reason="needs a source checkout")


def test_every_access(seed: int) -> None:
    from sim.common.posting import Telling
    from sim.common.programs import lively

    program = lively()

    class Failing(Telling, emulator.EmulatorDevice):  # type: ignore[misc, name-defined]
        """Tells of commands before their doorbell is rung, and lets accesses fail."""

        def ring_doorbell(self, tail: int) -> None:
            self.tell(self, tail)
            super().ring_doorbell(tail)

        def reset(self) -> None:
            self.begin_anew()
            super().reset()

        def fail(self, writes: bool, address: int) -> None:
            self.inject_bus_error(Fault.BUS_WRITE if writes else Fault.BUS_READ, address)

    session = bus_errors.Session(Failing(program.config, program.config.window_bytes), modelled(program), program, seed)
    for case in bus_errors.CASES:
        session.check(case)
