# SPDX-License-Identifier: Apache-2.0
"""A line that is rewritten on a terminal: the screen shows what it would show if all had been written at once."""

from __future__ import annotations

import random
import unicodedata

import pytest
from screen import STEER, Screen

from gharial.cli.live import LiveLine, advance, cells, printable

WIDE, COMBINING = "語", "\u0301"


def fresh(columns: int, text: str) -> list[str]:
    screen = Screen(columns)
    screen.write(text)
    return screen.text


def test_any_texts_on_any_width(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(300):
        columns = source.randint(2, 30)
        screen = Screen(columns)
        line = LiveLine(source.random() < 0.5, lambda columns=columns: (columns, 50), screen.write)
        letters = "ab c" if source.random() < 0.5 else f"ab c{WIDE}é"
        sure = ""
        most = 5 * columns  # fits the rows that a partial may take
        for _ in range(source.randint(1, 12)):
            certain = "".join(source.choices(letters, k=source.choice((0, 0, 1, 3, columns))))
            partial = "".join(source.choices(letters, k=source.randint(0, most // 3)))
            sure += certain
            line.show(certain, partial)
            assert screen.text == fresh(columns, sure + partial)
        line.end()
        assert screen.text == fresh(columns, sure)
        line.show("x")
        assert [row for row in screen.text if row] == [*(row for row in fresh(columns, sure) if row), "x"]


def test_what_is_not_certain_is_dimmed_and_goes() -> None:
    screen = Screen(20)
    line = LiveLine(True, lambda: (20, 10), screen.write)
    line.show("go ", "stop")
    assert screen.text == ["go stop"]
    assert screen.dimmed == {(0, column) for column in range(3, 7)}
    assert (screen.row, screen.column, screen.dim) == (0, 3, False)
    line.show("slow ", "up")
    assert screen.text == ["go slow up"]
    assert screen.dimmed >= {(0, 8), (0, 9)} and not screen.dimmed & {(0, column) for column in range(3, 7)}
    line.show("", "")
    assert screen.text == ["go slow"]


def test_a_line_that_fills_its_row_leaves_no_empty_one() -> None:
    screen = Screen(4)
    line = LiveLine(True, lambda: (4, 10), screen.write)
    line.show("stop", " on")
    line.end()
    line.show("go")
    line.end()
    line.end()
    line.show("up")
    assert screen.text == ["stop", "go", "up"]
    assert screen.row == 3  # the empty line is one


def test_without_colours_nothing_is_dimmed() -> None:
    written: list[str] = []
    line = LiveLine(False, lambda: (20, 10), written.append)
    line.show("go", " stop")
    line.show("", " on")
    line.end()
    assert not any("m" in found[2] for text in written for found in [*STEER.finditer(text)])


def test_nothing_is_written_where_nothing_changed() -> None:
    written: list[str] = []
    line = LiveLine(True, lambda: (20, 10), written.append)
    line.show("go", " stop")
    line.show("", " stop")
    assert len(written) == 1
    line.show("", " on")
    assert len(written) == 2


@pytest.mark.parametrize("rows", [1, 2, 3, 24])
def test_a_long_one_shows_its_end(rows: int) -> None:
    """It may not be higher than the screen: the cursor could not come back to its begin."""
    screen = Screen(10)
    line = LiveLine(True, lambda: (10, rows), screen.write)
    line.show("certain", " " + "".join(chr(ord("a") + at % 26) for at in range(1000)))
    shown = "".join(screen.text)
    most = max(1, min(rows - 1, 6))
    assert len(screen.text) <= most and (screen.row, screen.column) == (0, 7)
    assert shown.startswith("certain...")
    assert shown.endswith("jkl" if most > 1 else "...")  # the last of the thousand letters is an l
    line.end()
    assert screen.text == ["certain"]


def test_a_width_that_changes() -> None:
    """Where the terminal lays its lines out anew, and takes the cursor along."""
    columns = 10
    screen = Screen(columns)
    line = LiveLine(True, lambda: (columns, 10), screen.write)
    line.show("one two three", " four")
    columns = 6
    other = Screen(columns)
    other.write("one two three")
    line._write = other.write
    line.show(" four", " five")
    assert other.text == fresh(6, "one two three four five")


def test_widths() -> None:
    assert [cells(c) for c in ("a", WIDE, COMBINING, "é", "\u200d", "\xad", "ア", "ｱ", "\u1161", "🙂")] == [
        *(1, 2, 0, 1, 0, 1, 2, 1, 0, 2)
    ]
    assert advance(0, WIDE * 3, 5) == (1, 2)
    assert advance(5, "", 5) == (0, 5)
    assert advance(5, COMBINING, 5) == (0, 5)
    assert advance(5, "a", 5) == (1, 1)


def test_marks_wait_for_their_letter() -> None:
    """On the letter in front they would stay, as it is not written again."""
    screen = Screen(20)
    line = LiveLine(True, lambda: (20, 10), screen.write)
    line.show("cafe", COMBINING + "s")
    assert screen.text == ["cafes"]
    line.show(COMBINING, "s")
    assert screen.text == ["cafe" + COMBINING + "s"]
    line.show("", COMBINING)
    assert screen.text == ["cafe" + COMBINING]


def test_nothing_steers_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\x9b\ttext\n") == "a\ufffd[2Jb\ufffd\ufffd text "
    assert not any(unicodedata.category(c) == "Cc" for c in printable("".join(map(chr, range(300)))))
