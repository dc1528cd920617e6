# SPDX-License-Identifier: Apache-2.0
"""The verifier: each rule broken on its own, and every single bit of the code flipped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from small_program import assemble, begin, cell, changed, code, manifest, matvec, new, old, scratch, spaces

from gharial.errors import BadInput
from gharial.isa.header import HEADER
from gharial.isa.instructions import LOOKUP, MATVEC, NO_SECOND, Opcode, Post, Predicate, i8_range
from gharial.program import Program, verify
from gharial.program.code import decode, disassemble


def refusal(program: Program) -> str:
    with pytest.raises(BadInput) as caught:
        verify(program)
    assert 1 <= len(str(caught.value).splitlines()) <= 3
    return str(caught.value)


@pytest.mark.parametrize(
    ("section", "index", "fields", "words"),
    [
        # fields
        ("encode", 2, {"predicate": 3}, "undefined predicate"),
        ("predict", 1, {"predicate": Predicate.MORE}, "predicate on feature vectors"),
        ("joint", 0, {"predicate": Predicate.AT_MOST, "threshold": 3}, "predicate on feature vectors"),
        ("encode", 1, {"vectors_less_1": 2}, "more feature vectors than a step has"),
        ("predict", 1, {"vectors_less_1": 1}, "more feature vectors than a step has"),
        ("encode", 2, {"row_groups": 0}, "without rows or columns"),
        ("encode", 2, {"col_tiles": 0}, "without rows or columns"),
        ("encode", 2, {"first": 2}, "mask names a vector"),
        ("encode", 2, {"last": 3}, "mask names a vector"),
        ("encode", 2, {"last": 0}, "post-operation without a vector"),
        ("encode", 2, {"post": 0}, "post-operation without a vector"),
        ("encode", 2, {"post": 7}, "post-operation that this section does not have"),
        ("encode", 2, {"shift": 7}, "CELL with a unit out of range"),
        ("encode", 2, {"qh": 4}, "CELL with a unit out of range"),
        ("encode", 2, {"qh": 15}, "CELL with a unit out of range"),
        ("encode", 0, {"constant": 2}, "undefined kind"),
        ("encode", 0, {"units": 0}, "LOOKUP of nothing"),
        ("encode", 0, {"constant": 0}, "token's row, which only section predict has"),
        ("joint", 0, {"cell_units": 0}, "JOINT of nothing"),
        ("joint", 0, {"shift": 9}, "JOINT of nothing, or with a shift"),
        ("joint", 0, {"shift": 5}, "other joint shift"),
        # ranges
        ("encode", 2, {"tile": 13}, "weights out of range"),
        ("encode", 2, {"scale_group": 10}, "scales out of range"),
        ("encode", 3, {"bias_group": 6}, "biases out of range"),
        ("encode", 1, {"sum": 3}, "sums out of range"),
        ("encode", 1, {"source_stride": 9}, "scratch out of range"),
        ("encode", 3, {"source": old(2)}, "old state out of range"),
        ("encode", 7, {"source": new(2)}, "new state out of range"),
        ("encode", 7, {"source": 3 << 14}, "source in a space that it may not name"),
        ("encode", 2, {"destination": old(0)}, "destination in a space that it may not name"),
        ("encode", 4, {"second": old(0)}, "second destination in a space"),
        ("encode", 4, {"second": new(2)}, "new state out of range"),
        ("encode", 2, {"cell": 10}, "new cells out of range"),
        ("encode", 2, {"cell": 2}, "cells lie where outputs are stored"),
        ("predict", 2, {"cell": 1}, "cells lie where outputs are stored"),
        ("encode", 7, {"destination": 1}, "joint_enc's bank out of range"),
        ("predict", 3, {"destination": 1}, "joint_pred out of range"),
        ("predict", 0, {"unit": 2}, "embedding out of range"),
        ("encode", 0, {"unit": 16}, "embedding out of range"),
        ("joint", 0, {"encoder": 1}, "joint_enc's bank out of range"),
        ("joint", 0, {"prediction": 1}, "joint_pred out of range"),
        ("joint", 0, {"destination": scratch(6)}, "scratch out of range"),
        ("joint", 0, {"destination": new(0)}, "destination in a space"),
        ("joint", 1, {"source": new(0)}, "source in a space"),
        # dependencies
        ("encode", 4, {"depends": 2}, "reads a result without waiting"),
        ("encode", 4, {"depends": 0}, "reads a result without waiting"),
        ("encode", 6, {"depends": 0}, "reads a result without waiting"),
        ("encode", 7, {"depends": 6}, "reads a result without waiting"),
        ("predict", 2, {"depends": 0}, "reads a result without waiting"),
        ("predict", 3, {"depends": 2}, "reads a result without waiting"),
        ("joint", 1, {"depends": 0}, "reads a result without waiting"),
        ("encode", 4, {"depends": 5}, "depends on itself or a later"),
        ("encode", 4, {"depends": 9}, "depends on itself or a later"),
        # order
        ("encode", 2, {"destination": new(0)}, "writes over what it still reads"),
        ("encode", 4, {"second": scratch(3)}, "writes one place twice"),
        ("encode", 4, {"second": scratch(2)}, "writes over what it still reads"),
        ("encode", 2, {"destination": scratch(3)}, "may still be outstanding|nobody has written"),
        ("encode", 7, {"source": new(0), "depends": 7}, "nobody has written"),
        ("encode", 5, {"source": scratch(8)}, "nobody has written"),
        ("encode", 1, {"source": scratch(8), "source_stride": 0}, "nobody has written"),
        ("encode", 1, {"source": scratch(1)}, "nobody has written"),
        ("predict", 2, {"destination": scratch(5)}, "nobody has written"),
        # which layer it is
        ("encode", 2, {"scale_group": 0}, "other scales of encoder.pre_rnn.0, part 1"),
        ("encode", 3, {"bias_group": 0}, "other biases of encoder.post_rnn.0"),
        ("encode", 2, {"shift": 12}, "units of encoder.pre_rnn.0 differ"),
        ("encode", 2, {"qh": 8}, "units of encoder.pre_rnn.0 differ"),
        (
            "encode",
            7,
            {"post": Post.I8, "destination": scratch(4), "second": i8_range(127, True)},
            "all of joint_enc's bank",
        ),
        ("joint", 1, {"col_tiles": 3}, "tiles are not those of logits"),
        ("joint", 1, {"tile": 8, "scale_group": 8}, "tiles are not those of joint_pred"),
        ("encode", 3, {"tile": 1, "scale_group": 1, "bias_group": 0}, "lacks a part|another product|not ended"),
        # sums
        ("encode", 2, {"sum": 1}, "another product|not ended|nothing ends"),
        ("encode", 5, {"sum": 3}, "goes on from sums of another product"),
        ("encode", 3, {"sum": 1}, "begins over a product that is not ended"),
        ("encode", 5, {"tile": 2, "scale_group": 2, "source": old(1), "depends": 0}, "adds a part twice"),
        ("encode", 6, {"first": 1, "bias_group": 1}, "lacks a part"),
        ("encode", 6, {"last": 0, "post": 0}, "bank|nothing ends|written"),
        # meaning
        ("encode", 0, {"unit": 14}, "LOOKUP of something else than the pad"),
        ("predict", 0, {"unit": 1}, "LOOKUP of something else than the token"),
        ("predict", 0, {"constant": 1}, "LOOKUP of something else than the pad"),
        ("encode", 1, {"source": old(0)}, "encoder.pre_rnn.0 reads something else than its x"),
        ("encode", 1, {"source_stride": 0}, "adds to sums of another feature vector"),
        ("encode", 2, {"source": scratch(0)}, "encoder.pre_rnn.0 reads something else than its h"),
        ("encode", 2, {"cell": 1}, "cells of encoder.pre_rnn.0 elsewhere"),
        ("encode", 3, {"source": old(0)}, "encoder.post_rnn.0 reads something else than its h"),
        ("encode", 4, {"predicate": Predicate.ALWAYS, "threshold": 0}, "feature vector that the entry does not have"),
        ("encode", 4, {"source": scratch(0)}, "encoder.pre_rnn.0 reads something else than its h"),
        ("encode", 4, {"second": NO_SECOND}, "new h of encoder.pre_rnn.0 is not where the old one was"),
        ("encode", 4, {"second": new(1)}, "outstanding|new h of encoder.pre_rnn.0"),
        ("encode", 5, {"source": scratch(1)}, "encoder.post_rnn.0 reads something else than its x"),
        ("encode", 6, {"source": scratch(2)}, "encoder.post_rnn.0 reads something else than its x"),
        ("encode", 7, {"source": scratch(3)}, "joint_enc reads something else than its x"),
        ("predict", 1, {"source": scratch(4), "depends": 1}, "prediction.0 reads something else than its h"),
        # apart
        ("predict", 1, {"sum": 0}, "another product|sum group that section encode uses"),
        ("predict", 0, {"destination": scratch(3)}, "nobody has written|scratch unit that section encode uses"),
    ],
)
def test_a_rule_broken(section: str, index: int, fields: dict[str, int], words: str) -> None:
    text = refusal(assemble(changed(section, index, **fields)))
    assert any(word in text for word in words.split("|")), text


@pytest.mark.parametrize(
    ("section", "index", "fields"),
    [
        ("encode", 2, {"row_groups": 0}),
        ("encode", 4, {"depends": 0}),
        ("encode", 5, {"sum": 3}),
        ("joint", 1, {"tile": 99}),
    ],
)
def test_the_instruction_is_named(section: str, index: int, fields: dict[str, int]) -> None:
    text = refusal(assemble(changed(section, index, **fields)))
    assert text.startswith(f"program: {section}[{index}] MATVEC: ")


def with_code(change: Callable[[dict[str, list[dict[str, int]]]], None]) -> Program:
    sections = code()
    change(sections)
    return assemble(sections, entries=manifest() | {"trace": []})


def test_an_lstm_may_not_overwrite_the_h_it_still_reads() -> None:
    """x first and h last, in place: the first row groups' h' would reach the later ones."""

    def swap(sections: dict[str, list[dict[str, int]]]) -> None:
        sections["predict"][1] = matvec(7, scratch(4), sum=3, depends=1, **begin(3))
        sections["predict"][2] = matvec(6, old(0), sum=3, **cell(new(0), 0))

    assert "predict[2] MATVEC: writes over what it still reads" in refusal(with_code(swap))


def test_old_state_read_after_it_was_replaced() -> None:
    def late(sections: dict[str, list[dict[str, int]]]) -> None:
        sections["encode"][7]["source"] = old(1)

    assert "encode[7] MATVEC: reads old state that was already replaced" in refusal(with_code(late))


def test_another_unit_may_not_overtake_a_product() -> None:
    """A LOOKUP is not held back by the products before it: it has to wait for those that read where it writes."""

    def reuse(sections: dict[str, list[dict[str, int]]], depends: int) -> None:
        again = {"opcode": Opcode.LOOKUP, "unit": 0, "units": 1, "destination": scratch(4), "depends": depends}
        sections["predict"].insert(3, again)
        sections["predict"][4]["depends"] = 4

    assert "writes over what may still be read" in refusal(with_code(lambda s: reuse(s, 2)))
    verify(with_code(lambda s: reuse(s, 3)))


def test_state_must_reach_another_slot() -> None:
    """A prediction slot's h is read but never written: in a new slot it would be missing."""

    def forget(sections: dict[str, list[dict[str, int]]]) -> None:
        sections["predict"][2]["destination"] = scratch(5)
        sections["predict"][3]["source"] = scratch(5)

    assert "predict[1] MATVEC: reads state that the section never writes" in refusal(with_code(forget))


def test_outputs_must_be_written() -> None:
    for section, word in (("encode", "joint_enc's bank"), ("predict", "joint_pred"), ("joint", "logits")):
        assert f"does not write all of {word}" in refusal(with_code(lambda s, name=section: s[name].pop()))


def test_layers_belong_to_their_section() -> None:
    """The decoder's products in section encode, and JOINT from the middle of its input."""
    assert "slots are not laid out" in refusal(assemble(fields={"enc_c_units": 11}))

    def extra(sections: dict[str, list[dict[str, int]]]) -> None:
        more = matvec(8, new(1), sum=3, depends=7, **begin(4))
        sections["encode"].insert(7, more | {"last": 1, "post": Post.I16})

    text = refusal(with_code(extra))
    assert "outstanding" in text or "belongs to section predict" in text


def test_networks_of_other_layers_are_not_followed() -> None:
    """Names that are no transducer's: what feeds what is not known, everything else is checked all the same."""
    entries = manifest() | {"trace": []}
    for layer in entries["layers"]:
        layer["name"] = layer["name"].replace("encoder.", "acoustic.")
    verify(assemble(changed("encode", 2, source=scratch(0)), entries=entries))
    assert "nobody has written" in refusal(assemble(changed("encode", 2, source=scratch(8)), entries=entries))


@pytest.mark.parametrize("name", ["tiny", "ecp5-85f", "kv260", "u50", "u55c"])
def test_what_the_compiler_makes(name: str, seed: int) -> None:
    """Random sizes, padded wherever that can be."""
    compiled = pytest.importorskip("compiled", reason="needs the compiler")
    random = np.random.default_rng(seed)
    for _ in range(4):
        verify(compiled.program(int(random.integers(1 << 30)), name, compiled.random_dims(random)))


def test_the_pad_is_needed() -> None:
    """Without the LOOKUP an entry of one vector would use what an earlier command left in scratch."""

    def no_pad(sections: dict[str, list[dict[str, int]]]) -> None:
        del sections["encode"][0]
        for instruction in sections["encode"]:
            instruction["depends"] = max(0, instruction.get("depends", 0) - 1)

    assert "encode[5] MATVEC: uses activations that nobody has written" in refusal(with_code(no_pad))


def test_predicates_that_overlap() -> None:
    """Pad and h both write where there are two vectors."""
    always = changed("encode", 0, predicate=Predicate.ALWAYS, threshold=0)
    verify(assemble(always))  # harmless: the cell waits for an instruction behind the LOOKUP
    assert "may still be outstanding" in refusal(
        with_code(lambda s: s["encode"][2].update(destination=scratch(3)) or s["encode"][0].update(always["encode"][0]))
    )


def test_later_dependencies_are_enough() -> None:
    verify(assemble(changed("encode", 5, depends=5)))
    verify(assemble(changed("encode", 5, depends=0)))  # the one before it waits for the same


def test_logits_of_all_classes() -> None:
    more = {"embedding": spaces(1)["embedding"] + bytes(8)}  # rows for 17 tokens
    assert "logits of other rows than the classes" in refusal(
        assemble(fields={"classes": 17, "tokens": 17}, images=more)
    )
    two = {"row_groups": 2, "col_tiles": 1, "tile": 5, "scale_group": 5, "bias_group": 4}
    assert "logits of other rows than the classes" in refusal(assemble(changed("joint", 1, **two)))


def test_sections_and_opcodes() -> None:
    assert "undefined opcode" in refusal(patched(0, 9))
    assert "a bit set that it does not have" in refusal(patched(2, 1))  # word 2 of a LOOKUP, low half
    assert "does not lie in the code" in refusal(assemble(fields={"joint_count": 3}))
    assert "instructions of section predict is out of range" in refusal(assemble(fields={"predict_count": 300}))
    long = code()
    long["encode"] = [matvec(0, scratch(0), **begin(0), sum=0)] * 200
    assert "section code is too long" in refusal(assemble(long))


def patched(word: int, value: int) -> Program:
    """The program with one word of its first instruction (a LOOKUP) replaced."""
    program = assemble()
    image = bytearray(program.sections["code"])
    at = HEADER.bytes + 4 * word
    image[at : at + 4] = value.to_bytes(4, "little")
    return Program(program.manifest, program.sections | {"code": bytes(image)})


def test_unused_fields_and_lists() -> None:
    """Decoding and listing take any program that passes."""
    instructions = decode(assemble())
    assert [i.name for i in instructions["joint"]] == ["joint[0] JOINT", "joint[1] MATVEC"]
    assert instructions["encode"][4].runs(2) and not instructions["encode"][4].runs(1)
    assert instructions["encode"][0].runs(1) and not instructions["encode"][0].runs(2)
    assert MATVEC.words == LOOKUP.words == 8 and NO_SECOND == 0xFFFF
    for i8 in (i8_range(20, False), i8_range(127, True)):
        changes = {"post": Post.I8, "second": i8, "shift": 2, "destination": scratch(5)}
        line = disassemble(assemble(changed("predict", 3, **changes)))[3]
        assert f"I8 shift 2 in {'-127' if i8 & 128 else '0'}..{i8 & 127} to scratch[5]" in line
