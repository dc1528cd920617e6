# SPDX-License-Identifier: Apache-2.0
"""Every key of a manifest: missing, of a wrong type, out of range, or against another."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from small_program import assemble, manifest

from gharial.errors import BadInput
from gharial.program import verify

Path = tuple[Any, ...]

# Keys whose absence or null is good.
OPTIONAL = {("decoding", "prefix_spec"), ("decoding", "ngram_scale")}


def leaves(value: Any, at: Path = ()) -> Iterator[Path]:
    """Every key and index in the manifest."""
    if at:
        yield at
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from leaves(inner, (*at, key))


def replaced(at: Path, value: Any) -> dict[str, Any]:
    """The good manifest with another value at a place; `...` deletes the key."""
    result = copy.deepcopy(manifest()) | {"program_id": assemble().program_id}
    holder = result
    for key in at[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[at[-1]]
    else:
        holder[at[-1]] = value
    return result


def refusal(entries: dict[str, Any]) -> BadInput:
    with pytest.raises(BadInput) as caught:
        verify(assemble(entries=entries))
    assert 1 <= len(str(caught.value).splitlines()) <= 3
    return caught.value


KEYS = [*leaves(manifest()), ("program_id",)]
GOOD = [(("model", "dims"), {"x": 1}), (("decoding", "ngram_scale"), -1)]


def test_the_manifest_is_good_as_it_stands() -> None:
    verify(assemble())


@pytest.mark.parametrize("at", [k for k in KEYS if isinstance(k[-1], str) and k[:-1] != ("model", "dims")], ids=str)
def test_missing_key(at: Path) -> None:
    if at == ("program_id",):
        program = assemble()
        del program.manifest["program_id"]
        with pytest.raises(BadInput, match="program_id"):
            verify(program)
    elif at in OPTIONAL:
        verify(assemble(entries=replaced(at, ...)))
    else:
        assert str(at[-1]) in str(refusal(replaced(at, ...)))


@pytest.mark.parametrize("at", KEYS, ids=str)
def test_wrong_type(at: Path) -> None:
    for value in (None, True, [[]], {"x": 1}, "\N{SNOWMAN}", 1e400, -1, 10**50):
        if (value is None and at in OPTIONAL) or (at, value) in GOOD:
            continue
        if at[-1] in ("name", "version", "compiler") and isinstance(value, str) and at[0] != "layers":
            continue  # free text
        try:
            refusal(replaced(at, value))
        except pytest.fail.Exception:
            pytest.fail(f"{at} = {value!r} was not refused")


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (("features", "count"), 5, "features padded wrongly"),
        (("features", "padded"), 6, "features padded wrongly"),
        (("features", "padded"), 8, "bytes of a feature vector differs"),
        (("features", "frac_bits"), 5, "contradict"),
        (("features", "n_mels"), 5, "melmeans"),
        (("numerics", "frac_bits", "logits"), 9, "logit fraction bits differs"),
        (("features", "given"), 1, "true or false"),
        (("numerics", "joint_shift"), 5, "other joint shift"),
        (("numerics", "joint_unit"), 0.0, "joint_unit"),
        (("numerics", "joint_unit"), float("nan"), "joint_unit"),
        (("decoding", "blank"), 3, "blank differs"),
        (("decoding", "max_symbols"), 256, "max_symbols"),
        (("decoding", "prefix_spec"), {"default_prefix": "a"}, "valid_prefix"),
        (("program_id",), 1, "program id of the manifest"),
        (("pad", "embedding_unit"), 16, "lies outside the section pad"),
        (("layers", 0, "name"), "joint_enc", "two layers have one name"),
        (("layers", 0, "kind"), "gru", "kind"),
        (("layers", 0, "units"), 5, "units padded wrongly"),
        (("layers", 0, "row_groups"), 2, "row_groups"),
        (("layers", 2, "bias_group"), 6, "outside the section biases"),
        (("layers", 0, "parts", 0, "tile"), 13, "outside the section weights"),
        (("layers", 0, "parts", 0, "scale_group"), 10, "outside the section scales"),
        (("layers", 0, "parts", 0, "columns"), 5, "columns padded wrongly"),
        (("layers", 0, "parts", 0, "padded"), 5, "columns padded wrongly"),
        (("layers", 0, "parts", 0, "columns"), 3, "padding column"),
        (("trace", 0, "layer"), "joint_pred2", "unknown layer"),
        (("trace", 0, "instruction"), 8, "no such instruction"),
        (("trace", 0, "instruction"), 1, "another number of outputs"),
        (("trace", 0, "layer"), "encoder.post_rnn.0", "traced as another layer"),
        (("trace", 6, "layer"), "logits", "no joint"),
    ],
    ids=str,
)
def test_values_that_contradict(at: Path, value: Any, words: str) -> None:
    assert words in str(refusal(replaced(at, value)))


def test_a_prefix_spec_may_be_there() -> None:
    verify(assemble(entries=replaced(("decoding", "prefix_spec"), {"valid_prefix": "a|b", "default_prefix": None})))


def test_strange_values_are_shown_short() -> None:
    for value in ("x" * 5000, "two\nlines", ["x"] * 5000, 1 << 4000):
        assert len(str(refusal(replaced(("features", "hop"), value)))) < 300


# The arrays that layers name


def test_layers_give_the_matrices_back() -> None:
    """The formula of docs/isa.md, section 2, byte by byte."""
    program = assemble()
    weights = program.part_weights("logits", 0)
    raw = np.frombuffer(program.sections["weights"], np.int8)
    assert weights.shape == (16, 16)
    for row, column in np.ndindex(16, 16):
        t, c = divmod(column, 4)
        assert weights[row, column] == raw[((9 + t) * 16 + row) * 4 + c]
    m, k = program.part_scales("joint_pred", 0)
    words = np.frombuffer(program.sections["scales"], "<u4")[8 * 16 : 9 * 16]
    assert (m == words & 0x1FFFF).all() and (k == 1).all()
    biases = np.frombuffer(program.sections["biases"], "<i4")[4 * 16 : 5 * 16]
    assert (program.biases("joint_pred") == biases).all()


def test_negative_shifts() -> None:
    scales = bytearray(assemble().sections["scales"])
    scales[0:4] = (1 << 16 | (-8 & 0x3F) << 17).to_bytes(4, "little")
    program = assemble(images={"scales": bytes(scales)})
    verify(program)
    assert program.part_scales("encoder.pre_rnn.0", 0)[1][0] == -8


def test_lookups_that_fail() -> None:
    program = assemble()
    for call in (
        lambda: program.layer("absent"),
        lambda: program.part_weights("joint", 0),
        lambda: program.part_weights("logits", 1),
        lambda: program.section("absent"),
        lambda: program.array("sentencepiece", np.float64),
    ):
        with pytest.raises(BadInput):
            call()
