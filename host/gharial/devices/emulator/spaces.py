# SPDX-License-Identifier: Apache-2.0
"""Program spaces: what LOAD brings, and what START accepts (docs/isa.md, sections 3 and 4)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from gharial.devices.emulator.failure import CommandFault
from gharial.isa.configs import Config
from gharial.isa.faults import Fault, Unit
from gharial.isa.header import (
    HEADER,
    INTERFACE_VERSION,
    LOGIT_BITS,
    MAGIC,
    MAX_VECTORS,
    TABLE_BYTES,
    ProgramSpace,
    tokens_needed,
)
from gharial.isa.instructions import SECTION_LIMIT
from gharial.isa.instructions import WORDS as INSTRUCTION_WORDS

Header = dict[str, int]

_SIZE_KEYS = ("code_bytes", "weight_bytes", "scale_bytes", "bias_bytes", "table_bytes", "embed_bytes")
_INSTRUCTION_BYTES = 4 * INSTRUCTION_WORDS


@dataclass
class Space:
    """One program space.

    Attributes:
        capacity: bytes at most.
        unit: its size is a multiple of this.
        image: its content, for spaces that the device keeps itself.
        loaded: bytes brought so far, from offset 0 on.
        base: address of offset 0, for spaces that lie in device memory.
    """

    capacity: int
    unit: int
    image: bytearray | None
    loaded: int = 0
    base: int = field(default=-1)


class ProgramSpaces:
    """The six spaces of a configuration, by number."""

    def __init__(self, config: Config) -> None:
        sizes = {
            ProgramSpace.CODE: (config.code_bytes, _INSTRUCTION_BYTES),
            ProgramSpace.WEIGHTS: (config.weight_bytes, config.tile_bytes),
            ProgramSpace.SCALES: (config.scale_bytes, 4 * config.rows),
            ProgramSpace.BIASES: (config.bias_bytes, 4 * config.rows),
            ProgramSpace.TABLES: (TABLE_BYTES, TABLE_BYTES),
            ProgramSpace.EMBEDDING: (config.embed_bytes, config.cols),
        }
        in_place = {ProgramSpace.WEIGHTS, ProgramSpace.EMBEDDING} if config.in_memory else set()
        self.config = config
        self.spaces = [
            Space(capacity, unit, None if number in in_place else bytearray(capacity))
            for number, (capacity, unit) in sizes.items()
        ]

    def accept(self, number: int, offset: int, chunk: bytes, address: int) -> None:
        """Take a chunk whose place and CRC are right.

        Args:
            number: space.
            offset, address: where the chunk belongs, and where it lies in device memory.
            chunk: its bytes.
        """
        space = self.spaces[number]
        if space.image is not None:
            space.image[offset : offset + len(chunk)] = chunk
        elif offset == 0:
            space.base = address
        elif address != space.base + offset:
            space.base = -1  # scattered: no START can name where the space lies
        space.loaded = offset + len(chunk)

    def header(self) -> Header:
        """The header of what has been loaded.

        Raises:
            CommandFault: BAD_PROGRAM with the word at fault.
        """
        code = self.spaces[ProgramSpace.CODE]
        assert code.image is not None
        words = np.frombuffer(code.image, dtype="<u4", count=HEADER.words)
        header = HEADER.unpack(words)
        fault = 0 if code.loaded < HEADER.bytes else self._fault(header, words.tobytes())
        if fault is not None:
            raise CommandFault(Fault.BAD_PROGRAM, Unit.HOST, fault)
        return header

    def images(self, header: Header, memory: memoryview) -> list[memoryview]:
        """The six images, as long as the header says."""
        return [
            memoryview(space.image)[: header[key]]
            if space.image is not None
            else memory[space.base : space.base + header[key]]
            for space, key in zip(self.spaces, _SIZE_KEYS, strict=True)
        ]

    def _fault(self, header: Header, octets: bytes) -> int | None:
        """The first word that is wrong, or None."""
        if header["magic"] != MAGIC:
            return 0
        major, minor = header["version"] >> 16, header["version"] & 0xFFFF
        if major != INTERFACE_VERSION >> 16 or minor > INTERFACE_VERSION & 0xFFFF:
            return 1
        if header["config_id"] != self.config.config_id:
            return 2
        if header["crc"] != zlib.crc32(octets[:-4]):
            return 63
        for word, (key, space) in enumerate(zip(_SIZE_KEYS, self.spaces, strict=True), 4):
            if header[key] > space.capacity or header[key] % space.unit or header[key] != space.loaded:
                return word
        if header["table_bytes"] != TABLE_BYTES:
            return 8
        instructions = (header["code_bytes"] - HEADER.bytes) // _INSTRUCTION_BYTES
        for word, name in enumerate(("predict", "encode", "joint"), 10):
            first, count = header[f"{name}_first"], header[f"{name}_count"]
            if count > SECTION_LIMIT or first + count > instructions:
                return word
        return self._size_fault(header)

    def _size_fault(self, h: Header) -> int | None:
        config = self.config
        feature_units = h["vectors"] * (h["feature_bytes"] // config.cols)
        checks = {
            13: 1 <= h["vectors"] <= MAX_VECTORS and h["feature_bytes"] > 0 and h["feature_bytes"] % config.cols == 0,
            14: h["feature_unit"] + feature_units <= h["scratch_units"] <= config.scratch_units,
            15: slot_count(config, h, "enc") > 0,
            16: slot_count(config, h, "pred") > 0,
            17: h["joint_enc_unit"] + 2 * h["joint_enc_units"] <= h["enc_c_units"]
            and (not config.in_memory or h["joint_enc_units"] <= config.pred_c_units),
            18: h["joint_pred_unit"] + h["joint_pred_units"] <= h["pred_c_units"],
            19: 1 <= h["classes"] <= config.max_classes and h["blank"] < h["classes"],
            20: h["logit_bits"] in LOGIT_BITS,
            21: h["sum_groups"] <= config.sum_groups and h["tokens"] >= tokens_needed(h),
        }
        return next((word for word, good in checks.items() if not good), None)


def slot_bytes(config: Config, header: Header, side: str) -> int:
    """Bytes of a slot, A part and C part; `side` is "enc" or "pred"."""
    return header[f"{side}_a_units"] * config.cols + header[f"{side}_c_units"] * config.cell_unit * 2


def slot_count(config: Config, header: Header, side: str) -> int:
    """Slots that there are under a program: the configuration's limit, but on chip no more than the pools hold, and in
    memory none if one is too large."""
    count: int = getattr(config, f"{side}_slots")
    for part in ("a", "c"):
        used, there = header[f"{side}_{part}_units"], getattr(config, f"{side}_{part}_units")
        if config.in_memory:
            count = count if used <= there else 0
        elif used:
            count = min(count, there // used)
    return count
