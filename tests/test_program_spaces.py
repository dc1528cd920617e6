# SPDX-License-Identifier: Apache-2.0
"""The header, and the numbers in the spaces, at and beyond their limits."""

from __future__ import annotations

import numpy as np
import pytest
from small_program import CLASSES, assemble, spaces

from gharial.errors import BadInput
from gharial.program import Program, verify


def refusal(program: Program) -> str:
    with pytest.raises(BadInput) as caught:
        verify(program)
    return str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"magic": 1}, "magic differs"),
        ({"version": 0x20000}, "interface version differs"),
        ({"config_id": 1}, "configuration id differs"),
        ({"crc": 1}, "CRC differs"),
        ({"weight_bytes": 4}, "size of weights differs"),
        ({"program_id": 1}, "program id differs"),
        ({"vectors": 0}, "feature vectors a step is out of range"),
        ({"vectors": 5}, "feature vectors a step is out of range"),
        ({"classes": 0}, "classes is out of range"),
        ({"classes": 513}, "classes is out of range"),
        ({"blank": CLASSES}, "blank"),
        ({"logit_bits": 3}, "logit fraction bits"),
        ({"scratch_units": 513}, "scratch units is out of range"),
        ({"sum_groups": 129}, "sum groups is out of range"),
        ({"tokens": CLASSES - 2}, "a class has no embedding row"),
        ({"feature_unit": 8}, "feature unit is out of range"),
        ({"enc_a_units": 513}, "enc_a_units is out of range"),
        ({"joint_enc_unit": 3}, "end of joint_enc is out of range"),
        ({"joint_pred_unit": 2}, "end of joint_pred is out of range"),
    ],
    ids=str,
)
def test_header(fields: dict[str, int], words: str) -> None:
    assert words in refusal(assemble(fields=fields))


def test_header_bits_that_nobody_owns() -> None:
    program = assemble()
    image = bytearray(program.sections["code"])
    image[4 * 30] = 1
    assert "word 30" in refusal(Program(program.manifest, program.sections | {"code": bytes(image)}))
    assert "shorter than its header" in refusal(Program(program.manifest, program.sections | {"code": bytes(64)}))


def word_changed(name: str, index: int, value: int) -> dict[str, bytes]:
    words = np.frombuffer(spaces(1)[name], "<u4").copy()
    words[index] = value
    return {name: words.tobytes()}


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (word_changed("weights", 5, 0x80), "weights, byte 20: a value of -128"),
        (word_changed("embedding", 3, 0x8000), "embedding, byte 13: a value of -128"),
        (word_changed("scales", 7, 24 << 17), "scales, word 7"),
        (word_changed("scales", 7, (-9 & 63) << 17), "scales, word 7"),
        (word_changed("scales", 7, 1 << 23), "scales, word 7"),
        (word_changed("biases", 2, (1 << 30) + 1), "biases, word 2"),
        (word_changed("biases", 2, 0xBFFFFFFF), "biases, word 2"),
        (word_changed("tables", 4, 1 << 18), "tables, word 4"),
        (word_changed("tables", 5, 1 << 17), "tables, word 5"),
        ({"tables": bytes(9212)}, "size of tables differs"),
        ({"weights": spaces(1)["weights"][:-1]}, "outside the section weights"),
        ({"embedding": spaces(1)["embedding"] + b"\0"}, "no whole number of words"),
    ],
    ids=str,
)
def test_numbers(images: dict[str, bytes], words: str) -> None:
    assert words in refusal(assemble(images=images))


def test_limits_of_numbers_are_allowed() -> None:
    for name, index, value in (
        ("biases", 2, 1 << 30),
        ("biases", 2, 0xC0000000),
        ("scales", 7, 23 << 17 | 0x1FFFF),
        ("scales", 7, (-8 & 63) << 17),
        ("tables", 4, (1 << 18) - 1),
        ("tables", 5, 0xFFFE0000),
    ):
        verify(assemble(images=word_changed(name, index, value)))
