# SPDX-License-Identifier: Apache-2.0
"""The page: text, tables and histograms in one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: 0.87rem; } td, th { padding: 0.15rem 0.7rem; text-align: left; }
th { border-bottom: 1px solid #999; } .n { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; } code { font-size: 0.85rem; } .bad { color: #b0243c; font-weight: 600; }
svg { vertical-align: middle; } footer { margin-top: 3rem; color: #777; font-size: 0.8rem; }
"""

_WIDTH, _HEIGHT = 192, 28  # of a histogram, in pixels
_LISTED = 24  # rows in the list of the worst of all


def page(found: dict[str, Any]) -> str:
    """The page about a program.

    Args:
        found: of `gharial.fidelity.report.figures`.
    """
    title = escape(f"{found['model']} for {found['config']}, {found['weights']} weights: the error of quantising")
    parts = (_summary, _tensors, _weights, _worst, _partings)
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
{"".join(part(found) for part in parts)}<footer>gharial {escape(found["version"])}, compile --report</footer>
</body>
</html>
"""


def _summary(found: dict[str, Any]) -> str:
    bound, decisive, units = found["bound"], found["decisive"], found["units"]
    state = "holds" if bound["holds"] else '<span class="bad">does not hold</span>'
    rows = [
        (f"{found['output']}, signal over noise", _db(found["sqnr_db"])),
        ("the same of their changes, the mean over each recording taken out", _db(found["sqnr_changes_db"])),
        ("best class the same", f"{100 * found['agreement']:.2f} % of {found['evaluations']:,} evaluations"),
        (
            f"of those with a float margin above {decisive['margin']:.3g}, four deviations of the error",
            f"{100 * decisive['agreement']:.2f} % of {decisive['evaluations']:,}",
        ),
    ]
    bits = "".join(
        f"<li>{what}: {escape(text)}</li>\n"
        for what, text in (
            ("features", f"2^-{units['features']}"),
            ("h", ", ".join(f"{name} 2^-{q}" for name, q in units["h"].items())),
            ("c", ", ".join(f"{name} 2^-{q}" for name, q in units["c"].items())),
            ("joint", f"{units['joint_unit']:.4g}, its inputs 2^-{units['joint_shift']} of that"),
            ("logits", f"2^-{units['logits']}"),
        )
    )
    return f"""<p>Integers of the emulated device beside the checkpoint in float, both led along the float model's own
path through {found["recordings"]} recordings{_babble(found["babble"])}.</p>
{_table(("", ""), [(escape(a), escape(b)) for a, b in rows])}
<p>The bound, {bound["least_sqnr_db"]:g} dB and {100 * bound["least_agreement"]:g} %, {state}.</p>
<h2 id="units">Steps</h2>
<ul>
{bits}</ul>
"""


def _babble(count: int) -> str:
    return f", but along tokens that were drawn through {count} of them, where its own path is babble" if count else ""


def _tensors(found: dict[str, Any]) -> str:
    rows = [
        (
            f"<code>{escape(each['name'])}</code>",
            _db(each["sqnr_db"]),
            _db(each["sqnr_changes_db"]),
            f"{each['largest']:.4g}",
            f"{each['range'][1]:.4g}",
            _share(each["at_limit"], each["elements"]),
            _share(each["beyond"], each["elements"]),
            _histogram(each["histogram"], each["name"]),
        )
        for each in found["tensors"]
    ]
    heads = ("tensor", "ratio", "of changes", "largest", "holds up to", "at a limit", "clipped", "integers")
    return f"""<h2 id="tensors">Layer outputs</h2>
<p>Signal over noise of every tensor against the float model's; of changes: with the mean over each recording taken out
of both, unit by unit; – where there is no noise, or no signal. Clipped are float values more than half a step outside
of what the format holds. Pre-activations may well be, as gates stand still beyond 8; their float values are held to the
range before they are compared. Histograms are over the whole range of the format, heights as roots.</p>
{_wide(_table(heads, rows, numbers=range(1, 7)))}"""


def _weights(found: dict[str, Any]) -> str:
    rows = []
    for each in found["weight_tensors"]:
        worst = each["worst"][0] if each["worst"] else None
        rows.append(
            (
                f"<code>{escape(each['name'])}</code>",
                f"{each['rows']:,} × {each['columns']:,}",
                _db(each["sqnr_db"]),
                "" if worst is None else f"{worst['sqnr_db']:.1f} dB",
                "" if worst is None else escape(str(worst["row"])),
                _share(each["clipped"], each["rows"] * each["columns"]),
                f"{each['zero_rows']:,}",
                _histogram(each["histogram"], each["name"]),
            )
        )
    heads = ("weights", "size", "ratio", "worst row", "which", "clipped", "rows of zeros", "steps")
    return f"""<h2 id="weights">Weights</h2>
{_wide(_table(heads, rows, numbers=(1, 2, 3, 5, 6)))}"""


def _worst(found: dict[str, Any]) -> str:
    rows = [
        (each["sqnr_db"], name, str(each["row"]))
        for kind in ("weight_tensors", "tensors")
        for tensor in found[kind]
        for name in [tensor["name"]]
        for each in tensor["worst"]
    ]
    rows.sort()
    cells = [(f"<code>{escape(name)}</code>", escape(row), f"{ratio:.1f} dB") for ratio, name, row in rows[:_LISTED]]
    return f"""<h2 id="worst">Worst rows</h2>
<p>Rows of weights and units of layer outputs with the least signal over noise; report.json has the worst of each.</p>
{_table(("tensor", "row or unit", "ratio"), cells, numbers=(2,))}"""


def _partings(found: dict[str, Any]) -> str:
    if not found["partings"]:
        return '<h2 id="decoding">Decoding</h2>\n<p>Integers and float decode the same throughout.</p>\n'
    rows = [
        (
            escape(each["recording"]),
            escape(each["place"] or ""),
            f"{each['step']:,}",
            f"{each['float_class']:,}",
            f"{each['integer_class']:,}",
            f"{each['margin']:.4g}",
        )
        for each in found["partings"]
    ]
    first = found["partings"][0]
    errors = [(f"<code>{escape(name)}</code>", f"{error:.3g}") for name, error in first["errors"].items()]
    heads = ("recording", "first difference", "encoder step", "float class", "integer class", "float margin")
    return f"""<h2 id="decoding">Decoding</h2>
<p>Where integers and float first choose otherwise, in each recording that has such a step; the difference as
<code>gharial trace diff</code> names it.</p>
{_wide(_table(heads, rows, numbers=(2, 3, 4, 5)))}
<p>What each tensor was off by at the first of them, in steps of its own, root of the mean square:</p>
{_table(("tensor", "steps"), errors, numbers=(1,))}"""


def _db(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} dB"


def _share(count: int, total: int) -> str:
    return "0" if not count else f"{count:,} ({100 * count / max(1, total):.2g} %)"


def _histogram(counts: Sequence[int], name: str) -> str:
    """Bars whose heights are roots of the counts, so that what is rare still shows."""
    most = max(counts, default=0)
    if not most:
        return ""
    width = _WIDTH / len(counts)
    bars = "".join(
        f"M{place * width:.4g} {_HEIGHT}v{-max(1.0, _HEIGHT * (count / most) ** 0.5):.3g}h{width:.3g}V{_HEIGHT}z"
        for place, count in enumerate(counts)
        if count
    )
    label = escape(f"histogram of {name}")
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT + 1}" role="img" aria-label="{label}">'
        f'<path d="{bars}" fill="#1f6f8b"/><path d="M0 {_HEIGHT + 0.5}h{_WIDTH}" stroke="#999"/></svg>'
    )


def _wide(inner: str) -> str:
    return f'<div class="wide">{inner}</div>\n'


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """A table of cells that are HTML already; `numbers` are the columns that stand at the right."""
    right = set(numbers)

    def line(cells: Sequence[str], kind: str) -> str:
        marks = (' class="n"' if place in right else "" for place in range(len(cells)))
        return f"<tr>{''.join(f'<{kind}{m}>{c}</{kind}>' for m, c in zip(marks, cells, strict=True))}</tr>\n"

    head = f"<thead>{line(heads, 'th')}</thead>\n" if any(heads) else ""
    return f"<table>\n{head}<tbody>{''.join(line(cells, 'td') for cells in rows)}</tbody>\n</table>\n"
