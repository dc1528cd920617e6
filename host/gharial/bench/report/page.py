# SPDX-License-Identifier: Apache-2.0
"""The page: text, tables and figures in one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import matplotlib as mpl

import gharial
from gharial.bench.observed import Observed
from gharial.bench.report.colours import CAUSE_COLOURS
from gharial.bench.report.drawing import STYLE, drawing
from gharial.bench.report.roofline import roofline
from gharial.bench.report.stalls import shown, stalls
from gharial.bench.report.timeline import timeline, whole, window
from gharial.bench.report.told import CAUSE_WORDS, causes_of, figures, percent, sentences
from gharial.devices.verilator.profile import CAUSES, Profile

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: 0.87rem; } td, th { padding: 0.15rem 0.7rem; text-align: left; }
th { border-bottom: 1px solid #999; } tfoot td { border-top: 1px solid #999; font-weight: 600; }
.n { text-align: right; font-variant-numeric: tabular-nums; } .wide { overflow-x: auto; }
svg { max-width: 100%; height: auto; } code { font-size: 0.85rem; }
.c { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.4em; }
footer { margin-top: 3rem; color: #777; font-size: 0.8rem; }
"""


def page(found: dict[str, Any], observed: Observed) -> str:
    """The page about a run.

    Args:
        found: the object of `gharial bench rtl --json`.
        observed: what the run showed beyond it.
    """
    with mpl.rc_context(STYLE):
        parts = [_figures(found), _roofline(found, observed), _timeline(found, observed), _stalls(observed.profile)]
    title = escape(f"{found['config']}, {found['model']}: {found['workload']}")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
{"".join(parts)}<footer>gharial {escape(gharial.__version__)}, bench rtl</footer>
</body>
</html>
"""


def _figures(found: dict[str, Any]) -> str:
    told = "".join(f"<p>{escape(text)}</p>\n" for text in sentences(found))
    rows = [(f"<code>{escape(key)}</code>", escape(value), escape(what)) for key, value, what in figures(found)]
    clocks = [
        (_named(cause), f"{count:,}", percent(count, found["cycles"]), escape(CAUSE_WORDS[cause][1]))
        for cause, count in causes_of(found)
    ]
    total = ("all", f"{found['cycles']:,}", percent(1), "")
    return (
        f'{told}<h2 id="figures">Figures</h2>\n'
        + _table(("figure", "value", ""), rows, numbers=(1,))
        + "<p>Each clock is one of these, the first that holds:</p>\n"
        + _table(("clock", "clocks", "share", ""), clocks, total, numbers=(1, 2))
    )


def _roofline(found: dict[str, Any], observed: Observed) -> str:
    linear = found["linear_read_bytes_per_cycle"]
    if not linear:
        return ""
    figure = roofline(observed.points, found["array_macs_per_cycle"], linear)
    return f"""<h2 id="roofline">Roofline</h2>
<p>The line bounds what can be reached: by the bytes that a plain linear read brings, where there are few products a
byte, and by the products that the array makes, where there are many. Bytes are those of weights that have to be read,
each matrix once a batch.</p>
{_wide(drawing(figure, "roofline", "useful products a clock against useful products a byte of weights"))}"""


def _timeline(found: dict[str, Any], observed: Observed) -> str:
    profile = observed.profile
    linear = found["linear_read_bytes_per_cycle"]
    span, near = whole(profile), window(profile)
    about = "what the array, the memory, the other units and the layers do over the clocks of the run"
    memory = "bytes of weights and of state that move; " if linear else ""
    text = f"""<h2 id="timeline">Timeline</h2>
<p>From above: how the array spends its clocks; {memory}share of the clocks in which each of the other units is at
work; and the layer that the array is at or waits for, darker where it has more of the clocks.</p>
{_wide(drawing(timeline(profile, span, linear), "timeline", about))}"""
    if near is not None:
        text += f"""<p>A window in the middle of the run, {near.clocks.sum():,.0f} clocks of it:</p>
{_wide(drawing(timeline(profile, near, linear), "window", about + ", a window in the middle"))}"""
    return text


def _stalls(profile: Profile) -> str:
    causes = [cause for cause in range(len(CAUSES)) if profile.clocks[:, cause].any()]
    rows = []
    for row in shown(profile):
        counts = profile.clocks[row]
        clocks = [f"{counts[cause]:,}" for cause in causes]
        rows.append((escape(profile.rows[row]), *clocks, f"{counts.sum():,}", percent(counts[1:].sum(), counts.sum())))
    sums = profile.clocks.sum(axis=0)
    total = ("all", *(f"{sums[cause]:,}" for cause in causes), f"{sums.sum():,}", percent(sums[1:].sum(), sums.sum()))
    heads = ("layer", *(_named(CAUSES[cause]) for cause in causes), "all", "of it still")
    table = _table(heads, rows, total, numbers=tuple(range(1, len(heads))))
    return f"""<h2 id="stalls">Stalls by layer</h2>
<p>A clock belongs to the layer that the array is at; while it has none, to the layer that is next in order and waits;
where there is none either, to no layer. The sums are the device's own counters.</p>
{_wide(drawing(stalls(profile), "stalls", "clocks by layer and cause; the table below has the numbers"))}
{_wide(table)}"""


def _wide(inner: str) -> str:
    return f'<div class="wide">{inner}</div>\n'


def _named(cause: str) -> str:
    return f'<span class="c" style="background:{CAUSE_COLOURS[cause]}"></span>{escape(CAUSE_WORDS[cause][0])}'


def _table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], total: Sequence[str] | None = None, numbers: Sequence[int] = ()
) -> str:
    """A table of cells that are HTML already; `numbers` are the columns that stand at the right."""

    def line(cells: Sequence[str], kind: str) -> str:
        marks = (' class="n"' if place in numbers else "" for place in range(len(cells)))
        return f"<tr>{''.join(f'<{kind}{m}>{c}</{kind}>' for m, c in zip(marks, cells, strict=True))}</tr>\n"

    foot = f"<tfoot>{line(total, 'td')}</tfoot>\n" if total else ""
    body = "".join(line(cells, "td") for cells in rows)
    return f"<table>\n<thead>{line(heads, 'th')}</thead>\n<tbody>{body}</tbody>\n{foot}</table>\n"
