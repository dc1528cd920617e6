# SPDX-License-Identifier: Apache-2.0
"""Bench of rtl/batch/finish."""
