# SPDX-License-Identifier: Apache-2.0
"""A picture of a sweep: word error rate over the n-gram's scale."""

from __future__ import annotations

import importlib.util
import io
import os
from pathlib import Path
from typing import Any

from gharial.errors import BadInput
from gharial.files import write_atomically

SUFFIXES = (".svg", ".png", ".pdf")
_OPTION = "--plot"


def check(path: str | os.PathLike[str]) -> None:
    """Find out, before anything takes long, whether a picture can be drawn under this name.

    Raises:
        BadInput: its ending is none of `SUFFIXES`, or Matplotlib is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        found = suffix or "no ending"
        raise BadInput("no such kind of picture", f"{_OPTION} {path}", found, ", ".join(SUFFIXES), "name it x.svg, say")
    if importlib.util.find_spec("matplotlib") is None:
        raise BadInput("a plot needs Matplotlib", _OPTION, "none", "matplotlib", "pip install gharial[plots]")


def write(path: str | os.PathLike[str], found: dict[str, Any], title: str) -> None:
    """Draw what `gharial.bench.sweep.summary` found; the ending of the name decides the kind of picture.

    The line is the rate on the set, the band the 95 % interval of each scale by itself, the thin line and its band
    greedy decoding. Scales are compared on the same drawn sets, so two whose bands overlap may still differ: what the
    set tells apart from the best scale is outside the shaded scales.

    Raises:
        GharialError: it cannot be written.
    """
    import matplotlib as mpl  # here, as it takes long
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    scales = [point["scale"] for point in found["points"]]
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    greedy, best = found["greedy"], found["best"]
    axes.axhspan(*greedy["ci"], color="0.5", alpha=0.12, linewidth=0)
    axes.axhline(greedy["wer"], color="0.4", linewidth=1, linestyle="--", label="greedy")
    axes.axvspan(*found["alike"], color="tab:green", alpha=0.08, linewidth=0, label="not told apart from the best")
    low, high = ([point["ci"][side] for point in found["points"]] for side in (0, 1))
    axes.fill_between(scales, low, high, color="tab:blue", alpha=0.18, linewidth=0)
    axes.plot(scales, [point["wer"] for point in found["points"]], "o-", color="tab:blue", label="beam with n-gram")
    axes.plot([best["scale"]], [best["wer"]], "o", color="tab:green", markersize=9, label=f"best: {best['scale']:g}")
    axes.set_xlabel("scale of the n-gram")
    axes.set_ylabel("word error rate")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(title, fontsize="medium")
    axes.legend(fontsize="small")
    buffer = io.BytesIO()
    kind = Path(path).suffix.lower().removeprefix(".")
    # The same sweep gives the same file: no dates, no random identifiers.
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with mpl.rc_context({"svg.hashsalt": "sweep", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=undated.get(kind))
    write_atomically(path, iter([buffer.getvalue()]))
