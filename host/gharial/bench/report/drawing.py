# SPDX-License-Identifier: Apache-2.0
"""Figures as SVG that stands inside a page."""

from __future__ import annotations

import io
import re
from html import escape

import matplotlib as mpl
from matplotlib.figure import Figure

STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"}
"""Settings that figures are to be made with."""

_NO_DATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def drawing(figure: Figure, name: str, about: str) -> str:
    """An <svg> element whose identifiers no other figure of the page has.

    Args:
        figure: what it shows.
        name: of the figure, unique in the page; letters only.
        about: what it shows, for whoever cannot see it.
    """
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name, **STYLE}):
        figure.savefig(buffer, format="svg", metadata=_NO_DATA)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]  # without XML declaration and DOCTYPE, which names a file elsewhere
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]*)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", text)
    head, _, rest = text.partition(">")
    return f'{head} role="img" aria-label="{escape(about)}">{rest}'
