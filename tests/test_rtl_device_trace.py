# SPDX-License-Identifier: Apache-2.0
"""The emulator's tests of traces, on the RTL."""

from __future__ import annotations

import test_emulator_trace
from rtl_device import on_the_rtl
from test_emulator_trace import (  # noqa: F401
    test_encode_and_decode,
    test_greedy_shows_every_joint,
    test_only_what_is_named,
    test_trace_starts_anew_and_changes_nothing,
)

rtl = on_the_rtl(test_emulator_trace)
