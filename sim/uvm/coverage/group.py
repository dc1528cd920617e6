# SPDX-License-Identifier: Apache-2.0
"""A group of things that have to be seen."""

from __future__ import annotations

from collections.abc import Iterable


class CoverGroup:
    """Named bins, each with the number of times that it was seen.

    Args:
        name: of the group.
        about: what a bin stands for.
        bins: their names, in order.
    """

    def __init__(self, name: str, about: str, bins: Iterable[str]) -> None:
        self.name, self.about = name, about
        self.hits = dict.fromkeys(bins, 0)

    def hit(self, bin_: object) -> None:
        """Seen once more.

        Raises:
            KeyError: there is no such bin. What can be seen has a bin, or is not sampled.
        """
        name = str(bin_)
        if name not in self.hits:
            raise KeyError(f"group {self.name} has no bin {name}")
        self.hits[name] += 1

    @property
    def holes(self) -> list[str]:
        """Bins that were never hit."""
        return [name for name, hits in self.hits.items() if not hits]
