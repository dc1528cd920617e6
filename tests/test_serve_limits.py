# SPDX-License-Identifier: Apache-2.0
"""Who may connect, how fast audio may come, and whose keys are good."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gharial.errors import BadInput
from gharial.serve.keys import Keys, new_key
from gharial.serve.limits import Admission, Pace


def test_real_time_never_waits(seed: int) -> None:
    """Audio in pieces of any length, each when it was spoken, is within any pace of 1 or more."""
    order = random.Random(seed)
    pace, spoken = Pace(1.0, 2.0, 0.0), 0.0
    for _ in range(1000):
        piece = order.uniform(0.0, 1.9)
        spoken += piece
        assert pace.take(piece, spoken) == pytest.approx(0.0, abs=1e-9)


def test_what_is_faster_waits_until_it_is_not(seed: int) -> None:
    order = random.Random(seed)
    rate, burst = order.uniform(1.0, 8.0), order.uniform(0.0, 10.0)
    pace, now, sent = Pace(rate, burst, 0.0), 0.0, 0.0
    for _ in range(500):
        piece = order.uniform(0.0, 3.0)
        sent += piece
        now += pace.take(piece, now)
        assert sent <= burst + rate * now + 1e-6
    assert now == pytest.approx(max(0.0, sent - burst) / rate, rel=0.2, abs=3.0)


def test_no_pace() -> None:
    assert Pace(0.0, 0.0, 0.0).take(1e9, 0.0) == 0.0


def test_an_old_silence_buys_no_more_than_the_burst() -> None:
    pace = Pace(2.0, 3.0, 0.0)
    assert pace.take(3.0, 1000.0) == 0.0
    assert pace.take(4.0, 1000.0) == pytest.approx(2.0)


def test_connections_are_counted_in_and_out() -> None:
    door = Admission(3, 2)
    assert door.enter("a") is None and door.enter("a") is None
    assert "one address" in (door.enter("a") or "")
    assert door.enter("b") is None
    assert "all 3 connections" in (door.enter("c") or "")
    door.leave("a")
    assert door.enter("c") is None
    for address in ("a", "b", "c"):
        door.leave(address)
    assert door.open == 0 and not door._each  # addresses are forgotten
    assert door.refused == {"address": 1, "connections": 1}
    free = Admission(0)
    assert all(free.enter("a") is None for _ in range(1000))


def test_a_key_opens_and_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    one, first = new_key("desk")
    two, second = new_key("lab")
    path.write_text(f"# who may\n\n{first}  # the desk\n{second.upper().replace('LAB', 'lab')}\n")
    keys = Keys(str(path))
    assert len(keys) == 2
    assert keys.name(f"Bearer {one}", None) == keys.name(f"bearer  {one} ", None) == keys.name(None, one) == "desk"
    assert keys.name(None, two) == "lab"
    assert keys.name(f"Bearer {two}", one) == "lab"
    for header, query in ((None, None), (None, ""), ("Bearer ", None), (f"Basic {one}", None), (None, one + "x")):
        assert keys.name(header, query) is None
    digest = first.split()[1]
    assert keys.name(f"Bearer {digest}", digest) is None
    assert keys.name("Bearer \udcff", None) is None
    assert one not in path.read_text()


def test_keys_come_and_go_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    said: list[str] = []
    one, first = new_key("one")
    two, second = new_key("two")
    path.write_text(first + "\n")
    keys = Keys(str(path), said.append)
    assert keys.name(None, two) is None
    path.write_text(f"{first}\n{second}\n")
    assert keys.name(None, two) == "two"
    path.write_text("nonsense\n")
    assert keys.name(None, one) == "one"
    path.unlink()
    assert keys.name(None, two) == "two"
    assert len(said) == 3 and "2 keys" in said[0] and "stay as they were" in said[1]
    replaced = tmp_path / "new"
    replaced.write_text(second + "\n")
    replaced.replace(path)
    assert keys.name(None, one) is None and keys.name(None, two) == "two"


@pytest.mark.parametrize(
    ("text", "part"),
    [("", "holds no key"), ("# none\n", "holds no key"), ("secret\n", ":1: is no line"), ("a b c\n", ":1: is no line")],
)
def test_files_that_are_none(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(BadInput, match=part) as raised:
        Keys(str(path))
    assert "secret" not in str(raised.value)


def test_the_same_key_twice(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    _, line = new_key("a")
    path.write_text(f"{line}\n{line.replace('a', 'b', 1)}\n")
    with pytest.raises(BadInput, match="the same key twice"):
        Keys(str(path))


@pytest.mark.parametrize("name", ["", "two words", "a#b", "a\nb", "\x01"])
def test_names_of_keys(name: str) -> None:
    with pytest.raises(BadInput, match="no name of a key"):
        new_key(name)
