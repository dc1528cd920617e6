# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors read back from the images of the program spaces (docs/isa.md, sections 2 and 4).

Positions come from the manifest's `layers` (docs/program.md), never from the instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gharial.errors import BadInput
from gharial.isa.configs import Config
from gharial.isa.header import TABLE_BYTES, TABLE_ENTRIES

from .numerics import Array, output, part

Int8 = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Tables:
    """Function tables, each (entries, 2) of base and slope."""

    sigmoid: Array
    tanh: Array
    exp: Array
    log: Array


@dataclass(frozen=True)
class Part:
    """One part of a product.

    Attributes:
        input: "x" or "h", the vector that it takes.
        column: its first column in that vector, padding units not counted.
        W: weights, int8 (rows, columns); columns without padding.
        stored: columns with padding, as the tiles have them.
        m: multipliers, (rows,).
        k: shifts, (rows,).
    """

    input: str
    column: int
    W: Int8
    stored: int
    m: Array
    k: Array


@dataclass(frozen=True)
class Product:
    """A matrix product: bias, int32 (rows,), and its parts. Rows include padding."""

    bias: Array
    parts: tuple[Part, ...]

    def width(self, name: str) -> int:
        """Columns of an input ("x", "h") that the parts reach; 0 if they do not take it."""
        return max((p.column + p.W.shape[1] for p in self.parts if p.input == name), default=0)

    def __call__(self, inputs: Mapping[str, Array]) -> Array:
        """y of every row, int16 (rows,), of the inputs by name, each int8 (columns,) without padding."""
        S = self.bias
        for p in self.parts:
            S = part(S, p.W, inputs[p.input][p.column : p.column + p.W.shape[1]], p.m, p.k)
        return output(S)


class Images:
    """The images of the program spaces of one program.

    Args:
        config: the hardware configuration, which gives rows and columns of a tile.
        sections: image by section name: weights, scales, biases, tables, embedding (and others, not looked at).
    """

    def __init__(self, config: Config, sections: Mapping[str, bytes]) -> None:
        self._config = config
        self._sections = sections

    def product(self, layer: Mapping[str, Any]) -> Product:
        """The product of an entry of the manifest's `layers`.

        Raises:
            BadInput: a position lies outside its image, or a part's padding is not a whole number of tiles.
        """
        groups = int(layer["row_groups"])
        bias = self.biases(int(layer["bias_group"]), groups)
        parts = tuple(self.part(entry, groups) for entry in layer["parts"])
        if not 1 <= len(parts) <= 7:
            raise BadInput("a product has one to seven parts", where=f"layer {layer['name']}", found=len(parts))
        return Product(bias, parts)

    def part(self, entry: Mapping[str, Any], groups: int) -> Part:
        """One entry of a layer's `parts`, for so many row groups."""
        if entry["input"] not in ("x", "h"):
            raise BadInput("a part takes x or h", where="part of a layer", found=entry["input"])
        m, k = self.scales(int(entry["scale_group"]), groups)
        stored, columns = int(entry["padded"]), int(entry["columns"])
        W = self.matrix(int(entry["tile"]), groups, stored)
        if not 1 <= columns <= stored or W[:, columns:].any():
            raise BadInput("padding columns of a part are not zero", found=f"{columns} columns, {stored} stored")
        return Part(entry["input"], int(entry["column"]), W[:, :columns], stored, m, k)

    def matrix(self, tile: int, groups: int, columns: int) -> Int8:
        """Weights of one part, int8 (groups * R, columns), undone from tiles."""
        R, C = self._config.rows, self._config.cols
        if columns < 1 or columns % C:
            raise BadInput("columns of a part are not whole tiles", found=columns, expected=f"a multiple of {C}")
        tiles = columns // C
        raw = self._take("weights", tile * R * C, groups * tiles * R * C)
        # byte ((g * K/C + t) * R + r) * C + c is W[g*R + r, t*C + c]
        stored = np.frombuffer(raw, dtype=np.int8).reshape(groups, tiles, R, C)
        return stored.transpose(0, 2, 1, 3).reshape(groups * R, columns)

    def scales(self, group: int, groups: int) -> tuple[Array, Array]:
        """Multipliers m and shifts k of so many row groups, each (rows,)."""
        R = self._config.rows
        words = np.frombuffer(self._take("scales", 4 * R * group, 4 * R * groups), dtype="<u4").astype(np.int64)
        m = words & 0x1FFFF
        k = words >> 17 & 0x3F
        return m, np.where(k >= 32, k - 64, k)

    def biases(self, group: int, groups: int) -> Array:
        """Biases of so many row groups, (rows,)."""
        R = self._config.rows
        return np.frombuffer(self._take("biases", 4 * R * group, 4 * R * groups), dtype="<i4").astype(np.int64)

    def tables(self) -> Tables:
        """The four function tables."""
        words = np.frombuffer(self._take("tables", 0, TABLE_BYTES), dtype="<i4").astype(np.int64)
        pairs = words.reshape(-1, 2)
        found, start = {}, 0
        for name in ("sigmoid", "tanh", "exp", "log"):
            found[name] = pairs[start : start + TABLE_ENTRIES[name]]
            start += TABLE_ENTRIES[name]
        return Tables(**found)

    def vectors(self, unit: int, count: int, length: int) -> Array:
        """Vectors of the embedding space, (count, length), from an activation unit on."""
        raw = self._take("embedding", unit * self._config.cols, count * length)
        return np.frombuffer(raw, dtype=np.int8).astype(np.int64).reshape(count, length)

    def _take(self, name: str, start: int, count: int) -> bytes:
        image = self._sections[name]
        if start < 0 or count < 0 or start + count > len(image):
            raise BadInput(
                "a layer lies outside its image",
                where=f"section {name}",
                found=f"bytes {start} to {start + count}",
                expected=f"at most {len(image)}",
            )
        return image[start : start + count]
