# SPDX-License-Identifier: Apache-2.0
"""A terminal's screen, as far as the command line steers one."""

from __future__ import annotations

import re

from gharial.cli.live import cells

STEER = re.compile(r"\x1b\[(\d*)([A-Za-z])")


class Screen:
    """A screen that wraps behind its last column when the next character comes, as xterm does, and never scrolls."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: dict[int, dict[int, str]] = {}
        self.row = self.column = 0
        self.dimmed: set[tuple[int, int]] = set()
        self.dim = False

    def write(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = STEER.match(text, at)
            if found:
                self.steer(int(found[1] or 0), found[2])
                at = found.end()
                continue
            assert text[at] != "\x1b"
            self.put(text[at])
            at += 1

    def steer(self, number: int, letter: str) -> None:
        self.column = min(self.column, self.columns - 1)
        if letter == "A":
            assert self.row >= number > 0
            self.row -= number
        elif letter == "C":
            assert 0 < number <= self.columns - 1 - self.column
            self.column += number
        elif letter == "J":
            self.rows = {row: cols for row, cols in self.rows.items() if row <= self.row}
            here = self.rows.get(self.row, {})
            self.rows[self.row] = {column: text for column, text in here.items() if column < self.column}
        else:
            assert letter == "m"
            self.dim = number == 2

    def put(self, character: str) -> None:
        if character in "\r\n":
            self.column = 0
            self.row += character == "\n"
            return
        width = cells(character)
        if width == 0:
            place = self.rows.get(self.row, {})
            place[max(0, self.column - 1)] = place.get(max(0, self.column - 1), "") + character
            return
        if self.column + width > self.columns:
            self.row, self.column = self.row + 1, 0
        row = self.rows.setdefault(self.row, {})
        row[self.column] = character
        (self.dimmed.add if self.dim else self.dimmed.discard)((self.row, self.column))
        self.column += width

    @property
    def text(self) -> list[str]:
        lines = ["".join(text for _, text in sorted(row.items())).rstrip() for _, row in sorted(self.rows.items())]
        while lines and not lines[-1]:
            lines.pop()
        return lines
