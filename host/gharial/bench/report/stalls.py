# SPDX-License-Identifier: Apache-2.0
"""Clocks by layer and by cause, as bars."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from gharial.bench.report.colours import CAUSE_COLOURS
from gharial.bench.report.told import CAUSE_WORDS
from gharial.devices.verilator.profile import CAUSES, Profile


def shown(profile: Profile) -> list[int]:
    """Rows that have a clock."""
    return [row for row in range(len(profile.rows)) if profile.clocks[row].any()]


def stalls(profile: Profile) -> Figure:
    """Bars of all clocks beside bars of those that the array stood still."""
    rows = shown(profile)
    places = np.arange(len(rows))
    figure = Figure(figsize=(10, 0.24 * len(rows) + 1.4), layout="constrained")
    every, still = figure.subplots(1, 2, sharey=True)
    for axes, first, title in ((every, 0, "all clocks"), (still, 1, "clocks in which the array stood still")):
        left = np.zeros(len(rows))
        for cause in range(first, len(CAUSES)):
            clocks = profile.clocks[rows, cause]
            if clocks.any():
                name = CAUSES[cause]
                label = CAUSE_WORDS[name][0] if axes is every else None
                axes.barh(places, clocks, left=left, color=CAUSE_COLOURS[name], label=label)
                left = left + clocks
        axes.set_title(title, fontsize=9)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.grid(True, axis="x", alpha=0.25)
    every.set_yticks(places, [profile.rows[row] for row in rows], fontsize=8)
    every.set_ylim(len(rows) - 0.5, -0.5)
    figure.legend(loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    return figure
