# SPDX-License-Identifier: Apache-2.0
"""The emulator's tests of instructions that a program must not have, on the RTL."""

from __future__ import annotations

import test_emulator_opcodes
from rtl_device import on_the_rtl
from test_emulator_opcodes import (  # noqa: F401
    test_bad_opcode,
    test_masks_of_vectors_that_are_not_there,
    test_operands_outside_their_space,
)

rtl = on_the_rtl(test_emulator_opcodes)
