# SPDX-License-Identifier: Apache-2.0
"""The roofline plot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator

from gharial.bench.observed import Point

_COLOURS = ("#d1495b", "#1f6f8b", "#66a182")


def roofline(points: Sequence[Point], array: int, linear: float) -> Figure:
    """Products a clock against products a byte.

    Args:
        points: runs, with bytes above 0.
        array: products a clock that the array makes at most.
        linear: bytes a clock of a plain linear read.
    """
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    ridge = array / linear
    low = min([ridge, *(point.intensity for point in points)]) / 4
    high = max([ridge, *(point.intensity for point in points)]) * 4
    x = np.array([low, ridge, high])
    axes.loglog(x, np.minimum(array, linear * x), color="#333333", linewidth=1.5)
    axes.fill_between(x, np.minimum(array, linear * x), array * 1.6, color="#333333", alpha=0.06, linewidth=0)
    axes.text(high, array, f"array: {array:,} products a clock", ha="right", va="bottom", fontsize=8)
    middle = math.sqrt(low * ridge)
    axes.text(
        middle, linear * middle * 1.05, f"memory: {linear:.1f} bytes a clock ", ha="right", va="bottom", fontsize=8
    )
    for point, colour in zip(points, _COLOURS, strict=False):
        roof = min(array, linear * point.intensity)
        axes.plot([point.intensity] * 2, [point.speed, roof], color=colour, linewidth=0.8, linestyle=":")
        label = f"{point.name}: {point.speed:,.0f} products a clock, {point.speed / roof:.1%} of the roof"
        axes.plot([point.intensity], [point.speed], "o", color=colour, label=label)
    axes.set_xlim(low, high)
    axes.set_ylim(min(linear * low, *(point.speed / 2 for point in points)), array * 1.6)
    axes.set_xlabel("useful products a byte of weights")
    axes.set_ylabel("useful products a clock")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(EngFormatter(sep=""))
        axis.set_minor_formatter(EngFormatter(sep=""))
        axis.set_tick_params(which="minor", labelsize=7)
        axis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.grid(True, which="major", alpha=0.25)
    axes.legend(loc="lower right", fontsize=8)
    return figure
