# SPDX-License-Identifier: Apache-2.0
"""A picture of a server's latencies."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gharial.bench.server import Observed
from gharial.bench.sweep_plot import check
from gharial.files import write_atomically

__all__ = ["check", "write"]

_LIMIT_MS = 60.0


def write(path: str | os.PathLike[str], observed: Observed, found: Mapping[str, Any], title: str) -> None:
    """Draw the frames' latencies over the run and their distribution, and that of user-perceived latency.

    Args:
        path: its ending decides the kind of picture.
        observed, found: as of `gharial.bench.server.bench_server`.
        title: above all.

    Raises:
        GharialError: it cannot be written.
    """
    import matplotlib as mpl  # here, as it takes long
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    time_axes = figure.add_subplot(grid[0, :])
    frame_axes, word_axes = figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1])
    figure.suptitle(title, fontsize="medium")

    latencies = observed.latencies * 1e3
    time_axes.scatter(observed.sent, latencies, s=2, color="tab:blue", alpha=0.25, linewidths=0, rasterized=True)
    if len(latencies):
        second = observed.sent.astype(int)
        there = np.unique(second)
        tails = [np.quantile(latencies[second == at], 0.99) for at in there]
        time_axes.step(there, tails, where="post", color="tab:red", linewidth=1.2, label="99 % of each second")
    time_axes.axhline(_LIMIT_MS, color="0.4", linewidth=1, linestyle="--", label="a frame, 60 ms")
    time_axes.set_ylim(0, max(_LIMIT_MS * 1.1, latencies.max(initial=0.0) * 1.05))
    time_axes.set_xlabel("seconds")
    time_axes.set_ylabel("a frame's latency (ms)")
    time_axes.legend(fontsize="small", loc="upper right")

    _distribution(frame_axes, latencies, [found["cl50_ms"], found["cl90_ms"], found["cl99_ms"]])
    frame_axes.set_xlabel("latency of a frame (ms)")
    _distribution(word_axes, observed.perceived * 1e3, [found["upl_p50_ms"], found["upl_p90_ms"], found["upl_p99_ms"]])
    word_axes.set_xlabel("user-perceived latency of a word (ms)")
    buffer = io.BytesIO()
    kind = Path(path).suffix.lower().removeprefix(".")
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with mpl.rc_context({"svg.hashsalt": "server", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=undated.get(kind))
    write_atomically(path, iter([buffer.getvalue()]))


def _distribution(axes: Any, values: np.ndarray, marks: list[float | None]) -> None:
    """How many values are no larger, with three of them marked."""
    axes.set_ylabel("part of all")
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)
    if not len(values):
        axes.text(0.5, 0.5, "none", ha="center", transform=axes.transAxes)
        return
    ordered = np.sort(values)
    axes.plot(ordered, np.arange(1, len(ordered) + 1) / len(ordered), color="tab:blue")
    for part, mark in zip((0.5, 0.9, 0.99), marks, strict=True):
        if mark is not None:
            axes.plot([mark], [part], "o", color="tab:red", markersize=4)
            axes.annotate(f" {100 * part:.0f} %: {mark:.1f}", (mark, part), fontsize="small", va="top")
