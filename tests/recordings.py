# SPDX-License-Identifier: Apache-2.0
"""The shipped recordings and models made from the shipped one, for tests of everything that listens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from checkpoint_files import saved

from gharial.audio import open_audio, read_all
from gharial.checkpoint import ModelDims
from gharial.recognise import Recogniser, Token

FOLDER = Path(__file__).resolve().parent.parent / "host/gharial/data/recordings"
FILES = [FOLDER / entry["files"][0]["fname"] for entry in json.loads((FOLDER / "manifest.json").read_text())]
SHORT, LONG = FILES[0], FILES[-1]


@cache
def samples(path: Path) -> np.ndarray:
    """int16 (n,), read-only."""
    with open_audio(path) as source:
        values = read_all(source)
    assert values.dtype == np.int16
    values.setflags(write=False)
    return values


def cuts(values: Any, random: np.random.Generator, longest: int) -> Iterator[Any]:
    """A sequence cut into pieces of random length, some of them empty."""
    at = 0
    while at < len(values):
        size = int(random.integers(0, longest + 1))
        yield values[at : at + size]
        at += size


def facts(tokens: list[Token] | tuple[Token, ...]) -> list[tuple[int, int, float]]:
    """What the device decides of tokens, to the last bit."""
    return [(token.id, token.step, token.confidence) for token in tokens]


def pushed(recogniser: Recogniser, values: np.ndarray) -> list[tuple[int, int, float]]:
    """Facts of a recording's tokens, all of it pushed at once."""
    with recogniser.stream() as stream:
        stream.push(values)
        return facts(stream.finish().tokens)


def talkative(folder: Path) -> Path:
    """The demo model changed so that it says something at every turn: every step runs into the limit of symbols."""

    def change(top: dict[str, Any]) -> dict[str, Any]:
        top["state_dict"]["joint_net.2.bias"][-1] -= 1000.0
        return top

    return saved(folder, change)


def of_width(folder: Path, width: int) -> Path:
    """A checkpoint like the demo model's with `width` units everywhere, and random weights."""

    def change(top: dict[str, Any]) -> dict[str, Any]:
        dims = ModelDims(240, width, 2, 2, 2, width, 1, width, 256)
        torch.manual_seed(width)
        top["state_dict"] = {name: torch.randn(shape) / 8 for name, shape in dims.shapes().items()}
        rnnt = top["rnnt_config"].get("rnnt", {})
        for key in ("enc_n_hid", "pred_n_hid", "joint_n_hid"):
            if key in rnnt:
                rnnt[key] = width
        return top

    return saved(folder, change)
