# SPDX-License-Identifier: Apache-2.0
"""The emulator's tests of commands, fields and faults, on the RTL."""

from __future__ import annotations

import test_emulator_faults
from rtl_device import on_the_rtl
from test_emulator_faults import (  # noqa: F401
    host,
    test_decode_entries,
    test_descriptor_crc,
    test_encode_entries,
    test_entry_list_address_and_crc,
    test_features_crc,
    test_fields_of_decode_and_greedy,
    test_flags,
    test_greedy_entries,
    test_number_of_entries,
    test_slot_entries,
    test_unknown_operations,
)

rtl = on_the_rtl(test_emulator_faults)
