# SPDX-License-Identifier: Apache-2.0
"""Bench of the batch machine's command block."""
