# SPDX-License-Identifier: Apache-2.0
"""What the units do over the clocks of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from gharial.bench.report.colours import CAUSE_COLOURS
from gharial.bench.report.told import CAUSE_WORDS
from gharial.devices.verilator.profile import CAUSES, NO_LAYER, Profile

MOST = 800
"""Buckets of a plot at most."""


@dataclass(frozen=True)
class Span:
    """A part of a profile, in buckets that a plot can show.

    Attributes:
        start: clock of the first bucket.
        clocks: float64 (buckets,), of each.
        causes, layers, at_work: as in `Profile`, int64.
        weight_bytes, state_bytes: int64 (buckets,).
    """

    start: int
    clocks: np.ndarray
    causes: np.ndarray
    layers: np.ndarray
    at_work: np.ndarray
    weight_bytes: np.ndarray
    state_bytes: np.ndarray


def whole(profile: Profile) -> Span:
    """All clocks."""
    return _span(profile, 0, len(profile.causes))


def window(profile: Profile) -> Span | None:
    """A window in the middle, as finely as it was counted; None where the whole shows all there is."""
    count = len(profile.causes)
    size = MOST // 2
    return _span(profile, (count - size) // 2, size) if count > 2 * MOST else None


def _span(profile: Profile, first: int, count: int) -> Span:
    step = -(-count // MOST)
    starts = np.arange(0, count, step)
    parts = (profile.causes, profile.layers, profile.at_work, profile.weight_bytes, profile.state_bytes)
    causes, layers, at_work, weights, state = (np.add.reduceat(part[first : first + count], starts) for part in parts)
    return Span(first * profile.width, causes.sum(axis=1).astype(float), causes, layers, at_work, weights, state)


def timeline(profile: Profile, span: Span, linear: float | None) -> Figure:
    """Array, memory, units and layers, one below the other.

    Args:
        profile: whose names are shown.
        span: what is shown.
        linear: bytes a clock of a plain linear read; None where weights are on chip.
    """
    used = [row for row, name in enumerate(profile.rows) if span.layers[:, row].any() or name == NO_LAYER]
    heights = [2.2, *([1.4] if linear else []), 0.2 * len(profile.units), 0.17 * len(used)]
    figure = Figure(figsize=(10, sum(heights) + 0.9), layout="constrained")
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    edges = span.start + np.concatenate([[0.0], np.cumsum(span.clocks)])
    _causes(axes[0], span, edges)
    if linear:
        _memory(axes[1], span, edges, linear)
    _strips(axes[-2], span.at_work / span.clocks[:, None], profile.units, edges, "Blues")
    shares = span.layers[:, used] / span.clocks[:, None]
    _strips(axes[-1], shares, [profile.rows[row] for row in used], edges, "Greens")
    axes[-1].set_xlim(edges[0], edges[-1])
    axes[-1].xaxis.set_major_formatter(EngFormatter(sep=""))
    axes[-1].set_xlabel(f"clocks since the first doorbell, {span.clocks[0]:,.0f} a bucket")
    return figure


def _causes(axes: Axes, span: Span, edges: np.ndarray) -> None:
    below = np.zeros(len(span.clocks))
    for cause, name in enumerate(CAUSES):
        if not span.causes[:, cause].any():
            continue
        above = below + span.causes[:, cause] / span.clocks
        axes.stairs(above, edges, baseline=below, fill=True, color=CAUSE_COLOURS[name], label=CAUSE_WORDS[name][0])
        below = above
    axes.set_ylim(0, 1)
    axes.set_ylabel("array, share\nof clocks")
    axes.legend(loc="lower left", ncols=6, fontsize=7, bbox_to_anchor=(0, 1.0), frameon=False)


def _memory(axes: Axes, span: Span, edges: np.ndarray, linear: float) -> None:
    axes.stairs(span.weight_bytes / span.clocks, edges, color="#1f6f8b", label="weights", linewidth=0.8)
    axes.stairs(span.state_bytes / span.clocks, edges, color="#d1495b", label="state", linewidth=0.8)
    axes.axhline(linear, color="#333333", linestyle=":", linewidth=0.8, label="plain linear read")
    axes.set_ylim(0, None)
    axes.set_ylabel("bytes\na clock")
    axes.legend(loc="lower left", ncols=3, fontsize=7, bbox_to_anchor=(0, 1.0), frameon=False)


def _strips(axes: Axes, shares: np.ndarray, names: tuple[str, ...] | list[str], edges: np.ndarray, cmap: str) -> None:
    # A picture: so many rectangles would make the page slow. The last bucket may be shorter, by less than can be seen.
    axes.imshow(
        shares.T,
        aspect="auto",
        interpolation="nearest",
        cmap=cmap,
        vmin=0,
        vmax=1,
        extent=(edges[0], edges[-1], len(names) - 0.5, -0.5),
    )
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.tick_params(axis="y", length=0)
