# SPDX-License-Identifier: Apache-2.0
"""The emulator's tests of slots, on the RTL."""

from __future__ import annotations

import test_emulator_slots
from rtl_device import on_the_rtl
from test_emulator_slots import (  # noqa: F401
    host,
    test_a_bad_entry_undoes_the_good_ones_before,
    test_as_many_slots_as_the_pools_hold,
    test_encoder_and_prediction_slots_are_apart,
    test_ended_slots,
    test_flag_of_a_stream_command_is_not_the_bank,
    test_hazards_between_entries,
    test_nothing_is_left_of_the_slot_before,
    test_numbers_beyond_the_slots,
    test_reset_free_copy,
    test_save_and_restore,
    test_start_frees_all_slots,
)

rtl = on_the_rtl(test_emulator_slots)
