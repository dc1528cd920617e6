# SPDX-License-Identifier: Apache-2.0
"""The emulator's tests of a whole network, on the RTL."""

from __future__ import annotations

import test_emulator_network
from rtl_device import on_the_rtl
from test_emulator_network import (  # noqa: F401
    test_batch_is_single,
    test_forks,
    test_greedy,
    test_other_numbers_of_vectors,
    tiny,
)

rtl = on_the_rtl(test_emulator_network)
