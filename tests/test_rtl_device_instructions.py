# SPDX-License-Identifier: Apache-2.0
"""The emulator's tests of single instructions, on the RTL."""

from __future__ import annotations

import test_emulator_instructions
from rtl_device import on_the_rtl
from test_emulator_instructions import (  # noqa: F401
    test_cell,
    test_cell_goes_on_from_its_state,
    test_features_of_missing_vectors_are_zero,
    test_i8_ranges,
    test_joint,
    test_lookup_rows,
    test_predicates,
)

KEPT = "START does not zero slots: what their program leaves out keeps what was there"
rtl = on_the_rtl(test_emulator_instructions, {"test_cell": KEPT, "test_cell_goes_on_from_its_state": KEPT})
