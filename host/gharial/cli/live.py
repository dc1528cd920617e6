# SPDX-License-Identifier: Apache-2.0
"""A line of text that grows on a terminal, its end shown before it is certain and rewritten in place.

What is certain is written once, and wraps where the terminal wraps it, so that it can be copied and searched for as one
line. What is not stands behind it, dimmed, and the cursor between the two: whatever comes next, or whatever the width
has become meanwhile, erasing from the cursor to the end of the screen takes it away.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Mapping

from gharial.cli import terminal

_ERASE = "\x1b[J"
DIM, CYAN, _PLAIN = "\x1b[2m", "\x1b[36m", "\x1b[0m"
_ROWS = 6  # of a text that is not certain, at most
_CUT = "..."
_NO_WIDTH = frozenset({"Mn", "Me", "Cf"})
_SOFT_HYPHEN = "\xad"

Size = tuple[int, int]


def rewrites(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether standard output is a terminal on which text can be rewritten."""
    there = sys.stdout is not None and sys.stdout.isatty()
    return there and environment.get("TERM", "dumb") not in ("", "dumb")


def colours(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether text may be dimmed (https://no-color.org)."""
    return not environment.get("NO_COLOR")


def screen() -> Size:
    """Columns and rows of the terminal; what is usual where it does not know them."""
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        columns = rows = 0
    return max(columns, 2) if columns else 80, rows or 24


class LiveLine:
    """One line on a terminal.

    Args:
        dim: whether text that is not certain is dimmed, or what `style` says.
        size: columns and rows of the terminal, asked for at every change.
        write: takes what is to be written.
        style: how text that is not certain looks: `DIM` or `CYAN`.
    """

    def __init__(
        self,
        dim: bool | None = None,
        size: Callable[[], Size] = screen,
        write: Callable[[str], object] = lambda text: terminal.emit(text, end="", controls=True),
        style: str = DIM,
    ) -> None:
        self._dim = colours() if dim is None else dim
        self._style = style
        self._size = size
        self._write = write
        self._parts: list[str] = []
        self._partial = ""
        self._columns = 0
        self._column = 0  # behind what is certain; as many as there are columns: the next character wraps

    def show(self, certain: str, partial: str = "") -> None:
        """Add text that is certain, and show other text behind it in place of what was shown there before."""
        certain, partial = printable(certain), _standing(printable(partial))
        if not certain and partial == self._partial:
            return
        columns, rows = self._size()
        if columns != self._columns:
            self._columns = columns
            self._column = advance(0, "".join(self._parts), columns)[1]
        written = _ERASE if self._partial else ""
        if certain:
            self._parts.append(certain)
            self._column = advance(self._column, certain, columns)[1]
            written += certain
        if partial:
            if self._column == columns:
                written += " \r"  # wraps now: the cursor could not come back to the place behind the last column
                self._column = 0
            written += self._behind(partial, columns, rows)
        self._partial = partial
        self._write(written)

    def end(self) -> None:
        """Take away what is not certain, and end the line."""
        begun = self._column == 0 and bool(self._parts)  # a row was begun for what is taken away
        self._write((_ERASE if self._partial else "") + ("" if begun else "\n"))
        self._partial, self._column, self._parts = "", 0, []

    def _behind(self, partial: str, columns: int, rows: int) -> str:
        """What shows a text and brings the cursor back."""
        most = max(1, min(rows - 1, _ROWS)) - 1
        text = partial
        while text and advance(self._column, text, columns)[0] > most:
            # Its end matters: the begin has been there for a while.
            text = _CUT + text.removeprefix(_CUT)[1:] if text != _CUT else ""
        up = advance(self._column, text, columns)[0]
        shown = f"{self._style}{text}{_PLAIN}" if self._dim else text
        right = f"\x1b[{self._column}C" if self._column else ""
        return shown + (f"\x1b[{up}A" if up else "") + "\r" + right


def advance(column: int, text: str, columns: int) -> tuple[int, int]:
    """Rows that a terminal goes down for a text, and the column behind it.

    Args:
        column: where it begins, 0 to `columns`.
        text: printable characters.
        columns: of the terminal, 2 or more. A character that does not fit goes to the next row.
    """
    rows = 0
    for character in text:
        width = cells(character)
        if width and column + width > columns:
            rows, column = rows + 1, 0
        column += width
    return rows, column


def _standing(text: str) -> str:
    """A text without marks at its begin: they would join the character in front of it, and stay there."""
    marks = next((at for at, character in enumerate(text) if cells(character)), len(text))
    return text[marks:]


def cells(character: str) -> int:
    """Columns that a character takes."""
    if character.isascii():
        return 1
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    combines = unicodedata.category(character) in _NO_WIDTH and character != _SOFT_HYPHEN
    return 0 if combines or "\u1160" <= character <= "\u11ff" else 1


def printable(text: str) -> str:
    """A text without characters that steer a terminal."""
    if text.isprintable():
        return text
    return "".join([" " if c in "\t\n\r" else "\ufffd" if unicodedata.category(c) == "Cc" else c for c in text])
