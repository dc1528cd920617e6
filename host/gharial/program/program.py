# SPDX-License-Identifier: Apache-2.0
"""A compiled program in memory, and its way from and to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gharial.errors import BadInput
from gharial.files import write_atomically
from gharial.isa.configs import Config, configs
from gharial.isa.header import HEADER
from gharial.program import container
from gharial.program.manifest import check_identity, check_manifest, check_table

# m in bits 16:0, k signed in bits 22:17 (isa.md, section 2)
_M_BITS = 17
_K_BITS = 6


@dataclass(frozen=True, eq=False)
class Program:
    """One model compiled for one configuration.

    Attributes:
        manifest: what docs/program.md lists. Its `sections` is made when the program is written; here the sections
            themselves count.
        sections: bytes by name: the images of the six spaces, and what only the host needs.
        path: file it was read from, None if it was not.
        given: file that it was compiled from on the fly, as the user names it; for messages.
    """

    manifest: dict[str, Any]
    sections: dict[str, bytes]
    path: str | None = None
    given: str | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Program:
        """Read and verify a program file. The file is not trusted.

        Raises:
            BadInput: missing, empty, truncated or damaged file, not a program, another container or interface
                version, another configuration, a manifest entry or instruction that does not hold.
        """
        from gharial.program.verify import verify

        with container.ProgramFile(path) as file:
            config = check_identity(file.manifest, file.path)
            table = check_table(file.manifest, config, file.path)
            sizes = {name: entry["bytes"] for name, entry in table.items()}
            # Before the sections are read: a manifest that does not hold costs no memory.
            check_manifest(file.manifest, config, sizes, file.path)
            program = cls(file.manifest, file.sections(table), file.path)
        verify(program)
        return program

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the program file; after a failure `path` is as it was before.

        Raises:
            BadInput: the path cannot be an output file, or the manifest is too long.
            GharialError: writing failed (no space, no permission).
        """
        write_atomically(path, container.chunks(self.manifest, self.sections))

    def to_bytes(self) -> bytes:
        """The program file's bytes; the same program always gives the same bytes."""
        return b"".join(container.chunks(self.manifest, self.sections))

    @property
    def where(self) -> str:
        """Name of the program for error messages."""
        return self.given or self.path or "program"

    @cached_property
    def config(self) -> Config:
        """The hardware configuration it was compiled for."""
        return configs()[self.manifest["config"]["name"]]

    @property
    def program_id(self) -> int:
        """CRC-32 over the five data spaces."""
        return int(self.manifest["program_id"])

    @cached_property
    def header(self) -> dict[str, int]:
        """Fields of the code space's header (gharial.isa.header.HEADER)."""
        return HEADER.unpack(self.array("code", np.dtype("<u4"))[: HEADER.words])

    @property
    def code(self) -> npt.NDArray[np.uint32]:
        """Words of the code space, header included; uint32 (words,)."""
        return self.array("code", np.dtype("<u4"))

    def array(self, section: str, dtype: npt.DTypeLike) -> np.ndarray:
        """A section as a read-only array of that type, one axis.

        Raises:
            BadInput: there is no such section, or its length is no multiple of the type's size.
        """
        data = self.section(section)
        if len(data) % np.dtype(dtype).itemsize:
            found = f"{len(data)} bytes"
            raise BadInput(f"section {section} is not a whole number of {np.dtype(dtype)}", self.where, found)
        return np.frombuffer(data, dtype)

    def section(self, name: str) -> bytes:
        """The bytes of a section.

        Raises:
            BadInput: there is no such section.
        """
        try:
            return self.sections[name]
        except KeyError:
            raise BadInput("a section is missing", self.where, ", ".join(self.sections), name) from None

    @cached_property
    def layers(self) -> dict[str, dict[str, Any]]:
        """The manifest's layers by name, in the order of the machine."""
        return {layer["name"]: layer for layer in self.manifest["layers"]}

    def layer(self, name: str) -> dict[str, Any]:
        """The manifest's entry of a layer.

        Raises:
            BadInput: there is no such layer.
        """
        try:
            return self.layers[name]
        except KeyError:
            raise BadInput("there is no such layer", self.where, name, ", ".join(self.layers)) from None

    def part_weights(self, layer: str, part: int) -> npt.NDArray[np.int8]:
        """Weights of one part of a product: int8 (rows, columns), both padded; LSTM rows are interleaved by gate."""
        config, groups, entry = self.config, self._groups(layer), self._part(layer, part)
        tiles = entry["padded"] // config.cols
        start = entry["tile"] * config.tile_bytes
        stop = start + groups * tiles * config.tile_bytes
        data = self.array("weights", np.int8)[start:stop]
        tiled = data.reshape(groups, tiles, config.rows, config.cols)
        return tiled.transpose(0, 2, 1, 3).reshape(groups * config.rows, tiles * config.cols)

    def part_scales(self, layer: str, part: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Multipliers m (0..2^17 - 1) and shifts k (-32..31) of one part's rows: int64 (rows,) each, padded."""
        words = self._rows("scales", self._part(layer, part)["scale_group"], layer).astype(np.int64)
        shifts = words >> _M_BITS & (1 << _K_BITS) - 1
        return words & (1 << _M_BITS) - 1, shifts - (shifts >> _K_BITS - 1 << _K_BITS)

    def biases(self, layer: str) -> npt.NDArray[np.int64]:
        """Biases of a product's rows, int64 (rows,), padded, unit 2^-10 of the output's unit."""
        return self._rows("biases", self.layer(layer)["bias_group"], layer).view("<i4").astype(np.int64)

    def _rows(self, section: str, group: int, layer: str) -> npt.NDArray[np.uint32]:
        start, count = group * self.config.rows, self._groups(layer) * self.config.rows
        return self.array(section, np.dtype("<u4"))[start : start + count]

    def _groups(self, layer: str) -> int:
        entry = self.layer(layer)
        if "row_groups" not in entry:
            raise BadInput("the layer has no product", self.where, layer)
        return int(entry["row_groups"])

    def _part(self, layer: str, part: int) -> Mapping[str, Any]:
        parts = self.layer(layer).get("parts", [])
        if not 0 <= part < len(parts):
            raise BadInput("there is no such part", f"{self.where}: layer {layer}", part, f"0..{len(parts) - 1}")
        return dict(parts[part])
