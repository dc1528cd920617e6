# SPDX-License-Identifier: Apache-2.0
"""The emulator's tests of loading and START, on the RTL."""

from __future__ import annotations

import test_emulator_loading
from rtl_device import on_the_rtl
from test_emulator_loading import (  # noqa: F401
    host,
    test_an_image_that_is_not_all_there,
    test_chunks_come_in_order,
    test_header_crc,
    test_header_is_checked,
    test_load_fields,
    test_load_unloads,
    test_start_makes_the_program_current,
)

rtl = on_the_rtl(test_emulator_loading)
