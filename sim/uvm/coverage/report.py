# SPDX-License-Identifier: Apache-2.0
"""What was covered, as text, JSON and one page with a picture."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path

from sim.uvm.coverage.group import CoverGroup

STYLE = """\
body { font: 14px/1.4 sans-serif; margin: 2em auto; max-width: 75em; color: #222 }
h2 { font-size: 15px; margin: 1.4em 0 .2em } p { margin: .1em 0 .4em; color: #666 }
.bins { display: flex; flex-wrap: wrap; gap: 3px }
.bin { padding: 2px 7px; border-radius: 3px; white-space: nowrap }
.hole { background: #d33; color: #fff; font-weight: bold }
"""
GREENS = ("#e3f2e3", "#c3e5c3", "#9bd59b", "#6fc06f")  # hit once, up to 9, up to 99, more often


def holes(groups: Mapping[str, CoverGroup]) -> list[str]:
    """Every bin that was not hit, with its group."""
    return [f"{group.name}: {name}" for group in groups.values() for name in group.holes]


def text(groups: Mapping[str, CoverGroup]) -> str:
    """A line a group, then the holes."""
    lines = []
    for group in groups.values():
        covered = len(group.hits) - len(group.holes)
        lines.append(f"{group.name:16} {covered:3} of {len(group.hits):3}   {sum(group.hits.values()):7} samples")
    total = sum(len(group.hits) for group in groups.values())
    missing = holes(groups)
    lines.append(f"{'all':16} {total - len(missing):3} of {total:3}")
    return "\n".join([*lines, *(f"hole: {name}" for name in missing)])


def page(groups: Mapping[str, CoverGroup], title: str) -> str:
    """One HTML page that needs nothing else: a box a bin, the darker the more often it was hit; holes are red."""
    parts = [f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style>"]
    total = sum(len(group.hits) for group in groups.values())
    parts.append(f"<h1>{html.escape(title)}</h1><p>{total - len(holes(groups))} of {total} bins were hit.</p>")
    for group in groups.values():
        covered = len(group.hits) - len(group.holes)
        parts.append(f"<h2>{html.escape(group.name)} &middot; {covered} of {len(group.hits)}</h2>")
        parts.append(f"<p>{html.escape(group.about)}</p><div class=bins>")
        parts += [_box(name, hits) for name, hits in group.hits.items()]
        parts.append("</div>")
    return "\n".join(parts) + "\n"


def _box(name: str, hits: int) -> str:
    label = f'title="{hits} times">{html.escape(name)}</span>'
    if not hits:
        return f"<span class='bin hole' {label}"
    shade = GREENS[min(len(str(hits)), 3) if hits > 1 else 0]
    return f'<span class=bin style="background:{shade}" {label}'


def write(groups: Mapping[str, CoverGroup], folder: Path, title: str) -> None:
    """coverage.txt, coverage.json and coverage.html in a folder."""
    (folder / "coverage.txt").write_text(text(groups) + "\n")
    table = {group.name: group.hits for group in groups.values()}
    (folder / "coverage.json").write_text(json.dumps(table, indent=1) + "\n")
    (folder / "coverage.html").write_text(page(groups, title))
