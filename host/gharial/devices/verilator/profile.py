# SPDX-License-Identifier: Apache-2.0
"""Where the clocks of a simulated device go, layer by layer and over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CAUSES = ("active", "weights", "dependency", "backpressure", "loading", "idle")
"""What a clock can be counted as, in the order of the device's counters."""

NO_LAYER = "no layer"
ENCODE_LOOKUP, DECODE_LOOKUP = "encoder constant", "prediction embedding"
"""Rows of what is no layer of the manifest: no layer at work, LOOKUP of the encode and of the decode thread."""

_BATCH_UNITS = ("finish unit", "rank unit", "aux unit", "encode batch", "decode batch", "state fetched", "state stored")
_ONCHIP_UNITS = ("vector unit", "top-k unit", "aux unit", "encode stage", "decode stage", "state port")
_UNITS = 8  # kUnits, kAmounts of shim/profile.h
_AMOUNTS = 2


@dataclass(frozen=True)
class Rows:
    """What clocks are told apart by: the layers of a program, and what is none.

    Attributes:
        names: rows, in the order of the program's layers.
        tiles: first tile of each part of a layer, ascending, uint32.
        of_tiles: row of each part, uint16.
        others: rows of nothing, LOOKUP in the encode thread, LOOKUP in the decode thread, JOINT, uint16 (4,).
    """

    names: tuple[str, ...]
    tiles: np.ndarray
    of_tiles: np.ndarray
    others: np.ndarray

    @staticmethod
    def of(layers: Mapping[str, Mapping[str, Any]]) -> Rows:
        """The rows of a program's layers, by name as in its manifest."""
        names: list[str] = []
        for name in layers:
            if name.startswith("prediction") and DECODE_LOOKUP not in names:
                names += [ENCODE_LOOKUP, DECODE_LOOKUP]
            names.append(name)
        names += [name for name in (ENCODE_LOOKUP, DECODE_LOOKUP) if name not in names] + [NO_LAYER]
        parts = sorted((part["tile"], names.index(name)) for name in layers for part in layers[name].get("parts", ()))
        joint = next((name for name, layer in layers.items() if layer["kind"] == "joint"), NO_LAYER)
        others = [names.index(name) for name in (NO_LAYER, ENCODE_LOOKUP, DECODE_LOOKUP, joint)]
        return Rows(
            tuple(names),
            np.array([tile for tile, _ in parts], np.uint32),
            np.array([row for _, row in parts], np.uint16),
            np.array(others, np.uint16),
        )


@dataclass(frozen=True)
class Profile:
    """Where the clocks went between two moments at which the device's counters were read.

    Attributes:
        rows: names of the layers, and `NO_LAYER` last.
        units: names of the units.
        clocks: int64 (rows, causes): clocks by layer and by cause; their sum by cause is what the counters say.
        width: clocks of a bucket; the last bucket may have fewer.
        causes: int64 (buckets, causes): clocks by cause.
        layers: int64 (buckets, rows): clocks by layer.
        at_work: int64 (buckets, units): clocks in which a unit was at work.
        weight_bytes, state_bytes: int64 (buckets,): bytes of weights read, of state read and written.
    """

    rows: tuple[str, ...]
    units: tuple[str, ...]
    clocks: np.ndarray
    width: int
    causes: np.ndarray
    layers: np.ndarray
    at_work: np.ndarray
    weight_bytes: np.ndarray
    state_bytes: np.ndarray


def assemble(rows: Sequence[str], in_memory: bool, counts: np.ndarray, buckets: np.ndarray, width: int) -> Profile:
    """A profile from the words of the simulation.

    Args:
        rows: names of the rows.
        in_memory: whether the machine has its weights in memory.
        counts: uint64 (rows * causes,).
        buckets: uint32 (buckets * (causes + rows + units + amounts),).
        width: clocks of a bucket.
    """
    count = len(rows)
    ends = np.cumsum([len(CAUSES), count, _UNITS, _AMOUNTS])
    causes, layers, at_work, amounts = np.split(buckets.reshape(-1, int(ends[-1])).astype(np.int64), ends[:-1], axis=1)
    units = _BATCH_UNITS if in_memory else _ONCHIP_UNITS
    return Profile(
        tuple(rows),
        units,
        counts.reshape(count, len(CAUSES)).astype(np.int64),
        width,
        causes,
        layers,
        at_work[:, : len(units)],
        amounts[:, 0],
        amounts[:, 1],
    )
