# SPDX-License-Identifier: Apache-2.0
"""LOAD and START (docs/isa.md, sections 3 to 5)."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np

from gharial.isa.commands import Flag
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
from gharial.isa.words import Words

from .machine import WORD, Machine, Refusal, in_place
from .model import ReferenceModel
from .slots import SlotStore, check_layout, slot_numbers, state_bytes

INSTRUCTION_BYTES = 32
ALIGNMENT = 64  # of bases in the device memory

SIZE_FIELDS = {
    ProgramSpace.CODE: "code_bytes",
    ProgramSpace.WEIGHTS: "weight_bytes",
    ProgramSpace.SCALES: "scale_bytes",
    ProgramSpace.BIASES: "bias_bytes",
    ProgramSpace.TABLES: "table_bytes",
    ProgramSpace.EMBEDDING: "embed_bytes",
}
SECTION_NAMES = {space: space.name.lower() for space in ProgramSpace}


def load(machine: Machine, d: dict[str, int]) -> None:
    """Take one chunk of a space; the running program is gone as soon as the descriptor is found good."""
    address, offset, count = d["entry_lo"] | d["entry_hi"] << 32, d["offset"], d["bytes"]
    if d["space"] not in list(ProgramSpace):
        raise _bad_command(13)
    space = ProgramSpace(d["space"])
    loaded = machine.spaces[space]
    if in_place(machine.config, space) != bool(d["flags"] & Flag.IN_PLACE):
        raise _bad_command(0)
    if offset not in (0, loaded.count):
        raise _bad_command(12)
    if count % WORD or offset + count > loaded.capacity:
        raise _bad_command(13)
    machine.memory.check(address, count)

    machine.model = machine.slots = None
    if d["flags"] & Flag.UNCHECKED:
        data = machine.memory.read(address, count)
    else:
        data = machine.memory.checked_crc(address, count, d["body_crc"])
    if in_place(machine.config, space):
        scattered = offset > 0 and loaded.base != address - offset  # then no START can name where the space lies
        loaded.base = None if scattered else address - offset
    else:
        loaded.image[offset : offset + count] = data
    loaded.count = offset + count


def start(machine: Machine, d: dict[str, int]) -> None:
    """Make the loaded program current and free all slots."""
    bases = {
        ProgramSpace.EMBEDDING: d["entry_lo"] | d["entry_hi"] << 32,
        ProgramSpace.WEIGHTS: d["feature_lo"] | d["feature_hi"] << 32,
    }
    state_base = d["result_lo"] | d["result_hi"] << 32
    if machine.config.in_memory:
        _check_bases(machine, bases, state_base)
    code = machine.spaces[ProgramSpace.CODE]
    if code.count < HEADER.bytes:
        raise _bad_program(0)
    words = np.frombuffer(bytes(code.image[: HEADER.bytes]), dtype="<u4")
    header = HEADER.unpack(words)
    fault = _header_fault(machine, words, header)
    if fault is not None:
        raise _bad_program(fault)

    if machine.config.in_memory:
        machine.memory.check(state_base, state_bytes(machine.config, header))
    sections = {}
    for space, loaded in machine.spaces.items():
        size = header[SIZE_FIELDS[space]]
        if in_place(machine.config, space):
            sections[SECTION_NAMES[space]] = machine.memory.read(bases[space], size)
        else:
            sections[SECTION_NAMES[space]] = bytes(loaded.image[:size])
    # This model reads positions in the manifest, so the images have to be those that the manifest speaks of.
    for name, image in sections.items():
        if hashlib.sha256(image).hexdigest() != machine.manifest["sections"][name]["sha256"]:
            raise _bad_program(3)

    model = ReferenceModel(machine.manifest, sections)
    check_layout(model)
    machine.model = model
    machine.slots = SlotStore(*slot_numbers(machine.config, header))


def _header_fault(machine: Machine, words: Words, header: dict[str, int]) -> int | None:
    """The first header word that START refuses, or None."""
    config = machine.config
    version = header["version"]
    if header["magic"] != MAGIC:
        return 0
    if version >> 16 != INTERFACE_VERSION >> 16 or version & 0xFFFF > INTERFACE_VERSION & 0xFFFF:
        return 1
    if header["config_id"] != config.config_id:
        return 2
    if header["crc"] != zlib.crc32(words[:-1].tobytes()):
        return 63
    for word, (space, field) in enumerate(SIZE_FIELDS.items(), 4):
        if header[field] != machine.spaces[space].count or header[field] % _unit_bytes(config, space):
            return word
    if header["table_bytes"] != TABLE_BYTES:
        return 8
    instructions = (header["code_bytes"] - HEADER.bytes) // INSTRUCTION_BYTES
    for word, section in ((10, "predict"), (11, "encode"), (12, "joint")):
        count = header[f"{section}_count"]
        if count > SECTION_LIMIT or header[f"{section}_first"] + count > instructions:
            return word
    return _network_fault(machine, header)


def _unit_bytes(config: Config, space: ProgramSpace) -> int:
    """Every image is whole instructions, tiles, row groups of words, tables or activation units."""
    row_group = WORD * config.rows
    return {
        ProgramSpace.CODE: INSTRUCTION_BYTES,
        ProgramSpace.WEIGHTS: config.tile_bytes,
        ProgramSpace.SCALES: row_group,
        ProgramSpace.BIASES: row_group,
        ProgramSpace.TABLES: TABLE_BYTES,
        ProgramSpace.EMBEDDING: config.cols,
    }[space]


def _network_fault(machine: Machine, header: dict[str, int]) -> int | None:
    """The same for words 13 to 21."""
    config = machine.config
    feature_bytes, vectors = header["feature_bytes"], header["vectors"]
    if feature_bytes == 0 or feature_bytes % config.cols or not 1 <= vectors <= MAX_VECTORS:
        return 13
    features_end = header["feature_unit"] + vectors * (feature_bytes // config.cols)
    if features_end > header["scratch_units"] or header["scratch_units"] > config.scratch_units:
        return 14
    encoders, predictions = slot_numbers(config, header)
    if not encoders:
        return 15
    if not predictions:
        return 16
    if header["joint_enc_unit"] + 2 * header["joint_enc_units"] > header["enc_c_units"]:
        return 17
    if config.in_memory and header["joint_enc_units"] > config.pred_c_units:
        return 17
    if header["joint_pred_unit"] + header["joint_pred_units"] > header["pred_c_units"]:
        return 18
    if not 1 <= header["classes"] <= config.max_classes or header["blank"] >= header["classes"]:
        return 19
    if header["logit_bits"] not in LOGIT_BITS:
        return 20
    if header["sum_groups"] > config.sum_groups or header["tokens"] < tokens_needed(header):
        return 21
    return None


def _check_bases(machine: Machine, bases: dict[ProgramSpace, int], state: int) -> None:
    """Whether weights and embedding lie where LOAD has checked them, and the state at an aligned place."""
    for base, loaded in (
        (bases[ProgramSpace.EMBEDDING], machine.spaces[ProgramSpace.EMBEDDING].base),
        (state, state),
        (bases[ProgramSpace.WEIGHTS], machine.spaces[ProgramSpace.WEIGHTS].base),
    ):
        if base % ALIGNMENT or base != loaded:
            raise Refusal(Fault.ADDRESS, Unit.HOST, base)


def _bad_command(word: int) -> Refusal:
    return Refusal(Fault.BAD_COMMAND, Unit.HOST, word)


def _bad_program(word: int) -> Refusal:
    return Refusal(Fault.BAD_PROGRAM, Unit.HOST, word)
