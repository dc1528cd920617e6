# SPDX-License-Identifier: Apache-2.0
"""The writer of torch zip files: torch itself, Python's zipfile and our reader all see what was put in."""

from __future__ import annotations

import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gharial.checkpoint import load
from gharial.errors import BadInput
from gharial.export import zipping
from gharial.export.zipping import ALIGNMENT, checkpoint_pieces
from gharial.files import write_atomically

READERS: dict[str, Callable[[Path], Any]] = {
    "ours": load,
    "torch, weights alone": lambda path: torch.load(path, weights_only=True),
    "torch": lambda path: torch.load(path, weights_only=False),
    "torch, mapped": lambda path: torch.load(path, mmap=True, weights_only=True),
}


def written(folder: Path, tree: Any) -> Path:
    path = folder / "t.pt"
    write_atomically(path, checkpoint_pieces(tree, path))
    return path


def same(found: Any, expected: Any) -> None:
    """Asserts equal values of equal types; a torch tensor is the array's equal."""
    if isinstance(found, torch.Tensor):
        found = found.numpy()
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            same(found[key], value)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        assert found == expected


@pytest.mark.parametrize("reader", READERS)
def test_every_kind_of_value(tmp_path: Path, reader: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    numbers = [0, 1, -1, 255, 256, (1 << 31) - 1, 1 << 31, -(1 << 31), -(1 << 31) - 1, 1 << 63, -(1 << 63)]
    numbers += [int(value) * int(other) for value, other in random.integers(-(1 << 62), 1 << 62, (20, 2))]
    tree = {
        "state": OrderedDict(
            matrix=random.standard_normal((3, 5)).astype(np.float32),
            turned=random.standard_normal((5, 3)).astype(np.float32).T,
            cube=random.standard_normal((2, 3, 4)).astype(np.float32),
            none=np.zeros((0, 3), np.float32),
            scalar=np.array(3.5, np.float32),
            every_second=np.arange(10, dtype=np.float32)[::2],
        ),
        "numbers": numbers,
        "floats": (1.5, -0.0, 1e-300, float("inf")),
        "bytes": [b"", bytes(range(256)), random.bytes(1000)],
        "text": ["", "plain", "Grüße, 日本, \U0001f40a", "line\nfeed\0"],
        "flags": [True, False, None],
        "empty": [{}, [], (), OrderedDict()],
        "deep": {"a": {"b": [({"c": 1},)]}},
    }
    same(READERS[reader](written(tmp_path, tree)), tree)


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    def tree() -> dict[str, Any]:
        return {"b": np.arange(9, dtype=np.float32), "a": "x", "c": b"y"}

    first = written(tmp_path, tree()).read_bytes()
    assert written(tmp_path, tree()).read_bytes() == first
    # The layout in memory is none of the content.
    turned = tree() | {"b": np.arange(18, dtype=np.float32)[::2] / 2}
    assert written(tmp_path, turned).read_bytes() == first


def test_members_are_stored_checked_and_aligned(tmp_path: Path) -> None:
    path = written(tmp_path, {"a": np.ones(3, np.float32), "b": np.ones((70, 5), np.float32), "c": b"z" * 77})
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = [f"archive/{name}" for name in ("data.pkl", "byteorder", "data/0", "data/1", "version")]
        assert archive.namelist() == names
        for member in archive.infolist():
            assert member.compress_type == zipfile.ZIP_STORED
            assert member.date_time == (1980, 1, 1, 0, 0, 0)
            name_length, extra = struct.unpack_from("<2H", data, member.header_offset + 26)
            assert (member.header_offset + 30 + name_length + extra) % ALIGNMENT == 0


@pytest.mark.parametrize("value", [np.zeros(3), np.zeros(3, np.int32), {1, 2}, object(), 1j, np.float32(1)])
def test_other_values_are_no_plain_data(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError):
        written(tmp_path, {"a": value})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_the_format_cannot_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipping, "MAX_BYTES", 4000)
    with pytest.raises(BadInput, match="too large"):
        written(tmp_path, np.zeros(1000, np.float32))
    written(tmp_path, np.zeros(100, np.float32))
