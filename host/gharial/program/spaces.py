# SPDX-License-Identifier: Apache-2.0
"""Checks of a program's header and of the numbers in its spaces (docs/isa.md, section 4; docs/numerics.md)."""

from __future__ import annotations

import zlib

import numpy as np

from gharial.errors import BadInput
from gharial.isa.header import (
    HEADER,
    INTERFACE_VERSION,
    LOGIT_BITS,
    MAGIC,
    MAX_VECTORS,
    TABLE_BYTES,
    tokens_needed,
)
from gharial.isa.instructions import SECTION_LIMIT
from gharial.program.container import AGAIN
from gharial.program.manifest import SECTIONS, SPACES, check_sizes
from gharial.program.program import Program

MAX_BIAS = 1 << 30
SHIFTS = range(-8, 24)
_BASE_BITS = 18  # of a table's base, unsigned, and slope, signed


def check_limits(program: Program) -> None:
    """Hold a program against its configuration's limits (docs/isa.md, section 8): spaces, vocabulary, layers, slots.

    Raises:
        BadInput: the first limit that it exceeds, with what it needs and what there is.
    """
    config, where = program.config, f"{program.where}: header"
    check_sizes({name: len(data) for name, data in program.sections.items()}, config, program.where)
    if len(program.section("code")) < HEADER.bytes:
        raise BadInput("the code is shorter than its header", where, len(program.section("code")), HEADER.bytes)
    header = program.header

    def inside(what: str, found: int, low: int, high: int) -> None:
        if not low <= found <= high:
            raise BadInput(f"{what} is out of range", where, found, f"{low}..{high}")

    for section in SECTIONS:
        inside(f"instructions of section {section}", header[f"{section}_count"], 0, SECTION_LIMIT)
    inside("feature vectors a step", header["vectors"], 1, MAX_VECTORS)
    inside("classes", header["classes"], 1, config.max_classes)
    inside("scratch units", header["scratch_units"], 0, config.scratch_units)
    inside("sum groups", header["sum_groups"], 0, config.sum_groups)
    for field in ("enc_a_units", "enc_c_units", "pred_a_units", "pred_c_units"):
        inside(f"a slot's {field}", header[field], 0, int(getattr(config, field)))
    if config.in_memory:
        inside("a bank's joint_enc_units", header["joint_enc_units"], 0, config.pred_c_units)


def check_header(program: Program) -> None:
    """Raise BadInput unless the header is one that START takes and that agrees with the manifest."""
    where = f"{program.where}: header"
    check_limits(program)
    words, header, config = program.code, program.header, program.config
    stray = HEADER.stray(words)
    if stray is not None:
        raise BadInput("a bit is set that no field owns", where, f"{int(words[stray]):#010x} in word {stray}")

    def same(what: str, found: int, expected: int, remedy: str | None = None) -> None:
        if found != expected:
            raise BadInput(f"{what} differs", where, f"{found:#x}", f"{expected:#x}", remedy)

    def inside(what: str, found: int, low: int, high: int) -> None:
        if not low <= found <= high:
            raise BadInput(f"{what} is out of range", where, found, f"{low}..{high}")

    same("magic", header["magic"], MAGIC)
    same("interface version", header["version"], INTERFACE_VERSION, AGAIN)
    same("configuration id", header["config_id"], config.config_id, AGAIN)
    same("CRC", header["crc"], zlib.crc32(words[: HEADER.words - 1].tobytes()))
    program_id = 0
    for space in SPACES:
        data = program.section(space.name)
        same(f"size of {space.name}", header[space.size], len(data))
        if len(data) % 4:
            raise BadInput(f"{space.name} is no whole number of words", where, f"{len(data)} bytes")
        if space.name != "code":
            program_id = zlib.crc32(data, program_id)
    same("program id", header["program_id"], program_id)
    same("program id of the manifest", program.program_id, program_id)
    same("size of tables", header["table_bytes"], TABLE_BYTES)

    features, numerics = program.manifest["features"], program.manifest["numerics"]
    same("bytes of a feature vector", header["feature_bytes"], features["padded"])
    same("logit fraction bits", header["logit_bits"], numerics["frac_bits"]["logits"])
    same("blank", header["blank"], program.manifest["decoding"]["blank"])
    inside("logit fraction bits", header["logit_bits"], LOGIT_BITS.start, LOGIT_BITS.stop - 1)
    inside("blank", header["blank"], 0, header["classes"] - 1)
    if header["tokens"] < tokens_needed(header):
        raise BadInput("a class has no embedding row", where, f"{header['tokens']} rows", tokens_needed(header))
    feature_units = header["vectors"] * (header["feature_bytes"] // config.cols)
    inside("feature unit", header["feature_unit"], 0, header["scratch_units"] - feature_units)
    inside("end of joint_enc", header["joint_enc_unit"] + 2 * header["joint_enc_units"], 0, header["enc_c_units"])
    inside("end of joint_pred", header["joint_pred_unit"] + header["joint_pred_units"], 0, header["pred_c_units"])


def check_data(program: Program) -> None:
    """Raise BadInput if a number in a space is one that the arithmetic does not provide for (docs/numerics.md)."""
    for name in ("weights", "embedding"):
        data = program.array(name, np.int8)
        if data.size and int(data.min()) == -128:
            at = int(np.argmax(data == -128))
            raise BadInput("a value of -128", f"{program.where}: {name}, byte {at}", -128, "-127..127")
    scales = program.array("scales", "<u4")
    shifts = (scales << np.uint32(9)).view(np.int32) >> 26  # the field's sign bit moved to the word's
    _first_bad(program, "scales", (shifts < SHIFTS.start) | (shifts >= SHIFTS.stop) | (scales >> 23 != 0), scales)
    for name, layer in program.layers.items():
        for index, part in enumerate(layer.get("parts", [])):
            if part["columns"] < part["padded"] and program.part_weights(name, index)[:, part["columns"] :].any():
                raise BadInput(
                    "a weight in a padding column", f"{program.where}: layer {name}, part {index}", "not 0", 0
                )
    biases = program.array("biases", "<i4")
    _first_bad(program, "biases", (biases < -MAX_BIAS) | (biases > MAX_BIAS), biases)
    table = program.array("tables", "<u4")
    base, slope = table[0::2], table[1::2].view(np.int32)
    limit = 1 << _BASE_BITS - 1
    bad = np.stack([base >= 1 << _BASE_BITS, (slope < -limit) | (slope >= limit)], axis=1).ravel()
    _first_bad(program, "tables", bad, table)


def _first_bad(program: Program, name: str, bad: np.ndarray, words: np.ndarray) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        raise BadInput("a number out of range", f"{program.where}: {name}, word {at}", f"{int(words[at]):#x}")
