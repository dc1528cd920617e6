# SPDX-License-Identifier: Apache-2.0
"""The emulator's tests of rings, registers and resets, on the RTL."""

from __future__ import annotations

import test_emulator_rings
from rtl_device import on_the_rtl
from test_emulator_rings import (  # noqa: F401
    host,
    test_a_ring_outside_the_memory,
    test_closing,
    test_completions_taken_by_another_thread,
    test_interrupts,
    test_memory_has_an_end,
    test_nothing_runs_before_enable,
    test_ring_overrun,
    test_rings_of_every_size,
    test_soft_reset_keeps_program_slots_and_memory,
)

rtl = on_the_rtl(test_emulator_rings)
