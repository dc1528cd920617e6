# SPDX-License-Identifier: Apache-2.0
"""Error rates as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def interval(bounds: Sequence[float] | None) -> str:
    """The 95 % interval of a rate, to stand behind it; nothing where there is none."""
    return "" if bounds is None else f" (95 %: {100 * bounds[0]:.2f} to {100 * bounds[1]:.2f} %)"


def difference(found: Mapping[str, Any]) -> str:
    """A difference of two rates (`gharial.bench.bootstrap.Difference.as_json`): points, interval, whether by chance."""
    low, high = found["ci"]
    told = "within chance" if found["by_chance"] else "more than chance"
    return f"{100 * found['rate']:+.2f} points (95 %: {100 * low:+.2f} to {100 * high:+.2f}), {told}"
