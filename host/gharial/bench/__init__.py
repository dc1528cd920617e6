# SPDX-License-Identifier: Apache-2.0
"""Measurements: each gives a dict that `gharial bench ... --json` prints."""
