# SPDX-License-Identifier: Apache-2.0
"""Joint evaluations along a path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gharial.errors import BadInput
from gharial.floating import Decoded, path_targets

BLANK = 9


def test_blank_leaves_each_step() -> None:
    assert path_targets([(1, 3), (1, 3), (2, 0)], 4, BLANK, 30) == [
        (0, BLANK),
        (1, 3),
        (1, 3),
        (1, BLANK),
        (2, 0),
        (2, BLANK),
        (3, BLANK),
    ]


def test_no_evaluation_after_the_last_symbol_allowed() -> None:
    assert path_targets([(0, 1), (0, 2)], 2, BLANK, 2) == [(0, 1), (0, 2), (1, BLANK)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, BLANK - 1)), max_size=20), st.integers(20, 30))
def test_path_comes_back_without_its_blanks(path: list[tuple[int, int]], cap: int) -> None:
    path.sort(key=lambda item: item[0])
    targets = path_targets(path, 6, BLANK, cap)
    assert [item for item in targets if item[1] != BLANK] == path
    full = sum(sum(step == at for step, _ in path) == cap for at in range(6))
    assert len(targets) == len(path) + 6 - full


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ([(0, BLANK)], "token is outside the vocabulary"),
        ([(0, -1)], "token is outside the vocabulary"),
        ([(4, 1)], "step is out of order"),
        ([(-1, 1)], "step is out of order"),
        ([(2, 1), (1, 1)], "step is out of order"),
        ([(1, 1)] * 4, "too many tokens"),
    ],
)
def test_bad_paths_are_refused(path: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        path_targets(path, 4, BLANK, 3)


def test_decoded_gives_its_path() -> None:
    assert Decoded([5, 6], [0, 2], [0.5, 0.25]).path == [(0, 5), (2, 6)]
