# SPDX-License-Identifier: Apache-2.0
"""The emulator's tests of top-k, log-sum-exp and results, on the RTL."""

from __future__ import annotations

import test_emulator_ranking
from rtl_device import on_the_rtl
from test_emulator_ranking import (  # noqa: F401
    test_all_logits,
    test_fuzzy,
    test_fuzzy_needs_blocks_and_survivors,
    test_named_classes,
    test_results_lie_a_stride_apart,
    test_temperatures,
    test_top_k_and_log_sum_exp,
)

rtl = on_the_rtl(test_emulator_ranking)
