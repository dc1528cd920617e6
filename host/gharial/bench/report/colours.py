# SPDX-License-Identifier: Apache-2.0
"""Colours that plots and tables share."""

from __future__ import annotations

CAUSE_COLOURS = {
    "active": "#66a182",
    "weights": "#d1495b",
    "dependency": "#edae49",
    "backpressure": "#8d6a9f",
    "loading": "#1f6f8b",
    "idle": "#c4c4c4",
}
"""Of what a clock is counted as."""
