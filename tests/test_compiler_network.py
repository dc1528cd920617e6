# SPDX-License-Identifier: Apache-2.0
"""The compiler over shapes and configurations: multipliers, scheduling, and programs that pass the verifier."""

from __future__ import annotations

from dataclasses import replace

import compiled
import numpy as np
import pytest
from random_checkpoint import SMALL

from gharial.compiler.quantise import multipliers
from gharial.compiler.schedule import Op, SumRoom, schedule
from gharial.compiler.units import choose_units
from gharial.errors import BadInput
from gharial.floating import Magnitude, Ranges


def test_multiplier_and_shift_reproduce_the_ratio(seed: int) -> None:
    """m * 2^-(k + 17) is the ratio to half a unit of m's last place, over all shifts."""
    rng = np.random.default_rng(seed)
    ratio = 2.0 ** rng.uniform(-23, 8, 20000)
    m, k = multipliers(ratio, "test")
    assert m.min() >= 1 << 16
    assert m.max() < 1 << 17
    assert k.min() >= -8
    assert k.max() <= 23
    assert np.all(np.abs(m * 2.0 ** -(k + 17.0) / ratio - 1) <= 2.0**-17)


def test_rows_of_zeros_and_tiny_rows() -> None:
    """A zero ratio has m = 0, k = 0; one below the output's resolution keeps k at its limit and loses bits of m."""
    m, k = multipliers(np.array([0.0, 2.0**-26, 2.0**-60]), "test")
    assert m.tolist() == [0, 1 << 14, 0]
    assert k.tolist() == [0, 23, 23]


def test_mantissa_that_rounds_up_moves_the_shift() -> None:
    """A mantissa that rounds to 2^17 becomes 2^16 with k one less."""
    m, k = multipliers(np.array([np.nextafter(1.0, 0.0)]), "test")
    assert m.tolist() == [1 << 16]
    assert k.tolist() == [-1]


def test_weights_too_large_are_refused() -> None:
    """More than 2^8 output steps a weight step cannot be expressed."""
    with pytest.raises(BadInput, match="too large"):
        multipliers(np.array([300.0]), "layer")


def test_the_joints_inputs_fit_where_its_relu_passes_nothing(seed: int) -> None:
    """Outputs that are all negative have a unit that holds them, not the one that a joint of zeros would ask for."""
    nothing = Magnitude(0, 0.0, 0.0)
    fields = dict.fromkeys(("features", "joint_pred", "joint", "logits"), nothing)
    for largest in np.exp(np.random.default_rng(seed).uniform(-5, 8, 20)).tolist():
        enc = Magnitude(1, largest, largest)
        units = choose_units(Ranges(1, 1, 1, pre={}, h={}, c={}, joint_enc=enc, **fields), 4)
        step = units.joint * 2.0**-units.joint_shift
        assert largest / step <= 32767
        assert largest / step > 32767 / 4 or units.joint <= 2.0**-10 / 127


def _op(layer: str, vectors: tuple[int, ...], reads: tuple[tuple[str, int], ...], first: bool, last: bool) -> Op:
    chosen = frozenset(vectors)
    return Op(layer, 0, vectors, chosen if first else frozenset(), chosen if last else frozenset(), reads, 64, layer, 8)


def test_a_waiting_layer_is_filled_with_a_later_recurrent_part() -> None:
    """Layer b's x part has to wait for a; c's h part does not, and comes before it."""
    ops = [
        _op("a", (0,), (), True, True),
        _op("b", (0,), (), True, False),
        _op("b", (0,), (("a", 0),), False, True),
        _op("c", (0,), (), True, False),
        _op("c", (0,), (("b", 0),), False, True),
    ]
    order = schedule(ops, SumRoom(24))
    assert order is not None
    names = [(op.layer, bool(op.first)) for op, _ in order]
    assert names.index(("c", True)) < names.index(("c", False))
    assert names[:2] == [("a", True), ("b", True)]
    assert sorted(names) == sorted((op.layer, bool(op.first)) for op in ops)


def test_without_room_for_sums_the_order_stays_plain_or_is_refused() -> None:
    """Pulling c forward needs 16 sum groups; with 8 the plain order stands, with 4 there is none."""
    ops = [
        _op("b", (0,), (), True, False),
        _op("b", (0,), (("a", 0),), False, True),
        _op("c", (0,), (), True, False),
        _op("c", (0,), (("b", 0),), False, True),
    ]
    order = schedule(list(ops), SumRoom(8))
    assert order is not None
    assert [op.layer for op, _ in order] == ["b", "b", "c", "c"]
    assert schedule(list(ops), SumRoom(4)) is None


@pytest.mark.parametrize("name", ["tiny", "ecp5-85f", "kv260", "u50", "u55c"])
@pytest.mark.parametrize("stack", [1, 2, 3, 4])
@pytest.mark.parametrize("post_layers", [2, 0])
def test_every_shape_and_configuration_passes_the_verifier(name: str, stack: int, post_layers: int) -> None:
    """The compiler verifies what it makes; one vector a step is the case in which the first layer runs h first."""
    made = compiled.program(stack, name, replace(SMALL, stack=stack, post_layers=post_layers))
    assert made.header["vectors"] == stack
    assert made.config.name == name
    layer = "encoder.post_rnn.0" if post_layers else "joint_enc"
    assert sum(part["input"] == "x" for part in made.layer(layer)["parts"]) == stack
    for index, part in enumerate(made.layer(layer)["parts"]):
        weights = made.part_weights(layer, index)
        assert np.abs(weights[:, : part["columns"]]).max() == 127
        assert not weights[:, part["columns"] :].any()
